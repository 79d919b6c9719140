//! From records to estimates: the combined results of a run's trials, with their spread.
//!
//! ```text
//! Journal -> CellResult per cell -> Comparison of each DUT with its baseline -> Warning
//!                                -> Verdict on each frame test, by the rig's calibration
//! ```
//!
//! Everything here is a pure function of the journal: no clock, no environment, no random numbers.
//! Counts are integers up to the one division that makes a rate of them. An invalid cell has
//! reasons instead of a figure. One module, `significance`, decides which findings the repeats
//! support.
//!
//! The crate deliberately removes no outliers, and rounds nothing.

#![forbid(unsafe_code)]

mod bands;
mod bulk;
mod captures;
mod ceiling;
mod cell;
mod change;
mod claims;
mod compare;
mod cores;
mod device;
mod direction;
mod drift;
mod estimate;
mod frames;
mod goodput;
mod http;
mod hybrids;
mod keys;
mod latency;
mod levels;
mod monitored;
#[cfg(test)]
mod noise;
mod overhead;
mod packet_cost;
mod parameters;
mod published;
mod quantity;
mod ranked_by;
mod ranking;
mod repeats;
mod rfc6349;
mod scaling;
mod significance;
mod sittings;
mod student;
mod suites;
mod tools;
mod verdict;
mod video;
mod warning;

pub use bands::{BANDS_MIN_REPEATS, Band, TwoBands};
pub use bulk::{Bulk, BulkDirection, CpuResult, Datagrams};
pub use captures::TrialCapture;
pub use cell::{CellFigures, CellResult, Control, LateRepeat, Reason, Repeats, Status};
pub use change::{Change, Needed, Pairing, REPEATS_MAX, simultaneous_alpha};
pub use claims::{ClaimResult, ClaimVerdict};
pub use compare::{Bound, Comparison, Metric};
pub use device::{
    Course, Crossover, CrossoverPoint, DeviceAxis, DeviceCell, DeviceComparison, DeviceCurve,
    DeviceFigures, DeviceGain, DeviceMember, DeviceOutcome, DevicePointResult, DeviceSeries,
    DeviceSpeedResult, DeviceStanding, DeviceTestInfo, DeviceUnit, FOUND_MIN, FatigueBatch,
    FatigueClass, FatigueDevice, FatigueResult, KatAlgorithm, KatCase, KatResult, KatVerdict,
    MemberSpeed, REPORT_CLASSES_NS, SURVIVAL_STEPS_MAX, Survival, SurvivalStep, family,
};
pub use direction::DirectionName;
pub use drift::{DRIFT_MIN_POINTS, Drift, DriftJudgement};
pub use estimate::{Estimate, Interval95, LARGE_SPREAD_PERCENT, Sample};
pub use frames::{
    BackToBackResult, CAPACITY_MIN_PROBES, Calibration, CleanRekeys, DesyncReport, DesyncResult,
    DifferingReset, DirectionLatency, DirectionLoss, DisturbanceResult, DisturbedLoad, EventPlace,
    EventResult, EventTimes, FailoverResult, FrameCell, FrameFigures, FrameOutcome, GoalResult,
    HOSTILE_LOSS_PPM, HostileResult, HostileShare, IpdvByTrial, LatencyByTrial, LayerRates,
    LoadLatency, LoadResult, LossAccount, MeanFrameRate, MrrResult, OutcomeRepeats, PortUsed,
    RecoveryResult, RekeyResult, ResetResult, RoundTrip, STALL_NS, ServiceResult,
    ServiceStepResult, SetupResult, SoakCapacity, SoakResult, SoakRun, SoakStall, SoakVerdict,
    ThroughputResult, TrafficInfo, TrialSpread, fastest_load, histogram_percentile, longest_burst,
    merged_histogram, merged_percentile,
};
pub use goodput::{GOODPUT_DRIFT_BOUND, GOODPUT_DRIFT_MIN_NS, GoodputDrift};
pub use http::{HttpFigures, HttpLimit, HttpTimesResult, Percentiles};
pub use hybrids::HybridGain;
pub use keys::KeyCost;
pub use latency::{
    Distribution, HopResult, LatencyResult, LoadedResult, Pooled, RouteResult, percentile,
};
pub use monitored::{EnergyResult, MonitoredLoad, MonitoredValue, TrialEnergy, monitored_in};
pub use overhead::{Ceiling, CeilingBasis, Overhead};
pub use packet_cost::{PacketCost, PerPacket};
pub use parameters::Parameters;
pub use published::{PublishedPlace, PublishedResult};
pub use quantity::{Quantity, Reading};
pub use ranked_by::RankedBy;
pub use ranking::{Rank, Ranking, Standing};
pub use rfc6349::{Ideal, Rfc6349};
pub use scaling::{
    FIT_MIN_POINTS, FLAT_MAX_PERCENT, Fit, GAIN_MIN_PERCENT, Law, POOR_FIT_PERCENT, Scaling,
    ScalingAxis, ScalingPoint, ScalingUnit, SilentCap,
};
pub use significance::Ratio;
pub use student::INTERVAL_MIN_REPEATS;
pub use suites::{SuiteEntry, SuiteMatrix};
pub use tools::{ALIKE_PERCENT, ToolCheck, ToolFigure};
pub use verdict::{LINK_LIMITED_RATIO, Limit, TESTER_LIMITED_RATIO, Verdict};
pub use video::{PacketCounts, VideoFigures};
pub use warning::{HELD_LEAST_NS, Warning, WarningKind, Weight};

use journal::Journal;
use journal::record::{DeviceResult, Outcome};
use schemars::JsonSchema;
use serde::Serialize;
use sittings::Sittings;

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
    /// Cost of key sources against static keys.
    pub key_costs: Vec<KeyCost>,
    /// Gain of hybrids of engines over each engine alone, in the plan's order.
    pub hybrid_gains: Vec<HybridGain>,
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

/// Progress of a run, in trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Progress {
    /// Whether the run is complete.
    pub ended: bool,
    /// Planned trials.
    pub trials_planned: u64,
    /// Of those, measured with all checks passed.
    pub trials_measured: u64,
    /// Of those measured, with a crypto device that failed or gave a wrong result: a valid
    /// measurement of a bad device.
    pub trials_with_bad_device: u64,
    /// Of those, measured but found invalid.
    pub trials_invalid: u64,
    /// Of those, failed.
    pub trials_failed: u64,
    /// Of those, not run.
    pub trials_not_run: u64,
    /// Of those, left out because the machine has too few cores, as the campaign permits.
    pub trials_skipped: u64,
}

impl Results {
    /// Sums up a run, complete or not.
    #[must_use]
    pub fn of(journal: &Journal) -> Self {
        let mut cells = cell::results(journal);
        frames::judge_all(journal, &mut cells);
        ceiling::set_ceilings(journal, &mut cells);
        ceiling::set_ideals(&mut cells);
        let sittings = Sittings::of(journal);
        sittings.mark(&mut cells);
        let cells = cells;
        let comparisons = compare::comparisons(&cells, &sittings);
        let progress = Progress::of(journal, &cells);
        let scalings = scaling::scalings(journal, &cells, &comparisons);
        let tool_checks = tools::checks(&journal.header.plan, &cells);
        let mut warnings = warning::warnings(journal, &cells, &comparisons, &scalings, &progress);
        warnings.extend(warning::tools_disagree(&tool_checks));
        let device_series = device::all_series(journal, &cells);
        warnings.extend(warning::device::warnings(&cells, &device_series));
        let captures = captures::captures(journal);
        warnings.extend(warning::captures::warnings(&captures));
        // What spoils a figure first, so that a short list leaves out the least.
        warnings.sort_by_key(|warning| warning.kind.weight());
        Self {
            progress,
            captures,
            calibrations: frames::calibrations(&cells),
            mean_frame_rates: frames::mean_frame_rates(journal, &cells),
            suites: suites::matrices(journal),
            rankings: ranking::rankings(journal, &cells, &sittings),
            claims: claims::claims(journal, &cells, &comparisons),
            key_costs: keys::costs(journal, &cells),
            hybrid_gains: hybrids::gains(journal, &cells),
            scalings,
            tool_checks,
            published: published::published(journal, &cells),
            device_series,
            fatigue_batches: device::batches(&cells),
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

impl Progress {
    fn of(journal: &Journal, cells: &[CellResult]) -> Self {
        let sum = |count: fn(&Repeats) -> u32| -> u64 {
            cells
                .iter()
                .map(|cell| u64::from(count(&cell.repeats)))
                .sum()
        };
        Self {
            ended: journal.end.is_some(),
            trials_planned: sum(|repeats| repeats.planned),
            trials_measured: sum(|repeats| repeats.measured),
            trials_with_bad_device: journal
                .latest_trials()
                .values()
                .filter(|trial| has_bad_device(&trial.outcome))
                .count() as u64,
            trials_invalid: sum(|repeats| repeats.invalid),
            trials_failed: sum(|repeats| repeats.failed),
            trials_not_run: sum(|repeats| repeats.not_run),
            trials_skipped: sum(|repeats| repeats.skipped),
        }
    }
}

fn has_bad_device(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Measured(measured) => measured.device().is_some_and(DeviceResult::is_bad),
        Outcome::Invalid { .. } | Outcome::Failed { .. } => false,
    }
}
