//! Merges the reports of a tunnel's lanes on packets that cannot be opened into one event.

use super::allowance::Allowance;
use crate::desync::Desync;
use crate::status::Status;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tunnels with peers that seem to have other keys.
pub(super) struct Desyncs {
    open: BTreeMap<u16, Episode>,
    /// Of each tunnel that has had a desync.
    allowances: BTreeMap<u16, Allowance>,
    status: Arc<Status>,
}

/// The event of one tunnel, from the first lane's report until the last lane can open packets
/// again.
#[derive(Default)]
struct Episode {
    lanes: BTreeSet<u16>,
    packets: u64,
    /// The longest outage of its lanes.
    outage: Duration,
    /// Whether there was a new epoch since.
    repaired: bool,
}

impl Desyncs {
    pub(super) fn new(status: Arc<Status>) -> Self {
        Self {
            open: BTreeMap::new(),
            allowances: BTreeMap::new(),
            status,
        }
    }

    /// Takes a lane's report; returns whether to request a new epoch.
    pub(super) fn take(&mut self, tunnel: u16, lane: u16, news: Desync, now: Instant) -> bool {
        match news {
            Desync::Ongoing(packets) => {
                // A report after a new epoch counts as a new event, since the repair did not help.
                let begins = self
                    .open
                    .get(&tunnel)
                    .is_none_or(|episode| episode.repaired);
                let episode = self.open.entry(tunnel).or_default();
                episode.lanes.insert(lane);
                episode.repaired = false;
                let allowance = self.allowances.entry(tunnel).or_insert(Allowance::new());
                // Each report may ask, not only the first: a request can be lost, or its handshake
                // can fail.
                let may_ask = allowance.take(now);
                if begins {
                    self.status.desync_begins(tunnel, packets, may_ask);
                }
                may_ask
            }
            Desync::Over { packets, outage } => {
                if let Some(episode) = self.open.get_mut(&tunnel)
                    // A report does not count while this side has no outbound keys, and then its
                    // end does not either.
                    && episode.lanes.remove(&lane)
                {
                    episode.packets += packets;
                    episode.outage = episode.outage.max(outage);
                    if episode.lanes.is_empty() {
                        let Episode {
                            packets, outage, ..
                        } = *episode;
                        self.open.remove(&tunnel);
                        self.status.desync_ends(tunnel, packets, outage);
                    }
                }
                false
            }
        }
    }

    /// Writes log lines that were held back by a limit.
    pub(super) fn flush_log(&self) {
        self.status.flush();
    }

    /// The tunnel has a new epoch.
    pub(super) fn repaired(&mut self, tunnel: u16) {
        if let Some(episode) = self.open.get_mut(&tunnel) {
            episode.repaired = true;
        }
    }
}
