//! The active epochs of one tunnel: one for sending, several for receiving.
//!
//! A [`Rollover`](crate::rollover::Rollover) selects them. Nothing here outlives the process: after
//! a restart the gateway negotiates a new epoch.

use crate::chain::EpochSecret;
use crate::{SaKeys, Side, epoch_of, lane_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The keys of one tunnel, as agreed with the peer.
pub struct KeyRing {
    side: Side,
    inbound: BTreeMap<u32, Arc<EpochSecret>>,
    outbound: Option<Arc<EpochSecret>>,
    /// Slots that were given their keys of the outbound epoch.
    slots_taken: BTreeSet<u16>,
    /// Inbound epochs that have been used for sending.
    sent_in: BTreeSet<u32>,
}

impl KeyRing {
    /// An empty ring for this side.
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

    /// Starts to receive in an additional epoch.
    ///
    /// # Panics
    /// If an epoch with this number is installed: the anti-replay windows of its SAs would not
    /// match.
    pub fn install_inbound(&mut self, secret: Arc<EpochSecret>) {
        let epoch = secret.epoch();
        let replaced = self.inbound.insert(epoch, secret);
        assert!(
            replaced.is_none(),
            "epoch {epoch} must not be installed twice"
        );
    }

    /// Stops receiving in an epoch; does nothing if it is not installed. SAs created earlier live
    /// on with their owners.
    pub fn retire_inbound(&mut self, epoch: u32) {
        // From here on packets of this epoch are as unknown as forged ones.
        self.inbound.remove(&epoch);
        self.sent_in.remove(&epoch);
    }

    /// Switches sending to an epoch: each slot may be given keys again, of this epoch.
    ///
    /// # Panics
    /// If its inbound side is not installed, or has not been reinstalled since the epoch was last
    /// used for sending: sequence numbers would restart, and nonces repeat.
    pub fn switch_outbound(&mut self, secret: Arc<EpochSecret>) {
        let epoch = secret.epoch();
        assert!(
            self.inbound.contains_key(&epoch),
            "epoch {epoch} must be installed for receiving before it is used for sending"
        );
        assert!(
            self.sent_in.insert(epoch),
            "epoch {epoch} must not be used for sending twice"
        );
        self.outbound = Some(secret);
        // Another epoch has other keys, so each slot may begin at the first sequence number again.
        self.slots_taken.clear();
    }

    /// Stops sending in an epoch; does nothing if another is used. SAs created earlier live on with
    /// their owners.
    pub fn expire_outbound(&mut self, epoch: u32) {
        // A newer epoch may be in use by the time that the old one expires.
        self.outbound.take_if(|secret| secret.epoch() == epoch);
    }

    /// The epoch for sending, if any.
    #[must_use]
    pub fn outbound_epoch(&self) -> Option<u32> {
        self.outbound.as_ref().map(|secret| secret.epoch())
    }

    /// The epochs for receiving, in ascending order.
    pub fn inbound_epochs(&self) -> impl Iterator<Item = u32> + '_ {
        self.inbound.keys().copied()
    }

    /// The keys for sending in a slot; `None` if there is no epoch for sending.
    ///
    /// # Panics
    /// If the keys of this slot and epoch were handed out before: a second SA would start at the
    /// same sequence number and repeat the first one's nonces. If `slot` is not below
    /// [`LANES_MAX`](crate::LANES_MAX).
    pub fn outbound(&mut self, slot: u16) -> Option<SaKeys> {
        let secret = self.outbound.as_ref()?;
        assert!(
            self.slots_taken.insert(slot),
            "the outbound keys of slot {slot} must not be handed out twice"
        );
        Some(secret.sa_keys(self.side, slot))
    }

    /// The keys for receiving under an SPI; `None` if it contains another slot, or an epoch that is
    /// not installed.
    #[must_use]
    pub fn inbound(&self, spi: u32, slot: u16) -> Option<SaKeys> {
        // A lane's SAs are opened by that lane only, which has their windows.
        if lane_of(spi) != slot {
            return None;
        }
        let secret = self.inbound.get(&epoch_of(spi))?;
        Some(secret.sa_keys(self.side.peer(), slot))
    }

    /// Fault injection: replaces the installed inbound keys by keys that no peer has, as after a
    /// key mismatch. SAs created earlier and epochs installed later are not affected.
    pub fn spoil_inbound(&mut self) {
        for secret in self.inbound.values_mut() {
            // A new value, because other holders of the old one (the state machine) keep the right
            // keys.
            *secret = Arc::new(secret.spoiled());
        }
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing")
            .field("side", &self.side)
            // Numbers of epochs only.
            .field("inbound", &self.inbound.keys())
            .field("outbound", &self.outbound_epoch())
            .finish_non_exhaustive()
    }
}
