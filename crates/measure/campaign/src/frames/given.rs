//! What a campaign gives of a frame test.

use yaml::{Place, Spanned};

/// What the campaign gives of a frame test, which can still be wrong with some DUT or in some lab.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    /// `None`: as many as suffice.
    pub(crate) flows: Option<u32>,
    /// `None`: as many as the DUT has.
    pub(crate) tunnels: Option<u32>,
    /// Loads that were given, in frames/s.
    pub(crate) loads: Vec<Spanned<u64>>,
    /// Of what is done to the DUT.
    pub(crate) event: Option<Place>,
}
