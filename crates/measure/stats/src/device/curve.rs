//! Two curves over one axis (concurrency or size): from which number on one is above the other.
//!
//! A figure is above another if the difference exceeds the [`spread`] of either, and 2 %; smaller
//! differences count as equal. A crossover is reported only if one curve is above the other from
//! some number up to the largest measured one, at two numbers at least, or at one by twice the
//! required difference. Its position between two numbers is interpolated linearly between their
//! ratios on logarithmic axes.

use crate::estimate::Estimate;
use crate::scaling::{RatioRange, is_above};
use schemars::JsonSchema;
use serde::Serialize;

/// Factors by number of repeats. In one of twenty cases, the means of equal devices with normally
/// distributed repeats differ by this many times the distance of the farthest repeat of either from
/// its mean; with more repeats, by less than that distance. For two repeats the exact factor is
/// 4.9, but their slices are used too.
const OF_TWO_REPEATS: f64 = 3.0;
const OF_THREE_REPEATS: f64 = 1.75;
const OF_FOUR_REPEATS: f64 = 1.2;
/// A device is equal to the CPU if the geometric mean of the ratios is this close, in per cent ...
const EQUAL_MEAN_PERCENT: f64 = 5.0;
/// ... and no ratio is farther than this.
const EQUAL_EACH_PERCENT: f64 = 10.0;

/// One figure of a curve.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure<'a> {
    /// The number on the axis.
    pub(crate) n: u32,
    /// The figure there.
    pub(crate) estimate: &'a Estimate,
    /// Its uncertainty.
    pub(crate) spread: f64,
}

/// The uncertainty of a figure: the farthest repeat's distance, times a factor for few repeats.
/// With fewer than three, at least the spread of the equal parts of a trial, if the distance of the
/// farthest of them from their mean is known in per cent.
pub(crate) fn spread(of: &Estimate, slice_distance_percent: Option<f64>) -> f64 {
    let slices = slice_distance_percent.map_or(0.0, |percent| of.mean.abs() * percent / 100.0);
    match of.n {
        0..=2 => slices.max(OF_TWO_REPEATS * of.largest_distance),
        3 => OF_THREE_REPEATS * of.largest_distance,
        4 => OF_FOUR_REPEATS * of.largest_distance,
        _ => of.largest_distance,
    }
}

/// Comparison of two devices over an axis.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Crossover {
    /// Which of them is faster, and in which range.
    pub course: Course,
    /// The smallest measured number from which on the device is faster; `null` if there is none.
    pub faster_from: Option<u32>,
    /// The largest measured number up to which the device is faster; `null` if it is not faster at
    /// the smallest.
    pub faster_until: Option<u32>,
    /// The number at which both are equal, interpolated between the measured numbers on both sides;
    /// `null` without a crossover.
    pub crosses_at: Option<f64>,
    /// Each number at which both have a figure, rising.
    pub points: Vec<CrossoverPoint>,
    /// The number at which the device is farthest ahead, or least behind.
    pub best_at: u32,
    /// Ratio of its figure there to the other's.
    pub best_ratio: f64,
}

/// Which of two devices is faster in which range of the measured numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Course {
    /// The device, everywhere.
    Faster,
    /// The device, from some number on.
    FasterFrom,
    /// The device, up to some number; the other, from some larger number on.
    FasterUntil,
    /// The other, everywhere.
    Slower,
    /// Neither, anywhere.
    Same,
    /// The device nowhere, the other at some numbers.
    NotFaster,
    /// The other nowhere, the device at some numbers, but not from some number on.
    NotSlower,
    /// Alternating.
    Mixed,
}

/// Two devices at one number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct CrossoverPoint {
    /// The number on the axis.
    pub n: u32,
    /// Ratio of the device's figure to the other's.
    pub ratio: f64,
    /// Smallest ratio of a pair of repeats; `null` when no repeat was measured for both.
    pub low: Option<f64>,
    /// Largest ratio of a pair.
    pub high: Option<f64>,
    /// Which is faster.
    pub standing: DeviceStanding,
    /// Whether the difference is at least twice the required one: then this number alone decides.
    pub is_clear: bool,
}

/// Which of two is faster at one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceStanding {
    /// The device, by more than the uncertainty of either and by more than 2 %.
    Faster,
    /// Neither.
    Same,
    /// The other.
    Slower,
}

impl Crossover {
    /// Compares two curves, rising in n; `None` if they have no number in common.
    pub(crate) fn of(device: &[Figure<'_>], other: &[Figure<'_>]) -> Option<Self> {
        let points: Vec<CrossoverPoint> = device
            .iter()
            .filter_map(|own| {
                let other = other.iter().find(|there| there.n == own.n)?;
                CrossoverPoint::of(own, other)
            })
            .collect();
        let best = points
            .iter()
            .max_by(|a, b| a.ratio.total_cmp(&b.ratio))
            .copied()?;
        let course = course(&points);
        let faster = |point: &&CrossoverPoint| point.standing == DeviceStanding::Faster;
        let ahead_first = points.iter().take_while(faster).count();
        let ahead_last = points.iter().rev().take_while(faster).count();
        let (until, from) = (ahead_first, points.len() - ahead_last);
        let counts = |run: &[CrossoverPoint]| course == Course::Faster || is_solid(run);
        Some(Self {
            course,
            faster_from: points
                .get(from)
                .filter(|_| counts(&points[from..]))
                .map(|point| point.n),
            faster_until: until
                .checked_sub(1)
                .filter(|_| counts(&points[..until]))
                .map(|last| points[last].n),
            crosses_at: match course {
                Course::FasterFrom => between(&points[from - 1], &points[from]),
                Course::FasterUntil => {
                    let slower = points
                        .iter()
                        .position(|point| point.standing == DeviceStanding::Slower)?;
                    between(&points[slower - 1], &points[slower])
                }
                _ => None,
            },
            best_at: best.n,
            best_ratio: best.ratio,
            points,
        })
    }

    /// Whether both are equal everywhere, like the CPU and a device that leaves all work to it.
    /// Decided by ratios, since among many numbers one exceeds the spread by chance.
    pub(crate) fn is_equal(&self) -> bool {
        let off = |percent: f64| (1.0 + percent / 100.0).ln();
        let mut logs = self.points.iter().map(|point| point.ratio.ln());
        let mean = logs.clone().sum::<f64>() / self.points.len() as f64;
        mean.abs() <= off(EQUAL_MEAN_PERCENT)
            && logs.all(|log| log.abs() <= off(EQUAL_EACH_PERCENT))
    }
}

impl CrossoverPoint {
    fn of(own: &Figure<'_>, other: &Figure<'_>) -> Option<Self> {
        let ratio = RatioRange::of(own.estimate, other.estimate)?;
        let apart = |a: &Figure<'_>, b: &Figure<'_>| {
            is_above((a.estimate.mean, a.spread), (b.estimate.mean, b.spread))
        };
        // At least twice the required difference: half of it would suffice.
        let clear = |a: &Figure<'_>, b: &Figure<'_>| {
            let half = (a.estimate.mean + b.estimate.mean) / 2.0;
            is_above((half, a.spread), (b.estimate.mean, b.spread))
        };
        Some(Self {
            n: own.n,
            is_clear: clear(own, other) || clear(other, own),
            ratio: ratio.ratio,
            low: ratio.low,
            high: ratio.high,
            standing: match (apart(own, other), apart(other, own)) {
                (true, _) => DeviceStanding::Faster,
                (_, true) => DeviceStanding::Slower,
                _ => DeviceStanding::Same,
            },
        })
    }
}

/// Requires at least one point.
fn course(points: &[CrossoverPoint]) -> Course {
    let has = |standing| points.iter().any(|point| point.standing == standing);
    let (faster, same, slower) = (
        has(DeviceStanding::Faster),
        has(DeviceStanding::Same),
        has(DeviceStanding::Slower),
    );
    match (faster, same, slower) {
        (true, false, false) => return Course::Faster,
        (false, false, true) => return Course::Slower,
        (false, true, false) => return Course::Same,
        (false, ..) => return Course::NotFaster,
        _ => {}
    }
    let is_faster = |point: &&CrossoverPoint| point.standing == DeviceStanding::Faster;
    let is_slower = |point: &&CrossoverPoint| point.standing == DeviceStanding::Slower;
    let last_run = |is: &dyn Fn(&&CrossoverPoint) -> bool| {
        let run = points.iter().rev().take_while(is).count();
        is_solid(&points[points.len() - run..])
    };
    let first_run = points.iter().take_while(is_faster).count();
    // After the first run of one, none of the other.
    let mut past_slow = points.iter().skip_while(|point| !is_faster(point));
    let mut past_fast = points.iter().skip_while(is_faster);
    let turns_fast = past_slow.all(|point| is_faster(&point));
    let starts_fast = points.first().is_some_and(|first| is_faster(&first));
    let turns_slow = starts_fast && past_fast.all(|point| !is_faster(&point));
    let ends_slow = points
        .last()
        .is_some_and(|last| last.standing == DeviceStanding::Slower);
    if turns_fast && last_run(&is_faster) {
        Course::FasterFrom
    } else if turns_slow && ends_slow && is_solid(&points[..first_run]) && last_run(&is_slower) {
        Course::FasterUntil
    } else if slower {
        Course::Mixed
    } else {
        Course::NotSlower
    }
}

/// Whether the numbers at which one is ahead exceed chance: two of them, or one that is far ahead.
fn is_solid(run: &[CrossoverPoint]) -> bool {
    run.len() > 1 || run.iter().any(|point| point.is_clear)
}

/// The number between two neighbours at which the ratio is 1, on logarithmic axes; `None` if there
/// is none.
fn between(before: &CrossoverPoint, after: &CrossoverPoint) -> Option<f64> {
    let (low, high) = (before.ratio.ln(), after.ratio.ln());
    // The neighbour that counts as equal may be slightly on the other side of 1.
    if low * high > 0.0 {
        return Some(f64::from(before.n));
    }
    let share = low / (low - high);
    let (from, to) = (f64::from(before.n).ln(), f64::from(after.n).ln());
    let crossed = (from + share * (to - from)).exp();
    crossed.is_finite().then_some(crossed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::Sample;
    use proptest::prelude::*;

    fn estimate(value: f64, spread: f64) -> Estimate {
        let values = [value - spread, value, value + spread];
        let samples = (1..)
            .zip(values)
            .map(|(repeat, value)| Sample { repeat, value });
        Estimate::of(samples.collect()).unwrap()
    }

    fn crossover(device: &[(u32, f64)], other: &[(u32, f64)]) -> Crossover {
        let curve = |points: &[(u32, f64)]| -> Vec<(u32, Estimate)> {
            let point = |(n, value): &(u32, f64)| (*n, estimate(*value, 0.001 * value));
            points.iter().map(point).collect()
        };
        let (device, other) = (curve(device), curve(other));
        Crossover::of(&figures(&device), &figures(&other)).unwrap()
    }

    fn figures(curve: &[(u32, Estimate)]) -> Vec<Figure<'_>> {
        curve
            .iter()
            .map(|(n, estimate)| Figure {
                n: *n,
                estimate,
                spread: spread(estimate, None),
            })
            .collect()
    }

    #[test]
    fn a_card_whose_latency_is_hidden_by_many_at_once_is_faster_from_about_30() {
        // As in the source report: a CPU with a constant rate, and a card whose rate rises with
        // concurrency.
        let numbers = [1, 5, 10, 20, 40, 70, 110];
        let card = numbers.map(|n| (n, 33.0 * f64::from(n.min(80))));
        let cpu = numbers.map(|n| (n, 1000.0));
        let found = crossover(&card, &cpu);
        assert_eq!(found.course, Course::FasterFrom);
        assert_eq!((found.faster_from, found.faster_until), (Some(40), None));
        assert!((found.crosses_at.unwrap() - 30.3).abs() < 0.1, "{found:?}");
        let numbers: Vec<u32> = found.points.iter().map(|point| point.n).collect();
        assert_eq!((found.best_at, numbers[6]), (110, 110));
        assert!((found.best_ratio - 2.64).abs() < 1e-9);
        assert!((found.points[3].ratio - 0.66).abs() < 1e-9);
        // In reverse, the CPU is faster up to there.
        let cpu = crossover(&cpu, &card);
        assert_eq!(cpu.course, Course::FasterUntil);
        assert_eq!((cpu.faster_from, cpu.faster_until), (None, Some(20)));
        assert!((cpu.crosses_at.unwrap() - 30.3).abs() < 0.1, "{cpu:?}");
    }

    #[test]
    fn equal_figures_within_the_spread_are_no_crossover() {
        let cpu = [(16, 53.4), (64, 144.8), (256, 300.2)];
        let card = [(16, 53.9), (64, 144.0), (256, 301.0)];
        let found = crossover(&card, &cpu);
        assert_eq!((found.course, found.crosses_at), (Course::Same, None));
        assert_eq!((found.faster_from, found.faster_until), (None, None));
    }

    #[test]
    fn each_course_has_its_name() {
        let one = |ratios: &[f64]| {
            let device: Vec<(u32, f64)> = (1..).zip(ratios.iter().copied()).collect();
            let other: Vec<(u32, f64)> = (1..).zip(ratios.iter().map(|_| 1.0)).collect();
            crossover(&device, &other).course
        };
        assert_eq!(one(&[2.0, 3.0]), Course::Faster);
        assert_eq!(one(&[0.2, 0.3]), Course::Slower);
        assert_eq!(one(&[0.2, 1.0, 2.0]), Course::FasterFrom);
        assert_eq!(one(&[1.0, 2.0]), Course::FasterFrom);
        assert_eq!(one(&[2.0, 1.0, 0.5]), Course::FasterUntil);
        assert_eq!(one(&[0.5, 1.0]), Course::NotFaster);
        assert_eq!(one(&[2.0, 1.0]), Course::NotSlower);
        assert_eq!(one(&[1.0, 2.0, 1.0]), Course::NotSlower);
        assert_eq!(one(&[0.5, 2.0, 0.5]), Course::Mixed);
        assert_eq!(one(&[2.0, 0.5, 2.0]), Course::Mixed);
        assert_eq!(one(&[0.5, 2.0, 1.0]), Course::Mixed);
        // One number alone must be ahead by 4 %; of two, 2 % each are enough.
        assert_eq!(one(&[1.0, 1.0, 1.03]), Course::NotSlower);
        assert_eq!(one(&[1.0, 1.0, 1.05]), Course::FasterFrom);
        assert_eq!(one(&[1.0, 1.03, 1.03]), Course::FasterFrom);
        assert_eq!(one(&[0.5, 1.0, 1.03]), Course::Mixed);
        assert_eq!(one(&[1.03, 1.0, 0.5]), Course::Mixed);
        assert_eq!(one(&[1.5, 1.0, 0.97]), Course::Mixed);
    }

    #[test]
    fn numbers_without_both_figures_do_not_count() {
        let found = crossover(&[(1, 1.0), (5, 9.0)], &[(1, 5.0), (10, 5.0)]);
        assert_eq!(found.points.len(), 1);
        assert_eq!(found.course, Course::Slower);
    }

    #[test]
    fn a_lead_that_does_not_count_is_not_reported() {
        let found = crossover(
            &[(1, 1.0), (2, 1.0), (3, 1.03)],
            &[(1, 1.0), (2, 1.0), (3, 1.0)],
        );
        assert_eq!((found.faster_from, found.crosses_at), (None, None));
        assert_eq!(found.points[2].standing, DeviceStanding::Faster);
    }

    #[test]
    fn equal_means_near_on_average_and_far_at_no_number() {
        let equal = |ratios: &[f64]| {
            let device: Vec<(u32, f64)> = (1..).zip(ratios.iter().copied()).collect();
            let other: Vec<(u32, f64)> = (1..).zip(ratios.iter().map(|_| 1.0)).collect();
            crossover(&device, &other).is_equal()
        };
        // Each difference exceeds the spread of the repeats.
        assert!(equal(&[1.03, 0.96, 1.09, 0.92, 1.0]));
        assert!(!equal(&[1.03, 0.96, 1.11, 0.92, 1.0]));
        assert!(!equal(&[1.06, 1.07]) && !equal(&[0.93, 0.94]));
    }

    /// Reproducible standard normal numbers (SplitMix64; Box and Muller).
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            let (radius, angle) = (self.uniform(), self.uniform());
            (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        }

        /// A curve of seven numbers around a figure, with noise on each repeat and slice.
        fn curve(&mut self, figure: f64, repeats: u32, noise: f64) -> Vec<(u32, Estimate, f64)> {
            let point = |n| {
                let samples = (1..=repeats).map(|repeat| Sample {
                    repeat,
                    value: figure * (1.0 + noise * self.normal()),
                });
                let estimate = Estimate::of(samples.collect()).unwrap();
                let slices = (0..10).map(|_| 100.0 * noise * self.normal().abs());
                let spread = spread(&estimate, slices.reduce(f64::max));
                (n, estimate, spread)
            };
            (1..=7).map(point).collect()
        }

        fn beside(&mut self, figure: f64, repeats: u32, noise: f64) -> Crossover {
            let curves = [figure, 100.0].map(|figure| self.curve(figure, repeats, noise));
            let figures = curves.each_ref().map(|curve| -> Vec<Figure<'_>> {
                curve
                    .iter()
                    .map(|(n, estimate, spread)| Figure {
                        n: *n,
                        estimate,
                        spread: *spread,
                    })
                    .collect()
            });
            Crossover::of(&figures[0], &figures[1]).unwrap()
        }
    }

    #[test]
    fn noise_separates_equal_devices_at_few_numbers_and_in_few_curves() {
        const CURVES: usize = 2000;
        let mut random = Noise(1);
        for repeats in [2, 3, 4] {
            for noise in [0.01, 0.03] {
                let (mut apart, mut crossed, mut equal) = (0, 0, 0);
                for _ in 0..CURVES {
                    let found = random.beside(100.0, repeats, noise);
                    let is_apart = |point: &&CrossoverPoint| point.standing != DeviceStanding::Same;
                    apart += found.points.iter().filter(is_apart).count();
                    crossed += usize::from(matches!(
                        found.course,
                        Course::Faster | Course::FasterFrom | Course::FasterUntil | Course::Slower
                    ));
                    equal += usize::from(found.is_equal());
                }
                let counts = format!("{repeats} repeats, {noise}: {apart} {crossed} {equal}");
                // 5 % of the numbers, 2 % of the curves; nearly all are seen to be equal.
                assert!(apart * 20 <= CURVES * 7, "{counts}");
                assert!(crossed * 50 <= CURVES, "{counts}");
                assert!(equal * 10 >= CURVES * 9, "{counts}");
            }
        }
    }

    #[test]
    fn different_devices_are_distinguished_despite_noise() {
        const CURVES: usize = 500;
        let mut random = Noise(2);
        for repeats in [2, 3, 4] {
            let faster = |random: &mut Noise| random.beside(130.0, repeats, 0.03);
            let found = (0..CURVES).map(|_| faster(&mut random));
            let distinguished = found.filter(|found| {
                let is_faster = |point: &&CrossoverPoint| point.standing == DeviceStanding::Faster;
                assert!(!found.is_equal());
                found.points.iter().filter(is_faster).count() >= 6
            });
            let distinguished = distinguished.count();
            assert!(
                distinguished * 10 >= CURVES * 9,
                "{repeats} repeats: {distinguished}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_crossing_is_between_the_numbers_on_both_sides(
            slope in 0.3..3.0_f64,
            at in 2.0..400.0_f64,
        ) {
            // A power law crosses a constant at a known point.
            let numbers = [1, 5, 10, 20, 40, 70, 110, 160, 200, 250, 500, 1000];
            let device = numbers.map(|n| (n, (f64::from(n) / at).powf(slope)));
            let other = numbers.map(|n| (n, 1.0));
            let found = crossover(&device, &other);
            let from = found.faster_from.unwrap();
            prop_assert_eq!(found.course, Course::FasterFrom);
            // A neighbour within 2 % counts as equal, and the crossing is then reported there.
            prop_assert!((found.crosses_at.unwrap() / at - 1.0).abs() < 0.08);
            prop_assert!(f64::from(from) > at * 0.999);
        }

        #[test]
        fn what_is_told_of_any_ratios_is_true(
            ratios in proptest::collection::vec(0.25..4.0_f64, 1..9),
        ) {
            let device: Vec<(u32, f64)> = (1..).zip(ratios.iter().copied()).collect();
            let other: Vec<(u32, f64)> = (1..).zip(ratios.iter().map(|_| 1.0)).collect();
            let found = crossover(&device, &other);
            let standing = |n: u32| found.points[n as usize - 1].standing;
            let last = ratios.len() as u32;
            if let Some(from) = found.faster_from {
                prop_assert!((from..=last).all(|n| standing(n) == DeviceStanding::Faster));
                prop_assert!(from == 1 || standing(from - 1) != DeviceStanding::Faster);
            }
            match found.course {
                Course::Faster => prop_assert!((1..=last).all(|n| standing(n) == DeviceStanding::Faster)),
                Course::FasterFrom => {
                    let from = found.faster_from.unwrap();
                    prop_assert!((1..from).all(|n| standing(n) != DeviceStanding::Faster));
                    let crossed = found.crosses_at.unwrap();
                    prop_assert!(crossed >= f64::from(from - 1) - 1e-9 && crossed <= f64::from(from) + 1e-9);
                }
                Course::FasterUntil => {
                    let until = found.faster_until.unwrap();
                    prop_assert!((until + 1..=last).all(|n| standing(n) != DeviceStanding::Faster));
                    prop_assert_eq!(standing(last), DeviceStanding::Slower);
                }
                Course::Slower => prop_assert!((1..=last).all(|n| standing(n) == DeviceStanding::Slower)),
                Course::Same => prop_assert!((1..=last).all(|n| standing(n) == DeviceStanding::Same)),
                Course::NotFaster => prop_assert!((1..=last).all(|n| standing(n) != DeviceStanding::Faster)),
                Course::NotSlower => prop_assert!((1..=last).all(|n| standing(n) != DeviceStanding::Slower)),
                Course::Mixed => {
                    let has = |wanted| (1..=last).any(|n| standing(n) == wanted);
                    prop_assert!(has(DeviceStanding::Faster) && has(DeviceStanding::Slower));
                }
            }
        }
    }
}
