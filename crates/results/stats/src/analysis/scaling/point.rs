//! The points of a series, and the number that varies between them.

use crate::analysis::significance::Ratio;
use crate::figures::estimate::Estimate;
use schemars::JsonSchema;
use serde::Serialize;
use units::human::counted;

/// The number that varies in a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
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

    /// For people: `8 workers`.
    #[must_use]
    pub fn counted(self, n: u32) -> String {
        match self {
            Self::Workers => counted(n, "worker"),
            Self::Cores => format!("{} per station", counted(n, "core")),
            Self::Streams => counted(n, "stream"),
            Self::Flows => counted(n, "flow"),
            Self::Tunnels => counted(n, "tunnel"),
        }
    }

    /// Whether twice the number could carry twice the load. Tunnels only add cost.
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
    pub speedup: Option<Ratio>,
    /// Speed-up by the ratio of the numbers; `null` for a number that is not meant to raise the
    /// figure.
    pub efficiency: Option<Ratio>,
    /// Cores that the device's processes kept busy.
    pub dut_cores: Option<f64>,
    /// Idle cores of the machine.
    pub idle_cores: Option<f64>,
    /// The limit of the figure if it is not the device: `tester`, `link`, or `machine` if stations
    /// and device share cores or a station had no idle time.
    pub limited_by: Option<String>,
}
