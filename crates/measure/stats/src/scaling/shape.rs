//! Where a curve stops rising, and where it falls.

/// Smaller gains, in per cent of a figure, do not count, even with a small spread.
pub const GAIN_MIN_PERCENT: f64 = 2.0;

/// A number with its figure: the mean and the farthest repeat's distance from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) n: u32,
    pub(crate) mean: f64,
    pub(crate) spread: f64,
}

/// The shape of a curve, by the numbers of its points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Highest mean.
    pub(crate) peak: u32,
    /// The smallest number that no larger one exceeds; `None` when that is the largest of all.
    pub(crate) stop: Option<u32>,
    /// The smallest number from which on all are worse than the peak; past the peak.
    pub(crate) falls_from: Option<u32>,
}

impl Point {
    /// Whether this mean exceeds the other by more than the spread of either.
    fn is_above(&self, other: &Self) -> bool {
        is_above((self.mean, self.spread), (other.mean, other.spread))
    }
}

/// Whether a mean exceeds another by more than the farthest repeat of either, and by more than
/// [`GAIN_MIN_PERCENT`].
pub(crate) fn is_above((mean, spread): (f64, f64), (other, other_spread): (f64, f64)) -> bool {
    let gain = other.abs() * GAIN_MIN_PERCENT / 100.0;
    mean - other > spread.max(other_spread).max(gain)
}

impl Shape {
    /// The shape of points in rising order; `None` with fewer than two.
    pub(crate) fn of(points: &[Point]) -> Option<Self> {
        let (last, rest) = points.split_last()?;
        rest.first()?;
        let better_later = |at: usize| {
            points[at + 1..]
                .iter()
                .any(|later| later.is_above(&points[at]))
        };
        let stop = (0..rest.len()).find(|&at| !better_later(at));
        // Of equal means the first, which needs the least.
        let mut peak = 0;
        for (at, point) in points.iter().enumerate() {
            if point.mean > points[peak].mean {
                peak = at;
            }
        }
        let below = |point: &&Point| points[peak].is_above(point);
        let falling = points[peak + 1..].iter().rev().take_while(below).count();
        Some(Self {
            peak: points[peak].n,
            stop: stop.map(|at| points[at].n).filter(|n| *n != last.n),
            falls_from: (falling > 0).then(|| points[points.len() - falling].n),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve(most: u32, of: impl Fn(f64) -> f64) -> Vec<Point> {
        let point = |n: u32| Point {
            n,
            mean: of(f64::from(n)),
            spread: 0.0,
        };
        (1..=most).map(point).collect()
    }

    #[test]
    fn one_point_has_no_shape() {
        assert_eq!(Shape::of(&curve(1, |n| n)), None);
        assert_eq!(Shape::of(&[]), None);
    }

    #[test]
    fn a_gain_within_the_spread_is_none() {
        let mut points = curve(3, |n| 100.0 + n);
        for point in &mut points {
            point.spread = 5.0;
        }
        assert_eq!(Shape::of(&points).unwrap().stop, Some(1));
    }

    #[test]
    fn a_late_gain_counts_past_a_dip() {
        // 3 is worse than 2, but 4 is better than both.
        let points = [10.0, 20.0, 15.0, 40.0];
        let points = curve(4, |n| points[n as usize - 1]);
        let found = Shape::of(&points).unwrap();
        assert_eq!((found.stop, found.falls_from, found.peak), (None, None, 4));
    }

    proptest! {
        #[test]
        fn what_is_linear_never_stops(most in 2_u32..40, slope in 1.0..1e9_f64) {
            let found = Shape::of(&curve(most, |n| slope * n)).unwrap();
            prop_assert_eq!(found, Shape { peak: most, stop: None, falls_from: None });
        }

        #[test]
        fn a_cap_is_found_where_it_is(most in 3_u32..40, cap in 1_u32..38, noise in 0.0..0.4_f64) {
            prop_assume!(cap < most);
            // Spread and noise are a fraction of one unit's gain at the cap.
            let wobble = |n: f64| noise * if (n as u32).is_multiple_of(2) { 1.0 } else { -1.0 };
            let mut points = curve(most, |n| 10.0 * n.min(f64::from(cap)) + wobble(n));
            for point in &mut points {
                point.spread = 1.0;
            }
            let found = Shape::of(&points).unwrap();
            prop_assert_eq!(found.stop, Some(cap));
            prop_assert_eq!(found.falls_from, None);
        }

        #[test]
        fn a_fall_is_found_past_its_peak(peak in 2_u32..20, past in 2_u32..20) {
            let most = peak + past;
            let top = f64::from(peak);
            let found = Shape::of(&curve(most, |n| 100.0 - 5.0 * (n - top).abs())).unwrap();
            prop_assert_eq!(found.stop, Some(peak));
            prop_assert_eq!(found.falls_from, Some(peak + 1));
            prop_assert_eq!(found.peak, peak);
        }

        #[test]
        fn amdahls_law_stops_where_the_rest_is_within_the_least_gain(serial in 0.1..0.9_f64) {
            let law = |n: f64| n / (1.0 + serial * (n - 1.0));
            let found = Shape::of(&curve(64, law)).unwrap();
            let reaches = |n: u32| law(64.0) / law(f64::from(n)) - 1.0;
            let at = found.stop.unwrap_or(64);
            prop_assert!(at == 64 || reaches(at) <= 0.02);
            prop_assert!(at == 1 || reaches(at - 1) > 0.02);
        }
    }
}
