//! A DUT against the baseline of its group.

use super::metric::Metric;
use super::pairs::{Pair, paired, searched};
use super::significance::{Ratio, p_differ};
use super::sittings::Sittings;
use crate::cell::CellResult;
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

/// Compares every DUT with the baseline of its group.
pub(crate) fn comparisons(cells: &[CellResult], sittings: &Sittings<'_>) -> Vec<Comparison> {
    let mut baselines: BTreeMap<&str, &CellResult> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.baseline) {
        // A group may have several baselines. The first of the plan is the one that all are
        // compared with.
        baselines.entry(&cell.group).or_insert(cell);
    }
    // The calibration measures the tester and is compared by verdicts alone.
    let compared = cells
        .iter()
        .filter(|cell| !cell.baseline && !cell.calibration);
    let pairs = compared.filter_map(|cell| {
        let other = *baselines.get(cell.group.as_str())?;
        Some(Pair { cell, other })
    });
    let found = paired(pairs, |metric| metric, ratio)
        .into_iter()
        .map(|found| {
            let Pair { cell, other } = found.pair;
            let (of_dut, of_baseline) = (found.metric.of(cell), found.metric.of(other));
            // Only repeats that both have form pairs, as a failed repeat has no counterpart.
            let of_both = of_dut.zip(of_baseline).map_or(0, |(of_dut, of_baseline)| {
                let values = of_dut.values.iter();
                values
                    .filter(|it| of_baseline.at(it.repeat).is_some())
                    .count()
            });
            Comparison {
                group: cell.group.clone(),
                cell: cell.id.clone(),
                baseline_cell: other.id.clone(),
                dut: cell.dut.clone(),
                baseline: other.dut.clone(),
                metric: found.metric,
                ratio: found.ratio.ratio,
                bound: Bound::of(found.metric, cell, other),
                low: found.ratio.low,
                high: found.ratio.high,
                pairs: u32::try_from(of_both).unwrap_or(u32::MAX),
                apart_ns: sittings.apart_ns(&cell.id, &other.id),
                differs: found.differs,
            }
        });
    found.collect()
}

/// The ratio to the baseline, and the p-value of a difference.
fn ratio(pair: &Pair<'_>, metric: Metric) -> Option<(Ratio, Option<f64>)> {
    let Pair { cell, other } = *pair;
    let (of_dut, of_baseline) = (metric.of(cell)?, metric.of(other)?);
    let found = Ratio::of(of_dut, of_baseline)?;
    let p = searched(pair, metric).unwrap_or_else(|| p_differ(of_dut, of_baseline));
    Some(match Bound::of(metric, cell, other) {
        // A p-value of 1 keeps the comparison in its question, but never makes it a difference.
        Some(bound) if !bound.decides(found.ratio) => (found, p.map(|_| 1.0)),
        _ => (found, p),
    })
}
