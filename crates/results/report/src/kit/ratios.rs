//! Ratios to the baseline over several cells, with the range of the single repeats.

use super::fact::{Fact, repeats};
use super::format::{self, Scale, bit_rate, ratio_number, si};
use crate::layout::Run;
use stats::{CellResult, Comparison, Estimate, Metric};

/// The verdict if no ratio surely differs from 1.
const NO_DIFFERENCE: &str = "no difference shown";

/// Ratios of cells to their baseline.
pub(crate) struct Ratios {
    /// `0.49–0.62`.
    figure: String,
    /// `× direct`, `× direct, repeats up to 3 h apart`, `× direct, no difference shown`.
    unit: String,
    /// `repeats 0.47–0.65`, `repeats 0.88–1.42: difference shown in 2 of 4`.
    range: String,
}

impl Ratios {
    /// `brief` is the part of `detail` that the short form prints.
    pub(crate) fn fact(self, label: String, brief: String, detail: String) -> Fact {
        Fact {
            label,
            figure: self.figure,
            unit: self.unit,
            range: self.range,
            detail,
            brief,
        }
    }
}

/// The ratios of the cells that have one.
pub(crate) fn of<'c>(
    run: &Run<'_>,
    cells: impl Iterator<Item = &'c CellResult>,
    metric: Metric,
) -> Option<Ratios> {
    let found: Vec<(&CellResult, &Comparison)> = cells
        .filter_map(|cell| Some((cell, run.comparison(cell, metric)?)))
        .collect();
    let baseline = &found.first()?.1.baseline;
    // The means of the cells, and below the ratios of single repeats, which show the scatter.
    let means = found.iter().map(|(_, found)| found.ratio);
    let of_repeats = found.iter().flat_map(|(cell, found)| {
        let baseline = run.cell(&found.baseline_cell);
        baseline.map_or_else(Vec::new, |baseline| pairs(cell, baseline, metric))
    });
    let single = found.iter().all(|(_, found)| found.pairs < 2);
    let comparisons: Vec<&Comparison> = found.iter().map(|(_, found)| *found).collect();
    // Every document prints the unit. Without the verdict there, a ratio above 1 reads as a gain.
    let none_differs = comparisons.iter().all(|one| one.differs == Some(false));
    let none = if none_differs {
        format!(", {NO_DIFFERENCE}")
    } else {
        String::new()
    };
    // Without an interval that excludes 1 there is no more to state.
    let verdict = if none_differs && !comparisons.iter().any(|one| excludes_one(one)) {
        None
    } else {
        verdict(&comparisons, corrected_for(run, &comparisons))
    };
    // With one pair per cell, the repeats' range would only repeat the figure.
    let range = match (between(of_repeats), verdict) {
        (Some(range), Some(verdict)) if !single => format!("repeats {range}: {verdict}"),
        (Some(range), None) => format!("repeats {range}"),
        (_, verdict) => verdict.unwrap_or_default(),
    };
    let apart = found.iter().filter_map(|(_, found)| found.apart_ns).max();
    let apart = format::apart(apart).map_or_else(String::new, |apart| format!(", {apart}"));
    Some(Ratios {
        figure: between(means)?,
        unit: format!("× {baseline}{apart}{none}"),
        range,
    })
}

/// The ratio of each repeat that both cells have.
fn pairs(cell: &CellResult, baseline: &CellResult, metric: Metric) -> Vec<f64> {
    let (Some(own), Some(others)) = (figure(cell, metric), figure(baseline, metric)) else {
        return Vec::new();
    };
    // Both cells may lack repeats, so pairs have the same number, not the same place.
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
    Some(if low == high {
        low
    } else {
        format!("{low}–{high}")
    })
}

/// The verdict of the repeats on the ratios; `None` without ratios.
pub(crate) fn difference(run: &Run<'_>, found: &[&Comparison]) -> Option<String> {
    found.first()?;
    let shown = match found.len() {
        1 => "this ratio surely differs from 1",
        _ => "each of these ratios surely differs from 1",
    };
    Some(verdict(found, corrected_for(run, found)).unwrap_or_else(|| shown.to_owned()))
}

/// Number of the run's comparisons by the same quantity.
fn corrected_for(run: &Run<'_>, found: &[&Comparison]) -> usize {
    let metric = found.first().map(|found| found.metric);
    let all = run.results.comparisons.iter();
    all.filter(|one| Some(one.metric) == metric).count()
}

/// The difference that the repeats fail to show; `None` if every cell differs from its baseline.
///
/// An interval is for one ratio. Among many ratios some intervals exclude 1 by chance, so
/// differences are corrected for their number. If the two disagree, both are reported.
fn verdict(found: &[&Comparison], all: usize) -> Option<String> {
    let differ = found.iter().filter(|one| one.differs == Some(true)).count();
    let decided = found.iter().filter(|one| one.differs.is_some()).count();
    let alone = found.iter().filter(|one| excludes_one(one)).count();
    let of = found.len();
    let shown = match differ {
        0 => NO_DIFFERENCE.to_owned(),
        some => format!("difference shown in {some} of {of}"),
    };
    match decided {
        // A single repeat has no scatter, so it can show no difference.
        0 => Some("one pair of repeats decides nothing".to_owned()),
        _ if differ == of => None,
        _ if alone > differ => Some(format!(
            "{shown} after correction for {all} comparisons ({alone} of {of} taken alone)"
        )),
        _ => Some(shown),
    }
}

/// Whether the interval of a ratio, taken alone, excludes 1.
fn excludes_one(found: &Comparison) -> bool {
    let ends = found.low.zip(found.high);
    ends.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
}

/// The highest bit rate of some cells, with its conditions in words, and the ratios of all these
/// cells to their baseline by `metric`, if any.
pub(crate) fn rate(
    run: &Run<'_>,
    (label, words): (String, String),
    cells: &[&CellResult],
    metric: Metric,
    best: &Estimate,
) -> Fact {
    // With several cells, the best rate is not the one of each.
    let at_most = |before: &'static str| if cells.len() > 1 { before } else { "" };
    match of(run, cells.iter().copied(), metric) {
        Some(found) => {
            let rate = bit_rate(best);
            let of = match metric {
                Metric::TransactionsPerSecond => " of objects",
                _ => "",
            };
            let most = at_most("at most ");
            let brief = format!("{most}{}{of}", si(best.mean, "bit/s"));
            let detail = format!("{most}{rate}{of}: {words}");
            found.fact(label, brief, detail)
        }
        None => {
            let scale = Scale::si(best.mean, "bit/s");
            Fact {
                label,
                figure: scale.number(best.mean),
                range: repeats(best, &scale),
                unit: scale.unit,
                detail: format!("{}{words}", at_most("at most: ")),
                brief: String::new(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(low: f64, differs: Option<bool>) -> Comparison {
        Comparison {
            group: String::new(),
            cell: String::new(),
            baseline_cell: String::new(),
            dut: String::new(),
            baseline: "direct".into(),
            metric: Metric::PayloadThroughput,
            ratio: 1.2,
            bound: None,
            low: Some(low),
            high: Some(1.5),
            pairs: 3,
            apart_ns: None,
            differs,
        }
    }

    fn words(found: &[Comparison]) -> Option<String> {
        verdict(&found.iter().collect::<Vec<_>>(), 12)
    }

    #[test]
    fn ratios_that_differ_alone_but_not_together_say_so() {
        let (sure, alone) = (comparison(1.1, Some(true)), comparison(1.1, Some(false)));
        let unsure = comparison(0.9, Some(false));
        assert_eq!(words(&[sure.clone(), sure.clone()]), None);
        assert_eq!(
            words(&[sure.clone(), alone.clone()]).as_deref(),
            Some(
                "difference shown in 1 of 2 after correction for 12 comparisons (2 of 2 taken alone)"
            )
        );
        assert_eq!(
            words(&[alone]).as_deref(),
            Some("no difference shown after correction for 12 comparisons (1 of 1 taken alone)")
        );
        let plain = words(&[sure, unsure]);
        assert_eq!(plain.as_deref(), Some("difference shown in 1 of 2"));
        let one = words(&[comparison(1.1, None)]);
        assert_eq!(one.as_deref(), Some("one pair of repeats decides nothing"));
    }
}
