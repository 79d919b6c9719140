//! The epochs of which this side has keys: one that it sends in, some in which its peer may send.

use super::Output;
use crate::chain::EpochSecret;
use std::sync::Arc;
use std::time::Duration;

/// Inbound epochs at once. One is retired before its time rather than that there are more; without haste there are two.
pub const INBOUND_MAX: usize = 16;

/// Which epochs live, and until when.
#[derive(Default)]
pub(super) struct Epochs {
    last: u32,
    outbound: Option<u32>,
    /// In the order in which they were installed.
    inbound: Vec<Inbound>,
}

struct Inbound {
    epoch: u32,
    /// Known when the peer has gone on to another.
    until: Option<Duration>,
}

impl Epochs {
    /// The latest in which this side took part; 0: none.
    pub(super) fn last(&self) -> u32 {
        self.last
    }

    /// The one that this side sends in.
    pub(super) fn outbound(&self) -> Option<u32> {
        self.outbound
    }

    /// Numbers that a new epoch cannot have, in order.
    pub(super) fn live(&self) -> Vec<u32> {
        let mut live: Vec<u32> = self.inbound.iter().map(|inbound| inbound.epoch).collect();
        live.extend(self.outbound);
        live.sort_unstable();
        live.dedup();
        live
    }

    /// Opens a new epoch from now on.
    pub(super) fn install(&mut self, secret: &Arc<EpochSecret>, out: &mut Vec<Output>) {
        let epoch = secret.epoch();
        if self.inbound.len() == INBOUND_MAX {
            // Those that may be in use have no end set, and are two at most.
            let ending = |inbound: &Inbound| inbound.until.is_some();
            let oldest = self.inbound.iter().position(ending).unwrap_or(0);
            out.push(Output::RetireInbound(self.inbound.remove(oldest).epoch));
        }
        self.last = epoch;
        self.inbound.push(Inbound { epoch, until: None });
        out.push(Output::InstallInbound(Arc::clone(secret)));
    }

    /// Seals with an epoch that was installed from now on.
    pub(super) fn switch(&mut self, secret: &Arc<EpochSecret>, out: &mut Vec<Output>) {
        self.outbound = Some(secret.epoch());
        out.push(Output::SwitchOutbound(Arc::clone(secret)));
    }

    /// The peer seals with that epoch, and never goes back: what was installed before lives on for a grace, since its
    /// packets may be under way; with what was installed after nothing was ever sealed, since attempts come one after the
    /// other. `None`: it was started anew and has no keys yet.
    pub(super) fn peer_sends_in(
        &mut self,
        epoch: Option<u32>,
        grace_ends: Duration,
        out: &mut Vec<Output>,
    ) {
        let used = self
            .inbound
            .iter()
            .position(|inbound| Some(inbound.epoch) == epoch);
        if let Some(used) = used {
            for unused in self.inbound.drain(used + 1..) {
                out.push(Output::RetireInbound(unused.epoch));
            }
            self.inbound[used].until = None;
        }
        let older = used.unwrap_or(self.inbound.len());
        for older in &mut self.inbound[..older] {
            older.until.get_or_insert(grace_ends);
        }
    }

    /// Retires what has had its grace.
    pub(super) fn retire(&mut self, now: Duration, out: &mut Vec<Output>) {
        self.inbound.retain(|inbound| {
            let over = inbound.until.is_some_and(|until| until <= now);
            if over {
                out.push(Output::RetireInbound(inbound.epoch));
            }
            !over
        });
    }

    /// When there is next something to retire.
    pub(super) fn next(&self) -> Option<Duration> {
        self.inbound
            .iter()
            .filter_map(|inbound| inbound.until)
            .min()
    }
}
