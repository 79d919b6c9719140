//! Frame trials with a disturbance: events of the DUT or an attack, and the fate of the frames.

use super::LatencyBucket;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A frame trial with a disturbance of the DUT, or the control without one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Index in [`FrameResult::trials`](super::FrameResult::trials).
    pub trial: usize,
    /// The actions in order; empty in a control and under attack.
    pub events: Vec<DutEvent>,
    /// The hostile packets.
    pub attack: Option<AttackTrial>,
    /// Frames sent and received, by time.
    pub timeline: Timeline,
    /// Frames by latency from the intended send time, in rising order.
    pub histogram: Vec<LatencyBucket>,
    /// Counters that the device reported over the trial, by `gateway/counter`, for comparison with
    /// the measurement: for `desync`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dut_counters: BTreeMap<String, u64>,
}

/// An action on a DUT. Times count from the intended time of the trial's first frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DutEvent {
    /// `rekey`; `crash`, `restart`; `link-down`, `link-up`; `reset`; `take-down`, `set-up`;
    /// `wrong-keys`, `missed-rollover`.
    pub name: String,
    /// When it began.
    pub at_ns: u64,
    /// Time until the DUT reported completion.
    pub took_ns: u64,
    /// Lost frames that were intended between it and the next event, or the end. Includes frames in
    /// flight when it began, and not those in flight when the next event began.
    pub lost: u64,
    /// From its beginning until the first frame that was intended after it arrived, to the width of
    /// a bin; `None`: none arrived before the next event.
    pub first_ns: Option<u64>,
    /// From its beginning to the intended time after which no frame was lost before the next event;
    /// `None`: frames were still being lost then. 0: no frame was lost.
    pub outage_ns: Option<u64>,
    /// Longest latency of the frames intended from its beginning until 100 ms after its completion,
    /// and before the next event; `None`: none of them arrived, or the journal is older than this
    /// key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest_ns: Option<u64>,
    /// For `reset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<ResetRecord>,
}

/// A restart of the encryptor on one gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResetRecord {
    /// The longest time without a received frame that ended after the reset began: from the last
    /// frame before it to the first one after it, by arrival. `None`: no frame arrived after it
    /// before the next reset, or the end.
    pub silent_ns: Option<u64>,
    /// Width of a bin: `silent_ns` is exact to one at either end.
    pub bin_ns: u64,
    /// Identity of each process that was reset, or of the box, before.
    pub before: Vec<String>,
    /// The same afterwards.
    pub after: Vec<String>,
}

impl ResetRecord {
    /// Whether everything that was reset has a new identity.
    #[must_use]
    pub fn is_proven(&self) -> bool {
        // By identity, not by number: a process may have been replaced by two.
        let is_new = |it: &String| !self.before.contains(it);
        // Without processes nothing was reset, and `all` would hold for none.
        let both = !self.before.is_empty() && !self.after.is_empty();
        both && self.after.iter().all(is_new)
    }
}

impl DutEvent {
    /// Time after an event's completion that [`slowest_ns`](Self::slowest_ns) includes.
    pub const AFTER_NS: u64 = 100_000_000;
}

/// Hostile packets of one trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttackTrial {
    /// Intended rate in per cent of the load's.
    pub percent: u16,
    /// Packets sent.
    pub sent: u64,
    /// From the first packet to the last.
    pub elapsed_ns: u64,
}

/// Frames sent and received, by intended time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Width of each bin.
    pub bin_ns: u64,
    /// The bins, from the first frame's intended time on.
    pub bins: Vec<TimeBin>,
}

/// The frames that were intended to leave within one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeBin {
    /// Frames of the schedule.
    pub intended: u64,
    /// Of those, received.
    pub received: u64,
    /// Their longest latency.
    pub latency_ns_max: u64,
}
