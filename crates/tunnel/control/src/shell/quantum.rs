//! QKD keys for an attempt, fetched in a task that replies later.
//!
//! The connector takes new keys from a prefetched pool per peer; the listener fetches the same keys
//! by their IDs.

use keying::chain::{Kind, Link};
use keying::rollover::{Allowance, Attempt, Budget, QkdRequest};
use qkd::{Kme, KmeError, Pool, PoolSettings, QkdKey};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Number of QKD keys per epoch.
const KEYS_PER_EPOCH: usize = 1;

/// Burst of QKD keys that networks may provoke, for all tunnels together: at least this many, and
/// two for each tunnel, since all peers may lose theirs together.
const PROVOKED_BURST_MIN: u32 = 16;
const PROVOKED_PER_TUNNEL: u32 = 2;
/// Time for one more.
const PROVOKED_REFILL: Duration = Duration::from_secs(5);

/// The keys for one attempt, or the reason for their absence.
pub(super) struct Reply {
    pub(super) tunnel: usize,
    pub(super) attempt: Attempt,
    pub(super) keys: Result<Vec<Link>, String>,
}

/// This side's KME, with the pools of prefetched keys.
pub(super) struct Quantum {
    kme: Kme,
    pools: HashMap<String, Arc<Pool>>,
    /// Of all tunnels together: the store of the KME is one.
    budget: Budget,
}

impl Quantum {
    /// Starts prefetching keys for the given SAEs, for this number of tunnels. Must be called on a
    /// tokio runtime.
    pub(super) fn new(kme: Kme, slaves: impl IntoIterator<Item = String>, tunnels: u32) -> Self {
        let mut pools = HashMap::new();
        for slave in slaves {
            // One pool per peer, although several tunnels may lead there.
            pools.entry(slave).or_insert_with_key(|slave| {
                Arc::new(Pool::start(kme.clone(), PoolSettings::new(slave)))
            });
        }
        let burst = tunnels.saturating_mul(PROVOKED_PER_TUNNEL);
        let budget = Budget::new(Allowance {
            burst: burst.max(PROVOKED_BURST_MIN),
            refill: PROVOKED_REFILL,
        });
        Self { kme, pools, budget }
    }

    /// Whether keys may be fetched; otherwise the reason why not.
    pub(super) fn may_fetch(&mut self, request: &QkdRequest, now: Duration) -> Result<(), String> {
        // Keys that the peer names were already taken from its budget.
        if *request != (QkdRequest::New { provoked: true }) || self.budget.take(now) {
            return Ok(());
        }
        let wait = self.budget.ready_at().saturating_sub(now).as_secs() + 1;
        Err(format!(
            "connections lost or attempts failed took too many QKD keys of late: the next in {wait} s"
        ))
    }

    /// Fetches new keys that the peer's SAE can get too, or the keys that the peer's SAE got.
    pub(super) fn fetch(
        &self,
        tunnel: usize,
        attempt: Attempt,
        sae: &str,
        request: QkdRequest,
        replies: mpsc::Sender<Reply>,
    ) {
        let kme = self.kme.clone();
        let pool = self.pools.get(sae).cloned();
        let sae = sae.to_owned();
        tokio::spawn(async move {
            let keys = match (request, pool) {
                (QkdRequest::Named(ids), _) => links(kme.keys_by_id(&sae, &ids).await),
                (QkdRequest::New { .. }, Some(pool)) => links(pool.take(KEYS_PER_EPOCH).await),
                (QkdRequest::New { .. }, None) => {
                    Err("the side that listens takes no new keys".to_owned())
                }
            };
            let reply = Reply {
                tunnel,
                attempt,
                keys,
            };
            // An error means that the shell has ended.
            let _ = replies.send(reply).await;
        });
    }
}

/// Converts keys to links of the derivation chain.
fn links(keys: Result<Vec<QkdKey>, KmeError>) -> Result<Vec<Link>, String> {
    let keys = keys.map_err(|error| error.to_string())?;
    Ok(keys
        .into_iter()
        .map(|key| Link {
            kind: Kind::Qkd,
            id: key.id,
            key: Some(Arc::new(key.key)),
        })
        .collect())
}
