//! A pool of prefetched keys, so that a new epoch does not wait for the KME.

use crate::client::Kme;
use crate::error::{Failure, KmeError};
use crate::key::QkdKey;
use crate::types::{KeyRequest, Status};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Maximum number of keys per request, whatever the KME allows: the response must fit its limit.
const BATCH_MAX: usize = 128;

/// Configuration of a [`Pool`].
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The SAE that gets the same keys.
    pub slave: String,
    /// Size of each key in bits, a multiple of 8.
    pub key_bits: u32,
    /// Number of keys to keep ready.
    pub target: usize,
    /// Older keys are wiped: the peer's KME may have discarded its copies. They are replaced when
    /// keys are next taken, not before, so that a pool that is rarely used does not consume keys
    /// continuously.
    pub max_age: Duration,
    /// The first pause after a failure, unless the KME requests another; it doubles up to
    /// [`retry_max`](Self::retry_max).
    pub retry_min: Duration,
    /// The longest pause.
    pub retry_max: Duration,
}

impl PoolSettings {
    /// 8 keys of 256 bits for `slave`, at most one minute old; pauses of 100 ms to 2 s.
    #[must_use]
    pub fn new(slave: impl Into<String>) -> Self {
        Self {
            slave: slave.into(),
            key_bits: 256,
            target: 8,
            max_age: Duration::from_secs(60),
            retry_min: Duration::from_millis(100),
            retry_max: Duration::from_secs(2),
        }
    }
}

/// A stock of new keys for one slave SAE, refilled by a task of the runtime. No key is returned
/// twice. Remaining keys are wiped when the pool is dropped.
pub struct Pool {
    shared: Arc<Shared>,
    refiller: JoinHandle<()>,
}

struct Shared {
    settings: PoolSettings,
    stock: Mutex<Stock>,
    /// Wakes the refiller: keys were taken, or a caller waits for keys.
    taken: Notify,
    /// Wakes waiting callers: keys arrived, or a request failed.
    filled: Notify,
}

#[derive(Default)]
struct Stock {
    /// The keys with the times at which they were requested, oldest first.
    keys: VecDeque<(Instant, QkdKey)>,
    /// Number of keys that callers wait for.
    demand: usize,
    /// Keys expired without being taken: no refill until keys are next taken.
    resting: bool,
    /// The failure of the last request, if it failed.
    failure: Option<KmeError>,
}

impl Pool {
    /// Starts fetching keys.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn start(kme: Kme, settings: PoolSettings) -> Self {
        let shared = Arc::new(Shared {
            settings,
            stock: Mutex::default(),
            taken: Notify::new(),
            filled: Notify::new(),
        });
        // A task, so that keys are ready before they are needed.
        let refiller = tokio::spawn(refill(kme, Arc::clone(&shared)));
        Self { shared, refiller }
    }

    /// Takes `count` keys, the oldest first. Waits for the KME if there are too few, unless the
    /// last request failed: then returns that failure at once, while requests go on in the
    /// background.
    ///
    /// Cancel safe: no key is taken if the future is dropped.
    ///
    /// # Errors
    /// [`KmeError`] of the last request.
    pub async fn take(&self, count: usize) -> Result<Vec<QkdKey>, KmeError> {
        let shared = &*self.shared;
        let mut demand = None;
        loop {
            let mut filled = pin!(shared.filled.notified());
            // Registered before the stock is checked, so that no notification is missed.
            filled.as_mut().enable();
            {
                let mut stock = shared.stock();
                stock.discard(shared.settings.max_age);
                // Never a part of the demand: the keys would be lost if the caller gave up waiting
                // for the rest.
                if stock.keys.len() >= count {
                    // Somebody uses the tunnel: the stock may fill up again.
                    stock.resting = false;
                    let keys = stock.keys.drain(..count).map(|(_, key)| key).collect();
                    shared.taken.notify_one();
                    return Ok(keys);
                }
                if let Some(failure) = &stock.failure {
                    return Err(failure.clone());
                }
                // Once per call, although the loop may run several times.
                if demand.is_none() {
                    stock.demand += count;
                    demand = Some(Demand { shared, count });
                }
            }
            shared.taken.notify_one();
            filled.await;
        }
    }

    /// Number of keys that are ready now.
    #[must_use]
    pub fn ready(&self) -> usize {
        let mut stock = self.shared.stock();
        stock.discard(self.shared.settings.max_age);
        stock.keys.len()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.refiller.abort();
        // The aborted task may hold the stock a moment longer; the keys are wiped now.
        self.shared.stock().keys.clear();
    }
}

/// A caller's demand for keys, until this is dropped.
struct Demand<'a> {
    shared: &'a Shared,
    count: usize,
}

impl Drop for Demand<'_> {
    fn drop(&mut self) {
        self.shared.stock().demand -= self.count;
    }
}

impl Shared {
    /// Locks the stock. The guard is never held across an await.
    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of missing keys, and when the oldest key expires.
    fn missing(&self) -> (usize, Option<Instant>) {
        let mut stock = self.stock();
        stock.discard(self.settings.max_age);
        // At rest only waiting callers count, so that an idle tunnel does not use up keys that
        // expire.
        let wanted = match (stock.resting, &stock.failure) {
            (true, None) => stock.demand,
            // Only a successful request clears a failure.
            (true, Some(_)) => stock.demand.max(1),
            (false, _) => stock.demand.max(self.settings.target),
        };
        let missing = wanted.saturating_sub(stock.keys.len());
        let oldest = stock.keys.front().map(|(since, _)| *since);
        (missing, oldest.map(|since| since + self.settings.max_age))
    }

    fn end_of_request(&self, asked_at: Instant, result: Result<Vec<QkdKey>, KmeError>) {
        {
            let mut stock = self.stock();
            match result {
                Ok(keys) => {
                    let keys = keys.into_iter().map(|key| (asked_at, key));
                    // At the back: they were requested last, so the queue stays in the order of
                    // age.
                    stock.keys.extend(keys);
                    stock.failure = None;
                }
                Err(failure) => stock.failure = Some(failure),
            }
        }
        // Outside of the lock, which the woken callers take first.
        self.filled.notify_waiters();
    }
}

impl Stock {
    fn discard(&mut self, max_age: Duration) {
        let now = Instant::now();
        let too_old = |since: &Instant| now.duration_since(*since) >= max_age;
        // From the front: behind the first key that is young enough all are.
        while self.keys.front().is_some_and(|(since, _)| too_old(since)) {
            self.keys.pop_front();
            // Nobody took it in time: more would expire in the same way.
            self.resting = true;
        }
    }
}

/// Keeps the stock full while the task lives.
async fn refill(kme: Kme, shared: Arc<Shared>) {
    let settings = &shared.settings;
    let mut pause = settings.retry_min;
    let mut not_before: Option<Instant> = None;
    loop {
        let (missing, expiry) = shared.missing();
        // The age of a key counts from the request: the KME may have made it right then.
        let now = Instant::now();
        if missing > 0 && not_before.is_none_or(|time| time <= now) {
            let result = fetch(&kme, settings, missing).await;
            match &result {
                Ok(_) => {
                    pause = settings.retry_min;
                    not_before = None;
                }
                Err(error) => {
                    let wish = error.retry_after().unwrap_or(pause);
                    // The KME's wish within this side's limits: it must neither stop the pool for
                    // hours nor cause a flood.
                    let wait = wish.min(settings.retry_max).max(settings.retry_min);
                    not_before = Some(Instant::now() + wait);
                    pause = (2 * pause).min(settings.retry_max);
                }
            }
            shared.end_of_request(now, result);
            continue;
        }
        // Without a missing key there is nothing to retry.
        let retry = not_before.filter(|_| missing > 0);
        // A notification since the stock was read is kept as a permit, so none is missed.
        let taken = shared.taken.notified();
        match [expiry, retry].into_iter().flatten().min() {
            // Whichever comes first, the next round reads the stock.
            Some(time) => drop(timeout_at(time, taken).await),
            None => taken.await,
        }
    }
}

/// Fetches as many of the missing keys as the KME's status allows, at least one.
///
/// Each fetch reads the status first: this costs a round trip in the background, and avoids a
/// request that a KME with a nearly empty store would reject as a whole.
async fn fetch(
    kme: &Kme,
    settings: &PoolSettings,
    missing: usize,
) -> Result<Vec<QkdKey>, KmeError> {
    let status = kme.status(&settings.slave).await?;
    check_size(&status, settings.key_bits).map_err(|failure| KmeError {
        url: kme.url().to_owned(),
        failure,
    })?;
    let number = batch(&status, missing);
    let request = KeyRequest::new(number, settings.key_bits);
    kme.new_keys(&settings.slave, &request).await
}

fn batch(status: &Status, missing: usize) -> u32 {
    let limit = status.max_key_per_request.min(status.stored_key_count);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // At least one, even if the store is empty: the KME's refusal then says why.
    missing.min(limit).clamp(1, BATCH_MAX) as u32
}

fn check_size(status: &Status, bits: u32) -> Result<(), Failure> {
    let (least, most) = (status.min_key_size, status.max_key_size);
    if (least..=most).contains(&bits) {
        return Ok(());
    }
    Err(Failure::Request(format!(
        "keys of {bits} bits are needed, but the KME has keys of {least} to {most} (its configuration must allow {bits})"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(per_request: u64, stored: u64) -> Status {
        Status {
            source_kme_id: String::new(),
            target_kme_id: String::new(),
            master_sae_id: String::new(),
            slave_sae_id: String::new(),
            key_size: 256,
            stored_key_count: stored,
            max_key_count: None,
            max_key_per_request: per_request,
            max_key_size: 1024,
            min_key_size: 64,
            max_sae_id_count: 0,
            status_extension: None,
        }
    }

    #[test]
    fn requests_the_missing_keys_within_the_limits_of_the_kme() {
        assert_eq!(batch(&status(128, 1000), 8), 8);
        assert_eq!(batch(&status(4, 1000), 8), 4);
        assert_eq!(batch(&status(128, 3), 8), 3);
        assert_eq!(batch(&status(128, 0), 8), 1, "the KME itself must refuse");
        assert_eq!(batch(&status(0, 5), 8), 1);
        assert_eq!(batch(&status(u64::MAX, u64::MAX), usize::MAX), 128);
    }

    #[test]
    fn refuses_a_kme_without_keys_of_that_size() {
        assert_eq!(check_size(&status(1, 1), 256), Ok(()));
        for bits in [56, 2048] {
            let error = check_size(&status(1, 1), bits).unwrap_err().to_string();
            assert!(error.contains("64 to 1024"), "{error}");
        }
    }
}
