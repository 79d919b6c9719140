//! The change of a quantity between two cells of different runs, or of one run.
//!
//! Repeats of one run form pairs, since a block holds each cell once ([`crate::significance`]).
//! Repeats of different runs do not: equal numbers have nothing in common, so the change is that of
//! Welch's test on logarithms.
//!
//! All changes of one comparison of runs are one question. Their intervals are simultaneous (Šidák,
//! J. Am. Stat. Assoc. 62, 1967): the chance that any of them misses is at most 5 %. So every
//! answer that is read from an interval, of whatever bound, is corrected by it, and all agree.

use crate::estimate::Estimate;
use crate::quantity::Reading;
use crate::significance::{ROUNDING, contrast};
use crate::student::{ALPHA, Student};

/// Whether repeats of two cells with the same number were measured one soon after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Cells of one run.
    Blocks,
    /// Cells of different runs.
    None,
}

/// The ratio of a quantity to the same one of another cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    ratio: f64,
    /// Of the least and the largest ratio that the bounds of two searches allow; both the same for
    /// other quantities. `None` where the scatter is unknown.
    ends: Option<(Student, Student)>,
}

impl Change {
    /// `None` where a value is not above 0.
    #[must_use]
    pub fn of(from: &Reading, to: &Reading, pairing: Pairing) -> Option<Self> {
        let bounds = [Some(&from.value), from.upper.as_ref()];
        let bounds = bounds
            .into_iter()
            .chain([Some(&to.value), to.upper.as_ref()]);
        if bounds.flatten().any(|bound| bound.min <= 0.0) {
            return None;
        }
        let upper = |reading: &Reading| {
            reading
                .upper
                .clone()
                .unwrap_or_else(|| reading.value.clone())
        };
        let least = distance(&upper(from), &to.value, pairing);
        let largest = distance(&from.value, &upper(to), pairing);
        let middle = distance(&from.value, &to.value, pairing);
        let ratio = middle.map_or_else(
            || to.value.mean / from.value.mean,
            |middle| middle.value.exp(),
        );
        // Equal repeats do not show how far the figure scatters, unless a search bounds it.
        let is_known = from.upper.is_some() && to.upper.is_some()
            || middle.is_some_and(|middle| middle.error > ROUNDING);
        Some(Self {
            ratio,
            ends: least.zip(largest).filter(|_| is_known),
        })
    }

    /// The ratio: of the geometric means; in pairs, the geometric mean of the ratios.
    #[must_use]
    pub const fn ratio(&self) -> f64 {
        self.ratio
    }

    /// Whether it has an interval: two repeats of both that are not all equal, or searches.
    #[must_use]
    pub const fn has_interval(&self) -> bool {
        self.ends.is_some()
    }

    /// The interval of the ratio that misses with the chance `alpha`.
    #[must_use]
    pub fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        let (least, largest) = self.ends?;
        let (low, high) = (least.interval(alpha).0, largest.interval(alpha).1);
        Some((low.exp(), high.exp()))
    }
}

/// The chance that one of this many intervals may miss, so that the chance that any of them misses
/// is at most 5 % (Šidák): 1 - 0.95^(1/n).
#[must_use]
pub fn simultaneous_alpha(intervals: usize) -> f64 {
    -((-ALPHA).ln_1p() / intervals.max(1) as f64).exp_m1()
}

fn distance(from: &Estimate, to: &Estimate, pairing: Pairing) -> Option<Student> {
    let logs = |of: &Estimate| -> Vec<f64> { of.values.iter().map(|one| one.value.ln()).collect() };
    match pairing {
        Pairing::Blocks => contrast(to, from, 1.0),
        Pairing::None => Student::welch(&logs(to), &logs(from)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Sample;
    use crate::quantity::Quantity;

    fn estimate(values: &[f64]) -> Estimate {
        let samples = (1..).zip(values);
        let samples = samples.map(|(repeat, &value)| Sample { repeat, value });
        Estimate::of(samples.collect()).unwrap()
    }

    fn reading(values: &[f64], upper: Option<&[f64]>) -> Reading {
        Reading {
            quantity: Quantity::FrameRate,
            load_percent: None,
            value: estimate(values),
            upper: upper.map(estimate),
        }
    }

    #[test]
    fn repeats_of_different_runs_form_no_pairs() {
        // In pairs the ratio is 1.1 each time; the repeats themselves scatter by a factor of 4.
        let from = reading(&[1.0, 2.0, 4.0], None);
        let to = reading(&[1.1, 2.2, 4.4], None);
        let change = |pairing| Change::of(&from, &to, pairing).unwrap();
        let (paired, unpaired) = (change(Pairing::Blocks), change(Pairing::None));
        assert!((paired.ratio() - 1.1).abs() < 1e-12 && (unpaired.ratio() - 1.1).abs() < 1e-12);
        let (low, high) = unpaired.interval(0.05).unwrap();
        assert!(low < 0.5 && high > 2.0, "{low} {high}");
    }

    #[test]
    fn equal_repeats_have_no_interval_but_searches_have_their_bounds() {
        let alike = |value| reading(&[value; 3], None);
        let change = Change::of(&alike(100.0), &alike(99.0), Pairing::None).unwrap();
        assert!(!change.has_interval() && (change.ratio() - 0.99).abs() < 1e-12);
        let search = |lower: f64, upper: f64| reading(&[lower; 3], Some(&[upper; 3]));
        let change = Change::of(&search(100.0, 103.0), &search(97.0, 100.0), Pairing::None);
        let (low, high) = change.unwrap().interval(0.05).unwrap();
        assert!((low - 97.0 / 103.0).abs() < 1e-12 && (high - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_found_of_one_repeat_or_of_a_value_of_zero() {
        let one = Change::of(
            &reading(&[1.0], None),
            &reading(&[2.0, 3.0], None),
            Pairing::None,
        );
        assert!(!one.unwrap().has_interval());
        assert_eq!(
            Change::of(
                &reading(&[0.0, 1.0], None),
                &reading(&[1.0, 1.0], None),
                Pairing::None
            ),
            None
        );
    }

    #[test]
    fn simultaneous_intervals_share_five_per_cent() {
        assert!((simultaneous_alpha(1) - 0.05).abs() < 1e-15);
        let alpha = simultaneous_alpha(40);
        assert!(
            (1.0 - (1.0 - alpha).powi(40) - 0.05).abs() < 1e-12,
            "{alpha}"
        );
    }
}
