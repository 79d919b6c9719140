//! One quantity measured several times: its mean and spread.

use crate::figures::bands::TwoBands;
use crate::figures::student::{INTERVAL_MIN_REPEATS, interval_95};
use schemars::JsonSchema;
use serde::Serialize;

/// Distance of the farthest repeat, in per cent of the mean, above which a spread counts as wide.
pub const LARGE_SPREAD_PERCENT: f64 = 10.0;

/// The value of one repeat, in the estimate's unit; for an estimate over events, the value of one
/// event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Sample {
    /// From 1.
    pub repeat: u32,
    /// In the unit that the estimate's key names.
    pub value: f64,
}

/// A quantity over the repeats of a cell. Its key names its unit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Number of repeats; at least 1.
    pub n: u32,
    /// The repeats, in their order.
    pub values: Vec<Sample>,
    /// Arithmetic mean.
    pub mean: f64,
    /// Distance of the farthest value from the mean.
    pub largest_distance: f64,
    /// The same, in per cent of the mean; `null` when the mean is 0.
    pub largest_distance_percent: Option<f64>,
    /// Median.
    pub median: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Sample standard deviation (divided by n - 1); `null` for one value.
    pub standard_deviation: Option<f64>,
    /// 95 % interval; one value has none.
    pub interval_95: Interval95,
    /// Set when the values fall in two bands that do not contain the mean.
    pub bands: Option<TwoBands>,
}

/// A 95 % interval of a quantity, or why it is missing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Interval95 {
    /// By Student's t: of the geometric mean if all values are above 0, else of the mean.
    StudentT {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// n is too small.
    TooFewRepeats {
        /// Required repeats.
        needed: u32,
    },
}

impl Interval95 {
    fn of(values: &[f64]) -> Self {
        match interval_95(values) {
            // No figure is negative, and the interval of an arithmetic mean, as with a repeat of 0,
            // could reach below 0.
            Some((low, high)) if values.iter().all(|value| *value >= 0.0) => Self::StudentT {
                low: low.max(0.0),
                high,
            },
            Some((low, high)) => Self::StudentT { low, high },
            None => Self::TooFewRepeats {
                needed: INTERVAL_MIN_REPEATS,
            },
        }
    }

    /// Its ends, if there is one.
    #[must_use]
    pub const fn ends(self) -> Option<(f64, f64)> {
        match self {
            Self::StudentT { low, high } => Some((low, high)),
            Self::TooFewRepeats { .. } => None,
        }
    }
}

impl Estimate {
    /// Sums up repeats; `None` without repeats, or if one is not a finite number.
    #[must_use]
    pub fn of(values: Vec<Sample>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.iter().map(|sample| sample.value).collect();
        // One value that is no number would make every figure of the estimate none.
        if sorted.is_empty() || sorted.iter().any(|value| !value.is_finite()) {
            return None;
        }
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let (min, max) = (sorted[0], sorted[n - 1]);
        let mean = mean(&sorted);
        let largest_distance = (max - mean).max(mean - min);
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            n: u32::try_from(n).unwrap_or(u32::MAX),
            mean,
            largest_distance,
            largest_distance_percent: (mean > 0.0).then(|| 100.0 * largest_distance / mean),
            median: (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0,
            min,
            max,
            standard_deviation: (n > 1).then(|| (squares / (n - 1) as f64).sqrt()),
            interval_95: Interval95::of(&sorted),
            bands: TwoBands::of(&sorted),
            values,
        })
    }

    /// Of values with their repeats; `None` if one is missing, as a mean over the others would be
    /// of other repeats than the figures next to it.
    pub(crate) fn of_all(values: impl IntoIterator<Item = (u32, Option<f64>)>) -> Option<Self> {
        let values = values.into_iter();
        let samples = values.map(|(repeat, value)| value.map(|value| Sample { repeat, value }));
        Self::of(samples.collect::<Option<Vec<_>>>()?)
    }

    /// Of the known ones of these values.
    pub(crate) fn of_known(values: impl IntoIterator<Item = (u32, Option<f64>)>) -> Option<Self> {
        let known = values.into_iter().filter(|(_, value)| value.is_some());
        Self::of_all(known)
    }

    /// The same quantity in another unit: every figure times `factor`, which is positive.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let sample = |sample: &Sample| Sample {
            value: factor * sample.value,
            ..*sample
        };
        Self {
            n: self.n,
            values: self.values.iter().map(sample).collect(),
            mean: factor * self.mean,
            largest_distance: factor * self.largest_distance,
            largest_distance_percent: self.largest_distance_percent,
            median: factor * self.median,
            min: factor * self.min,
            max: factor * self.max,
            standard_deviation: self.standard_deviation.map(|found| factor * found),
            // Exact on logarithms: a factor moves both ends by the same distance.
            interval_95: match self.interval_95 {
                Interval95::StudentT { low, high } => Interval95::StudentT {
                    low: factor * low,
                    high: factor * high,
                },
                too_few @ Interval95::TooFewRepeats { .. } => too_few,
            },
            bands: self.bands.map(|bands| bands.scaled(factor)),
        }
    }

    /// The value of one repeat.
    #[must_use]
    pub fn at(&self, repeat: u32) -> Option<f64> {
        self.values
            .iter()
            .find(|sample| sample.repeat == repeat)
            .map(|sample| sample.value)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(values: &[f64]) -> Estimate {
        let samples = (1..)
            .zip(values)
            .map(|(repeat, &value)| Sample { repeat, value });
        Estimate::of(samples.collect()).unwrap()
    }

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-12 * right.abs()
    }

    #[test]
    fn the_source_reports_format_is_the_mean_and_the_largest_distance_from_it() {
        // 25.7 ± 2.0 (8 %), as in table 2.3 of the reference report.
        let found = estimate(&[25.7, 23.7, 27.7]);
        assert!(close(found.mean, 25.7) && close(found.largest_distance, 2.0));
        assert!(close(
            found.largest_distance_percent.unwrap(),
            100.0 * 2.0 / 25.7
        ));
        assert!(close(found.median, 25.7) && close(found.min, 23.7) && close(found.max, 27.7));
        assert!(close(found.standard_deviation.unwrap(), 2.0));
        assert_eq!(found.at(2), Some(23.7));
        assert_eq!(found.at(4), None);
    }

    #[test]
    fn the_farthest_value_may_lie_below_the_mean() {
        let found = estimate(&[10.0, 10.0, 4.0]);
        assert!(close(found.mean, 8.0) && close(found.largest_distance, 4.0));
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert!(close(estimate(&[4.0, 1.0, 3.0, 2.0]).median, 2.5));
    }

    #[test]
    fn one_value_has_no_deviation_and_zero_no_per_cent() {
        let one = estimate(&[5.0]);
        assert_eq!(one.standard_deviation, None);
        assert_eq!(one.largest_distance_percent, Some(0.0));
        assert_eq!(estimate(&[0.0, 0.0]).largest_distance_percent, None);
    }

    #[test]
    fn no_values_and_non_finite_values_have_no_estimate() {
        assert_eq!(Estimate::of(vec![]), None);
        assert_eq!(
            Estimate::of(vec![Sample {
                repeat: 1,
                value: f64::NAN
            }]),
            None
        );
    }

    #[test]
    fn one_repeat_has_no_interval_and_two_have_a_wide_one() {
        assert_eq!(
            estimate(&[1.0]).interval_95,
            Interval95::TooFewRepeats { needed: 2 }
        );
        // 99 and 101 are 1 % apart: 12.706 times the standard error of their logarithms, 0.01.
        let (low, high) = estimate(&[99.0, 101.0]).interval_95.ends().unwrap();
        let middle = (99.0_f64 * 101.0).sqrt();
        let reach = 12.7062 * (101.0_f64 / 99.0).ln() / 2.0;
        assert!(
            (low / (middle * (-reach).exp()) - 1.0).abs() < 1e-6,
            "{low}"
        );
        assert!((high / (middle * reach.exp()) - 1.0).abs() < 1e-6, "{high}");
        assert_eq!(estimate(&[7.0; 4]).interval_95.ends(), Some((7.0, 7.0)));
    }

    #[test]
    fn the_interval_of_values_that_may_be_negative_is_of_themselves() {
        // 0..=99: the mean's standard error is sqrt((100^2 - 1) / 12 / 99) = 2.901, t is 1.9842.
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let (low, high) = estimate(&values).interval_95.ends().unwrap();
        assert!((low - (49.5 - 5.757)).abs() < 2e-3, "{low}");
        assert!((high - (49.5 + 5.757)).abs() < 2e-3, "{high}");
    }

    #[test]
    fn another_unit_changes_nothing_but_the_unit() {
        let values = [7.1, 7.12, 7.15, 9.2, 9.22, 9.21];
        let direct = estimate(&values.map(|value| 8.0 * value));
        let scaled = estimate(&values).scaled(8.0);
        let ends = |of: &Estimate| of.interval_95.ends().unwrap();
        assert!(close(ends(&scaled).0, ends(&direct).0) && close(ends(&scaled).1, ends(&direct).1));
        // 8 is a power of two: of the rest not even the last bit may differ.
        let interval_95 = direct.interval_95;
        assert_eq!(
            Estimate {
                interval_95,
                ..scaled.clone()
            },
            direct
        );
        assert!(scaled.bands.is_some());
    }
}
