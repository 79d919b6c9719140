//! Configured values of a frame test.

use wire::mix::Contents;
use yaml::{Place, Spanned};

/// Configured values of a frame test that a DUT or lab may still refuse.
#[derive(Debug, Clone, Default)]
pub(crate) struct FrameSettings {
    /// `None`: enough for tunnels and cores.
    pub(crate) flows: Option<u32>,
    /// `None`: the number that the DUT has.
    pub(crate) tunnels: Option<u32>,
    /// `None`: as the DUTs need.
    pub(crate) contents: Option<Contents>,
    /// Configured loads, in frames/s.
    pub(crate) loads: Vec<Spanned<u64>>,
    /// The place of the event that disturbs the DUT.
    pub(crate) event: Option<Place>,
}
