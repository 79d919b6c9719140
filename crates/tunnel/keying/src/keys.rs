//! The key source of one tunnel, static or negotiated.

use crate::{ChildSas, KeyError, KeyRing, SaKeys, StaticKeys};
use wire::Suite;

/// The key source of a tunnel's SAs, shared by its lanes and used off the packet path.
#[derive(Debug)]
pub enum Keys {
    /// A key file, which several tunnels may share. The sender draws new epochs without the peer.
    Static(StaticKeys),
    /// Epochs agreed with the peer, for this tunnel only. A new one is used once both sides have
    /// it.
    Negotiated(KeyRing),
    /// SAs that IKE negotiated, for this tunnel only, which has one lane.
    Ike(ChildSas),
}

impl Keys {
    /// The epoch for sending; `None` while none is agreed: then nothing may be sent.
    #[must_use]
    pub fn outbound_epoch(&self) -> Option<u32> {
        match self {
            Self::Static(keys) => Some(keys.outbound_epoch()),
            Self::Negotiated(ring) => ring.outbound_epoch(),
            // Lanes only compare epochs, and SAs of IKE have none.
            Self::Ike(sas) => sas.generation(),
        }
    }

    /// The keys for sending in a slot; `None` if there is no epoch for sending.
    ///
    /// # Panics
    /// If the keys of this slot and epoch were handed out before: a second SA would start at the
    /// same sequence number and repeat the first one's nonces. If `slot` is not below
    /// [`LANES_MAX`](crate::LANES_MAX), or an agreed epoch has another suite.
    pub fn outbound(&mut self, suite: Suite, slot: u16) -> Option<SaKeys> {
        match self {
            Self::Static(keys) => Some(keys.outbound(suite, slot)),
            Self::Negotiated(ring) => ring.outbound(slot).inspect(|keys| check(keys, suite)),
            Self::Ike(sas) => sas.outbound().inspect(|keys| check(keys, suite)),
        }
    }

    /// The keys for receiving under an SPI; `None` if it contains another slot, or an epoch that
    /// the peer must not send in (any more).
    ///
    /// The SPI is unauthenticated: a returned key does not imply that the peer sent the packet.
    ///
    /// # Panics
    /// If an agreed epoch has another suite.
    #[must_use]
    pub fn inbound(&self, suite: Suite, spi: u32, slot: u16) -> Option<SaKeys> {
        match self {
            Self::Static(keys) => keys.inbound(suite, spi, slot),
            Self::Negotiated(ring) => ring.inbound(spi, slot).inspect(|keys| check(keys, suite)),
            Self::Ike(sas) => sas.inbound(spi).inspect(|keys| check(keys, suite)),
        }
    }

    /// Records durably that a packet of the peer's `epoch` was authentic:
    /// [`StaticKeys::record_peer_epoch`]. Agreed epochs do not outlive the process, so nothing is
    /// recorded for them.
    ///
    /// # Errors
    /// [`KeyError::EpochNotWritten`].
    pub fn record_peer_epoch(&mut self, epoch: u32) -> Result<(), KeyError> {
        match self {
            Self::Static(keys) => keys.record_peer_epoch(epoch),
            Self::Negotiated(_) | Self::Ike(_) => Ok(()),
        }
    }

    /// The static keys, if any; this side may [draw](StaticKeys::draw_epoch) their next epoch.
    pub fn as_static(&mut self) -> Option<&mut StaticKeys> {
        match self {
            Self::Static(keys) => Some(keys),
            Self::Negotiated(_) | Self::Ike(_) => None,
        }
    }

    /// The key ring, if any, for the control plane to install epochs.
    pub fn as_ring(&mut self) -> Option<&mut KeyRing> {
        match self {
            Self::Static(_) | Self::Ike(_) => None,
            Self::Negotiated(ring) => Some(ring),
        }
    }

    /// The SAs that IKE negotiates, if it does.
    pub fn as_child_sas(&mut self) -> Option<&mut ChildSas> {
        match self {
            Self::Static(_) | Self::Negotiated(_) => None,
            Self::Ike(sas) => Some(sas),
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

impl From<ChildSas> for Keys {
    fn from(sas: ChildSas) -> Self {
        Self::Ike(sas)
    }
}

/// Checks the suite. Both sides agree on it before they derive keys, and lanes use the same
/// configuration.
fn check(keys: &SaKeys, suite: Suite) {
    assert_eq!(keys.suite, suite, "the epoch is of the lanes' suite");
}
