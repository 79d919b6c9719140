//! The key source of one tunnel, whichever it is.

use crate::{KeyError, KeyRing, SaKeys, StaticKeys};
use wire::Suite;

/// Where a tunnel's SAs get their keys from: what lanes share, off the packet path.
#[derive(Debug)]
pub enum Keys {
    /// A key file, which other tunnels may share. New epochs are drawn by whoever sends, alone.
    Static(StaticKeys),
    /// Epochs agreed on with the peer, of this tunnel alone. New ones come when both sides have them.
    Negotiated(KeyRing),
}

impl Keys {
    /// The epoch to send in; `None` while none is agreed on: nothing may be sent.
    #[must_use]
    pub fn outbound_epoch(&self) -> Option<u32> {
        match self {
            Self::Static(keys) => Some(keys.outbound_epoch()),
            Self::Negotiated(ring) => ring.outbound_epoch(),
        }
    }

    /// The keys to send with in a slot; `None` while there is no epoch to send in.
    ///
    /// # Panics
    /// When those of this slot and epoch were handed out before: a second SA would begin at the same sequence number and
    /// repeat the first one's nonces. When `slot` is not below [`LANES_MAX`](crate::LANES_MAX), or an agreed epoch has
    /// another suite.
    pub fn outbound(&mut self, suite: Suite, slot: u16) -> Option<SaKeys> {
        match self {
            Self::Static(keys) => Some(keys.outbound(suite, slot)),
            Self::Negotiated(ring) => ring.outbound(slot).inspect(|keys| check(keys, suite)),
        }
    }

    /// The keys to receive with under an SPI; `None` when it tells another slot, or an epoch in which the peer may not
    /// send (any more).
    ///
    /// Nothing shows yet that the peer sent the packet: an SPI is whatever a packet says.
    ///
    /// # Panics
    /// When an agreed epoch has another suite.
    #[must_use]
    pub fn inbound(&self, suite: Suite, spi: u32, slot: u16) -> Option<SaKeys> {
        match self {
            Self::Static(keys) => keys.inbound(suite, spi, slot),
            Self::Negotiated(ring) => ring.inbound(spi, slot).inspect(|keys| check(keys, suite)),
        }
    }

    /// Records that a packet of the peer's `epoch` was authentic, so that a restart knows:
    /// [`StaticKeys::record_peer_epoch`]. Agreed epochs do not outlive the process, so there is nothing to record.
    ///
    /// # Errors
    /// [`KeyError::EpochNotWritten`].
    pub fn record_peer_epoch(&mut self, epoch: u32) -> Result<(), KeyError> {
        match self {
            Self::Static(keys) => keys.record_peer_epoch(epoch),
            Self::Negotiated(_) => Ok(()),
        }
    }

    /// The key file's keys, whose next epoch this side may [draw](StaticKeys::draw_epoch).
    pub fn as_static(&mut self) -> Option<&mut StaticKeys> {
        match self {
            Self::Static(keys) => Some(keys),
            Self::Negotiated(_) => None,
        }
    }

    /// The ring, in which the control plane puts epochs.
    pub fn as_ring(&mut self) -> Option<&mut KeyRing> {
        match self {
            Self::Static(_) => None,
            Self::Negotiated(ring) => Some(ring),
        }
    }
}

impl From<StaticKeys> for Keys {
    fn from(keys: StaticKeys) -> Self {
        Self::Static(keys)
    }
}

impl From<KeyRing> for Keys {
    fn from(ring: KeyRing) -> Self {
        Self::Negotiated(ring)
    }
}

/// Both sides agreed on the suite before they had keys; lanes have theirs from the same configuration.
fn check(keys: &SaKeys, suite: Suite) {
    assert_eq!(keys.suite, suite, "the epoch is of the lanes' suite");
}
