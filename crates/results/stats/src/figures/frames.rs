//! Frame tests: the combined result of a cell's repeats.
//!
//! Rates are per direction, even if both are loaded; counts include all sent frames. A frame size
//! includes the FCS. To add a procedure with figures: its variant of [`FrameOutcome`], its figures
//! next to it or in a module, and its key in [`FrameInfo`].

mod burst;
mod by_trial;
mod disturbed;
mod latency;
mod loads;
mod loss;
mod mrr;
mod rates;
mod service;
mod soak;
mod throughput;
mod verdict;

pub use burst::{BackToBackResult, RecoveryResult, longest_burst};
pub use by_trial::{IpdvByTrial, LatencyByTrial, TrialSpread};
pub use disturbed::{
    CleanRekeys, DesyncReport, DesyncResult, DifferingReset, DisturbanceResult, DisturbedLoad,
    EventPlace, EventResult, EventTimes, FailoverResult, HOSTILE_LOSS_PPM, HostileResult,
    HostileShare, RekeyResult, ResetResult, SetupResult,
};
pub use latency::{
    DirectionLatency, LoadLatency, RoundTrip, histogram_percentile, merged_histogram,
    merged_percentile,
};
pub use loads::{LoadResult, fastest_load};
pub use loss::{DirectionLoss, LossAccount};
pub use mrr::MrrResult;
pub use rates::LayerRates;
pub use service::{ServiceResult, ServiceStepResult};
pub use soak::{
    CAPACITY_MIN_PROBES, STALL_NS, SoakCapacity, SoakResult, SoakRun, SoakStall, SoakVerdict,
};
pub use throughput::{GoalResult, OutcomeRepeats, ThroughputResult};
pub use verdict::{Limit, Verdict};

pub(crate) use disturbed::hostile_delivered_in;
pub(crate) use rates::Lengths;

use crate::figures::estimate::Estimate;
use disturbed::DisturbanceInfo;
use journal::record::{FramePort, FrameResult, Measured};
use plan::{FrameTest, PortKind, Procedure, Traffic};
use schemars::JsonSchema;
use serde::Serialize;

/// The frames of a cell and their directions.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TrafficInfo {
    /// A known mix, the frame size itself, or `mix`.
    pub mix: String,
    /// The sizes and their numbers: `7×64, 4×594, 1×1518`; the size if there is only one. FCS
    /// included.
    pub genome: String,
    /// The size, if there is only one; FCS included.
    pub frame_bytes: Option<u16>,
    /// Mean size; FCS included.
    pub mean_frame_bytes: f64,
    /// 4 or 6.
    pub ip_version: u8,
    /// Flows.
    pub flows: u32,
    /// Tunnels over which the flows are spread.
    pub tunnels: u32,
    /// The loaded part of the DUT: `encrypt`, `decrypt` or `both`.
    pub direction: String,
    /// Whether the same load goes from B to A at the same time.
    pub duplex: bool,
}

/// A frame test: its traffic and its result.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameCell {
    /// The frames.
    pub traffic: TrafficInfo,
    /// Figures; `None` when the cell has none.
    pub figures: Option<FrameFigures>,
    /// What limits the figure; `None` when the cell has none.
    pub verdict: Option<Verdict>,
}

/// Figures of a frame test.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameFigures {
    /// The result of the search, for procedures that have one.
    pub throughput: Option<ThroughputResult>,
    /// Whether its loads, and so the throughput, are there and back.
    pub is_reflected: bool,
    /// Latency under each load; for procedures other than `latency`, under the evidence's load.
    pub latency: Vec<LoadLatency>,
    /// The procedure's other findings.
    pub found: FrameOutcome,
    /// Counts of the trials with recorded evidence.
    pub at_evidence: Option<LoadResult>,
    /// Loss per direction over all trials except the one that found the highest load; empty if only
    /// one direction is loaded, and for older journals.
    pub directions: Vec<DirectionLoss>,
    /// Station A's sending port.
    pub sender: PortUsed,
    /// The receiving station's port.
    pub receiver: PortUsed,
}

/// Findings of a procedure besides a search and latency.
#[derive(Debug, Clone, PartialEq)]
pub enum FrameOutcome {
    /// Nothing: `latency`, and other procedures without a further figure.
    Nothing,
    /// Nothing more: `throughput`.
    Throughput,
    /// For `load`.
    Load(Box<LoadResult>),
    /// For `mrr`.
    Mrr(Box<MrrResult>),
    /// One load after the other, for `loss-curve`; the highest first.
    LossCurve(Vec<LoadResult>),
    /// Longest burst without loss, for `back-to-back`.
    BackToBack(BackToBackResult),
    /// For `recovery`.
    Recovery(RecoveryResult),
    /// For `rekey`, `failover`, `reset`, `setup`, `desync` and `hostile`.
    Disturbance(Box<DisturbanceResult>),
    /// For `service`.
    Service(Box<ServiceResult>),
    /// For `soak`.
    Soak(Box<SoakResult>),
}

/// Figures of a frame test; the procedure determines which exist.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FrameFigures")]
pub(crate) struct FrameInfo<'a> {
    /// The result of the search, for `throughput`, `latency` and `recovery`.
    throughput: Option<&'a ThroughputResult>,
    /// One load after the other, for `load`, `mrr` and `loss-curve`; the highest first.
    loads: &'a [LoadResult],
    /// Latency under each load; for procedures other than `latency`, under the evidence's load.
    latency: &'a [LoadLatency],
    /// For `mrr`.
    mrr: Option<&'a MrrResult>,
    /// Longest burst without loss, for `back-to-back`.
    back_to_back: Option<&'a BackToBackResult>,
    /// For `recovery`.
    recovery: Option<&'a RecoveryResult>,
    /// For `rekey`, `failover`, `reset`, `setup`, `desync` and `hostile`.
    disturbance: Option<DisturbanceInfo<'a>>,
    /// For `service`.
    service: Option<&'a ServiceResult>,
    /// For `soak`.
    soak: Option<&'a SoakResult>,
    /// Counts of the trials with recorded evidence.
    at_evidence: Option<&'a LoadResult>,
    /// Loss per direction over all frame trials except the one that found the highest load; empty
    /// if only one direction is loaded, and for older journals.
    directions: &'a [DirectionLoss],
    /// Station A's sending port.
    sender: &'a PortUsed,
    /// The receiving station's port.
    receiver: &'a PortUsed,
}

/// The port that a station used to send or receive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PortUsed {
    /// `AF_XDP`, `AF_PACKET` …; several if repeats differ; empty if no trial opened a port.
    pub ports: Vec<String>,
    /// How AF_XDP worked: `native, zero-copy`, `copy` …; several if repeats differ.
    pub xdp_modes: Vec<String>,
    /// Why faster ones were not used, as sentences.
    pub passed_over: Vec<String>,
    /// Threads.
    pub threads: u16,
    /// Crypto engine, if the station sealed or opened.
    pub engine: Option<String>,
}

/// A repeat's number and its record.
type Repeats<'a> = [(u32, &'a FrameResult)];

impl TrafficInfo {
    fn of(traffic: &Traffic) -> Self {
        let only = |mix: &wire::mix::FrameMix| match mix.shares.as_slice() {
            [only] => Some(only.frame_bytes),
            _ => None,
        };
        Self {
            mix: traffic.frames.mix.name.clone(),
            genome: traffic.frames.mix.to_string(),
            frame_bytes: only(&traffic.frames.mix),
            mean_frame_bytes: traffic.frames.mix.mean_bytes(),
            ip_version: traffic.ip.number(),
            flows: traffic.frames.flows,
            tunnels: traffic.frames.tunnels,
            direction: traffic.direction.name().into(),
            duplex: traffic.duplex,
        }
    }
}

impl FrameCell {
    pub(crate) fn of(test: &FrameTest, measured: &[(u32, &Measured)]) -> Self {
        Self {
            traffic: TrafficInfo::of(&test.traffic),
            figures: FrameFigures::of(test, measured),
            verdict: None,
        }
    }
}

impl FrameFigures {
    /// Sums up the repeats; `None` without repeats.
    fn of(test: &FrameTest, measured: &[(u32, &Measured)]) -> Option<Self> {
        let repeats: Vec<(u32, &FrameResult)> = measured
            .iter()
            .filter_map(|&(repeat, found)| Some((repeat, found.frames()?)))
            .collect();
        let last = repeats.last()?.1;
        let lengths = Lengths::of(&test.traffic);
        let search = test.procedure.search();
        // One-way and reflected loads are not comparable: if repeats differ, one-way repeats count.
        let one_way = repeats.iter().filter(|(_, found)| !found.is_reflected());
        let one_way: Vec<_> = one_way.copied().collect();
        let is_reflected = one_way.is_empty();
        let searched = if is_reflected { &repeats } else { &one_way };
        Some(Self {
            throughput: search.and_then(|search| ThroughputResult::of(search, &lengths, searched)),
            is_reflected,
            // Latencies one way and there and back are keyed apart, so every repeat counts here.
            latency: latency::of(&repeats),
            found: FrameOutcome::of(test, &lengths, &repeats),
            at_evidence: loads::at_evidence(&lengths, &repeats),
            directions: loads::directions(&repeats),
            sender: PortUsed::of(&repeats, |found| &found.sender, &last.sender),
            receiver: PortUsed::of(&repeats, |found| &found.receiver, &last.receiver),
        })
    }

    /// The loads of `load`, `mrr` and `loss-curve`; empty for others.
    #[must_use]
    pub fn loads(&self) -> &[LoadResult] {
        match &self.found {
            FrameOutcome::Load(load) => std::slice::from_ref(load),
            FrameOutcome::Mrr(found) => std::slice::from_ref(&found.load),
            FrameOutcome::LossCurve(loads) => loads,
            _ => &[],
        }
    }

    /// The figures of `mrr`.
    #[must_use]
    pub fn mrr(&self) -> Option<&MrrResult> {
        match &self.found {
            FrameOutcome::Mrr(found) => Some(found),
            _ => None,
        }
    }

    /// The longest burst of `back-to-back`.
    #[must_use]
    pub const fn back_to_back(&self) -> Option<&BackToBackResult> {
        match &self.found {
            FrameOutcome::BackToBack(found) => Some(found),
            _ => None,
        }
    }

    /// The figures of `recovery`.
    #[must_use]
    pub const fn recovery(&self) -> Option<&RecoveryResult> {
        match &self.found {
            FrameOutcome::Recovery(found) => Some(found),
            _ => None,
        }
    }

    /// The figures of `rekey`, `failover`, `reset`, `setup`, `desync` and `hostile`.
    #[must_use]
    pub fn disturbance(&self) -> Option<&DisturbanceResult> {
        match &self.found {
            FrameOutcome::Disturbance(found) => Some(found),
            _ => None,
        }
    }

    /// The figures of `service`.
    #[must_use]
    pub fn service(&self) -> Option<&ServiceResult> {
        match &self.found {
            FrameOutcome::Service(found) => Some(found),
            _ => None,
        }
    }

    /// The figures of `soak`.
    #[must_use]
    pub fn soak(&self) -> Option<&SoakResult> {
        match &self.found {
            FrameOutcome::Soak(found) => Some(found),
            _ => None,
        }
    }

    /// The relevant lower bound of the first goal, or the highest forwarding rate; in frames/s.
    #[must_use]
    pub fn frame_rate(&self) -> Option<&Estimate> {
        match &self.throughput {
            Some(found) => Some(&found.goals.first()?.lower.as_ref()?.frames_per_s),
            None => Some(&self.fastest()?.forwarded.frames_per_s),
        }
    }

    /// Whether the frame rate is only a lower bound: see [`ThroughputResult::is_only_lower_bound`].
    #[must_use]
    pub fn is_only_lower_bound(&self) -> bool {
        let search = self.throughput.as_ref();
        search.is_some_and(ThroughputResult::is_only_lower_bound)
    }

    /// The load with the highest forwarding rate.
    #[must_use]
    pub fn fastest(&self) -> Option<&LoadResult> {
        let rate = |load: &&LoadResult| load.forwarded.frames_per_s.mean;
        // Not the highest load: beyond its capacity a device may forward less.
        let loads = self.loads().iter();
        loads.max_by(|a, b| rate(a).total_cmp(&rate(b)))
    }
}

impl FrameOutcome {
    fn of(test: &FrameTest, lengths: &Lengths, repeats: &Repeats<'_>) -> Self {
        let found = match &test.procedure {
            Procedure::Throughput(_) => Some(Self::Throughput),
            Procedure::Load(_) => {
                loads::single(lengths, repeats).map(|load| Self::Load(Box::new(load)))
            }
            Procedure::Mrr(_) => {
                MrrResult::of(lengths, repeats).map(|found| Self::Mrr(Box::new(found)))
            }
            Procedure::LossCurve(curve) => {
                Some(Self::LossCurve(loads::curve(curve, lengths, repeats)))
            }
            Procedure::BackToBack(test) => {
                BackToBackResult::of(test, repeats).map(Self::BackToBack)
            }
            Procedure::Recovery(_) => RecoveryResult::of(repeats).map(Self::Recovery),
            Procedure::Disturbed(disturbed) => {
                DisturbanceResult::of(&disturbed.event, &test.traffic, lengths, repeats)
                    .map(|found| Self::Disturbance(Box::new(found)))
            }
            Procedure::Service(plan) => ServiceResult::of(plan, lengths, repeats)
                .map(|found| Self::Service(Box::new(found))),
            Procedure::Soak(plan) => {
                SoakResult::of(plan, lengths, repeats).map(|found| Self::Soak(Box::new(found)))
            }
            // The latencies of any procedure are in `FrameFigures`.
            Procedure::Latency(_) => None,
        };
        found.unwrap_or(Self::Nothing)
    }

    /// Whether devices are ranked by the frame rate.
    pub(crate) const fn is_ranked(&self) -> bool {
        matches!(self, Self::Throughput | Self::Mrr(_) | Self::LossCurve(_))
    }
}

impl<'a> FrameInfo<'a> {
    pub(crate) fn of(figures: &'a FrameFigures) -> Self {
        Self {
            throughput: figures.throughput.as_ref(),
            loads: figures.loads(),
            latency: &figures.latency,
            mrr: figures.mrr(),
            back_to_back: figures.back_to_back(),
            recovery: figures.recovery(),
            disturbance: figures.disturbance().map(DisturbanceInfo::of),
            service: figures.service(),
            soak: figures.soak(),
            at_evidence: figures.at_evidence.as_ref(),
            directions: &figures.directions,
            sender: &figures.sender,
            receiver: &figures.receiver,
        }
    }
}

impl PortUsed {
    fn of(
        repeats: &Repeats<'_>,
        port: impl Fn(&FrameResult) -> &FramePort,
        last: &FramePort,
    ) -> Self {
        let used = || repeats.iter().map(|(_, found)| port(found));
        Self {
            ports: distinct(used().filter_map(|port| Some(port_name(port.kind?)))),
            xdp_modes: distinct(used().filter_map(|port| port.xdp_mode.as_deref())),
            passed_over: last.passed_over.clone(),
            threads: last.threads,
            engine: last.engine.clone(),
        }
    }
}

/// Each name once, in the order of its first use.
fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        if distinct.iter().all(|known| known != name) {
            distinct.push(name.into());
        }
    }
    distinct
}

/// The usual spelling.
const fn port_name(kind: PortKind) -> &'static str {
    match kind {
        PortKind::Xdp => "AF_XDP",
        PortKind::Packet => "AF_PACKET",
        PortKind::Socket => "UDP socket",
        PortKind::Memory => "memory",
    }
}
