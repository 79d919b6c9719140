//! A station's report after its part in a trial.

use port::{FramePortKind, FramePortStats, XdpMode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::variation::DelayVariation;

/// Line that a receiver or a sender prints when its port is open; a sender then starts without
/// waiting.
pub const READY: &str = "ready";

/// The report of a station.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The port in use.
    pub port: Option<FramePortKind>,
    /// How it works, if it is of AF_XDP.
    #[serde(default)]
    pub xdp_mode: Option<XdpMode>,
    /// The faster ports that were rejected, and a larger number of threads: kind and reason.
    pub passed_over: Vec<(FramePortKind, String)>,
    /// Threads that worked.
    pub threads: u16,
    /// Counts of the port, over all threads.
    pub port_stats: FramePortStats,
    /// Crypto engine, if the station seals or opens.
    pub engine: Option<String>,
    /// A sender's.
    pub sent: Option<Sent>,
    /// A receiver's.
    pub received: Option<Received>,
    /// An attacker's.
    #[serde(default)]
    pub attacked: Option<Attacked>,
    /// A reflector's; its [`sent`](Self::sent) and [`received`](Self::received) are counts without
    /// latencies, since it has no clock in common with the sender.
    #[serde(default)]
    pub reflected: Option<Reflected>,
}

/// The counts of an attacker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attacked {
    /// Sealed packets captured.
    pub captured: u64,
    /// Hostile packets sent.
    pub sent: u64,
    /// From the first to the last of them, in nanoseconds.
    pub elapsed_ns: u64,
}

/// The reflector's share of the round trips.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reflected {
    /// Frames by their time at the reflector, in the form of [`Received::latency`]: from the
    /// kernel's timestamp of the arrival until the frame was handed over for sending, by the
    /// reflector's clock (RFC 8762 §4.3: T3 less T2). If its port has no arrival times, the wait in
    /// the port is not included ([`is_from_arrival`](Self::is_from_arrival)).
    pub residence: Vec<(u64, u64)>,
    /// Whether the kernel noted every frame's arrival.
    pub is_from_arrival: bool,
}

/// Result for the frames intended to leave within one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeBin {
    /// Intact frames, each counted once.
    pub frames: u64,
    /// Longest latency of one of them.
    pub latency_ns_max: u64,
}

/// The counts of a sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Frames in the schedule; for an unpaced sender, those it made.
    pub intended: u64,
    /// Frames handed to the port.
    pub frames: u64,
    /// Their bytes on the clear side, with FCS.
    pub frame_bytes: u64,
    /// From the first frame's intended time to the end of the last burst, in nanoseconds.
    pub elapsed_ns: u64,
    /// Largest delay of a burst after its time in the schedule before that delay: if the schedule
    /// moves ([`crate::Send::keep_rate`]), the longest pause.
    pub late_ns_max: u64,
    /// Frames of bursts that left more than a millisecond after that time.
    pub late_frames: u64,
    /// The part of [`frames`](Self::frames) that belongs to the second part
    /// ([`crate::Send::then`]).
    #[serde(default)]
    pub then_frames: u64,
    /// When the last burst of the first part had left, CLOCK_MONOTONIC, in nanoseconds; 0 without a
    /// second part.
    #[serde(default)]
    pub then_ns: u64,
    /// Intended time of the first frame, CLOCK_MONOTONIC, in nanoseconds.
    #[serde(default)]
    pub start_ns: u64,
}

impl Sent {
    /// Adds the counts of two threads of one trial.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            intended: self.intended + other.intended,
            frames: self.frames + other.frames,
            frame_bytes: self.frame_bytes + other.frame_bytes,
            // Threads send at the same time, so times are not added up: the slowest decides.
            elapsed_ns: self.elapsed_ns.max(other.elapsed_ns),
            late_ns_max: self.late_ns_max.max(other.late_ns_max),
            late_frames: self.late_frames + other.late_frames,
            then_frames: self.then_frames + other.then_frames,
            then_ns: self.then_ns.max(other.then_ns),
            // All threads have the same.
            start_ns: self.start_ns.max(other.start_ns),
        }
    }
}

/// The counts of a receiver for the frames of this trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Received {
    /// Intact frames, each counted once. Lost frames are those sent less these.
    pub frames: u64,
    /// Their bytes on the clear side, with FCS.
    pub frame_bytes: u64,
    /// The part of [`frames`](Self::frames) that belongs to the sender's second part
    /// ([`crate::Receive::first_frames`]).
    #[serde(default)]
    pub then_frames: u64,
    /// Copies of intact frames already received.
    pub duplicated: u64,
    /// The part of [`frames`](Self::frames) that arrived after a later one of its flow:
    /// Type-P-Reordered (RFC 4737 §3).
    pub reordered: u64,
    /// Largest reordering extent (RFC 4737 §4.2.2): frames of the flow that arrived from the first
    /// later one until the late one. Exact up to 65536, fewer with many flows (64 at least); beyond
    /// that, a lower bound.
    pub reordering_extent_max: u64,
    /// Intact frames so late (8128 of their flow, or more if flows are few) that they cannot be
    /// distinguished from duplicates. They are not in [`frames`](Self::frames): a frame that may
    /// have been counted before must not hide a loss.
    #[serde(default)]
    pub too_late: u64,
    /// Frames to the test port with a damaged stamp, checksum or payload.
    pub corrupted: u64,
    /// Intact frames of other trials, or of flows that this trial does not have.
    pub stale: u64,
    /// Frames that are not test traffic.
    pub foreign: u64,
    /// Frames that arrived after the receiver was stopped, until its port became quiet: in no other
    /// count.
    #[serde(default)]
    pub after_end: u64,
    /// The longest time between two looks at the port after the first frame, less the requested
    /// wait, in nanoseconds.
    #[serde(default)]
    pub stood_still_ns_max: u64,
    /// ESP packets that could not be opened, by reason.
    pub refused: BTreeMap<String, u64>,
    /// From the first to the last frame, in nanoseconds.
    pub elapsed_ns: u64,
    /// Arrival time of the last frame, CLOCK_MONOTONIC, in nanoseconds.
    pub last_ns: u64,
    /// Intended send time of the frame that revealed the last gap in its flow's sequence,
    /// CLOCK_MONOTONIC: the frames missing in the gap were intended before it. 0: there was no gap.
    pub last_loss_ns: u64,
    /// Latest intended time of an intact frame, CLOCK_MONOTONIC; 0: no frame arrived.
    #[serde(default)]
    pub last_intended_ns: u64,
    /// Frames by latency from the intended send time, three significant digits: (highest value of
    /// the bucket in ns, frames), rising. Valid only if both stations read one clock.
    pub latency: Vec<(u64, u64)>,
    /// Delay variation of these frames, if it was requested ([`crate::Receive::variation`])
    /// and there are frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variation: Option<DelayVariation>,
    /// Number of the first bin with a frame: its start on CLOCK_MONOTONIC in widths of a bin
    /// ([`crate::Receive::bins`]).
    #[serde(default)]
    pub first_bin: u64,
    /// The bins from there to the last with a frame, by intended time; empty when none were
    /// requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<TimeBin>,
    /// Number of the first period with a frame, as for the first bin
    /// ([`crate::Receive::periods`]).
    #[serde(default)]
    pub first_period: u64,
    /// The periods from there to the last with a frame, by intended time: each frame's latency, as
    /// in [`latency`](Self::latency) but with a resolution of 3 %.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub periods: Vec<Vec<(u64, u64)>>,
    /// The intact frames of each of `traffic::DELAY_SLICES` equal parts of the
    /// schedule and their mean delay from the intended send time, in nanoseconds: (frames, delay).
    /// A delay is negative if the clocks disagree. Empty for an unpaced load and for one in two
    /// parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<(u64, i64)>,
}
