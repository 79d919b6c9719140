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
}

/// Returns the search for the marker in frames; `None` for an empty marker, which every frame
/// contains.
pub(super) fn finder(marker: &[u8]) -> Option<Finder<'_>> {
    (!marker.is_empty()).then(|| Finder::new(marker))
}
