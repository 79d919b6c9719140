//! Delay variation of a stream of test frames (RFC 5481): what an analyser reports and a journal
//! records.

use serde::{Deserialize, Serialize};

/// Delay variation of all frames that a receiver counted as intact, in nanoseconds.
///
/// Percentiles are by nearest rank over histograms of three significant digits; `None` if less than
/// one frame would lie beyond them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayVariation {
    /// Packet delay variation (RFC 5481 §4.2): each frame's delay less the smallest of the stream.
    /// Its smallest value is 0.
    pub pdv: Pdv,
    /// Inter-packet delay variation (RFC 5481 §4.1); `None` if no two consecutive frames of a flow
    /// were received.
    pub ipdv: Option<Ipdv>,
}

/// Packet delay variation.
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

/// Inter-packet delay variation: the delay of a frame less that of the frame before it in its flow,
/// where both were received. Negative: the later one was faster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ipdv {
    /// Pairs of consecutive frames. A pair is left out when one of them was lost, and when the
    /// earlier one arrived after more than one later frame of its flow.
    pub pairs: u64,
    /// Smallest.
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
