//! One combination of a trial's axes.

use crate::grid::Placed;
use plan::{Axis, ImpairProfile, Measurement, Stations};
use wire::Suite;
use wire::mix::Contents;
use yaml::{Place, Spanned};

/// One combination of a trial's axes.
#[derive(Clone)]
pub(crate) struct Point<'a> {
    pub(crate) trial: &'a Place,
    /// All of its coordinates, including the ones that ids leave out.
    pub(crate) at: Vec<Placed<'a>>,
    pub(crate) stations: Option<Stations>,
    pub(crate) tune: bool,
    pub(crate) frames: Option<FrameSettings>,
    pub(crate) measurement: Measurement,
    /// The suite that stations seal or open with here, if it is the same for all.
    pub(crate) suite: Option<Suite>,
    pub(crate) impair: Option<&'a ImpairProfile>,
}

impl<'a> Point<'a> {
    /// A point of one core, which no axis has placed yet.
    pub(crate) const fn new(trial: &'a Place, measurement: Measurement) -> Self {
        Self {
            trial,
            at: Vec::new(),
            stations: None,
            tune: false,
            frames: None,
            measurement,
            suite: None,
            impair: None,
        }
    }

    /// Returns the place of the value on an axis, or of the trial if it has none.
    pub(crate) fn place(&self, axis: Axis) -> &Place {
        let mut at = self.at.iter();
        let found = at.find(|(coordinate, _)| coordinate.axis == axis);
        found.map_or(self.trial, |(_, place)| place)
    }
}

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
