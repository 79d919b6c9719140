//! A DUT against the baseline of its group.

use crate::analysis::significance::{Questions, Ratio, against, p_differ};
use crate::analysis::sittings::Sittings;
use crate::cell::CellResult;
use crate::figures::estimate::{Estimate, Sample};
use crate::figures::frames::FrameFigures;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Ratio of one quantity of a DUT cell to the same quantity of its group's baseline cell.
///
/// Trials are interleaved, so the repeats form pairs: a drift of the machine affects both and
/// cancels in their ratio.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The group that both cells belong to.
    pub group: String,
    /// Id of the DUT's cell.
    pub cell: String,
    /// Id of the baseline's cell.
    pub baseline_cell: String,
    /// Name of the DUT.
    pub dut: String,
    /// Name of the baseline.
    pub baseline: String,
    /// The compared quantity.
    pub metric: Metric,
    /// Geometric mean of the ratios of the pairs; without two pairs, ratio of the geometric means.
    pub ratio: f64,
    /// The side of the true ratio that the ratio bounds, if a search ended without both bounds of
    /// its figure; `null` otherwise.
    pub bound: Option<Bound>,
    /// Lower end of its 95 % interval (Student's t on logarithms); `null` without two repeats of
    /// both.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
    /// Repeats measured for both.
    pub pairs: u32,
    /// Longest time between the two repeats of a pair that were measured in different sittings of
    /// the run (before and after a resume), in nanoseconds; `null` if each pair shares a sitting.
    pub apart_ns: Option<u64>,
    /// Whether both surely differ, corrected (Holm) over all cells of the run by this quantity;
    /// `null` without two repeats of both. A ratio that is only a bound shows no difference beyond
    /// it.
    pub differs: Option<bool>,
}

/// The meaning of a ratio if a figure is only a lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The baseline's figure is a lower bound: the true ratio is this or less.
    AtMost,
    /// The DUT's figure is a lower bound: the true ratio is this or more.
    AtLeast,
    /// Both figures are lower bounds: the true ratio is unknown.
    Neither,
}

impl Bound {
    fn of(metric: Metric, cell: &CellResult, baseline: &CellResult) -> Option<Self> {
        let is_low = |cell: &CellResult| {
            metric == Metric::FrameRate
                && cell.frames().is_some_and(FrameFigures::is_only_lower_bound)
        };
        match (is_low(cell), is_low(baseline)) {
            (false, false) => None,
            (false, true) => Some(Self::AtMost),
            (true, false) => Some(Self::AtLeast),
            (true, true) => Some(Self::Neither),
        }
    }

    /// Whether a ratio with this bound shows on which side of 1 the true ratio is.
    fn decides(self, ratio: f64) -> bool {
        match self {
            Self::AtMost => ratio < 1.0,
            Self::AtLeast => ratio > 1.0,
            Self::Neither => false,
        }
    }
}

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

/// A quantity of one cell divided by the same of another, repeat by repeat.
pub(crate) struct Paired {
    pub(crate) ratio: Estimate,
    /// p-value of a difference; `None` with fewer than two repeats.
    pub(crate) p: Option<f64>,
}

impl Metric {
    /// Both are measured in every repeat, one after the other: a drift affects both and cancels in
    /// their quotient.
    pub(crate) fn paired(self, cell: &CellResult, other: &CellResult) -> Option<Paired> {
        let (own, other) = (self.of(cell)?, self.of(other)?);
        let quotient = |sample: &Sample| {
            let whole = other.at(sample.repeat).filter(|value| *value > 0.0)?;
            Some(Sample {
                repeat: sample.repeat,
                value: sample.value / whole,
            })
        };
        let ratio = Estimate::of(own.values.iter().filter_map(quotient).collect())?;
        let p = against(&ratio, 1.0).map(|found| found.p_differs(0.0));
        Some(Paired { ratio, p })
    }
}

pub(crate) fn comparisons(cells: &[CellResult], sittings: &Sittings<'_>) -> Vec<Comparison> {
    let mut baselines: BTreeMap<&str, &CellResult> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.baseline) {
        baselines.entry(&cell.group).or_insert(cell);
    }
    let found: Vec<(Comparison, Option<f64>)> = cells
        .iter()
        .filter(|cell| !cell.baseline && !cell.calibration)
        .filter_map(|cell| Some((cell, *baselines.get(cell.group.as_str())?)))
        .flat_map(|(cell, baseline)| {
            Metric::ALL
                .into_iter()
                .filter_map(move |metric| compare((cell, baseline), metric, sittings))
        })
        .collect();
    let questions = Questions::of(found.iter().map(|(one, p)| (one.metric, *p)));
    found
        .into_iter()
        .map(|(comparison, p)| Comparison {
            differs: questions.answer(&comparison.metric, p),
            ..comparison
        })
        .collect()
}

/// A comparison, and the p-value of a difference.
fn compare(
    (cell, baseline): (&CellResult, &CellResult),
    metric: Metric,
    sittings: &Sittings<'_>,
) -> Option<(Comparison, Option<f64>)> {
    let is_reflected = |cell: &CellResult| cell.frames().is_some_and(|found| found.is_reflected);
    if is_reflected(cell) != is_reflected(baseline) {
        return None;
    }
    let (of_dut, of_baseline) = (metric.of(cell)?, metric.of(baseline)?);
    let Ratio { ratio, low, high } = Ratio::of(of_dut, of_baseline)?;
    let pairs = of_dut
        .values
        .iter()
        .filter(|sample| of_baseline.at(sample.repeat).is_some())
        .count();
    let bound = Bound::of(metric, cell, baseline);
    let comparison = Comparison {
        group: cell.group.clone(),
        cell: cell.id.clone(),
        baseline_cell: baseline.id.clone(),
        dut: cell.dut.clone(),
        baseline: baseline.dut.clone(),
        metric,
        ratio,
        bound,
        low,
        high,
        pairs: u32::try_from(pairs).unwrap_or(u32::MAX),
        apart_ns: sittings.apart_ns(&cell.id, &baseline.id),
        differs: None,
    };
    let p = p_differ(of_dut, of_baseline);
    let p = match bound {
        Some(bound) if !bound.decides(ratio) => p.map(|_| 1.0),
        _ => p,
    };
    Some((comparison, p))
}
