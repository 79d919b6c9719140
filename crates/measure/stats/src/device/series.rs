//! Crypto devices over an axis: the size of their inputs, how many work at once, how deep their
//! queue is kept.
//!
//! 1. Speed cells that differ in one of them and in the device only make a [`DeviceSeries`].
//! 2. Of each device's curve, where it is highest and where more at once bring it no more (its
//!    saturation point).
//! 3. Each device beside the CPU: from where on it is faster ([`Crossover`]).
//! 4. Several devices beside fewer of the same kind: how much more they do.

mod analyse;

pub(crate) use analyse::all;

use super::curve::{Crossover, CrossoverPoint};
use crate::estimate::Estimate;
use schemars::JsonSchema;
use serde::Serialize;

/// What the numbers of a series are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceAxis {
    /// Bytes of input of one operation.
    Bytes,
    /// Threads or processes at once, over all devices.
    AtOnce,
    /// Operations that each keeps in the device at once.
    Depth,
}

/// What the figures of a series are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceUnit {
    /// Bytes of input per second.
    BytesPerS,
    /// Operations per second.
    OperationsPerS,
}

/// Devices at one operation over an axis.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeviceSeries {
    /// What varies.
    pub axis: DeviceAxis,
    /// Algorithm and action.
    pub operation: String,
    /// What does not vary, for people: `1408 B, threads`.
    pub common: String,
    /// What the figures are in.
    pub unit: DeviceUnit,
    /// Each device, in the plan's order.
    pub curves: Vec<DeviceCurve>,
    /// Each device beside each CPU of the campaign, or CPUs beside the first of them.
    pub comparisons: Vec<DeviceComparison>,
    /// Several devices beside fewer of the same kind.
    pub gains: Vec<DeviceGain>,
}

/// One device over an axis.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeviceCurve {
    /// The DUT's name.
    pub dut: String,
    /// Devices that work at once in it.
    pub devices: u32,
    /// Whether it is the CPU itself.
    pub is_cpu: bool,
    /// In rising order.
    pub points: Vec<DevicePointResult>,
    /// Number with the highest figure; `null` without a figure.
    pub peak_n: Option<u32>,
    /// The figure there.
    pub peak: Option<f64>,
    /// Over so many at once and over depths, the smallest number that no larger one is better than
    /// by more than the spread and 2 %; `null` where it rises to the largest, and over sizes.
    pub saturates_at_n: Option<u32>,
    /// Likewise, the smallest number from which on all are worse than the peak.
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
    /// What that may be off by: within it and 2 % another is the same.
    pub spread: Option<f64>,
    /// Whether it is held against others: not where its processes were all at work for less than 90
    /// % of the time, whose rate over all of it may be half of what so many do at once.
    pub is_compared: bool,
    /// CPU time of the worker processes for each operation.
    pub cpu_ns_per_operation: Option<f64>,
    /// 99th percentile of an operation's latency.
    pub latency_p99_ns: Option<f64>,
}

/// A device beside the CPU.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeviceComparison {
    /// The device: a DUT's name.
    pub dut: String,
    /// The CPU: a DUT's name.
    pub cpu: String,
    /// Which is faster where.
    pub crossover: Crossover,
    /// Whether the device is said to spare the CPU, has not counted its operations, and is as fast
    /// as it: the ratios' geometric mean within 5 %, and none past 10 %. So is one whose offload
    /// never ran.
    pub equals_cpu: bool,
    /// The same in words.
    pub verdict: String,
}

/// Several devices beside fewer of the same kind.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DeviceGain {
    /// The DUT with more devices.
    pub dut: String,
    /// How many it has.
    pub devices: u32,
    /// The DUT with fewer of them.
    pub of: String,
    /// How many that has.
    pub of_devices: u32,
    /// Highest figure by highest figure, whatever the numbers that they are at.
    pub peak_ratio: f64,
    /// Whether the one peak is above the other by more than the spread of either and 2 %.
    pub gains: bool,
    /// Each number that both have a figure at.
    pub points: Vec<CrossoverPoint>,
    /// The same in words.
    pub verdict: String,
}
