//! QKD keys for an attempt, fetched in a task that replies later.
//!
//! The connector takes new keys from a prefetched pool per peer; the listener fetches the same keys
//! by their IDs.

use keying::chain::{Kind, Link};
use keying::rollover::Attempt;
use qkd::{Kme, KmeError, Pool, PoolSettings, QkdKey};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Number of QKD keys per epoch.
const KEYS_PER_EPOCH: usize = 1;

/// The keys for one attempt, or the reason why there are none.
pub(super) struct Reply {
    pub(super) tunnel: usize,
    pub(super) attempt: Attempt,
    pub(super) keys: Result<Vec<Link>, String>,
}

/// This side's KME, with the pools of prefetched keys.
pub(super) struct Quantum {
    kme: Kme,
    pools: HashMap<String, Arc<Pool>>,
}

impl Quantum {
    /// Starts prefetching keys for the given SAEs. Must be called on a tokio runtime.
    pub(super) fn new(kme: Kme, slaves: impl IntoIterator<Item = String>) -> Self {
        let mut pools = HashMap::new();
        for slave in slaves {
            pools.entry(slave).or_insert_with_key(|slave| {
                Arc::new(Pool::start(kme.clone(), PoolSettings::new(slave)))
            });
        }
        Self { kme, pools }
    }

    /// Fetches new keys that the peer's SAE can get too, or with `ids` the keys that it got.
    pub(super) fn fetch(
        &self,
        tunnel: usize,
        attempt: Attempt,
        sae: &str,
        ids: Option<Vec<String>>,
        replies: mpsc::Sender<Reply>,
    ) {
        let kme = self.kme.clone();
        let pool = self.pools.get(sae).cloned();
        let sae = sae.to_owned();
        tokio::spawn(async move {
            let keys = match (ids, pool) {
                (Some(ids), _) => links(kme.keys_by_id(&sae, &ids).await),
                (None, Some(pool)) => links(pool.take(KEYS_PER_EPOCH).await),
                (None, None) => Err("the side that listens takes no new keys".to_owned()),
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
