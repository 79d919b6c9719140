//! Where the opening half of a lane takes its SAs from.

use crate::desync::Desync;
use esp::InboundSa;

/// Where inbound SAs come from.
pub trait InboundKeys: Send {
    /// The tunnel that an SPI may belong to in this lane. Called for each packet: a look into a table.
    fn tunnel(&self, spi: u32) -> Option<u16>;

    /// A fresh SA of the tunnel for this SPI, when its keys can be known; nothing is proven yet. Called rarely.
    fn candidate(&mut self, tunnel: u16, spi: u32) -> Option<InboundSa>;

    /// A packet under this SPI was authentic: unless the tunnel [keeps older ones](Self::keeps_older), no candidate of
    /// an older epoch must be given any more.
    fn confirmed(&mut self, tunnel: u16, spi: u32);

    /// Whether the tunnel's SAs of earlier epochs go on beside the newest until a [notice](Self::notices) ends them. No
    /// candidate must be given then for an SPI whose SA has not ended: its window would forget what it has seen.
    fn keeps_older(&self, _tunnel: u16) -> bool {
        false
    }

    /// What has happened to keys since the last call. Called once a batch.
    fn notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    /// Whether an SA of a tunnel that a notice tells goes on.
    fn goes_on(&mut self, _tunnel: u16, _spi: u32) -> bool {
        true
    }

    /// The peer seems to have other keys, or to have the same again. Called rarely.
    fn desync(&mut self, _tunnel: u16, _news: Desync) {}
}

/// What has happened to the keys of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// Some epochs are over.
    Retired(u16),
    /// All are to be derived anew: a fault was injected.
    Spoiled(u16),
}
