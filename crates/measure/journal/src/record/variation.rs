//! Delay variation of one direction of a frame trial (RFC 5481), in nanoseconds.
//!
//! Percentiles are by nearest rank over histograms of three significant digits; `None` if less than
//! one frame would lie beyond them.

use serde::{Deserialize, Serialize};

/// Delay variation of all intact frames of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayVariation {
    /// Packet delay variation (RFC 5481 §4.2): each frame's delay less the smallest.
    pub pdv: Pdv,
    /// Inter-packet delay variation (RFC 5481 §4.1); `None` if no two consecutive frames of a flow
    /// were received.
    pub ipdv: Option<Ipdv>,
}

/// Packet delay variation; its smallest value is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pdv {
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile: the PDV of RFC 8219 §7.3.1.
    pub p99_9_ns: Option<u64>,
    /// Largest.
    pub max_ns: u64,
}

/// Inter-packet delay variation: the delay of a frame less that of the frame before it in its flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ipdv {
    /// Pairs of consecutive frames that were both received.
    pub pairs: u64,
    /// Smallest; negative if a frame was faster than the one before it.
    pub min_ns: i64,
    /// 1st percentile.
    pub p1_ns: Option<i64>,
    /// Median.
    pub p50_ns: i64,
    /// 99th percentile.
    pub p99_ns: Option<i64>,
    /// Largest.
    pub max_ns: i64,
}
