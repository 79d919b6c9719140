//! From records to estimates: the combined results of a run's trials, with their spread.
//!
//! ```text
//! Journal -> CellResult per cell -> Comparison of each DUT with its baseline -> Warning
//!                                -> Verdict on each frame test, by the rig's calibration
//! ```
//!
//! The crate has four floors, and each imports from those below it only: `figures` of one cell, the
//! `cell` that holds them, `analysis` across cells, and `warning`.
//!
//! Everything here is a pure function of the journal: no clock, no environment, no random numbers.
//! Counts are integers up to the one division that makes a rate of them. An invalid cell has
//! reasons instead of a figure. One module, `analysis::significance`, decides which findings the
//! repeats support.
//!
//! The crate deliberately removes no outliers, and rounds nothing.

#![forbid(unsafe_code)]

mod analysis;
mod cell;
mod counts;
mod figures;
mod grouped;
mod warning;

pub use analysis::calibration::Calibration;
pub use analysis::change::{
    Change, Needed, Pairing, REPEATS_MAX, expected, simultaneous_alpha, standard_errors,
};
pub use analysis::claims::{ClaimResult, ClaimVerdict};
pub use analysis::compare::{Bound, Comparison};
pub use analysis::contrast::{
    CONTRASTS, Columns, Contrast, ContrastResult, HybridGain, KeyCost, Meaning,
};
pub use analysis::device::{
    Course, Crossover, CrossoverPoint, DeviceAxis, DeviceComparison, DeviceCurve, DeviceGain,
    DevicePointResult, DeviceSeries, DeviceStanding, DeviceUnit, FatigueBatch, FatigueClass,
    REPORT_CLASSES_NS,
};
pub use analysis::expect::{
    ExpectResult, Expected, ExpectedCell, Round, judge_gates, machine as machine_in_words,
};
pub use analysis::gate::{
    Gate, GateError, GateFilter, GateLimit, GateLoad, GateReference, GateUnit, LimitOutcome,
};
pub use analysis::mean_frame_rate::MeanFrameRate;
pub use analysis::metric::Metric;
pub use analysis::published::{PublishedPlace, PublishedResult};
pub use analysis::quantity::{Quantity, Reading};
pub use analysis::ranked_by::RankedBy;
pub use analysis::ranking::{Rank, Ranking, Standing};
pub use analysis::scaling::{
    FIT_MIN_POINTS, FLAT_MAX_PERCENT, Fit, GAIN_MIN_PERCENT, Law, POOR_FIT_PERCENT, Scaling,
    ScalingAxis, ScalingPoint, ScalingUnit, SilentCap,
};
pub use analysis::significance::Ratio;
pub use analysis::suites::{SuiteEntry, SuiteMatrix};
pub use analysis::tools::{ALIKE_PERCENT, ToolCheck, ToolFigure};
pub use analysis::verdict::{LINK_LIMITED_RATIO, TESTER_LIMITED_RATIO};
pub use cell::{CellFigures, CellResult, Control, LateRepeat, Progress, Reason, Repeats, Status};
pub use counts::{was, were};
pub use figures::bands::{BANDS_MIN_REPEATS, Band, TwoBands};
pub use figures::bulk::{Bulk, BulkDirection, CpuResult, Datagrams};
pub use figures::captures::TrialCapture;
pub use figures::device::{
    DeviceCell, DeviceFigures, DeviceMember, DeviceOutcome, DeviceSpeedResult, DeviceTestInfo,
    FOUND_MIN, FatigueDevice, FatigueResult, KatAlgorithm, KatCase, KatResult, KatVerdict,
    MemberSpeed, SURVIVAL_STEPS_MAX, Survival, SurvivalStep, family,
};
pub use figures::direction::DirectionName;
pub use figures::drift::{DRIFT_MIN_POINTS, Drift, DriftJudgement};
pub use figures::estimate::{Estimate, Interval95, LARGE_SPREAD_PERCENT, Sample};
pub use figures::frames::*;
pub use figures::goodput::{GOODPUT_DRIFT_BOUND, GOODPUT_DRIFT_MIN_NS, GoodputDrift};
pub use figures::http::{HttpFigures, HttpLimit, HttpTimesResult, Percentiles};
pub use figures::ike::IkeFigures;
pub use figures::latency::{
    Distribution, HopResult, LatencyResult, LoadedClassResult, LoadedResult, Pooled, RouteResult,
    percentile,
};
pub use figures::monitored::{
    EnergyResult, MonitoredLoad, MonitoredValue, TrialEnergy, monitored_in,
};
pub use figures::overhead::{Ceiling, CeilingBasis, Overhead};
pub use figures::packet_cost::{PacketCost, PerPacket};
pub use figures::parameters::Parameters;
pub use figures::rfc6349::{Ideal, Rfc6349};
pub use figures::series::Series;
pub use figures::student::INTERVAL_MIN_REPEATS;
pub use figures::video::{PacketCounts, VideoFigures};
pub use grouped::grouped;
pub use warning::{HELD_LEAST_NS, Warning, WarningKind, Weight};

use analysis::sittings::Sittings;
use analysis::{
    calibration, ceiling, claims, compare, contrast, expect, mean_frame_rate, published, ranking,
    scaling, suites, tools, verdict,
};
use figures::captures;
use journal::Journal;
use schemars::JsonSchema;
use serde::Serialize;

/// All figures of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Results {
    /// Progress of the run.
    pub progress: Progress,
    /// Result of each cell, in the plan's order.
    pub cells: Vec<CellResult>,
    /// Each DUT against the baseline of its group.
    pub comparisons: Vec<Comparison>,
    /// The rig's limits in each group of frame tests that measures them, in the plan's order.
    #[serde(skip)]
    pub calibrations: Vec<Calibration>,
    /// Mean frame rate over the sizes of each DUT and table of throughput, in the plan's order.
    #[serde(skip)]
    pub mean_frame_rates: Vec<MeanFrameRate>,
    /// Each measurement with several suites of one device.
    pub suites: Vec<SuiteMatrix>,
    /// The devices of each group in order.
    pub rankings: Vec<Ranking>,
    /// Scaling with the number of workers, cores, streams, flows or tunnels.
    pub scalings: Vec<Scaling>,
    /// Claims about the devices compared with measured figures, in the campaign's order.
    pub claims: Vec<ClaimResult>,
    /// The campaign's limits with their outcomes; absent without limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expected>,
    /// Cost of key sources against static keys.
    pub key_costs: Vec<KeyCost>,
    /// Gain of hybrids of engines over each engine alone, in the plan's order.
    pub hybrid_gains: Vec<HybridGain>,
    /// DUTs compared with twins that differ in one setting, comparison by comparison; absent if
    /// `key_costs` and `hybrid_gains` contain all of them.
    #[serde(default, skip_serializing_if = "contrast::have_other_keys")]
    pub contrasts: Vec<ContrastResult>,
    /// The same transfers by several tools.
    pub tool_checks: Vec<ToolCheck>,
    /// Published figures of other systems compared with measured ones.
    pub published: Vec<PublishedResult>,
    /// Crypto devices over sizes, concurrency or queue depths, side by side.
    pub device_series: Vec<DeviceSeries>,
    /// Crypto devices of one fatigue trial.
    pub fatigue_batches: Vec<FatigueBatch>,
    /// Captures of the trials.
    pub captures: Vec<TrialCapture>,
    /// Warnings about the figures, each with advice.
    pub warnings: Vec<Warning>,
}

impl Results {
    /// Sums up a run, complete or not.
    #[must_use]
    pub fn of(journal: &Journal) -> Self {
        let mut cells = cell::results(journal);
        // Verdicts and ceilings first: claims, scaling and warnings read them from the cells.
        verdict::judge_all(journal, &mut cells);
        ceiling::set_ceilings(journal, &mut cells);
        ceiling::set_ideals(&mut cells);
        let sittings = Sittings::of(journal);
        sittings.mark(&mut cells);
        // From here on the cells are complete, and nothing may change them.
        let cells = cells;
        let comparisons = compare::comparisons(&cells, &sittings);
        let contrasts = contrast::results(journal, &cells);
        let progress = Progress::of(journal, &cells);
        let scalings = scaling::scalings(journal, &cells, &comparisons);
        let tool_checks = tools::checks(&journal.header.plan, &cells);
        let mut warnings = warning::warnings(journal, &cells, &comparisons, &scalings, &progress);
        warnings.extend(warning::tools_disagree(&tool_checks));
        let device_series = analysis::device::all_series(journal, &cells);
        warnings.extend(warning::device::warnings(&cells, &device_series));
        let captures = captures::captures(journal);
        warnings.extend(warning::captures::warnings(&captures));
        // What spoils a figure first, so that a short list leaves out the least.
        warnings.sort_by_key(|warning| warning.kind.weight());
        Self {
            progress,
            captures,
            calibrations: calibration::calibrations(&cells),
            mean_frame_rates: mean_frame_rate::mean_frame_rates(journal, &cells),
            suites: suites::matrices(journal),
            rankings: ranking::rankings(journal, &cells, &sittings),
            claims: claims::claims(journal, &cells, &comparisons),
            expect: expect::expected(journal, &cells, &comparisons),
            key_costs: contrast::key_costs(journal, &contrasts),
            hybrid_gains: contrast::hybrid_gains(journal, &contrasts),
            contrasts,
            scalings,
            tool_checks,
            published: published::published(journal, &cells),
            device_series,
            fatigue_batches: analysis::device::batches(&cells),
            cells,
            comparisons,
            warnings,
        }
    }

    /// The result of a cell by its id.
    #[must_use]
    pub fn cell(&self, id: &str) -> Option<&CellResult> {
        self.cells.iter().find(|cell| cell.id == id)
    }

    /// A DUT cell's comparison with its baseline.
    #[must_use]
    pub fn comparison(&self, cell: &str, metric: Metric) -> Option<&Comparison> {
        self.comparisons
            .iter()
            .find(|found| found.cell == cell && found.metric == metric)
    }
}
