//! The change of a quantity between two cells of different runs, or of one run.
//!
//! Repeats of one run form pairs, since a block holds each cell once ([`super::significance`]).
//! Repeats of different runs are unrelated even if their numbers are equal, so the change is by
//! Welch's test on logarithms.
//!
//! All changes of one comparison of runs are one question. Their intervals are simultaneous (Šidák,
//! J. Am. Stat. Assoc. 62, 1967): the chance that any of them misses is at most 5 %. So every
//! answer derived from an interval, for any bound, is corrected for multiple comparisons, and all
//! answers agree.

use crate::analysis::quantity::Reading;
use crate::analysis::significance::{ROUNDING, against, contrast};
use crate::figures::estimate::Estimate;
use crate::figures::student::{ALPHA, INTERVAL_MIN_REPEATS, Student, prediction, quantile};

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
    /// Geometric means of the compared repeats: from, to.
    means: (f64, f64),
    /// Number of these repeats.
    repeats: (u32, u32),
    /// Logarithms of the least and the largest ratio that the bounds of two searches allow; equal
    /// for other quantities. `None` if the scatter is unknown.
    ends: Option<(Student, Student)>,
    /// Whether the searches of `from` and `to` found no upper bound. The ratio then has no least or
    /// no largest value, respectively.
    open: (bool, bool),
}

impl Change {
    /// `None` unless all values are positive.
    #[must_use]
    pub fn of(from: &Reading, to: &Reading, pairing: Pairing) -> Option<Self> {
        let bounds = [Some(&from.value), from.upper.as_ref()];
        let bounds = bounds
            .into_iter()
            .chain([Some(&to.value), to.upper.as_ref()]);
        // The means are geometric, and the intervals are of logarithms.
        if bounds.flatten().any(|bound| bound.min <= 0.0) {
            return None;
        }
        let upper = |reading: &Reading| {
            reading
                .upper
                .clone()
                .unwrap_or_else(|| reading.value.clone())
        };
        // A search bounds a rate from both sides, so the extreme ratios combine the lower bound of
        // one with the upper bound of the other.
        let least = distance(&upper(from), &to.value, pairing);
        let largest = distance(&from.value, &upper(to), pairing);
        let middle = distance(&from.value, &to.value, pairing);
        let (used_from, used_to) = used(&from.value, &to.value, pairing);
        let count = |used: &[f64]| u32::try_from(used.len()).unwrap_or(u32::MAX);
        // Equal repeats do not show how far the figure scatters, unless a search bounds it.
        let is_searched = |reading: &Reading| reading.upper.is_some() || reading.is_open;
        let is_known = is_searched(from) && is_searched(to)
            || middle.is_some_and(|middle| middle.error > ROUNDING);
        Some(Self {
            means: (geometric_mean(&used_from), geometric_mean(&used_to)),
            repeats: (count(&used_from), count(&used_to)),
            ends: least.zip(largest).filter(|_| is_known),
            open: (from.is_open, to.is_open),
        })
    }

    /// The ratio to a constant, as of a figure with a limit; `None` unless all values are positive.
    #[must_use]
    pub fn against(own: &Reading, limit: f64) -> Option<Self> {
        let upper = own.upper.as_ref().unwrap_or(&own.value);
        if limit <= 0.0 || own.value.min <= 0.0 || upper.min <= 0.0 {
            return None;
        }
        let (least, largest) = (against(&own.value, limit), against(upper, limit));
        let is_known =
            own.upper.is_some() || own.is_open || least.is_some_and(|it| it.error > ROUNDING);
        let all: Vec<f64> = own.value.values.iter().map(|one| one.value).collect();
        Some(Self {
            means: (limit, geometric_mean(&all)),
            repeats: (own.value.n, own.value.n),
            ends: least.zip(largest).filter(|_| is_known),
            open: (false, own.is_open),
        })
    }

    /// The ratio: of the geometric means; in pairs, the geometric mean of the ratios.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.means.1 / self.means.0
    }

    /// The geometric means of the ratio: from, to.
    #[must_use]
    pub const fn means(&self) -> (f64, f64) {
        self.means
    }

    /// The numbers of compared repeats: from, to. If paired, only repeats that both have count.
    #[must_use]
    pub const fn repeats(&self) -> (u32, u32) {
        self.repeats
    }

    /// The p-value of the finding that the ratio is not 1, allowing for the bounds of two searches;
    /// `None` without an interval. It is at most `alpha` if and only if [`Self::interval`] excludes
    /// 1.
    pub(crate) fn p_differs(&self) -> Option<f64> {
        let (_, largest) = self.ends?;
        let below = if self.open.1 {
            1.0
        } else {
            largest.p_below(0.0)
        };
        Some(self.p_above()?.min(below))
    }

    /// The p-value of the finding that the ratio is above 1.
    pub(crate) fn p_above(&self) -> Option<f64> {
        let (least, _) = self.ends?;
        Some(if self.open.0 { 1.0 } else { least.p_above(0.0) })
    }

    /// The p-values of the findings that the ratio is above `bound`, and below it; `None` without
    /// an interval.
    pub(crate) fn p_beyond(&self, bound: f64) -> Option<(f64, f64)> {
        let (least, largest) = self.ends?;
        let p = |is_open, p: f64| if is_open { 1.0 } else { p };
        let limit = bound.ln();
        Some((
            p(self.open.0, least.p_above(limit)),
            p(self.open.1, largest.p_below(limit)),
        ))
    }

    /// Whether it has an interval: two repeats of both that are not all equal, or searches.
    #[must_use]
    pub const fn has_interval(&self) -> bool {
        self.ends.is_some()
    }

    /// The interval of the ratio that misses with probability `alpha`. It starts at 0 if the search
    /// of `from` found no upper bound, and ends at infinity if the search of `to` found none.
    #[must_use]
    pub fn interval(&self, alpha: f64) -> Option<(f64, f64)> {
        let (least, largest) = self.ends?;
        Some(self.as_open(
            least.interval(alpha).0.exp(),
            largest.interval(alpha).1.exp(),
        ))
    }

    /// The ends of an interval, with 0 or infinity for an end that no search bounds.
    const fn as_open(&self, low: f64, high: f64) -> (f64, f64) {
        (
            if self.open.0 { 0.0 } else { low },
            if self.open.1 { f64::INFINITY } else { high },
        )
    }
}

/// What would decide on which side of a bound a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// This number of repeats of each run, if their scatter equals the present one.
    Repeats(u32),
    /// Repeats with a known scatter: at least two, and not all equal.
    Scatter,
    /// Narrower bounds of the searches: the bound is between them.
    NarrowerSearches,
    /// An upper bound, which a search did not find.
    UpperBound,
    /// More than [`REPEATS_MAX`] repeats: the change is too near the bound.
    TooNear,
}

/// Most repeats that are considered.
pub const REPEATS_MAX: u32 = 100;

impl Change {
    /// Returns the requirement for the interval that misses with probability `alpha` to be on one
    /// side of the ratio `bound`.
    #[must_use]
    pub fn needed(&self, bound: f64, alpha: f64) -> Needed {
        self.needed_for(alpha, |(low, high)| low >= bound || high < bound)
    }

    /// Returns the requirement to show either a change, or that any change is within the ratio
    /// `margin`.
    #[must_use]
    pub fn needed_within(&self, margin: f64, alpha: f64) -> Needed {
        self.needed_for(alpha, |(low, high)| {
            low > 1.0 || high < 1.0 || low > 1.0 - margin && high < 1.0 + margin
        })
    }

    /// Returns the repeats with which the interval decides, if their scatter equals the present
    /// one.
    fn needed_for(&self, alpha: f64, decides: impl Fn((f64, f64)) -> bool) -> Needed {
        // The side with fewer repeats dominates the width, and one number is advised for both.
        let now = self.repeats.0.min(self.repeats.1);
        let Some((least, largest)) = self.ends.filter(|_| now >= INTERVAL_MIN_REPEATS) else {
            return Needed::Scatter;
        };
        let with = |more: u32| {
            let of = |end: Student| end.with_repeats(now, more).interval(alpha);
            self.as_open(of(least).0.exp(), of(largest).1.exp())
        };
        if let Some(more) = (now..=REPEATS_MAX).find(|more| decides(with(*more))) {
            return Needed::Repeats(more);
        }
        if self.open.0 || self.open.1 {
            return Needed::UpperBound;
        }
        // With no scatter left, only the width between the searches' bounds remains.
        let bounds = (least.value.exp(), largest.value.exp());
        if bounds.0 < bounds.1 && !decides(bounds) {
            Needed::NarrowerSearches
        } else {
            Needed::TooNear
        }
    }
}

/// The chance that one of this many intervals may miss, so that the chance that any of them misses
/// is at most 5 % (Šidák): 1 - 0.95^(1/n).
#[must_use]
pub fn simultaneous_alpha(intervals: usize) -> f64 {
    -((-ALPHA).ln_1p() / intervals.max(1) as f64).exp_m1()
}

/// The interval for one further value like these, which misses with the chance `alpha`; on
/// logarithms, so that ratios count. `None` with fewer than two values, without scatter, or if one
/// is not above 0.
#[must_use]
pub fn expected(values: &[f64], alpha: f64) -> Option<(f64, f64)> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let (low, high) = prediction(&logs, alpha)?;
    (low < high && low.is_finite() && high.is_finite()).then(|| (low.exp(), high.exp()))
}

/// How many standard errors an interval of Student's distribution with these degrees of freedom
/// extends to either side when it misses with the chance `alpha`; infinite without a degree.
#[must_use]
pub fn standard_errors(alpha: f64, degrees: usize) -> f64 {
    if degrees == 0 {
        return f64::INFINITY;
    }
    quantile(1.0 - alpha / 2.0, degrees as f64)
}

/// The values of both that [`distance`] is of. With a pair and without scatter: that pair.
fn used(from: &Estimate, to: &Estimate, pairing: Pairing) -> (Vec<f64>, Vec<f64>) {
    let both = from.values.iter();
    let both = both.filter_map(|one| Some((one.value, to.at(one.repeat)?)));
    let pairs: (Vec<f64>, Vec<f64>) = both.unzip();
    // With scatter a single common pair gives no interval, so all repeats count. Without scatter
    // the ratio of that pair is free of drift.
    let have_scatter = from.n.min(to.n) >= INTERVAL_MIN_REPEATS;
    let needed = if have_scatter { 2 } else { 1 };
    if pairing == Pairing::Blocks && pairs.0.len() >= needed {
        return pairs;
    }
    let all = |of: &Estimate| of.values.iter().map(|one| one.value).collect();
    (all(from), all(to))
}

/// Of values above 0.
fn geometric_mean(values: &[f64]) -> f64 {
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    (logs / values.len() as f64).exp()
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
    use crate::analysis::quantity::Quantity;
    use crate::figures::estimate::Sample;

    fn estimate(values: &[f64]) -> Estimate {
        let samples = (1..).zip(values);
        let samples = samples.map(|(repeat, &value)| Sample { repeat, value });
        Estimate::of(samples.collect()).unwrap()
    }

    fn reading(values: &[f64], upper: Option<&[f64]>) -> Reading {
        Reading {
            upper: upper.map(estimate),
            ..Reading::new(Quantity::FrameRate, estimate(values))
        }
    }

    #[test]
    fn what_a_search_leaves_open_bounds_the_ratio_on_one_side_only() {
        let search = |lower: f64, upper: f64| reading(&[lower; 3], Some(&[upper; 3]));
        let open = |lower: f64| Reading {
            is_open: true,
            ..reading(&[lower; 3], None)
        };
        let of = |from: &Reading, to: &Reading| Change::of(from, to, Pairing::Blocks).unwrap();
        // At least 100 before, and 50 to 51 now: at most 51 %.
        let drop = of(&open(100.0), &search(50.0, 51.0));
        let (low, high) = drop.interval(0.05).unwrap();
        assert!(low == 0.0 && (high - 0.51).abs() < 1e-12, "{low} {high}");
        assert!(drop.p_differs().unwrap() < 0.05 && drop.p_above() == Some(1.0));
        // At least 100 before, and 150 to 151 now: perhaps the same.
        let rise = of(&open(100.0), &search(150.0, 151.0));
        assert_eq!(rise.p_above(), Some(1.0));
        assert!(rise.p_differs().unwrap() > 0.05);
        assert_eq!(rise.needed(1.0, 0.05), Needed::UpperBound);
        let (low, high) = of(&search(50.0, 51.0), &open(100.0))
            .interval(0.05)
            .unwrap();
        assert!(low > 1.9 && high.is_infinite(), "{low} {high}");
        let neither = of(&open(100.0), &open(200.0));
        assert_eq!(neither.interval(0.05), Some((0.0, f64::INFINITY)));
        assert!(neither.p_differs() > Some(0.05));
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

    /// The returned number is the first with which simulated repeats of that scatter decide.
    #[test]
    fn the_repeats_that_would_decide_do_and_fewer_do_not() {
        // Their mean is 0 and their standard deviation 2 %, for any number of repeats.
        let scattered = |mean: f64, repeats: u32| {
            let values: Vec<f64> = (0..repeats)
                .map(|at| if at % 2 == 0 { 1.0 } else { -1.0 })
                .collect();
            let size = 0.02 * (f64::from(repeats - 1) / f64::from(repeats)).sqrt();
            let values: Vec<f64> = values
                .iter()
                .map(|sign| mean * (sign * size).exp())
                .collect();
            reading(&values, None)
        };
        let change = |repeats| {
            let (from, to) = (scattered(100.0, repeats), scattered(97.0, repeats));
            Change::of(&from, &to, Pairing::None).unwrap()
        };
        let (bound, alpha) = (0.95, simultaneous_alpha(4));
        let Needed::Repeats(needed) = change(4).needed(bound, alpha) else {
            panic!("{:?}", change(4).needed(bound, alpha));
        };
        // The signs alternate, so only even numbers have the mean.
        let needed = needed.next_multiple_of(2);
        assert!(needed > 4, "{needed}");
        let low = |repeats| change(repeats).interval(alpha).unwrap().0;
        assert!(low(needed) >= bound, "{needed}");
        assert!(low(needed - 4) < bound, "{needed}");

        let near = |mean: f64| {
            let change = Change::of(&scattered(100.0, 4), &scattered(mean, 4), Pairing::None);
            change.unwrap().needed(bound, alpha)
        };
        // A change of 0.9501 is so near the bound of 0.95 that 100 repeats do not separate them.
        assert_eq!(near(95.01), Needed::TooNear);
        let one = Change::of(
            &reading(&[1.0], None),
            &reading(&[2.0], None),
            Pairing::None,
        );
        assert_eq!(one.unwrap().needed(bound, alpha), Needed::Scatter);
        let search = |lower: f64, upper: f64| reading(&[lower; 3], Some(&[upper; 3]));
        // From 98 by 110 to 108 by 100: the bound is between them without any scatter.
        let wide = Change::of(&search(100.0, 110.0), &search(98.0, 108.0), Pairing::None);
        assert_eq!(wide.unwrap().needed(bound, alpha), Needed::NarrowerSearches);
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
