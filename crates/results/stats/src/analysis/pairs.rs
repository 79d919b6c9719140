//! Cells compared with others of their group, quantity by quantity.
//!
//! Both cells of a pair are measured in every repeat, one after the other, so the repeats form
//! pairs: a drift affects both and cancels in their ratio.

use super::change::{Change, Pairing};
use super::metric::Metric;
use super::quantity::Reading;
use super::ranked_by::RankedBy;
use super::significance::{Questions, against};
use crate::cell::CellResult;
use crate::figures::estimate::{Estimate, Sample};

/// A cell, and another one that it is compared with.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'c> {
    pub(crate) cell: &'c CellResult,
    pub(crate) other: &'c CellResult,
}

/// One quantity of a pair, compared.
pub(crate) struct Compared<'c, R> {
    pub(crate) pair: Pair<'c>,
    pub(crate) metric: Metric,
    pub(crate) ratio: R,
    /// Whether there surely is a difference, corrected over all pairs of its question; `None` with
    /// fewer than two repeats.
    pub(crate) differs: Option<bool>,
}

/// Compares pairs by each quantity of both. All comparisons with an equal `question` of their
/// quantity are one question. `ratio` also returns the p-value of a difference.
pub(crate) fn paired<'c, R, Q: Ord>(
    pairs: impl IntoIterator<Item = Pair<'c>>,
    question: impl Fn(Metric) -> Q,
    ratio: impl Fn(&Pair<'c>, Metric) -> Option<(R, Option<f64>)>,
) -> Vec<Compared<'c, R>> {
    let ratio = &ratio;
    // A reflected load also loads the way back, so it is another figure than a load one way.
    let alike = |pair: &Pair<'_>| is_reflected(pair.cell) == is_reflected(pair.other);
    let compared = pairs.into_iter().filter(alike).flat_map(|pair| {
        let all = Metric::ALL.into_iter();
        all.filter_map(move |metric| Some((pair, metric, ratio(&pair, metric)?)))
    });
    // All p-values of a question are needed for its level, so nothing is answered before all are
    // known.
    let found: Vec<_> = compared.collect();
    let questions = Questions::of(
        found
            .iter()
            .map(|(_, metric, (_, p))| (question(*metric), *p)),
    );
    let answered = found
        .into_iter()
        .map(|(pair, metric, (ratio, p))| Compared {
            pair,
            metric,
            ratio,
            differs: questions.answer(&question(metric), p),
        });
    answered.collect()
}

fn is_reflected(cell: &CellResult) -> bool {
    cell.frames().is_some_and(|found| found.is_reflected)
}

/// The p-value of a difference between searched rates, `None` within with fewer than two repeats;
/// `None` if neither is searched.
///
/// A search bounds a rate from both sides: rates whose bounds overlap do not differ, however well
/// their lower bounds repeat.
pub(crate) fn searched(pair: &Pair<'_>, metric: Metric) -> Option<Option<f64>> {
    let reading = |cell| match metric {
        Metric::FrameRate => RankedBy::FrameRate.reading(cell),
        _ => None,
    };
    let (from, to) = (reading(pair.other)?, reading(pair.cell)?);
    let is_searched = |reading: &Reading| reading.upper.is_some() || reading.is_open;
    if !is_searched(&from) && !is_searched(&to) {
        return None;
    }
    Some(Change::of(&from, &to, Pairing::Blocks)?.p_differs())
}

/// A quantity divided by that of the other cell, repeat by repeat, and the p-value of a difference.
pub(crate) fn quotients(pair: &Pair<'_>, metric: Metric) -> Option<(Estimate, Option<f64>)> {
    let (own, other) = (metric.of(pair.cell)?, metric.of(pair.other)?);
    let quotient = |sample: &Sample| {
        // A repeat that the other cell lacks has no quotient, nor has one without traffic.
        let whole = other.at(sample.repeat).filter(|value| *value > 0.0);
        (sample.repeat, whole.map(|whole| sample.value / whole))
    };
    let ratio = Estimate::of_known(own.values.iter().map(quotient))?;
    let p = searched(pair, metric)
        .unwrap_or_else(|| against(&ratio, 1.0).map(|found| found.p_differs(0.0)));
    Some((ratio, p))
}
