//! The end of a curve's rise, and the start of its decline.

use crate::analysis::significance::{Level, Ratio, p_differ};
use crate::figures::estimate::Estimate;

/// Smaller gains, in per cent of a figure, do not count, even if they are sure.
pub const GAIN_MIN_PERCENT: f64 = 2.0;
/// A curve is flat, or holds, only if its repeats exclude a larger change, in per cent.
pub const FLAT_MAX_PERCENT: f64 = 10.0;

/// A larger change that the repeats leave possible is not stated as a number, in per cent.
const OPEN_MAX_PERCENT: f64 = 100.0;

/// A number with its figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point<'e> {
    pub(crate) n: u32,
    pub(crate) figure: &'e Estimate,
}

/// The shape of a curve, by the numbers of its points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shape {
    /// Highest mean.
    pub(crate) peak: u32,
    /// The smallest number that no larger one surely exceeds; `None` when that is the largest of
    /// all.
    pub(crate) top: Option<Top>,
    /// The start of the decline, past the peak: from this number on, all are surely worse than the
    /// peak.
    pub(crate) falls_from: Option<u32>,
    /// Of the numbers past the peak, the largest loss that the repeats leave possible, in per cent;
    /// infinite for single repeats.
    pub(crate) open_loss_percent: f64,
}

/// A number that no larger one surely exceeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Top {
    pub(crate) n: u32,
    /// The largest gain past it that the repeats leave possible, in per cent; infinite for single
    /// repeats.
    pub(crate) open_gain_percent: f64,
}

impl Top {
    /// Whether a gain past it is excluded.
    pub(crate) fn is_shown(&self) -> bool {
        self.open_gain_percent <= FLAT_MAX_PERCENT
    }

    /// `stops scaling at 14 workers`, or the gain that the repeats leave possible. `number` is the
    /// number of this point with its unit.
    pub(crate) fn in_words(&self, number: &str) -> String {
        if self.is_shown() {
            format!("stops scaling at {number}")
        } else {
            format!(
                "no certain gain past {number}: {} more is possible",
                up_to(self.open_gain_percent)
            )
        }
    }
}

/// `up to 12 %`, or any amount if the repeats exclude nothing: single repeats, and two or three
/// that differ, since the number would have no meaning.
pub(super) fn up_to(open_percent: f64) -> String {
    if open_percent <= OPEN_MAX_PERCENT {
        format!("up to {open_percent:.0} %")
    } else {
        "any amount".to_owned()
    }
}

/// Whether a figure surely exceeds another, and by more than [`GAIN_MIN_PERCENT`].
pub(crate) fn is_above(own: &Estimate, other: &Estimate, level: Level) -> bool {
    let gain = other.mean.abs() * GAIN_MIN_PERCENT / 100.0;
    own.mean - other.mean > gain && level.is_above(own, other, 1.0)
}

/// p-value of a difference, for each pair of points.
pub(crate) fn p_values<'p>(points: &'p [Point<'p>]) -> impl Iterator<Item = Option<f64>> + 'p {
    let with_later = points.iter().enumerate();
    with_later.flat_map(|(at, point)| {
        let later = points[at + 1..].iter();
        later.map(|later| p_differ(later.figure, point.figure))
    })
}

impl Shape {
    /// The shape of points in rising order; `None` with fewer than two.
    pub(crate) fn of(points: &[Point<'_>], level: Level) -> Option<Self> {
        let (last, rest) = points.split_last()?;
        rest.first()?;
        let above = |a: &Point<'_>, b: &Point<'_>| is_above(a.figure, b.figure, level);
        let ratio = |a: &Point<'_>, b: &Point<'_>| Ratio::at(a.figure, b.figure, level.alpha());
        // The last point has none after it, so a point is always found.
        let stop = (0..points.len()).find(|&at| {
            !points[at + 1..]
                .iter()
                .any(|later| above(later, &points[at]))
        })?;
        let gain = |later: &Point<'_>| {
            let high = ratio(later, &points[stop]).and_then(|found| found.high);
            // Without an interval nothing excludes a gain.
            high.map_or(f64::INFINITY, |high| 100.0 * (high - 1.0))
        };
        // The first of equal means, which needs the least.
        let mut peak = 0;
        for (at, point) in points.iter().enumerate() {
            if point.figure.mean > points[peak].figure.mean {
                peak = at;
            }
        }
        let past = &points[peak + 1..];
        let below = |point: &&Point<'_>| above(&points[peak], point);
        // From the end: a decline is one only if it goes on to the largest number.
        let falling = past.iter().rev().take_while(below).count();
        let loss = |later: &Point<'_>| {
            let low = ratio(later, &points[peak]).and_then(|found| found.low);
            low.map_or(f64::INFINITY, |low| 100.0 * (1.0 - low))
        };
        Some(Self {
            peak: points[peak].n,
            top: (points[stop].n != last.n).then(|| Top {
                n: points[stop].n,
                open_gain_percent: points[stop + 1..].iter().map(gain).fold(0.0, f64::max),
            }),
            falls_from: (falling > 0).then(|| points[points.len() - falling].n),
            open_loss_percent: past.iter().map(loss).fold(0.0, f64::max),
        })
    }

    /// The number past which the figure stops rising, if the repeats show it.
    pub(crate) fn stop(&self) -> Option<u32> {
        self.top.filter(Top::is_shown).map(|top| top.n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::estimate::Sample;
    use proptest::prelude::*;

    /// A number, and five repeats this far around its figure.
    type Drawn = (u32, Estimate);

    fn drawn(n: u32, figure: f64, spread: f64) -> Drawn {
        let sides = [0.0, 1.0, -1.0, 0.5, -0.5];
        let samples = (1..).zip(sides).map(|(repeat, side)| Sample {
            repeat,
            // Neighbours move apart, so that their ratios vary.
            value: figure + spread * if n.is_multiple_of(2) { side } else { -side },
        });
        (n, Estimate::of(samples.collect()).unwrap())
    }

    fn curve(most: u32, of: impl Fn(f64) -> f64) -> Vec<Drawn> {
        (1..=most)
            .map(|n| drawn(n, of(f64::from(n)), 0.0))
            .collect()
    }

    /// What counts at the level of this curve alone.
    fn shape(curve: &[Drawn]) -> Option<Shape> {
        let points = curve.iter().map(|(n, figure)| Point { n: *n, figure });
        let points: Vec<Point<'_>> = points.collect();
        Shape::of(&points, Level::of(p_values(&points).flatten()))
    }

    #[test]
    fn one_point_has_no_shape() {
        assert_eq!(shape(&curve(1, |n| n)), None);
        assert_eq!(shape(&[]), None);
    }

    #[test]
    fn a_gain_within_the_spread_is_none_and_flat_is_only_what_excludes_a_gain() {
        let within = |spread| {
            let points = [1, 2, 3].map(|n| drawn(n, 100.0 + f64::from(n), spread));
            shape(&points).unwrap()
        };
        let top = within(2.0).top.unwrap();
        assert!(top.n == 1 && top.is_shown(), "{top:?}");
        // The same means, but repeats that leave a gain of a quarter possible.
        let (wide, top) = (within(10.0), within(10.0).top.unwrap());
        assert!(top.n == 1 && !top.is_shown(), "{top:?}");
        assert!(top.open_gain_percent > 20.0, "{top:?}");
        assert_eq!(wide.stop(), None);
    }

    #[test]
    fn single_repeats_show_neither_a_rise_nor_a_stop() {
        let single = |n: u32| {
            let sample = Sample {
                repeat: 1,
                value: f64::from(n),
            };
            (n, Estimate::of(vec![sample]).unwrap())
        };
        let found = shape(&[1, 2, 4].map(single)).unwrap();
        assert_eq!((found.stop(), found.falls_from), (None, None));
        assert!(found.top.unwrap().open_gain_percent.is_infinite());
    }

    #[test]
    fn a_late_gain_counts_past_a_dip() {
        // 3 is worse than 2, but 4 is better than both.
        let points = [10.0, 20.0, 15.0, 40.0];
        let points = curve(4, |n| points[n as usize - 1]);
        let found = shape(&points).unwrap();
        assert_eq!((found.top, found.falls_from, found.peak), (None, None, 4));
    }

    proptest! {
        #[test]
        fn what_is_linear_never_stops(most in 2_u32..40, slope in 1.0..1e9_f64) {
            let found = shape(&curve(most, |n| slope * n)).unwrap();
            prop_assert_eq!((found.peak, found.top, found.falls_from), (most, None, None));
        }

        #[test]
        fn a_cap_is_found_where_it_is(
            (most, cap) in (3_u32..40).prop_flat_map(|most| (Just(most), 1..most)),
            noise in 0.01..0.4_f64,
        ) {
            // Noise is a fraction of one unit's gain at the cap.
            let figure = |n: u32| 10.0 * f64::from(n.min(cap));
            let points: Vec<Drawn> = (1..=most).map(|n| drawn(n, figure(n), noise / 20.0)).collect();
            let found = shape(&points).unwrap();
            prop_assert_eq!(found.stop(), Some(cap));
            prop_assert_eq!(found.falls_from, None);
        }

        #[test]
        fn a_fall_is_found_past_its_peak(peak in 2_u32..20, past in 2_u32..20) {
            let most = peak + past;
            let top = f64::from(peak);
            // Each step is at least 2.5 % of the peak, so that it counts.
            let found = shape(&curve(most, |n| 100.0 - 2.5 * (n - top).abs())).unwrap();
            prop_assert_eq!(found.stop(), Some(peak));
            prop_assert_eq!(found.falls_from, Some(peak + 1));
            prop_assert_eq!(found.peak, peak);
        }

        #[test]
        fn amdahls_law_stops_where_the_rest_is_within_the_least_gain(serial in 0.1..0.9_f64) {
            let law = |n: f64| n / (1.0 + serial * (n - 1.0));
            let found = shape(&curve(64, law)).unwrap();
            let reaches = |n: u32| law(64.0) / law(f64::from(n)) - 1.0;
            let at = found.stop().unwrap_or(64);
            prop_assert!(at == 64 || reaches(at) <= 0.02);
            prop_assert!(at == 1 || reaches(at - 1) > 0.02);
        }
    }
}
