//! Ratios to the baseline over several cells, with the range of the single repeats.

use super::Fact;
use crate::format::{self, ratio_number};
use crate::layout::Run;
use stats::{CellResult, Comparison, Estimate, Metric};

/// Ratios of cells to their baseline.
pub(super) struct Ratios {
    /// `0.49–0.62`.
    figure: String,
    /// `× direct`, `× direct, repeats up to 3 h apart`.
    unit: String,
    /// `repeats 0.47–0.65`, `repeats 0.88–1.42: no difference shown`.
    range: String,
}

impl Ratios {
    pub(super) fn fact(self, label: String, detail: String) -> Fact {
        Fact {
            label,
            figure: self.figure,
            unit: self.unit,
            range: self.range,
            detail,
        }
    }
}

/// The ratios of those cells that have one.
pub(super) fn of<'c>(
    run: &Run<'_>,
    cells: impl Iterator<Item = &'c CellResult>,
    metric: Metric,
) -> Option<Ratios> {
    let found: Vec<(&CellResult, &Comparison)> = cells
        .filter_map(|cell| Some((cell, run.comparison(cell, metric)?)))
        .collect();
    let baseline = &found.first()?.1.baseline;
    let means = found.iter().map(|(_, found)| found.ratio);
    let of_repeats = found.iter().flat_map(|(cell, found)| {
        let baseline = run.cell(&found.baseline_cell);
        baseline.map_or_else(Vec::new, |baseline| pairs(cell, baseline, metric))
    });
    let single = found.iter().all(|(_, found)| found.pairs < 2);
    let range = match (between(of_repeats), verdict(&found)) {
        (Some(range), Some(verdict)) if !single => format!("repeats {range}: {verdict}"),
        (Some(range), None) => format!("repeats {range}"),
        (_, verdict) => verdict.unwrap_or_default(),
    };
    let apart = found.iter().filter_map(|(_, found)| found.apart_ns).max();
    let apart = format::apart(apart).map_or_else(String::new, |apart| format!(", {apart}"));
    Some(Ratios {
        figure: between(means)?,
        unit: format!("× {baseline}{apart}"),
        range,
    })
}

/// The ratio of each repeat that both cells have.
fn pairs(cell: &CellResult, baseline: &CellResult, metric: Metric) -> Vec<f64> {
    let (Some(own), Some(others)) = (figure(cell, metric), figure(baseline, metric)) else {
        return Vec::new();
    };
    let ratio = |own: &stats::Sample| {
        let other = others
            .values
            .iter()
            .find(|other| other.repeat == own.repeat)?;
        (other.value > 0.0).then(|| own.value / other.value)
    };
    own.values.iter().filter_map(ratio).collect()
}

fn figure(cell: &CellResult, metric: Metric) -> Option<&Estimate> {
    match metric {
        Metric::PayloadThroughput => cell.throughput_bps(),
        Metric::PayloadBitsPerCpuSecond => cell.cpu.as_ref()?.payload_bits_per_cpu_s.as_ref(),
        Metric::LatencyP50 => Some(&cell.latency()?.p50_ns),
        Metric::TransactionsPerSecond => cell.transactions_per_s(),
        Metric::FrameRate => cell.frame_rate(),
    }
}

/// `0.49–0.62`, `0.49`.
fn between(ratios: impl Iterator<Item = f64>) -> Option<String> {
    let ratios: Vec<f64> = ratios.collect();
    let low = ratios.iter().copied().reduce(f64::min)?;
    let high = ratios.iter().copied().reduce(f64::max)?;
    let (low, high) = (ratio_number(low), ratio_number(high));
    Some(match low == high {
        true => low,
        false => format!("{low}–{high}"),
    })
}

/// What the repeats do not show; `None` where every cell differs from its baseline.
fn verdict(found: &[(&CellResult, &Comparison)]) -> Option<String> {
    let differ = found
        .iter()
        .filter(|(_, found)| found.differs == Some(true));
    let decided = found.iter().filter(|(_, found)| found.differs.is_some());
    match (differ.count(), decided.count()) {
        (_, 0) => Some("one repeat decides nothing".to_owned()),
        (0, _) => Some("no difference shown".to_owned()),
        (some, _) if some == found.len() => None,
        (some, _) => Some(format!("difference shown in {some} of {}", found.len())),
    }
}
