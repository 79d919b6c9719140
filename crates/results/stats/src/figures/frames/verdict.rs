//! What limits the figure of a frame test. The rules are in `analysis::verdict`.

use schemars::JsonSchema;
use serde::Serialize;

/// What limits the figure of a frame test, with the numbers that show it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// The limit.
    pub limit: Limit,
    /// A sentence with the numbers.
    pub reason: String,
    /// The figure, in frames/s; in frames for `back-to-back`.
    pub figure: Option<f64>,
    /// Its upper bound, in the same unit.
    pub upper: Option<f64>,
    /// Id of the cell that measured the rig.
    pub rig_cell: Option<String>,
    /// The rig's figure, in the same unit.
    pub rig: Option<f64>,
    /// Ratio of the figure to the rig's: geometric mean over the pairs of repeats.
    pub of_rig: Option<f64>,
    /// Lower end of its 95 % interval; `null` without two repeats of both.
    pub of_rig_low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub of_rig_high: Option<f64>,
    /// Bit rate on the fuller link, preamble and gap included.
    pub l1_bps: Option<f64>,
    /// Rate of the links.
    pub link_bps: Option<u64>,
    /// Ratio of these two.
    pub of_link: Option<f64>,
    /// Cores that stations and device want; `null` if they share none.
    pub shared_cores_wanted: Option<u32>,
}

/// What limits a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The device.
    DutLimited,
    /// The stations: the device may do more.
    TesterLimited,
    /// A link.
    LinkLimited,
    /// The machine: stations and device share its cores, or a station had no idle time.
    MachineLimited,
    /// Undecided.
    Inconclusive,
}

impl Limit {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DutLimited => "dut-limited",
            Self::TesterLimited => "tester-limited",
            Self::LinkLimited => "link-limited",
            Self::MachineLimited => "machine-limited",
            Self::Inconclusive => "inconclusive",
        }
    }
}
