//! The epochs with keys on this side: one for sending, several for packets of the peer.

use super::Output;
use crate::chain::EpochSecret;
use std::sync::Arc;
use std::time::Duration;

/// Maximum concurrent inbound epochs. At the limit one is retired before its grace ends; without
/// rapid rekeying there are two.
pub const INBOUND_MAX: usize = 16;

/// The keys of an epoch expired before both sides had them.
pub(super) struct Expired(pub(super) u32);

/// The live epochs and when they end.
#[derive(Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Epochs {
    last: u32,
    outbound: Option<Outbound>,
    /// In the order of their installation.
    inbound: Vec<Inbound>,
}

#[cfg_attr(test, derive(Clone))]
struct Inbound {
    epoch: u32,
    /// End of the grace period; set once the peer has switched to another epoch.
    until: Option<Duration>,
    /// End of its hard lifetime, if it has one.
    expires: Option<Duration>,
}

#[cfg_attr(test, derive(Clone))]
struct Outbound {
    secret: Arc<EpochSecret>,
    /// As [`Inbound::expires`].
    expires: Option<Duration>,
}

impl Epochs {
    /// The latest epoch of this side; 0 if none.
    pub(super) fn last(&self) -> u32 {
        self.last
    }

    /// The epoch that this side sends in.
    pub(super) fn outbound(&self) -> Option<u32> {
        self.outbound_secret().map(|secret| secret.epoch())
    }

    /// The secret of that epoch.
    pub(super) fn outbound_secret(&self) -> Option<&Arc<EpochSecret>> {
        self.outbound.as_ref().map(|outbound| &outbound.secret)
    }

    /// Numbers that a new epoch must not have, in ascending order.
    pub(super) fn live(&self) -> Vec<u32> {
        let mut live: Vec<u32> = self.inbound.iter().map(|inbound| inbound.epoch).collect();
        live.extend(self.outbound());
        live.sort_unstable();
        live.dedup();
        live
    }

    /// Installs the inbound keys of a new epoch. `expires` is the end of its hard lifetime, if any.
    pub(super) fn install(
        &mut self,
        secret: &Arc<EpochSecret>,
        expires: Option<Duration>,
        out: &mut Vec<Output>,
    ) {
        let epoch = secret.epoch();
        if self.inbound.len() == INBOUND_MAX {
            // Epochs that may be in use have no end, and are two at most.
            let ending = |inbound: &Inbound| inbound.until.is_some();
            let oldest = self.inbound.iter().position(ending).unwrap_or(0);
            out.push(Output::RetireInbound(self.inbound.remove(oldest).epoch));
        }
        // Also for an epoch that is never used: its number must not be chosen again soon.
        self.last = epoch;
        self.inbound.push(Inbound {
            epoch,
            until: None,
            expires,
        });
        out.push(Output::InstallInbound(Arc::clone(secret)));
    }

    /// Switches sealing to an installed epoch.
    ///
    /// # Errors
    /// If it has ended meanwhile.
    pub(super) fn switch(
        &mut self,
        secret: &Arc<EpochSecret>,
        out: &mut Vec<Output>,
    ) -> Result<(), Expired> {
        let epoch = secret.epoch();
        let mut inbound = self.inbound.iter();
        // Its hard lifetime may have ended between the messages.
        let Some(installed) = inbound.find(|inbound| inbound.epoch == epoch) else {
            return Err(Expired(epoch));
        };
        self.outbound = Some(Outbound {
            secret: Arc::clone(secret),
            expires: installed.expires,
        });
        out.push(Output::SwitchOutbound(Arc::clone(secret)));
        Ok(())
    }

    /// Applies the epoch that the peer seals with. The peer never returns to an older epoch. Epochs
    /// installed before it get a grace period, since their packets may be in flight. Epochs
    /// installed after it are retired: nothing was ever sealed with their keys, since attempts are
    /// sequential. `None`: the peer has no keys, since it has restarted or its keys have expired.
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
            // The peer has not switched after all, so the epoch goes on.
            self.inbound[used].until = None;
        }
        let older = used.unwrap_or(self.inbound.len());
        for older in &mut self.inbound[..older] {
            // The first report counts: a peer that repeats its offer must not extend the grace.
            older.until.get_or_insert(grace_ends);
        }
    }

    /// Retires epochs at the end of their grace period.
    pub(super) fn retire(&mut self, now: Duration, out: &mut Vec<Output>) {
        self.inbound.retain(|inbound| {
            let over = inbound.until.is_some_and(|until| until <= now);
            if over {
                out.push(Output::RetireInbound(inbound.epoch));
            }
            !over
        });
    }

    /// The inbound epochs, and when those end that the peer no longer sends in.
    #[cfg(test)]
    pub(super) fn endings(&self) -> impl Iterator<Item = (u32, Option<Duration>)> + '_ {
        self.inbound
            .iter()
            .map(|inbound| (inbound.epoch, inbound.until))
    }

    /// Ends epochs at the end of their hard lifetime. Returns the one that this side sealed with.
    pub(super) fn expire(&mut self, now: Duration, out: &mut Vec<Output>) -> Option<u32> {
        let is_over = |expires: Option<Duration>| expires.is_some_and(|expires| expires <= now);
        self.inbound.retain(|inbound| {
            let over = is_over(inbound.expires);
            if over {
                out.push(Output::RetireInbound(inbound.epoch));
            }
            !over
        });
        let over = self
            .outbound
            .take_if(|outbound| is_over(outbound.expires))?;
        let epoch = over.secret.epoch();
        out.push(Output::ExpireOutbound(epoch));
        Some(epoch)
    }

    /// When the next epoch is to be retired, or expires.
    pub(super) fn next(&self) -> Option<Duration> {
        let inbound = self.inbound.iter();
        inbound
            .flat_map(|inbound| [inbound.until, inbound.expires])
            .chain(self.outbound.as_ref().map(|outbound| outbound.expires))
            .flatten()
            .min()
    }
}
