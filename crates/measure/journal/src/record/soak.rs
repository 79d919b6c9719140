//! What a soak records: points of a timeline, in segments that are each recorded as they end.

use super::{FrameTrial, LatencyBucket, ThroughputFound};
use serde::{Deserialize, Serialize};

/// A segment of a soak that is going on, so that it is not lost when the run breaks off. When the
/// trial ends it is in the trial's own record too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoakProgress {
    /// [`campaign::plan::Cell::id`].
    pub cell: String,
    /// From 1.
    pub repeat: u32,
    /// Load of the whole soak, in frames/s and direction.
    pub load: u64,
    /// The search of which the load is a share, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<ThroughputFound>,
    /// Its counts.
    pub trial: FrameTrial,
    /// The segment; its `trial` means nothing here.
    pub segment: SoakSegment,
}

/// A part of a soak under one load without a pause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoakSegment {
    /// Index in [`FrameResult::trials`](super::FrameResult::trials).
    pub trial: usize,
    /// Which start of the device it ran on: 1, and one more each time that the run was taken up
    /// again.
    pub start: u32,
    /// When its first frame was intended to leave, in nanoseconds since the Unix epoch. From the
    /// end of one segment to this time of the next there was no load: that gap is in no point.
    pub started_unix_ns: u64,
    /// Width of the points; those at both ends are cut off by the segment's own.
    pub point_ns: u64,
    /// The points, by the frames' intended time.
    pub points: Vec<SoakPoint>,
    /// Frames by latency from the intended send time, over the whole segment; rising.
    pub histogram: Vec<LatencyBucket>,
}

/// One point of a soak's timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoakPoint {
    /// Where it begins, from the segment's first frame on.
    pub at_ns: u64,
    /// Frames that the schedule asks for in it.
    pub intended: u64,
    /// Of those, received.
    pub received: u64,
    /// Longest time in it of whose frames none was received.
    pub silent_ns: u64,
    /// Median latency; `None` when no frame was received.
    pub p50_ns: Option<u64>,
    /// 99th percentile; `None` likewise, and below 100 frames.
    pub p99_ns: Option<u64>,
    /// Longest latency; 0 when no frame was received.
    pub max_ns: u64,
    /// What was read of the device; `None` where nothing could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DevicePoint>,
}

/// What a device spent in a point, read at both of its ends or as near to them as could be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicePoint {
    /// Time between the two readings.
    pub wall_ns: u64,
    /// CPU time of its processes in between, on all gateways; `None` where it has none, or they
    /// changed.
    pub cpu_ns: Option<u64>,
    /// Memory of its processes that is in RAM, at the second reading.
    pub resident_bytes: Option<u64>,
    /// Times that it changed to new keys in between, by its own word: the most that one gateway
    /// tells.
    pub rekeys: Option<u64>,
    /// Times that it found its keys out of step in between, by its own word, over all gateways.
    pub desyncs: Option<u64>,
}
