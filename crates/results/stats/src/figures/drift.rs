//! Drift of a repeated reading: the Theil-Sen slope with its interval, and the Mann-Kendall test.
//!
//! Both use pairs of points only, so that outliers and the shape of the noise do not matter (Sen,
//! 1968; Gilbert, *Statistical Methods for Environmental Pollution Monitoring*, 1987, 16.4 and
//! 17.3). Pairs are formed within a stratum, which is one start of a device: a restarted device may
//! begin at another level, and that is not drift.
//!
//! Adjacent points may be correlated: on a shared machine a slow minute follows a slow minute. Then
//! S varies more than its formula says: at a correlation of 0.6, a third of steady series would
//! seem to drift. So its variance is multiplied by n/n*, the loss of effective points by the
//! correlation of the ranks at lag 1, without the slope (Yue and Wang, *Water Resources Management*
//! 18, 2004; its estimate without bias: Hamed, *Journal of Hydrology* 368, 2009). The correlation
//! is an estimate itself: from [`DRIFT_MIN_POINTS`] on, the interval uses Student's t with n* − 2
//! degrees of freedom, since level and slope take two of the effective points. With fewer points it
//! uses the normal distribution, and covers nearly all slopes.

use crate::figures::student::quantile;
use schemars::JsonSchema;
use serde::Serialize;

/// Minimum number of points for a verdict: with fewer, the interval depends more on their number
/// than on a drift.
pub const DRIFT_MIN_POINTS: usize = 30;
/// With fewer points of a stratum their correlation is unknown, and counts as 0.
const CORRELATION_MIN_POINTS: usize = 10;
/// A higher correlation is no noise: it is a random walk.
const CORRELATION_MAX: f64 = 0.98;

/// Probability below the upper end of a two-sided 95 % interval.
const UPPER_95: f64 = 0.975;
/// The same quantile of the normal distribution.
const Z_95: f64 = 1.959_964;

/// The drift of a quantity over a soak.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Drift {
    /// Number of points.
    pub points: u32,
    /// Median of the points, in the unit that the key names.
    pub median: f64,
    /// Theil-Sen slope: the median slope of all pairs, in that unit per hour.
    pub slope_per_hour: f64,
    /// The slope over the whole time, as a share of the median.
    pub change_ratio: f64,
    /// Lower end of its 95 % interval.
    pub change_low: f64,
    /// Upper end of its 95 % interval.
    pub change_high: f64,
    /// Two-sided p-value of the Mann-Kendall test.
    pub p: f64,
    /// Allowed drift over the whole time, up or down, as a share of the median.
    pub bound_ratio: f64,
    /// The resulting verdict.
    pub judged: DriftJudgement,
}

/// Whether something drifts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DriftJudgement {
    /// The whole interval is within the bound.
    Steady,
    /// The whole interval is beyond the bound.
    Drifts,
    /// The interval crosses the bound, or there are too few points.
    Unclear,
}

/// A time in hours, and the value read at it.
pub(crate) type Point = (f64, f64);

impl Drift {
    /// Whether its points are enough to state a change: the slope of few points, extended over the
    /// whole time, may come to more than all that is there.
    #[must_use]
    pub const fn is_estimated(&self) -> bool {
        self.points as usize >= DRIFT_MIN_POINTS || !matches!(self.judged, DriftJudgement::Unclear)
    }

    /// The drift of points of several strata over `hours`, with a verdict from [`DRIFT_MIN_POINTS`]
    /// points on; `None` when no stratum has two points, or their median is not above 0.
    pub(crate) fn of(strata: &[Vec<Point>], hours: f64, bound_ratio: f64) -> Option<Self> {
        Self::of_at_least(DRIFT_MIN_POINTS, strata, hours, bound_ratio)
    }

    /// The same, with a verdict from `points_min` points on: at least 5, since the interval of 5
    /// points reaches from the lowest to the highest slope.
    pub(crate) fn of_at_least(
        points_min: usize,
        strata: &[Vec<Point>],
        hours: f64,
        bound_ratio: f64,
    ) -> Option<Self> {
        let mut values: Vec<f64> = strata.iter().flatten().map(|(_, value)| *value).collect();
        let median = median(&mut values).filter(|median| *median > 0.0)?;
        let mut slopes: Vec<f64> = strata.iter().flat_map(|points| slopes(points)).collect();
        slopes.sort_by(f64::total_cmp);
        // One slope over all strata: pairs across a restart were never formed.
        let slope = middle(&slopes)?;
        let (mut score, mut variance, mut effective) = (0.0, 0.0, 0.0);
        for points in strata {
            let (own, own_variance) = mann_kendall(points);
            let inflation = inflation(points, slope);
            score += own;
            // S of several strata adds up, and so does its variance, since the strata are
            // independent.
            variance += own_variance * inflation;
            effective += points.len() as f64 / inflation;
        }
        let reach = if values.len() >= DRIFT_MIN_POINTS {
            // Level and slope take two of the effective points. Strong correlation may leave fewer,
            // and one degree of freedom gives the widest interval.
            quantile(UPPER_95, (effective - 2.0).max(1.0))
        } else {
            Z_95
        };
        let (low, high) = interval(&slopes, reach * variance.max(0.0).sqrt());
        let change = |slope: f64| slope * hours / median;
        let (change_low, change_high) = (change(low), change(high));
        Some(Self {
            points: u32::try_from(values.len()).unwrap_or(u32::MAX),
            median,
            slope_per_hour: slope,
            change_ratio: change(slope),
            change_low,
            change_high,
            p: p_value(score, variance),
            bound_ratio,
            // The figures are stated for any number of points; only the verdict needs enough of
            // them.
            judged: if values.len() < points_min {
                DriftJudgement::Unclear
            } else {
                judge((change_low, change_high), bound_ratio)
            },
        })
    }
}

fn judge((low, high): (f64, f64), bound: f64) -> DriftJudgement {
    if low >= -bound && high <= bound {
        DriftJudgement::Steady
    } else if low > bound || high < -bound {
        DriftJudgement::Drifts
    } else {
        DriftJudgement::Unclear
    }
}

/// Slopes of all pairs of points with different times.
fn slopes(points: &[Point]) -> impl Iterator<Item = f64> {
    points
        .iter()
        .enumerate()
        .flat_map(move |(index, (at, value))| {
            let later = points[index + 1..].iter();
            later.filter_map(move |(later_at, later_value)| {
                let time = later_at - at;
                // Points of one time have no slope.
                (time > 0.0).then(|| (later_value - value) / time)
            })
        })
}

/// Mann-Kendall S of points in time order, and its variance, corrected for ties.
fn mann_kendall(points: &[Point]) -> (f64, f64) {
    let mut score = 0.0;
    for (index, (_, value)) in points.iter().enumerate() {
        for (_, later) in &points[index + 1..] {
            score += match later.total_cmp(value) {
                std::cmp::Ordering::Less => -1.0,
                std::cmp::Ordering::Equal => 0.0,
                std::cmp::Ordering::Greater => 1.0,
            };
        }
    }
    let mut sorted: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    sorted.sort_by(f64::total_cmp);
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    // Tied pairs add nothing to S, so they must not add to its variance either.
    let tied = sorted.chunk_by(|a, b| a.total_cmp(b).is_eq());
    let ties: f64 = tied.map(|alike| term(alike.len() as f64)).sum();
    (score, (term(points.len() as f64) - ties) / 18.0)
}

/// The factor n/n*, the increase of the variance of S due to the correlation of adjacent points,
/// from the ranks of the points without `slope`. Alternating points do not narrow the interval.
fn inflation(points: &[Point], slope: f64) -> f64 {
    let n = points.len();
    if n < CORRELATION_MIN_POINTS {
        return 1.0;
    }
    let residuals: Vec<f64> = points
        .iter()
        // A drift itself makes neighbours alike. Without its removal every drift would be taken for
        // correlation.
        .map(|(at, value)| value - slope * at)
        .collect();
    let ranks = ranks(&residuals);
    let mean = (n as f64 + 1.0) / 2.0;
    let from_mean = |rank: f64| rank - mean;
    let squares: f64 = ranks.iter().map(|&rank| from_mean(rank).powi(2)).sum();
    // All residuals are equal: nothing varies, so nothing correlates.
    if squares <= 0.0 {
        return 1.0;
    }
    let products = ranks
        .windows(2)
        .map(|pair| from_mean(pair[0]) * from_mean(pair[1]));
    let found = products.sum::<f64>() / squares;
    let count = n as f64;
    // The estimate of the lag-1 correlation is too low for short series; this is Hamed's
    // correction. Negative values count as 0, because they would narrow the interval.
    let correlation = ((count * found + 2.0) / (count - 4.0)).clamp(0.0, CORRELATION_MAX);
    let mut power = 1.0;
    let terms = (1..n).map(|lag| {
        power *= correlation;
        (1.0 - lag as f64 / count) * power
    });
    1.0 + 2.0 * terms.sum::<f64>()
}

/// Ranks from 1; equal values have the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for alike in order.chunk_by(|&a, &b| values[a].total_cmp(&values[b]).is_eq()) {
        let rank = before as f64 + (alike.len() as f64 + 1.0) / 2.0;
        alike.iter().for_each(|&place| ranks[place] = rank);
        before += alike.len();
    }
    ranks
}

/// Sen's interval: the slopes within `reach / 2` ranks of the middle one, `reach` being the bound
/// of S by chance.
fn interval(sorted: &[f64], reach: f64) -> (f64, f64) {
    let n = sorted.len() as f64;
    let last = sorted.len().saturating_sub(1);
    // Round outwards to whole ranks.
    let low = ((n - reach) / 2.0).floor() - 1.0;
    let high = ((n + reach) / 2.0).ceil();
    // Clamp to the ranks that exist.
    let at = |place: f64| sorted[(place.max(0.0) as usize).min(last)];
    (at(low), at(high))
}

fn p_value(score: f64, variance: f64) -> f64 {
    if score == 0.0 || variance <= 0.0 {
        return 1.0;
    }
    // S moves in steps, so the test corrects for continuity by 1.
    let z = (score.abs() - 1.0).max(0.0) / variance.sqrt();
    complementary_error(z / std::f64::consts::SQRT_2)
}

/// The complementary error function for `x >= 0`, to a relative error of 1.2e-7 (Numerical Recipes,
/// 6.2, `erfcc`).
fn complementary_error(x: f64) -> f64 {
    const TERMS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + x / 2.0);
    let sum = TERMS.iter().rev().fold(0.0, |sum, term| sum * t + term);
    (t * (sum - x * x).exp()).min(1.0)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    middle(values)
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    (n > 0).then(|| f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]))
}

#[cfg(test)]
mod simulation;

#[cfg(test)]
mod tests {
    use super::*;

    /// Reproducible uniform numbers between -1 and 1.
    fn noise(seed: u64) -> impl Iterator<Item = f64> {
        let mut state = seed;
        std::iter::repeat_with(move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as f64 / f64::from(1_u32 << 30) - 1.0
        })
    }

    /// Points over an hour: 1000, with noise, and with a drift.
    fn points(n: usize, noise_to: f64, drift: f64) -> Vec<Point> {
        let at = |index: usize| index as f64 / n as f64;
        let points = noise(7).take(n).enumerate();
        points
            .map(|(index, noise)| (at(index), 1000.0 + noise_to * noise + drift * at(index)))
            .collect()
    }

    fn assert_near(found: f64, expected: f64, distance: f64) {
        assert!(
            (found - expected).abs() <= distance,
            "{found} is not {expected}"
        );
    }

    #[test]
    fn the_test_matches_the_textbook() {
        // 1 to 10 in order: S = 45, Var = 10·9·25/18 = 125, Z = 44/sqrt(125) = 3.9355, p = 8.30e-5.
        let rising: Vec<Point> = (1..=10).map(|n| (f64::from(n), f64::from(n))).collect();
        let (score, variance) = mann_kendall(&rising);
        assert_near(score, 45.0, 0.0);
        assert_near(variance, 125.0, 1e-9);
        assert_near(p_value(score, variance), 8.30e-5, 2e-7);
        // With ties: 1 1 2 2 2 3: S = 11, Var = (6·5·17 - 2·1·9 - 3·2·11)/18 = 426/18.
        let tied = [1.0, 1.0, 2.0, 2.0, 2.0, 3.0];
        let tied: Vec<Point> = (0..).map(f64::from).zip(tied).collect();
        let (score, variance) = mann_kendall(&tied);
        assert_near(score, 11.0, 0.0);
        assert_near(variance, 426.0 / 18.0, 1e-9);
    }

    #[test]
    fn the_error_function_matches_published_tables() {
        for (x, expected) in [
            (0.0, 1.0),
            (0.5, 0.479_500_1),
            (1.0, 0.157_299_2),
            (2.0, 0.004_677_7),
        ] {
            assert_near(complementary_error(x), expected, 1e-6);
        }
        assert!(complementary_error(30.0) >= 0.0);
    }

    #[test]
    fn a_drift_in_noise_is_found_with_its_size() {
        let found = Drift::of(&[points(120, 20.0, 100.0)], 1.0, 0.01).unwrap();
        assert_eq!(found.judged, DriftJudgement::Drifts);
        assert_near(found.slope_per_hour, 100.0, 10.0);
        // 100 of a median of 1050: half of the drift is in it.
        assert_near(found.change_ratio, 0.095, 0.01);
        assert!(found.change_low <= found.change_ratio && found.change_ratio <= found.change_high);
        assert!(found.p < 1e-6, "{}", found.p);
        let down = Drift::of(&[points(120, 20.0, -100.0)], 1.0, 0.01).unwrap();
        assert_eq!(down.judged, DriftJudgement::Drifts);
        // With a bound that allows it.
        let allowed = Drift::of(&[points(120, 20.0, 100.0)], 1.0, 0.2).unwrap();
        assert_eq!(allowed.judged, DriftJudgement::Steady);
    }

    #[test]
    fn noise_alone_is_steady_where_it_is_small_and_unclear_where_it_is_not() {
        let small = Drift::of(&[points(120, 20.0, 0.0)], 1.0, 0.02).unwrap();
        assert_eq!(small.judged, DriftJudgement::Steady);
        assert!(small.p > 0.01, "{}", small.p);
        let large = Drift::of(&[points(40, 500.0, 0.0)], 1.0, 0.02).unwrap();
        assert_eq!(large.judged, DriftJudgement::Unclear);
        let few = Drift::of(&[points(DRIFT_MIN_POINTS - 1, 0.0, 0.0)], 1.0, 0.02).unwrap();
        assert_eq!(few.judged, DriftJudgement::Unclear);
    }

    #[test]
    fn a_constant_is_steady() {
        let found = Drift::of(&[points(120, 0.0, 0.0)], 1.0, 0.001).unwrap();
        assert_eq!(found.judged, DriftJudgement::Steady);
        assert_near(found.p, 1.0, 0.0);
        assert_near(found.change_high - found.change_low, 0.0, 0.0);
    }

    #[test]
    fn outliers_do_not_matter() {
        let mut spiky = points(120, 5.0, 0.0);
        for place in [3, 40, 41, 99, 119] {
            spiky[place].1 = 50_000.0;
        }
        let found = Drift::of(&[spiky], 1.0, 0.01).unwrap();
        assert_eq!(found.judged, DriftJudgement::Steady);
    }

    #[test]
    fn a_step_between_two_starts_of_a_device_is_no_drift_and_one_within_each_is() {
        let shifted = |points: Vec<Point>, up: f64| -> Vec<Point> {
            points
                .into_iter()
                .map(|(at, value)| (at + 1.0, value + up))
                .collect()
        };
        let steady = [points(60, 5.0, 0.0), shifted(points(60, 5.0, 0.0), 400.0)];
        let found = Drift::of(&steady, 2.0, 0.02).unwrap();
        assert_eq!(found.judged, DriftJudgement::Steady);
        // The second start begins at the first one's level and grows again: within each there is a
        // drift.
        let growing = [points(60, 5.0, 100.0), shifted(points(60, 5.0, 100.0), 0.0)];
        let found = Drift::of(&growing, 2.0, 0.02).unwrap();
        assert_eq!(found.judged, DriftJudgement::Drifts);
        assert_near(found.slope_per_hour, 100.0, 10.0);
    }

    #[test]
    fn without_points_there_is_no_drift() {
        assert_eq!(Drift::of(&[], 1.0, 0.1), None);
        assert_eq!(Drift::of(&[vec![(0.0, 1.0)]], 1.0, 0.1), None);
        assert_eq!(Drift::of(&[vec![(0.0, 0.0), (1.0, 0.0)]], 1.0, 0.1), None);
    }
}
