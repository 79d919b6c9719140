//! What frame tests record: every frame trial with its counts, and what the procedure found.
//!
//! Loads are frames per second in one direction. Sizes include the FCS.

use super::{SoakSegment, at_most_one, is_empty};
use campaign::plan::PortKind;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The result of a frame test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FrameResult {
    /// Every frame trial in the order made, those of a search too.
    pub trials: Vec<FrameTrial>,
    /// What a search found, where there was one.
    pub throughput: Option<ThroughputFound>,
    /// Latency at each share of the throughput, for `latency`; for other procedures at the load
    /// that the evidence was read at.
    pub latency: Vec<LatencyTrial>,
    /// What the procedure found besides.
    pub found: FrameFound,
    /// The sending port in use.
    pub sender: FramePort,
    /// The receiving port in use.
    pub receiver: FramePort,
    /// Index in `trials` of the one whose CPU time and evidence are recorded.
    pub evidence_trial: Option<usize>,
    /// Index in `trials` of the one by which the highest load was found; no figure is read of it.
    pub flood_trial: Option<usize>,
}

/// What a procedure found besides its trials, a search and latency.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum FrameFound {
    /// Nothing: `load`, `throughput`, `loss-curve` and `latency`, or a procedure that ended early.
    #[default]
    Nothing,
    /// Bursts tried and the longest without loss, for `back-to-back`.
    Bursts(Vec<BurstTrial>),
    /// For `recovery`.
    Recovery(RecoveryTrial),
    /// For `rekey`, `failover`, `setup`, `desync` and `hostile`.
    Disturbed(DisturbedTrials),
    /// For `soak`: its segments, in the order made.
    Soak(Vec<SoakSegment>),
}

/// What happened to a DUT, and how it carried its load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DisturbedTrials {
    /// In the order made: the control, where there is one, first.
    pub disturbances: Vec<Disturbance>,
    /// What a search found while keys were renewed all the time, for a `rekey` that asks for it.
    pub rekeyed_throughput: Option<ThroughputFound>,
}

impl FrameResult {
    /// The bursts of `back-to-back`; empty for others.
    #[must_use]
    pub fn bursts(&self) -> &[BurstTrial] {
        match &self.found {
            FrameFound::Bursts(bursts) => bursts,
            _ => &[],
        }
    }

    /// The trial of `recovery`.
    #[must_use]
    pub const fn recovery(&self) -> Option<&RecoveryTrial> {
        match &self.found {
            FrameFound::Recovery(recovery) => Some(recovery),
            _ => None,
        }
    }

    /// The trials with disturbances and their controls; empty for others.
    #[must_use]
    pub fn disturbances(&self) -> &[Disturbance] {
        self.disturbed().map_or(&[], |found| &found.disturbances)
    }

    /// What a search found with keys renewed all the time.
    #[must_use]
    pub fn rekeyed_throughput(&self) -> Option<&ThroughputFound> {
        self.disturbed()?.rekeyed_throughput.as_ref()
    }

    /// The segments of `soak`; empty for others.
    #[must_use]
    pub fn soak(&self) -> &[SoakSegment] {
        match &self.found {
            FrameFound::Soak(segments) => segments,
            _ => &[],
        }
    }

    const fn disturbed(&self) -> Option<&DisturbedTrials> {
        match &self.found {
            FrameFound::Disturbed(disturbed) => Some(disturbed),
            _ => None,
        }
    }
}

/// As journals have it: a key for what each procedure finds.
#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    trials: Cow<'a, [FrameTrial]>,
    throughput: Option<Cow<'a, ThroughputFound>>,
    bursts: Cow<'a, [BurstTrial]>,
    latency: Cow<'a, [LatencyTrial]>,
    recovery: Option<RecoveryTrial>,
    #[serde(default, skip_serializing_if = "is_empty")]
    disturbances: Cow<'a, [Disturbance]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rekeyed_throughput: Option<Cow<'a, ThroughputFound>>,
    #[serde(default, skip_serializing_if = "is_empty")]
    soak: Cow<'a, [SoakSegment]>,
    sender: Cow<'a, FramePort>,
    receiver: Cow<'a, FramePort>,
    evidence_trial: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flood_trial: Option<usize>,
}

impl Serialize for FrameResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            trials: Cow::Borrowed(&self.trials),
            throughput: self.throughput.as_ref().map(Cow::Borrowed),
            bursts: Cow::Borrowed(self.bursts()),
            latency: Cow::Borrowed(&self.latency),
            recovery: self.recovery().copied(),
            disturbances: Cow::Borrowed(self.disturbances()),
            rekeyed_throughput: self.rekeyed_throughput().map(Cow::Borrowed),
            soak: Cow::Borrowed(self.soak()),
            sender: Cow::Borrowed(&self.sender),
            receiver: Cow::Borrowed(&self.receiver),
            evidence_trial: self.evidence_trial,
            flood_trial: self.flood_trial,
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FrameResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let disturbed = DisturbedTrials {
            disturbances: wire.disturbances.into_owned(),
            rekeyed_throughput: wire.rekeyed_throughput.map(Cow::into_owned),
        };
        let found = [
            (!wire.bursts.is_empty()).then(|| FrameFound::Bursts(wire.bursts.into_owned())),
            wire.recovery.map(FrameFound::Recovery),
            (disturbed != DisturbedTrials::default()).then_some(FrameFound::Disturbed(disturbed)),
            (!wire.soak.is_empty()).then(|| FrameFound::Soak(wire.soak.into_owned())),
        ];
        let keys = "`bursts`, `recovery`, `disturbances` and `soak`";
        Ok(Self {
            trials: wire.trials.into_owned(),
            throughput: wire.throughput.map(Cow::into_owned),
            latency: wire.latency.into_owned(),
            found: at_most_one(found, keys)?.unwrap_or_default(),
            sender: wire.sender.into_owned(),
            receiver: wire.receiver.into_owned(),
            evidence_trial: wire.evidence_trial,
            flood_trial: wire.flood_trial,
        })
    }
}

/// One load for one time, in one direction or, with `duplex`, the sum of both.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameTrial {
    /// Intended load; 0: as fast as the generator can.
    pub load: u64,
    /// Intended duration.
    pub duration_ns: u64,
    /// From the first frame's time to the end of the last burst.
    pub elapsed_ns: u64,
    /// Frames that the schedule asks for.
    pub intended: u64,
    /// Frames that left the sender.
    pub sent: u64,
    /// Their bytes on the clear side.
    pub sent_bytes: u64,
    /// Intact frames at the receiver, each once.
    pub received: u64,
    /// Their bytes on the clear side.
    pub received_bytes: u64,
    /// Intact frames that had come before.
    pub duplicated: u64,
    /// Intact frames so far behind the latest of their flow that nobody knows whether they had come
    /// before. They are in no other count of what came.
    #[serde(default)]
    pub too_late: u64,
    /// Frames that came after a later one of their flow (RFC 4737 §3).
    pub reordered: u64,
    /// Damaged frames.
    pub corrupted: u64,
    /// Frames that reached the receiving station when the trial was over, before it went quiet.
    /// Nobody looked at these, and they are in no other count of what came.
    #[serde(default)]
    pub after_end: u64,
    /// Frames that reached the receiving station and were lost in it. Nobody looked at these:
    /// duplicates and frames that are no test traffic may be among them.
    pub receiver_dropped: u64,
    /// Frames that the sending station lost before the wire.
    pub sender_dropped: u64,
    /// Largest distance of a burst's departure from its time.
    pub late_ns_max: u64,
    /// Frames that left more than a millisecond late.
    pub late_frames: u64,
}

impl FrameTrial {
    /// Frames sent and not received.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Whether a set load took so much longer to send than it should that it was not offered: over
    /// 2 % and 1 ms, with a tenth of the frames more than 1 ms late. A stall just at the end makes
    /// the first true and not the second; over 10 % and 20 ms is too long whatever the frames.
    #[must_use]
    pub const fn took_too_long(&self) -> bool {
        let percent = self.duration_ns / 100;
        let long = self.elapsed_ns > 102 * percent + 1_000_000;
        let very_long = self.elapsed_ns > 110 * percent + 20_000_000;
        let late = self.late_frames > self.sent / 10;
        self.load > 0 && (very_long || long && late)
    }
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThroughputFound {
    /// Highest load that could be tried.
    pub max_load: u64,
    /// What bounded it: `line-rate`, `given` or `generator`.
    pub max_load_by: String,
    /// Each goal of the plan, in its order.
    pub goals: Vec<GoalBounds>,
    /// How it ended.
    pub end: SearchEnd,
    /// Time that the search took, drains and all.
    pub took_ns: u64,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnd {
    /// Every goal's bounds are as close as it asks for, or the result is irregular.
    #[default]
    Reached,
    /// Its time was up.
    TimedOut,
}

/// What is known of one goal's throughput.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GoalBounds {
    /// [`campaign::plan::Goal::name`].
    pub goal: String,
    /// Relevant lower bound; `None` when not even the lowest load meets the goal.
    pub lower: Option<u64>,
    /// Relevant upper bound; `None` when the highest load meets it.
    pub upper: Option<u64>,
    /// Conditional throughput at the lower bound, in frames/s.
    pub conditional_throughput: f64,
    /// Trials at the lower bound.
    pub lower_trials: u32,
    /// Trials at the upper bound.
    pub upper_trials: u32,
}

/// One burst at the highest load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstTrial {
    /// Frames in it.
    pub frames: u64,
    /// Of those, lost.
    pub lost: u64,
    /// Whether it is one of the confirming repeats at the found length.
    pub confirming: bool,
}

/// Latency under one load.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyTrial {
    /// In per cent of the throughput; `None` outside a `latency` procedure.
    pub percent: Option<u8>,
    /// Load.
    pub load: u64,
    /// Frames that were timed.
    pub frames: u64,
    /// Frames by latency from the intended send time; rising.
    pub histogram: Vec<LatencyBucket>,
}

/// Frames whose latency is at most `upto_ns`, and more than the bucket before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBucket {
    /// Highest latency of the bucket.
    pub upto_ns: u64,
    /// Frames in it.
    pub frames: u64,
}

/// Recovery from an overload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryTrial {
    /// Load of the overload.
    pub overload: u64,
    /// Load afterwards.
    pub relief: u64,
    /// From the end of the overload to the last loss; 0: nothing was lost after it.
    pub recovery_ns: u64,
    /// Whether loss had ended when the time was up.
    pub recovered: bool,
    /// Frames lost during the overload.
    pub overload_lost: u64,
    /// Frames lost afterwards.
    pub relief_lost: u64,
}

/// How a station sent or received.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramePort {
    /// The port; `None` when no trial came so far.
    pub kind: Option<PortKind>,
    /// Why faster ones were not used, a sentence for each.
    pub passed_over: Vec<String>,
    /// Threads that worked.
    pub threads: u16,
    /// Crypto engine, where the station sealed or opened.
    pub engine: Option<String>,
}

/// A frame trial under which something happened to the DUT, or nothing: the control.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Index in [`FrameResult::trials`].
    pub trial: usize,
    /// What was done, in its order; empty in a control and under attack.
    pub events: Vec<DutEvent>,
    /// The hostile packets in it.
    pub attack: Option<AttackTrial>,
    /// What was sent and what came, by time.
    pub timeline: Timeline,
    /// Frames by latency from the intended send time; rising.
    pub histogram: Vec<LatencyBucket>,
    /// What the device itself counted over the trial, by `gateway/counter`, where that is held
    /// against what was measured: for `desync`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dut_counters: BTreeMap<String, u64>,
}

/// Something that was done to a DUT. Times count from the intended time of the trial's first frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DutEvent {
    /// `rekey`; `crash`, `restart`; `link-down`, `link-up`; `take-down`, `set-up`; `wrong-keys`,
    /// `missed-rollover`.
    pub name: String,
    /// When it was begun.
    pub at_ns: u64,
    /// How long it took until the DUT said that it was done.
    pub took_ns: u64,
    /// Frames intended between it and the next event, or the end, that never came; what was on its
    /// way when it began included, and what was when the next did left out.
    pub lost: u64,
    /// From its beginning until the first frame came of those that were intended after it, to the
    /// width of a bin; `None`: none came before the next.
    pub first_ns: Option<u64>,
    /// From its beginning to the intended time from which nothing more was lost before the next
    /// event; `None`: frames were still being lost then. 0: nothing was lost from then on.
    pub outage_ns: Option<u64>,
    /// Longest latency of the frames intended from its beginning until 100 ms after it was done,
    /// and before the next event; `None`: none of them came, or the journal is older than this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_ns: Option<u64>,
}

impl DutEvent {
    /// Time after an event was done that [`slowest_ns`](Self::slowest_ns) is still about.
    pub const AFTER_NS: u64 = 100_000_000;
}

/// Hostile packets of one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttackTrial {
    /// Their intended rate in per cent of the load's.
    pub percent: u16,
    /// How many were sent.
    pub sent: u64,
    /// From the first to the last of them.
    pub elapsed_ns: u64,
}

/// What was sent and what came, by the frames' intended time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Width of each bin.
    pub bin_ns: u64,
    /// From the first frame's intended time on.
    pub bins: Vec<TimeBin>,
}

/// The frames that were intended to leave within one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeBin {
    /// Frames that the schedule asks for.
    pub intended: u64,
    /// Of those, received.
    pub received: u64,
    /// Longest latency of one of them.
    pub latency_ns_max: u64,
}
