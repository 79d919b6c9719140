//! Detects repeats in two bands, each tight, with nothing between them.
//!
//! A machine that alternates between states (clock, core, cache path) shows two bands. The mean
//! describes neither, and its interval is meaningless.

use schemars::JsonSchema;
use serde::Serialize;

/// Minimum number of values to look for bands.
pub const BANDS_MIN_REPEATS: usize = 5;
/// The minimum number of values in a band: a single one is an outlier.
const BAND_MIN_VALUES: usize = 2;
/// Ratio of the gap between bands to the wider band's spread. With 6, fewer than 1 % of samples
/// from one normal distribution are taken for two bands, at any sample size.
const GAP_TO_SPREAD: f64 = 6.0;
/// Minimum gap, as a share of the median: a smaller one does not matter.
const GAP_TO_MEDIAN: f64 = 0.03;

/// Two bands that values fall in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TwoBands {
    /// The lower band.
    pub low: Band,
    /// The upper band.
    pub high: Band,
}

/// Values that are close together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Band {
    /// Number of values.
    pub n: u32,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

impl TwoBands {
    /// Returns the bands of sorted values; `None` if there is one band, or too few values to
    /// decide.
    pub(crate) fn of(sorted: &[f64]) -> Option<Self> {
        let n = sorted.len();
        if n < BANDS_MIN_REPEATS {
            return None;
        }
        let gap = |at: &usize| sorted[*at] - sorted[*at - 1];
        // If two bands exist, the largest gap is between them.
        let at = (1..n).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
        let (low, high) = sorted.split_at(at);
        // A single value far from the others is no band: `one_apart` finds it.
        if low.len().min(high.len()) < BAND_MIN_VALUES {
            return None;
        }
        let (low, high) = (Band::of(low)?, Band::of(high)?);
        let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
        let spread = (low.max - low.min).max(high.max - high.min);
        let clear = gap(&at) > GAP_TO_SPREAD * spread && gap(&at) > GAP_TO_MEDIAN * median.abs();
        clear.then_some(Self { low, high })
    }

    /// Whether limits between the least and the most are farther from both bands than the bands are
    /// from each other; `top` is the largest value that a search allows. A third band at that
    /// distance would still be on the same side, so that the interval of all repeats decides, wide
    /// as it is.
    pub(crate) fn are_far_from(&self, (least, most): (f64, f64), top: f64) -> bool {
        if self.low.min <= 0.0 || least <= 0.0 {
            return false;
        }
        let gap = self.high.min / self.low.max;
        self.low.min > most * gap || top.max(self.high.max) * gap < least
    }

    /// The same in another unit.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        let scaled = |band: Band| Band {
            n: band.n,
            min: factor * band.min,
            max: factor * band.max,
        };
        Self {
            low: scaled(self.low),
            high: scaled(self.high),
        }
    }
}

/// The outlier: the one value away from all others, which are close together; `None` with too few
/// to decide.
pub(crate) fn one_apart(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n < BANDS_MIN_REPEATS {
        return None;
    }
    let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
    let (lowest, highest) = (sorted[0], sorted[n - 1]);
    let is_apart =
        |gap: f64, spread: f64| gap > GAP_TO_SPREAD * spread && gap > GAP_TO_MEDIAN * median.abs();
    // The spread of the others is taken without the candidate. Two outliers on both sides widen it
    // and hide each other, as neither is the only one.
    if is_apart(sorted[1] - lowest, highest - sorted[1]) {
        Some(lowest)
    } else if is_apart(highest - sorted[n - 2], sorted[n - 2] - lowest) {
        Some(highest)
    } else {
        None
    }
}

impl Band {
    fn of(sorted: &[f64]) -> Option<Self> {
        Some(Self {
            n: u32::try_from(sorted.len()).unwrap_or(u32::MAX),
            min: *sorted.first()?,
            max: *sorted.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::noise::Noise;

    fn bands(values: &[f64]) -> Option<TwoBands> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        TwoBands::of(&sorted)
    }

    #[test]
    fn one_value_far_from_all_others_lies_apart() {
        assert_eq!(one_apart(&[100.0, 101.0, 60.0, 100.5, 99.8]), Some(60.0));
        assert_eq!(one_apart(&[100.0, 101.0, 160.0, 100.5, 99.8]), Some(160.0));
        assert_eq!(
            one_apart(&[100.0, 101.0, 60.0, 61.0, 99.8]),
            None,
            "two are bands"
        );
        assert_eq!(one_apart(&[100.0, 101.0, 99.0, 100.5, 102.0]), None);
        assert_eq!(
            one_apart(&[100.0, 100.0, 100.0, 100.0, 101.0]),
            None,
            "it does not matter"
        );
        assert_eq!(one_apart(&[100.0, 101.0, 60.0, 100.5]), None, "too few");
    }

    /// docs/methodology/statistics.md has these numbers.
    #[test]
    fn disturbed_repeats_lower_the_coverage_of_an_interval() {
        let mut random = Noise(1);
        for (n, loss) in [(3, 0.2), (5, 0.4), (10, 0.2)] {
            // The long-run mean, with one repeat in ten disturbed.
            let truth = 1.0 - 0.1 * loss;
            let held = (0..4000).filter(|_| {
                let values: Vec<f64> = (0..n)
                    .map(|_| {
                        let is_disturbed = random.uniform() < 0.1;
                        let share = if is_disturbed { 1.0 - loss } else { 1.0 };
                        share * normal(&mut random, 0.01)
                    })
                    .collect();
                let (low, high) = crate::figures::student::interval_95(&values).unwrap();
                low <= truth && truth <= high
            });
            let percent = held.count() as f64 / 40.0;
            assert!((33.0..70.0).contains(&percent), "{n}: {percent} %");
        }
    }

    /// Normal noise about 1.
    fn normal(random: &mut Noise, deviation: f64) -> f64 {
        1.0 + deviation * random.normal()
    }

    #[test]
    fn two_bands_are_reported_with_their_limits() {
        let found = bands(&[402.0, 351.0, 400.0, 350.0, 401.0]).unwrap();
        assert_eq!((found.low.n, found.high.n), (2, 3));
        assert_eq!((found.low.min, found.low.max), (350.0, 351.0));
        assert_eq!((found.high.min, found.high.max), (400.0, 402.0));
    }

    #[test]
    fn an_outlier_is_no_band_and_four_values_are_too_few() {
        assert_eq!(bands(&[400.0, 401.0, 402.0, 401.5, 300.0]), None);
        assert_eq!(bands(&[400.0, 401.0, 300.0, 301.0]), None);
    }

    #[test]
    fn a_gap_too_small_to_matter_is_none() {
        // Quantised: two values, 2 % apart.
        assert_eq!(bands(&[100.0, 100.0, 102.0, 102.0, 102.0]), None);
        assert!(bands(&[100.0, 100.0, 104.0, 104.0, 104.0]).is_some());
        assert_eq!(bands(&[5.0; 9]), None);
    }

    #[test]
    fn fewer_than_1_percent_of_normal_samples_are_taken_for_two_bands() {
        let mut random = Noise(2544);
        for deviation in [0.01, 0.03, 0.1, 0.3] {
            for n in [5, 6, 8, 10, 20] {
                let samples = 20_000;
                let wrong = (0..samples)
                    .filter(|_| {
                        let values: Vec<f64> =
                            (0..n).map(|_| normal(&mut random, deviation)).collect();
                        bands(&values).is_some()
                    })
                    .count();
                assert!(100 * wrong < samples, "n {n}, {deviation}: {wrong}");
            }
        }
    }

    #[test]
    fn bands_apart_by_ten_percent_are_found_through_noise_of_a_quarter_percent() {
        let mut random = Noise(9971);
        for n in [5, 6, 8, 10] {
            let found = (0..1000)
                .filter(|_| {
                    let value = |index: usize| {
                        normal(&mut random, 0.0025)
                            * if index.is_multiple_of(2) { 1.0 } else { 1.1 }
                    };
                    bands(&(0..n).map(value).collect::<Vec<f64>>()).is_some()
                })
                .count();
            assert!(found > 980, "n {n}: {found} of 1000");
        }
    }
}
