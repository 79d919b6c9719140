//! The epochs of one tunnel that are in force: one to send in, some to receive in.
//!
//! A [`Rollover`](crate::rollover::Rollover) says which. Nothing here outlives the process: who restarts agrees on a new epoch.

use crate::chain::EpochSecret;
use crate::{SaKeys, Side, epoch_of, lane_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The keys of one tunnel, as agreed on with the peer.
pub struct KeyRing {
    side: Side,
    inbound: BTreeMap<u32, Arc<EpochSecret>>,
    outbound: Option<Arc<EpochSecret>>,
    /// Slots whose keys of the outbound epoch are out.
    slots_taken: BTreeSet<u16>,
    /// Epochs among the inbound ones that have been sent in.
    sent_in: BTreeSet<u32>,
}

impl KeyRing {
    /// Of that side, without any keys.
    #[must_use]
    pub fn new(side: Side) -> Self {
        Self {
            side,
            inbound: BTreeMap::new(),
            outbound: None,
            slots_taken: BTreeSet::new(),
            sent_in: BTreeSet::new(),
        }
    }

    /// Receives in an epoch from now on, too.
    ///
    /// # Panics
    /// When there is one of that number: its SAs have anti-replay windows, which would not fit.
    pub fn install_inbound(&mut self, secret: Arc<EpochSecret>) {
        let epoch = secret.epoch();
        let replaced = self.inbound.insert(epoch, secret);
        assert!(
            replaced.is_none(),
            "epoch {epoch} is installed once while it lives"
        );
    }

    /// Receives in an epoch no more; nothing when there is none of that number. SAs made earlier live on with
    /// whoever has them.
    pub fn retire_inbound(&mut self, epoch: u32) {
        self.inbound.remove(&epoch);
        self.sent_in.remove(&epoch);
    }

    /// Sends in an epoch from now on: each slot may have keys again, of that one.
    ///
    /// # Panics
    /// When its inbound side is not installed, or was not since it was last sent in: its sequence numbers would begin
    /// anew, and nonces repeat.
    pub fn switch_outbound(&mut self, secret: Arc<EpochSecret>) {
        let epoch = secret.epoch();
        assert!(
            self.inbound.contains_key(&epoch),
            "epoch {epoch} is received in before it is sent in"
        );
        assert!(
            self.sent_in.insert(epoch),
            "epoch {epoch} is switched to once"
        );
        self.outbound = Some(secret);
        self.slots_taken.clear();
    }

    /// The epoch to send in; `None` while there is none.
    #[must_use]
    pub fn outbound_epoch(&self) -> Option<u32> {
        self.outbound.as_ref().map(|secret| secret.epoch())
    }

    /// The epochs that are received in, in their numbers' order.
    pub fn inbound_epochs(&self) -> impl Iterator<Item = u32> + '_ {
        self.inbound.keys().copied()
    }

    /// The keys to send with in a slot; `None` while there is no epoch to send in.
    ///
    /// # Panics
    /// When those of this slot and epoch were handed out before: a second SA would begin at the same sequence number and
    /// repeat the first one's nonces. When `slot` is not below [`LANES_MAX`](crate::LANES_MAX).
    pub fn outbound(&mut self, slot: u16) -> Option<SaKeys> {
        let secret = self.outbound.as_ref()?;
        assert!(
            self.slots_taken.insert(slot),
            "the outbound keys of slot {slot} are handed out once"
        );
        Some(secret.sa_keys(self.side, slot))
    }

    /// The keys to receive with under an SPI; `None` when it tells another slot, or an epoch that is not received in.
    #[must_use]
    pub fn inbound(&self, spi: u32, slot: u16) -> Option<SaKeys> {
        if lane_of(spi) != slot {
            return None;
        }
        let secret = self.inbound.get(&epoch_of(spi))?;
        Some(secret.sa_keys(self.side.peer(), slot))
    }

    /// Fault injection: from now on receives with keys that nobody sends with, as if this side's had been mixed up. SAs
    /// made earlier stay good; so do epochs installed later.
    pub fn spoil_inbound(&mut self) {
        for secret in self.inbound.values_mut() {
            *secret = Arc::new(secret.spoiled());
        }
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing")
            .field("side", &self.side)
            .field("inbound", &self.inbound.keys())
            .field("outbound", &self.outbound_epoch())
            .finish_non_exhaustive()
    }
}
