//! Frame tests: what the repeats of a cell say together.
//!
//! Rates are of one direction, also where both are loaded; counts are of all that was sent. A frame
//! size includes the FCS. To add a procedure: a module here, its field in [`FrameFigures`], and how
//! it is judged in `question`.

mod burst;
mod calibration;
mod disturbed;
mod latency;
mod loads;
mod mean;
mod question;
mod rates;
mod soak;
mod throughput;

pub use burst::{BackToBackResult, RecoveryResult, longest_burst};
pub use calibration::Calibration;
pub use disturbed::{
    CleanRekeys, DesyncResult, DesyncTold, DisturbanceResult, DisturbedLoad, EventPlace,
    EventTimes, FailoverResult, HOSTILE_LOSS_PPM, HostileResult, HostileShare, RekeyResult,
    SetupResult,
};
pub use latency::{LoadLatency, histogram_percentile};
pub use loads::{LoadResult, LossAccount};
pub use mean::MeanFrameRate;
pub use rates::LayerRates;
pub use soak::{STALL_NS, SoakResult, SoakRun, SoakStall, SoakVerdict};
pub use throughput::{GoalParameters, GoalResult, ThroughputResult};

pub(crate) use calibration::calibrations;
pub(crate) use disturbed::hostile_delivered_in;
pub(crate) use mean::mean_frame_rates;
pub(crate) use question::judge_all;

use crate::estimate::Estimate;
use campaign::plan::{Cell, FrameTest, Measurement, PortKind, Procedure};
use journal::record::{FramePort, FrameResult, Measured};
use rates::Lengths;
use schemars::JsonSchema;
use serde::Serialize;

/// What the frames of a cell look like and which way they go.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TrafficInfo {
    /// A known mix, the frame size itself, or `mix`.
    pub mix: String,
    /// The sizes and in what numbers: `7×64, 4×594, 1×1518`; of one size, the size. FCS included.
    pub genome: String,
    /// The size, where there is only one; FCS included.
    pub frame_bytes: Option<u16>,
    /// Mean size; FCS included.
    pub mean_frame_bytes: f64,
    /// 4 or 6.
    pub ip_version: u8,
    /// Flows.
    pub flows: u32,
    /// Tunnels that the flows are spread over.
    pub tunnels: u32,
    /// Which part of the DUT is loaded: `encrypt`, `decrypt` or `both`.
    pub direction: String,
    /// Whether the same load goes from B to A at the same time.
    pub duplex: bool,
}

/// Figures of a frame test. Which are there depends on the procedure.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FrameFigures {
    /// What the search found, for `throughput`, `latency` and `recovery`.
    pub throughput: Option<ThroughputResult>,
    /// One load after the other, for `load` and `loss-curve`; the highest first.
    pub loads: Vec<LoadResult>,
    /// Latency under each load; of procedures other than `latency`, under that of the evidence.
    pub latency: Vec<LoadLatency>,
    /// Longest burst without loss, for `back-to-back`.
    pub back_to_back: Option<BackToBackResult>,
    /// For `recovery`.
    pub recovery: Option<RecoveryResult>,
    /// For `rekey`, `failover`, `setup`, `desync` and `hostile`.
    pub disturbance: Option<DisturbanceResult>,
    /// For `soak`.
    pub soak: Option<SoakResult>,
    /// Counts of the trials whose evidence is recorded.
    pub at_evidence: Option<LoadResult>,
    /// How station A sent.
    pub sender: PortUsed,
    /// How the receiving station received.
    pub receiver: PortUsed,
}

/// How a station sent or received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PortUsed {
    /// `AF_XDP`, `AF_PACKET` …; more than one when repeats differ; empty when none came so far.
    pub ports: Vec<String>,
    /// Why faster ones were not used: sentences.
    pub passed_over: Vec<String>,
    /// Threads that worked.
    pub threads: u16,
    /// Crypto engine, where the station sealed or opened.
    pub engine: Option<String>,
}

/// A repeat's number and what it recorded.
type Repeats<'a> = [(u32, &'a FrameResult)];

impl TrafficInfo {
    pub(crate) fn of(cell: &Cell) -> Option<Self> {
        let Measurement::Frames(FrameTest { traffic, .. }) = &cell.measurement else {
            return None;
        };
        let only = |mix: &wire::mix::FrameMix| match mix.shares.as_slice() {
            [only] => Some(only.frame_bytes),
            _ => None,
        };
        Some(Self {
            mix: traffic.mix.name.clone(),
            genome: traffic.mix.to_string(),
            frame_bytes: only(&traffic.mix),
            mean_frame_bytes: traffic.mix.mean_bytes(),
            ip_version: traffic.ip.number(),
            flows: traffic.flows,
            tunnels: traffic.tunnels,
            direction: traffic.direction.name().into(),
            duplex: traffic.duplex,
        })
    }
}

impl FrameFigures {
    /// Sums up the repeats; `None` for other measurements, and when there is none.
    pub(crate) fn of(cell: &Cell, measured: &[(u32, &Measured)]) -> Option<Self> {
        let Measurement::Frames(test) = &cell.measurement else {
            return None;
        };
        let repeats: Vec<(u32, &FrameResult)> = measured
            .iter()
            .filter_map(|&(repeat, found)| Some((repeat, found.frames.as_deref()?)))
            .collect();
        let last = repeats.last()?.1;
        let lengths = Lengths::of(&test.traffic);
        let search = test.procedure.search();
        Some(Self {
            throughput: search.and_then(|search| ThroughputResult::of(search, &lengths, &repeats)),
            loads: match &test.procedure {
                Procedure::Load(_) => loads::single(&lengths, &repeats),
                Procedure::LossCurve(curve) => loads::curve(curve, &lengths, &repeats),
                _ => Vec::new(),
            },
            latency: latency::of(&repeats),
            back_to_back: match &test.procedure {
                Procedure::BackToBack(test) => BackToBackResult::of(test, &repeats),
                _ => None,
            },
            recovery: RecoveryResult::of(&repeats),
            disturbance: DisturbanceResult::of(test, &lengths, &repeats),
            soak: SoakResult::of(test, &lengths, &repeats),
            at_evidence: loads::at_evidence(&lengths, &repeats),
            sender: PortUsed::of(&repeats, |found| &found.sender, &last.sender),
            receiver: PortUsed::of(&repeats, |found| &found.receiver, &last.receiver),
        })
    }

    /// The relevant lower bound of the first goal, or the highest forwarding rate; in frames/s.
    #[must_use]
    pub fn frame_rate(&self) -> Option<&Estimate> {
        match &self.throughput {
            Some(found) => Some(&found.goals.first()?.lower.as_ref()?.frames_per_s),
            None => Some(&self.fastest()?.forwarded.frames_per_s),
        }
    }

    /// The load with the highest forwarding rate.
    #[must_use]
    pub fn fastest(&self) -> Option<&LoadResult> {
        let rate = |load: &&LoadResult| load.forwarded.frames_per_s.mean;
        self.loads.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)))
    }
}

impl PortUsed {
    fn of(
        repeats: &Repeats<'_>,
        port: impl Fn(&FrameResult) -> &FramePort,
        last: &FramePort,
    ) -> Self {
        let mut ports: Vec<String> = Vec::new();
        for name in repeats
            .iter()
            .filter_map(|(_, found)| Some(port_name(port(found).kind?)))
        {
            if ports.iter().all(|known| known != name) {
                ports.push(name.into());
            }
        }
        Self {
            ports,
            passed_over: last.passed_over.clone(),
            threads: last.threads,
            engine: last.engine.clone(),
        }
    }
}

/// As people write it.
const fn port_name(kind: PortKind) -> &'static str {
    match kind {
        PortKind::Xdp => "AF_XDP",
        PortKind::Packet => "AF_PACKET",
        PortKind::Socket => "UDP socket",
        PortKind::Memory => "memory",
    }
}
