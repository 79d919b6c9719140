//! Records of a soak: points of a timeline, in segments that are each recorded at their end.

use super::{FrameTrial, LatencyBucket, SearchRecord};
use serde::{Deserialize, Serialize};

/// A segment of a soak in progress, which an interrupted run keeps. The trial's record includes it
/// at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoakProgress {
    /// [`plan::Cell::id`].
    pub cell: String,
    /// From 1.
    pub repeat: u32,
    /// Load of the whole soak, in frames/s per direction.
    pub load: u64,
    /// The search for the throughput that the load is a share of, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<SearchRecord>,
    /// Its counts.
    pub trial: FrameTrial,
    /// The segment; its `trial` is not valid here.
    pub segment: SoakSegment,
}

/// A part of a soak without a pause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoakSegment {
    /// Index in [`FrameResult::trials`](super::FrameResult::trials).
    pub trial: usize,
    /// Number of the device's start: 1, and one more for each resume of the run.
    pub start: u32,
    /// Intended time of its first frame, in nanoseconds since the Unix epoch. There was no load
    /// between the end of the segment before and this time: no point covers that gap.
    pub started_unix_ns: u64,
    /// Width of the points; the segment's ends cut the first and the last one.
    pub point_ns: u64,
    /// The points, by the frames' intended time.
    pub points: Vec<SoakPoint>,
    /// Frames by latency from the intended send time, over the whole segment, in rising order.
    pub histogram: Vec<LatencyBucket>,
    /// Probes of the capacity: one before the segment and, of the last one, one after it. None in
    /// older journals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<SoakProbe>,
}

/// A probe of a soak's capacity: frames at the line rate or as fast as the tester can send them for
/// a short time. They are not in [`FrameResult::trials`](super::FrameResult::trials).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoakProbe {
    /// When it began, in nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
    /// Its counts.
    pub trial: FrameTrial,
}

/// One point of a soak's timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoakPoint {
    /// Its beginning, from the segment's first frame.
    pub at_ns: u64,
    /// Frames of the schedule.
    pub intended: u64,
    /// Of those, received.
    pub received: u64,
    /// Longest time without received frames.
    pub silent_ns: u64,
    /// Median latency; `None` without received frames.
    pub p50_ns: Option<u64>,
    /// 99th percentile of the latency; `None` below 100 frames.
    pub p99_ns: Option<u64>,
    /// Longest latency; 0 without received frames.
    pub max_ns: u64,
    /// The device's resources; `None` if they could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DevicePoint>,
}

/// A device's resources in a point, read as near to its ends as possible.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicePoint {
    /// Time between the two readings.
    pub wall_ns: u64,
    /// CPU time of its processes between the readings, on all gateways; `None` if it has none, or
    /// they changed.
    pub cpu_ns: Option<u64>,
    /// Resident memory of its processes at the second reading.
    pub resident_bytes: Option<u64>,
    /// Key changes between the readings by the device's counters: the highest of any gateway.
    pub rekeys: Option<u64>,
    /// Times that it found its keys out of step between the readings, by the device's counters over
    /// all gateways.
    pub desyncs: Option<u64>,
}
