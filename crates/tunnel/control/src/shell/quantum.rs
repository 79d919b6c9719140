//! Keys of QKD for an attempt: asked for in a task, which replies later.
//!
//! The side that connects takes new keys, from a stock that is fetched ahead for each peer; the side that listens gets the
//! same ones by their ids.

use keying::chain::{Kind, Link};
use keying::rollover::Attempt;
use qkd::{Kme, KmeError, Pool, PoolSettings, QkdKey};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::mpsc;

/// QKD keys that one epoch mixes.
const KEYS_PER_EPOCH: usize = 1;

/// The answer for one attempt.
pub(super) struct Reply {
    pub(super) tunnel: usize,
    pub(super) attempt: Attempt,
    pub(super) keys: Result<Vec<Link>, String>,
}

/// The KME of this side.
pub(super) struct Quantum {
    kme: Kme,
    pools: HashMap<String, Arc<Pool>>,
}

impl Quantum {
    /// Begins to fetch new keys for those SAEs; on a tokio runtime.
    pub(super) fn new(kme: Kme, slaves: impl IntoIterator<Item = String>) -> Self {
        let mut pools = HashMap::new();
        for slave in slaves {
            pools.entry(slave).or_insert_with_key(|slave| {
                Arc::new(Pool::start(kme.clone(), PoolSettings::new(slave)))
            });
        }
        Self { kme, pools }
    }

    /// New keys that the peer's SAE can get too, or the keys with those ids that it got.
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
            // If nobody takes it the shell is gone.
            let _ = replies.send(reply).await;
        });
    }
}

/// Keys as they are mixed in.
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
