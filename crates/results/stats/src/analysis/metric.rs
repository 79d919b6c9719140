//! The quantities that are compared between cells of one group.

use crate::cell::CellResult;
use crate::figures::estimate::Estimate;
use schemars::JsonSchema;
use serde::Serialize;

/// The compared quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Payload throughput received, of `tcp` and `udp` cells.
    PayloadThroughput,
    /// Payload bits per CPU-second of the machine, of `tcp` and `udp` cells.
    PayloadBitsPerCpuSecond,
    /// Median round-trip time, of `ping` cells.
    LatencyP50,
    /// Transactions per second, of `http` and `flows` cells in a closed loop.
    TransactionsPerSecond,
    /// Frame rate, of frame tests: the relevant lower bound of the first goal, or the highest
    /// forwarding rate.
    FrameRate,
}

impl Metric {
    pub(crate) const ALL: [Self; 5] = [
        Self::PayloadThroughput,
        Self::PayloadBitsPerCpuSecond,
        Self::LatencyP50,
        Self::TransactionsPerSecond,
        Self::FrameRate,
    ];

    /// The quantity of a cell, if it has it.
    pub(crate) fn of(self, cell: &CellResult) -> Option<&Estimate> {
        match self {
            Self::PayloadThroughput => cell.throughput_bps(),
            Self::PayloadBitsPerCpuSecond => cell.cpu.as_ref()?.payload_bits_per_cpu_s.as_ref(),
            Self::LatencyP50 => Some(&cell.latency()?.p50_ns),
            Self::TransactionsPerSecond => cell.transactions_per_s(),
            Self::FrameRate => cell.frame_rate(),
        }
    }
}
