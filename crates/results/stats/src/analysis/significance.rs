//! Inference from repeats: intervals, and whether two quantities differ.
//!
//! **One method.** Student's t (Gosset, Biometrika 6, 1908), from two repeats on:
//!
//! - One quantity: the mean of its repeats' logarithms. The interval covers the geometric mean,
//!   which is 0.5 % below the arithmetic mean for figures with a spread of 10 %. Rates and times
//!   are positive and their noise is relative, and an interval of two repeats on logarithms never
//!   reaches below 0.
//! - Two quantities: the differences of logarithms within the same repeat. Both were measured one
//!   soon after the other, so a drift of the machine affects both and cancels. With fewer than two
//!   pairs: Welch's test (Biometrika 34, 1947) on logarithms.
//! - If a value is 0 or negative (losses, differences of times): the values themselves.
//!
//! Two repeats multiply their standard error by 12.7, three by 4.30, five by 2.78: few repeats say
//! little, and their intervals show it. One repeat has none, and decides nothing.
//!
//! **One question.** Many comparisons find differences by chance. So all comparisons of *one kind
//! of finding by one quantity in one run* are one question, and the chance that a question has any
//! false answer is at most 5 % (Holm, Scand. J. Statist. 6, 1979). The kinds:
//!
//! | Finding | One question is |
//! | --- | --- |
//! | ratios to the baseline | all cells, by one quantity |
//! | sources of keys; hybrids of engines | all cells with a twin, by one quantity |
//! | rankings | all pairs of devices in all groups, by one quantity |
//! | scaling | all pairs of numbers in all series, of one axis |
//! | curves of crypto devices | all pairs of numbers of all curves, of one axis |
//! | crypto devices and a CPU | all numbers of all comparisons, of one axis |
//! | several crypto devices and fewer | all numbers and peaks of all comparisons, of one axis |
//! | claims | all claims, in all of their cells |
//! | limits of the campaign | all limits, in all of their cells, over all rounds of added repeats |
//! | verdicts on frame tests | all cells that are compared with the rig |
//! | directions of a duplex load | all cells that load both |
//! | tools | all transfers that several tools measured |
//!
//! Each interval printed next to a figure is a 95 % interval; an answer (*differs*, *better*,
//! *faster*, *met*) is corrected, and so are the intervals of the ratios that a ranking follows.

use crate::figures::estimate::{Estimate, Sample};
use crate::figures::student::{ALPHA, Student, interval};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Logarithms that differ by less are equal except for rounding.
pub(crate) const ROUNDING: f64 = 1e-12;

/// An estimate against a constant: positive if it is larger; `None` for a single repeat.
pub(crate) fn against(own: &Estimate, limit: f64) -> Option<Student> {
    // All values or none on logarithms: mixed scales have no common mean.
    let logs = own.min > 0.0 && limit > 0.0;
    let distance = |value: f64| {
        if logs {
            rounded(value.ln() - limit.ln())
        } else {
            value - limit
        }
    };
    let distances: Vec<f64> = own
        .values
        .iter()
        .map(|sample| distance(sample.value))
        .collect();
    Student::of(&distances)
}

/// An estimate against another times a factor: positive if it is larger. `None` with fewer than two
/// pairs of repeats if either has a single repeat.
pub(crate) fn contrast(own: &Estimate, other: &Estimate, factor: f64) -> Option<Student> {
    // On logarithms, as for all ratios, unless a value or the factor has none.
    let logs = is_relative(own, other) && factor > 0.0;
    let scale = |value: f64| if logs { value.ln() } else { value };
    let limit = |value: f64| {
        if logs {
            value.ln() + factor.ln()
        } else {
            factor * value
        }
    };
    let difference = |own: f64, other: f64| {
        if logs {
            rounded(scale(own) - limit(other))
        } else {
            own - limit(other)
        }
    };
    let pairs: Vec<f64> = pairs(own, other)
        .map(|(own, other)| difference(own, other))
        .collect();
    // Fewer than two pairs have no scatter, so pairing is given up rather than the answer.
    Student::of(&pairs).or_else(|| {
        let all = |of: &Estimate, scale: &dyn Fn(f64) -> f64| -> Vec<f64> {
            of.values.iter().map(|sample| scale(sample.value)).collect()
        };
        Student::welch(&all(own, &scale), &all(other, &limit))
    })
}

/// The p-value of the finding that two quantities differ; `None` with too few repeats.
pub(crate) fn p_differ(own: &Estimate, other: &Estimate) -> Option<f64> {
    Some(contrast(own, other, 1.0)?.p_differs(0.0))
}

fn rounded(log: f64) -> f64 {
    if log.abs() < ROUNDING { 0.0 } else { log }
}

fn is_relative(own: &Estimate, other: &Estimate) -> bool {
    own.min > 0.0 && other.min > 0.0
}

/// Values of the same repeat.
fn pairs<'e>(own: &'e Estimate, other: &'e Estimate) -> impl Iterator<Item = (f64, f64)> {
    let of_both = |sample: &Sample| Some((sample.value, other.at(sample.repeat)?));
    own.values.iter().filter_map(of_both)
}

/// A ratio of two quantities, with its 95 % interval: the geometric mean of the ratios within the
/// repeats that both have; with fewer than two of those, the ratio of the geometric means.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The ratio.
    pub ratio: f64,
    /// Lower end of its interval; `null` without two repeats of both, and if a value is not above
    /// 0.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Ratio {
    /// `None` when the other is not above 0.
    pub(crate) fn of(own: &Estimate, other: &Estimate) -> Option<Self> {
        Self::at(own, other, ALPHA)
    }

    /// The same with an interval that misses with the chance `alpha`.
    pub(crate) fn at(own: &Estimate, other: &Estimate, alpha: f64) -> Option<Self> {
        if other.mean <= 0.0 {
            return None;
        }
        let found = contrast(own, other, 1.0).filter(|_| is_relative(own, other));
        let Some(found) = found else {
            // No interval, but a single common repeat still gives a ratio without the drift between
            // repeats.
            let pair = pairs(own, other).find(|(_, other)| *other > 0.0);
            let ratio = match (is_relative(own, other), pair) {
                (true, Some((own, other))) => own / other,
                _ => own.mean / other.mean,
            };
            return Some(Self {
                ratio,
                low: None,
                high: None,
            });
        };
        let (low, high) = found.interval(alpha);
        Some(Self {
            ratio: found.value.exp(),
            low: Some(low.exp()),
            high: Some(high.exp()),
        })
    }

    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self {
            ratio: factor * self.ratio,
            low: self.low.map(|low| factor * low),
            high: self.high.map(|high| factor * high),
        }
    }
}

/// Significance level of the answers to one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Level(f64);

impl Default for Level {
    /// A question of one comparison.
    fn default() -> Self {
        Self(ALPHA)
    }
}

impl Level {
    /// Holm's level: 5 % divided by the number of comparisons that are not decided yet.
    pub(crate) fn of(p_values: impl IntoIterator<Item = f64>) -> Self {
        Self::at(ALPHA, p_values)
    }

    /// The same for a question whose chance of a false answer is `alpha`.
    pub(crate) fn at(alpha: f64, p_values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = p_values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let all = sorted.len();
        let level = |decided: usize| alpha / (all - decided).max(1) as f64;
        // Holm's steps: the smallest p-value is compared with 5 % of all, the next one with 5 % of
        // the rest, until one fails. The level at that place decides every comparison alike, as
        // each p-value before it is smaller.
        let decided = (0..all).take_while(|&place| sorted[place] <= level(place));
        Self(level(decided.count()))
    }

    /// Whether a finding with this p-value counts.
    pub(crate) fn allows(self, p: f64) -> bool {
        p <= self.0
    }

    /// The chance that the interval of one comparison may miss.
    pub(crate) const fn alpha(self) -> f64 {
        self.0
    }

    /// The interval of an estimate at this level; `None` for a single repeat.
    pub(crate) fn interval(self, found: &Estimate) -> Option<(f64, f64)> {
        let values: Vec<f64> = found.values.iter().map(|sample| sample.value).collect();
        interval(&values, self.0)
    }

    /// Whether an estimate is surely above another times a factor.
    pub(crate) fn is_above(self, own: &Estimate, other: &Estimate, factor: f64) -> bool {
        contrast(own, other, factor).is_some_and(|found| self.allows(found.p_above(0.0)))
    }

    /// Whether an estimate is surely below another times a factor.
    pub(crate) fn is_below(self, own: &Estimate, other: &Estimate, factor: f64) -> bool {
        contrast(own, other, factor).is_some_and(|found| self.allows(found.p_below(0.0)))
    }
}

/// The levels of several questions.
pub(crate) struct Questions<K>(BTreeMap<K, Level>);

impl<K: Ord> Questions<K> {
    /// Each comparison with its question; those without a p-value cannot be decided, and do not
    /// count.
    pub(crate) fn of(comparisons: impl IntoIterator<Item = (K, Option<f64>)>) -> Self {
        let mut all: BTreeMap<K, Vec<f64>> = BTreeMap::new();
        for (question, p) in comparisons {
            // What cannot be decided must not weaken the level of the others.
            if let Some(p) = p {
                all.entry(question).or_default().push(p);
            }
        }
        let levels = all.into_iter();
        Self(levels.map(|(key, found)| (key, Level::of(found))).collect())
    }

    pub(crate) fn level(&self, question: &K) -> Level {
        self.0.get(question).copied().unwrap_or_default()
    }

    /// Whether a finding counts; `None` if it could not be made.
    pub(crate) fn answer(&self, question: &K, p: Option<f64>) -> Option<bool> {
        Some(self.level(question).allows(p?))
    }
}

#[cfg(test)]
mod tests;
