//! The source of inbound SAs.

use crate::desync::Desync;
use esp::InboundSa;

/// Source of a lane's inbound SAs.
pub trait InboundKeys: Send {
    /// Returns the tunnel that an SPI may belong to in this lane. Called for each packet, so it
    /// should be a table lookup.
    fn tunnel(&self, spi: u32) -> Option<u16>;

    /// Returns a fresh, unproven SA of the tunnel for this SPI, if its keys can be derived. Called
    /// rarely.
    fn candidate(&mut self, tunnel: u16, spi: u32) -> Option<InboundSa>;

    /// Reports that a packet under this SPI was authentic: unless the tunnel
    /// [keeps older SAs](Self::keeps_older), no candidate of an older epoch may be returned from
    /// now on.
    fn confirmed(&mut self, tunnel: u16, spi: u32);

    /// Whether the tunnel's SAs of earlier epochs stay valid next to the newest until a
    /// [notice](Self::notices) ends them. Then no candidate may be returned for the SPI of an SA
    /// that has not ended: a new window would not know the packets already received.
    fn keeps_older(&self, _tunnel: u16) -> bool {
        false
    }

    /// Returns the changes to keys since the last call. Called once per batch.
    fn notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    /// Whether an SA of a tunnel that is named in a notice stays valid.
    fn goes_on(&mut self, _tunnel: u16, _spi: u32) -> bool {
        true
    }

    /// Takes a datagram that begins with the marker of messages of IKE (RFC 3948 §2.2), which is
    /// no SPI. Returns `false` if no IKE runs. Called rarely.
    fn marked(&mut self, _datagram: &[u8]) -> bool {
        false
    }

    /// Reports that the peer seems to have other keys, or the same again. Called rarely.
    fn desync(&mut self, _tunnel: u16, _news: Desync) {}
}

/// A change to the keys of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Some epochs of the tunnel have ended.
    Retired(u16),
    /// The hard lifetime of the tunnel's keys is over.
    Expired(u16),
    /// All SAs of the tunnel must be derived anew: a fault was injected.
    Spoiled(u16),
}
