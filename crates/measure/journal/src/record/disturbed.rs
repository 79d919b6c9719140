//! Frame trials with a disturbance: events of the DUT or an attack, and what became of the frames.

use super::LatencyBucket;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A frame trial under which something happened to the DUT, or nothing: the control.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Index in [`FrameResult::trials`](super::FrameResult::trials).
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
