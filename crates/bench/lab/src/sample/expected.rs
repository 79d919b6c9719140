//! The traffic that may be seen on the cipher link, and the markers that must not be.

use memchr::memmem::Finder;
use testbed::protocol::{ControlPort, SealedPort};

/// Expected traffic between the gateways, in addition to ARP, neighbour and group discovery.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    /// Ports of the DUT's sealed packets, and of a key exchange that shares them.
    pub(crate) sealed: &'a [SealedPort],
    /// TCP ports of the DUT.
    pub(crate) control: &'a [ControlPort],
    /// Byte strings that appear in the stations' cleartext traffic.
    pub(crate) markers: &'a [Vec<u8>],
}

/// The search for markers at any offset of a frame.
pub(super) struct Markers<'a>(Vec<Finder<'a>>);

impl<'a> Markers<'a> {
    /// Skips empty markers, which every frame would contain.
    pub(super) fn new(markers: &'a [Vec<u8>]) -> Self {
        let markers = markers.iter().filter(|marker| !marker.is_empty());
        Self(markers.map(Finder::new).collect())
    }

    /// Whether a frame shows any of them.
    pub(super) fn are_in(&self, frame: &[u8]) -> bool {
        self.0.iter().any(|marker| marker.find(frame).is_some())
    }
}
