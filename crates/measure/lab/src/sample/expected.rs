//! What may and what must not be seen on the cipher link.

use crate::protocol::{ControlPort, SealedPort};
use memchr::memmem::Finder;

/// What may be seen between the gateways, besides ARP and neighbour discovery.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected<'a> {
    /// Ports of the DUT's sealed packets, and of a key exchange that shares them.
    pub(crate) sealed: &'a [SealedPort],
    /// The DUT's own TCP.
    pub(crate) control: &'a [ControlPort],
    /// Byte strings that the stations' traffic shows in clear.
    pub(crate) markers: &'a [Vec<u8>],
}

/// The search for markers at any offset of a frame.
pub(super) struct Markers<'a>(Vec<Finder<'a>>);

impl<'a> Markers<'a> {
    /// An empty marker, which every frame contains, is not looked for.
    pub(super) fn new(markers: &'a [Vec<u8>]) -> Self {
        let markers = markers.iter().filter(|marker| !marker.is_empty());
        Self(markers.map(Finder::new).collect())
    }

    /// Whether a frame shows any of them.
    pub(super) fn are_in(&self, frame: &[u8]) -> bool {
        self.0.iter().any(|marker| marker.find(frame).is_some())
    }
}
