//! Keys fetched before they are needed, so that a new epoch does not wait for the KME.

use crate::client::{Kme, QkdKey};
use crate::error::{Failure, KmeError};
use crate::types::{KeyRequest, Status};
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Keys that one request asks for at most, whatever the KME allows: their answer must fit.
const BATCH_MAX: usize = 128;

/// How a [`Pool`] works.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The SAE that gets the same keys.
    pub slave: String,
    /// Size of each key in bits, a multiple of 8.
    pub key_bits: u32,
    /// Keys to have ready.
    pub target: usize,
    /// Older keys are wiped: a KME may have forgotten its half of them. They are replaced when the next ones are taken, not
    /// before, so that who rarely needs a key does not use up keys all the time.
    pub max_age: Duration,
    /// The first pause after a failure, unless the KME asks for another; it doubles up to [`retry_max`](Self::retry_max).
    pub retry_min: Duration,
    /// The longest pause.
    pub retry_max: Duration,
}

impl PoolSettings {
    /// Keys of 256 bits for `slave`: 8 of them, at most a minute old; pauses of 100 ms to 2 s.
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

/// A stock of new keys for one slave SAE, which a task of the runtime keeps full. Whoever needs a key of that SAE takes it
/// from here; none is given twice. Keys that are left are wiped when the pool is dropped.
pub struct Pool {
    shared: Arc<Shared>,
    refiller: JoinHandle<()>,
}

struct Shared {
    settings: PoolSettings,
    stock: Mutex<Stock>,
    /// Tells the refiller that keys were taken or are waited for.
    taken: Notify,
    /// Tells who waits that there are keys, or a failure.
    filled: Notify,
}

#[derive(Default)]
struct Stock {
    /// With the time at which they were asked for, the oldest first.
    keys: VecDeque<(Instant, QkdKey)>,
    /// Keys that are waited for.
    demand: usize,
    /// Keys grew old with nobody taking any: no new ones until somebody does.
    resting: bool,
    /// Of the last request, if it failed.
    failure: Option<KmeError>,
}

impl Pool {
    /// Begins to fetch keys.
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
        let refiller = tokio::spawn(refill(kme, Arc::clone(&shared)));
        Self { shared, refiller }
    }

    /// Takes `count` keys, the oldest first. Waits for the KME if there are too few, but not while it fails: then the failure
    /// of the last request is told at once, and requests go on in the background.
    ///
    /// Nothing is taken when the future is dropped.
    ///
    /// # Errors
    /// [`KmeError`] of the last request.
    pub async fn take(&self, count: usize) -> Result<Vec<QkdKey>, KmeError> {
        let shared = &*self.shared;
        let mut demand = None;
        loop {
            let mut filled = pin!(shared.filled.notified());
            // Before the stock is looked at, so that nothing is missed.
            filled.as_mut().enable();
            {
                let mut stock = shared.stock();
                stock.discard(shared.settings.max_age);
                if stock.keys.len() >= count {
                    stock.resting = false;
                    let keys = stock.keys.drain(..count).map(|(_, key)| key).collect();
                    shared.taken.notify_one();
                    return Ok(keys);
                }
                if let Some(failure) = &stock.failure {
                    return Err(failure.clone());
                }
                if demand.is_none() {
                    stock.demand += count;
                    demand = Some(Demand { shared, count });
                }
            }
            shared.taken.notify_one();
            filled.await;
        }
    }

    /// Keys that are ready now.
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
        // The task may live on for a moment, the keys need not.
        self.shared.stock().keys.clear();
    }
}

/// Somebody waits for keys, until this is dropped.
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
    /// Never held over an await.
    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many keys are missing, and when the oldest is too old.
    fn missing(&self) -> (usize, Option<Instant>) {
        let mut stock = self.stock();
        stock.discard(self.settings.max_age);
        let wanted = match (stock.resting, &stock.failure) {
            (true, None) => stock.demand,
            // A failure is forgotten only by a request that succeeds.
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
                    stock.keys.extend(keys);
                    stock.failure = None;
                }
                Err(failure) => stock.failure = Some(failure),
            }
        }
        self.filled.notify_waiters();
    }
}

impl Stock {
    fn discard(&mut self, max_age: Duration) {
        let now = Instant::now();
        let too_old = |since: &Instant| now.duration_since(*since) >= max_age;
        while self.keys.front().is_some_and(|(since, _)| too_old(since)) {
            self.keys.pop_front();
            self.resting = true;
        }
    }
}

/// Keeps the stock full, for as long as the task lives.
async fn refill(kme: Kme, shared: Arc<Shared>) {
    let settings = &shared.settings;
    let mut pause = settings.retry_min;
    let mut not_before: Option<Instant> = None;
    loop {
        let (missing, expiry) = shared.missing();
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
                    let wait = wish.min(settings.retry_max).max(settings.retry_min);
                    not_before = Some(Instant::now() + wait);
                    pause = (2 * pause).min(settings.retry_max);
                }
            }
            shared.end_of_request(now, result);
            continue;
        }
        let retry = not_before.filter(|_| missing > 0);
        let taken = shared.taken.notified();
        match [expiry, retry].into_iter().flatten().min() {
            // Whichever comes first, the stock tells what to do.
            Some(time) => drop(timeout_at(time, taken).await),
            None => taken.await,
        }
    }
}

/// As many of the missing keys as the KME says that it has and gives at a time, at least one.
///
/// The status is asked for each time: it costs a round trip in the background, and spares a request that a KME whose store is
/// nearly empty would refuse whole.
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
    missing.min(limit).clamp(1, BATCH_MAX) as u32
}

fn check_size(status: &Status, bits: u32) -> Result<(), Failure> {
    let (least, most) = (status.min_key_size, status.max_key_size);
    if (least..=most).contains(&bits) {
        return Ok(());
    }
    Err(Failure::Request(format!(
        "keys of {bits} bits are needed, and the KME has some of {least} to {most} (its configuration must allow {bits})"
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
            max_key_count: 1000,
            max_key_per_request: per_request,
            max_key_size: 1024,
            min_key_size: 64,
            max_sae_id_count: 0,
            status_extension: None,
        }
    }

    #[test]
    fn asks_for_what_is_missing_as_far_as_the_kme_has_and_gives_it() {
        assert_eq!(batch(&status(128, 1000), 8), 8);
        assert_eq!(batch(&status(4, 1000), 8), 4);
        assert_eq!(batch(&status(128, 3), 8), 3);
        assert_eq!(batch(&status(128, 0), 8), 1, "the KME is to say no itself");
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
