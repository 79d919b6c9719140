//! Crypto devices over an axis: input size, concurrency or queue depth.
//!
//! 1. Speed cells that differ only in one of these and in the device form a [`DeviceSeries`].
//! 2. For each device's curve, its peak and its saturation point are found.
//! 3. Each device is compared with the CPU, which yields the range of its advantage
//!    ([`Crossover`]).
//! 4. Several devices are compared with fewer of the same kind.

mod analyse;
mod words;

pub(crate) use analyse::all;

use super::curve::{Crossover, CrossoverPoint};
use crate::figures::estimate::Estimate;
use schemars::JsonSchema;
use serde::Serialize;

/// The axis of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceAxis {
    /// Input bytes of one operation.
    Bytes,
    /// Threads or processes in parallel, over all devices.
    AtOnce,
    /// Queue depth: outstanding operations per worker.
    Depth,
}

/// Unit of the figures of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceUnit {
    /// Bytes of input per second.
    BytesPerS,
    /// Operations per second.
    OperationsPerS,
}

/// Devices with one operation over an axis.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeviceSeries {
    /// The axis.
    pub axis: DeviceAxis,
    /// Algorithm and action.
    pub operation: String,
    /// The fixed settings, for people: `1408 B, threads`.
    pub common: String,
    /// Unit of the figures.
    pub unit: DeviceUnit,
    /// Each device, in the plan's order.
    pub curves: Vec<DeviceCurve>,
    /// Each device compared with each CPU of the campaign, or CPUs with the first of them.
    pub comparisons: Vec<DeviceComparison>,
    /// Several devices compared with fewer of the same kind.
    pub gains: Vec<DeviceGain>,
}

/// One device over an axis.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeviceCurve {
    /// The DUT's name.
    pub dut: String,
    /// Its devices that work in parallel.
    pub devices: u32,
    /// Whether it is the CPU itself.
    pub is_cpu: bool,
    /// Whether its times come from a model: configured, not measured on hardware.
    pub is_model: bool,
    /// In rising order.
    pub points: Vec<DevicePointResult>,
    /// Number with the highest figure; `null` without a figure.
    pub peak_n: Option<u32>,
    /// The figure there.
    pub peak: Option<f64>,
    /// Over concurrency and queue depths, the saturation point: the smallest number that no larger
    /// one surely exceeds by more than 2 %, if the repeats also exclude a gain of more than 10 %
    /// past it. `null` if the curve rises to the largest number, if the repeats do not exclude that
    /// gain, and over sizes.
    pub saturates_at_n: Option<u32>,
    /// The same number, if the repeats do not exclude a gain of more than 10 % past it.
    pub no_sure_gain_past_n: Option<u32>,
    /// Over the same axes, the start of the decline: from this number on, all are surely worse than
    /// the peak.
    pub falls_from_n: Option<u32>,
    /// The same in words.
    pub verdict: String,
}

/// One device at one number.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DevicePointResult {
    /// The number on the axis.
    pub n: u32,
    /// Id of the cell.
    pub cell: String,
    /// Its speed, in the unit of the series; `null` when the cell has no figure.
    pub figure: Option<Estimate>,
    /// Whether it is compared with others: not if its processes all worked in parallel for less
    /// than 90 % of the time, since the rate over the whole time may then be half of the parallel
    /// rate.
    pub is_compared: bool,
    /// CPU time of the worker processes per operation.
    pub cpu_ns_per_operation: Option<f64>,
    /// 99th percentile of an operation's latency.
    pub latency_p99_ns: Option<f64>,
}

/// A device compared with the CPU.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeviceComparison {
    /// The device: a DUT's name.
    pub dut: String,
    /// The CPU: a DUT's name.
    pub cpu: String,
    /// The faster one, by range.
    pub crossover: Crossover,
    /// Whether the device is declared to take work off the CPU, has not counted its operations, and
    /// is as fast as the CPU: the geometric mean of the ratios within 5 %, and none past 10 %. This
    /// is typical of an offload that never ran.
    pub equals_cpu: bool,
    /// The same in words.
    pub verdict: String,
}

/// Several devices compared with fewer of the same kind.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeviceGain {
    /// The DUT with more devices.
    pub dut: String,
    /// Its number of devices.
    pub devices: u32,
    /// The DUT with fewer of them.
    pub of: String,
    /// Its number of devices.
    pub of_devices: u32,
    /// Ratio of the highest figures, at any numbers: geometric mean over the pairs of repeats.
    pub peak_ratio: f64,
    /// Whether one peak surely exceeds the other, by more than 2 %.
    pub gains: bool,
    /// Each number with a figure of both.
    pub points: Vec<CrossoverPoint>,
    /// The same in words.
    pub verdict: String,
}
