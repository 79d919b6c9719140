//! The points of a series, and the number that varies between them.

use crate::estimate::Estimate;
use schemars::JsonSchema;
use serde::Serialize;

/// The number that varies in a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScalingAxis {
    /// Worker threads of the device.
    Workers,
    /// Cores of each station.
    Cores,
    /// Streams of a tool.
    Streams,
    /// Flows of frames.
    Flows,
    /// Tunnels.
    Tunnels,
}

impl ScalingAxis {
    /// For people: `workers`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workers => "workers",
            Self::Cores => "cores per station",
            Self::Streams => "streams",
            Self::Flows => "flows",
            Self::Tunnels => "tunnels",
        }
    }

    /// Whether twice as many could carry twice as much. Not so for tunnels, which only add cost.
    #[must_use]
    pub const fn adds(self) -> bool {
        !matches!(self, Self::Tunnels)
    }
}

/// One number of a series.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ScalingPoint {
    /// The number.
    pub n: u32,
    /// Id of the cell.
    pub cell: String,
    /// Its figure; `null` when the cell has none.
    pub figure: Option<Estimate>,
    /// The ratio to the figure of the smallest number.
    pub speedup: Option<RatioRange>,
    /// Speed-up by the ratio of the numbers; `null` for a number that is not meant to raise the
    /// figure.
    pub efficiency: Option<RatioRange>,
    /// Cores that the device's processes kept busy.
    pub dut_cores: Option<f64>,
    /// Idle cores of the machine.
    pub idle_cores: Option<f64>,
    /// The limit of the figure if it is not the device: `tester` or `link`.
    pub limited_by: Option<String>,
    /// Whether stations and device need more cores than the machine has.
    pub crowded: bool,
}

/// A ratio of means, and the range of the pairs of repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RatioRange {
    /// Ratio of the means.
    pub ratio: f64,
    /// Smallest ratio of a pair; `null` when no repeat was measured for both.
    pub low: Option<f64>,
    /// Largest ratio of a pair.
    pub high: Option<f64>,
}

impl RatioRange {
    pub(crate) fn of(found: &Estimate, base: &Estimate) -> Option<Self> {
        let divide = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let pairs: Vec<f64> = found
            .values
            .iter()
            .filter_map(|sample| divide(sample.value, base.at(sample.repeat)?))
            .collect();
        Some(Self {
            ratio: divide(found.mean, base.mean)?,
            low: pairs.iter().copied().reduce(f64::min),
            high: pairs.iter().copied().reduce(f64::max),
        })
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        Self {
            ratio: factor * self.ratio,
            low: self.low.map(|low| factor * low),
            high: self.high.map(|high| factor * high),
        }
    }
}
