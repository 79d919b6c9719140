//! The quantities that rank devices.

use crate::analysis::metric::Metric;
use crate::cell::CellResult;
use crate::figures::estimate::{Estimate, Sample};
use plan::LatencyPath;
use schemars::JsonSchema;
use serde::Serialize;

/// The quantity of a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RankedBy {
    /// Payload received, of `tcp` and `udp`, in bit/s.
    PayloadThroughput,
    /// Median round-trip time, of `ping`, in nanoseconds.
    RoundTripP50,
    /// Frame rate, of `throughput`, `mrr` and `loss-curve`, in frames/s: the relevant lower bound
    /// of the first goal, or the highest forwarding rate.
    FrameRate,
    /// Median one-way latency at the search's lowest load, of `latency`, in nanoseconds.
    LatencyP50,
    /// Median round-trip time of reflected frames at the search's lowest load, of `latency`, in
    /// nanoseconds.
    ReflectedP50,
    /// Payload bits received per CPU-second of the whole machine, of `tcp` and `udp`.
    PayloadBitsPerCpuSecond,
    /// IP bits forwarded per CPU-second of the whole machine, of `throughput`, `mrr` and
    /// `loss-curve`, in the trials with recorded evidence.
    IpBitsPerCpuSecond,
}

impl RankedBy {
    pub(crate) const ALL: [Self; 7] = [
        Self::PayloadThroughput,
        Self::RoundTripP50,
        Self::FrameRate,
        Self::LatencyP50,
        Self::ReflectedP50,
        Self::PayloadBitsPerCpuSecond,
        Self::IpBitsPerCpuSecond,
    ];

    /// Whether more is better.
    #[must_use]
    pub const fn higher_is_better(self) -> bool {
        !matches!(
            self,
            Self::RoundTripP50 | Self::LatencyP50 | Self::ReflectedP50
        )
    }

    /// Whether it is the cost of the work, not its amount or rate.
    #[must_use]
    pub const fn is_efficiency(self) -> bool {
        matches!(
            self,
            Self::PayloadBitsPerCpuSecond | Self::IpBitsPerCpuSecond
        )
    }

    /// The quantity of a cell, if it has it.
    #[must_use]
    pub fn of(self, cell: &CellResult) -> Option<Estimate> {
        // A load or a soak has a frame rate too, but the campaign sets it.
        let searched = cell.frames().is_some_and(|frames| frames.found.is_ranked());
        match self {
            Self::PayloadThroughput => Metric::PayloadThroughput.of(cell).cloned(),
            Self::RoundTripP50 => Metric::LatencyP50.of(cell).cloned(),
            Self::FrameRate if searched => Metric::FrameRate.of(cell).cloned(),
            Self::LatencyP50 => lowest_p50(cell, LatencyPath::OneWay),
            Self::ReflectedP50 => lowest_p50(cell, LatencyPath::RoundTrip),
            Self::PayloadBitsPerCpuSecond => Metric::PayloadBitsPerCpuSecond.of(cell).cloned(),
            Self::IpBitsPerCpuSecond if searched => ip_bits_per_cpu_s(cell),
            Self::FrameRate | Self::IpBitsPerCpuSecond => None,
        }
    }
}

/// Median at the search's lowest load.
fn lowest_p50(cell: &CellResult, path: LatencyPath) -> Option<Estimate> {
    let mut loads = cell.frames()?.latency.iter();
    let lowest = loads.find(|load| load.percent == Some(0) && load.path() == path)?;
    Some(lowest.p50_each_ns.clone())
}

/// CPU time is read only in the trial of the evidence, so it is divided by that trial's frames.
fn ip_bits_per_cpu_s(cell: &CellResult) -> Option<Estimate> {
    let carried = &cell.frames()?.at_evidence.as_ref()?.forwarded.ip_bps;
    let busy = &cell.cpu.as_ref()?.busy_cores;
    // Rates are of one direction, and CPU time is of the whole machine.
    let directions = if cell.traffic()?.duplex { 2.0 } else { 1.0 };
    let quotient = |sample: &Sample| {
        let cores = busy.at(sample.repeat).filter(|cores| *cores > 0.0);
        let quotient = cores.map(|cores| directions * sample.value / cores);
        (sample.repeat, quotient)
    };
    // All repeats or none: a mean over some would be of other repeats than the rate.
    Estimate::of_all(carried.values.iter().map(quotient))
}
