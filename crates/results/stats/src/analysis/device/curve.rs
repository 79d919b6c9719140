//! Comparison of two curves over one axis (concurrency or size), and their crossover.
//!
//! A figure is above another if the pairs of repeats show it, at a level that counts every number
//! of every comparison of the run over the same axis (`analysis::significance`), and if the
//! difference exceeds 2 %; else they are not distinguished. The position of a crossover between two
//! numbers is interpolated linearly between their ratios on logarithmic axes.

use crate::analysis::scaling::is_above;
use crate::analysis::significance::{Level, Ratio, p_differ};
use crate::figures::estimate::Estimate;
use schemars::JsonSchema;
use serde::Serialize;

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
}

/// p-value of a difference, for each number that both curves have.
pub(crate) fn p_values(device: &[Figure<'_>], other: &[Figure<'_>]) -> Vec<Option<f64>> {
    let shared = device.iter().filter_map(|own| {
        let other = other.iter().find(|there| there.n == own.n)?;
        Some(p_differ(own.estimate, other.estimate))
    });
    shared.collect()
}

/// Comparison of two devices over an axis.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Crossover {
    /// The faster of the two, by range.
    pub course: Course,
    /// The smallest measured number from which on the device is faster; `null` if it is not faster
    /// at the largest.
    pub faster_from: Option<u32>,
    /// The largest measured number up to which the device is faster; `null` if it is not faster at
    /// the smallest.
    pub faster_until: Option<u32>,
    /// The number with equal figures, interpolated between its measured neighbours; `null` without
    /// a crossover.
    pub crosses_at: Option<f64>,
    /// Each number with a figure of both, rising.
    pub points: Vec<CrossoverPoint>,
    /// The number with the device's highest ratio to the other.
    pub best_at: u32,
    /// Highest ratio of the device's figure to the other's.
    pub best_ratio: f64,
}

/// The faster of two devices, by range of the measured numbers.
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
    /// Ratio of the device's figure to the other's: geometric mean over the pairs of repeats.
    pub ratio: f64,
    /// Lower end of its 95 % interval (Student's t on logarithms); `null` without two repeats of
    /// both.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Which is faster.
    pub standing: DeviceStanding,
}

/// Which of two is faster at one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceStanding {
    /// The device, surely and by more than 2 %.
    Faster,
    /// Not distinguished.
    Same,
    /// The other.
    Slower,
}

impl Crossover {
    /// Compares two curves, rising in n; `None` if they have no number in common.
    pub(crate) fn of(device: &[Figure<'_>], other: &[Figure<'_>], level: Level) -> Option<Self> {
        let points: Vec<CrossoverPoint> = device
            .iter()
            .filter_map(|own| {
                let other = other.iter().find(|there| there.n == own.n)?;
                CrossoverPoint::of(own, other, level)
            })
            .collect();
        // The highest ratio need not be at the largest number: a curve may fall.
        let best = points
            .iter()
            .max_by(|a, b| a.ratio.total_cmp(&b.ratio))
            .copied()?;
        let course = course(&points);
        let faster = |point: &&CrossoverPoint| point.standing == DeviceStanding::Faster;
        let ahead_first = points.iter().take_while(faster).count();
        let ahead_last = points.iter().rev().take_while(faster).count();
        // Runs of certain advantage at both ends. If they cover all, `from` is 0 and `until` the
        // number of points.
        let (until, from) = (ahead_first, points.len() - ahead_last);
        Some(Self {
            course,
            faster_from: points.get(from).map(|point| point.n),
            faster_until: until.checked_sub(1).map(|last| points[last].n),
            crosses_at: match course {
                // This course has a point that is not faster before the run, so `from` is above 0.
                Course::FasterFrom => between(&points[from - 1], &points[from]),
                Course::FasterUntil => {
                    // The course begins with a faster point, so one precedes the first slower one.
                    // Points between the two count as equal.
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

    /// Whether no number was measured twice, so that nothing shows how the figures scatter.
    #[must_use]
    pub fn in_one_repeat(&self) -> bool {
        self.points.iter().all(|point| point.low.is_none())
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
    fn of(own: &Figure<'_>, other: &Figure<'_>, level: Level) -> Option<Self> {
        let Ratio { ratio, low, high } = Ratio::of(own.estimate, other.estimate)?;
        let above = |a: &Figure<'_>, b: &Figure<'_>| is_above(a.estimate, b.estimate, level);
        Some(Self {
            n: own.n,
            ratio,
            low,
            high,
            standing: match (above(own, other), above(other, own)) {
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
    // After the first run of one, none of the other.
    let mut past_slow = points.iter().skip_while(|point| !is_faster(point));
    let mut past_fast = points.iter().skip_while(is_faster);
    let turns_fast = past_slow.all(|point| is_faster(&point));
    let starts_fast = points.first().is_some_and(|first| is_faster(&first));
    let turns_slow = starts_fast && past_fast.all(|point| !is_faster(&point));
    let ends_slow = points
        .last()
        .is_some_and(|last| last.standing == DeviceStanding::Slower);
    if turns_fast {
        Course::FasterFrom
    } else if turns_slow && ends_slow {
        Course::FasterUntil
    } else if slower {
        Course::Mixed
    } else {
        Course::NotSlower
    }
}

/// Interpolates the number with a ratio of 1 between two neighbours, on logarithmic axes; `None` if
/// absent.
fn between(before: &CrossoverPoint, after: &CrossoverPoint) -> Option<f64> {
    let (low, high) = (before.ratio.ln(), after.ratio.ln());
    // The neighbour that counts as equal may be slightly on the other side of 1.
    if low * high > 0.0 {
        return Some(f64::from(before.n));
    }
    // The two have different signs, or one of them is 0. If both are 0 the quotient is no number,
    // and neither is the result.
    let share = low / (low - high);
    let (from, to) = (f64::from(before.n).ln(), f64::from(after.n).ln());
    let crossed = (from + share * (to - from)).exp();
    crossed.is_finite().then_some(crossed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::estimate::Sample;
    use crate::figures::noise::Noise;
    use proptest::prelude::*;

    /// Five repeats this far around a value.
    fn estimate(value: f64, sides: [f64; 5]) -> Estimate {
        let samples = (1..).zip(sides).map(|(repeat, side)| Sample {
            repeat,
            value: value * (1.0 + 0.001 * side),
        });
        Estimate::of(samples.collect()).unwrap()
    }

    fn crossover(device: &[(u32, f64)], other: &[(u32, f64)]) -> Crossover {
        let curve = |points: &[(u32, f64)], sides| -> Vec<(u32, Estimate)> {
            let point = |(n, value): &(u32, f64)| (*n, estimate(*value, sides));
            points.iter().map(point).collect()
        };
        let device = curve(device, [0.0, 1.0, -1.0, 0.5, -0.5]);
        let other = curve(other, [0.0, -1.0, 0.5, 1.0, -0.5]);
        compared(&device, &other)
    }

    fn compared(device: &[(u32, Estimate)], other: &[(u32, Estimate)]) -> Crossover {
        let (device, other) = (figures(device), figures(other));
        let level = Level::of(p_values(&device, &other).into_iter().flatten());
        Crossover::of(&device, &other, level).unwrap()
    }

    fn figures(curve: &[(u32, Estimate)]) -> Vec<Figure<'_>> {
        let points = curve.iter();
        points
            .map(|(n, estimate)| Figure { n: *n, estimate })
            .collect()
    }

    #[test]
    fn a_card_whose_latency_is_hidden_by_many_at_once_is_faster_from_about_30() {
        // As in the source report: a CPU with a constant rate, and a card that gains rate with
        // concurrency.
        let numbers = [1, 5, 10, 20, 40, 70, 110];
        // 33 for each in parallel, up to 80: 1000 is reached at 30.3, and 2.64 times that at 80.
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
    fn figures_within_two_per_cent_are_no_crossover() {
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
        // Less than 2 % do not count, however sure.
        assert_eq!(one(&[1.0, 1.0, 1.01]), Course::Same);
        assert_eq!(one(&[1.0, 1.0, 1.03]), Course::FasterFrom);
        assert_eq!(one(&[0.5, 1.0, 1.03]), Course::FasterFrom);
        assert_eq!(one(&[1.5, 1.0, 0.97]), Course::FasterUntil);
    }

    #[test]
    fn numbers_without_both_figures_do_not_count() {
        let found = crossover(&[(1, 1.0), (5, 9.0)], &[(1, 5.0), (10, 5.0)]);
        assert_eq!(found.points.len(), 1);
        assert_eq!(found.course, Course::Slower);
    }

    #[test]
    fn equal_means_near_on_average_and_far_at_no_number() {
        let equal = |ratios: &[f64]| {
            let device: Vec<(u32, f64)> = (1..).zip(ratios.iter().copied()).collect();
            let other: Vec<(u32, f64)> = (1..).zip(ratios.iter().map(|_| 1.0)).collect();
            crossover(&device, &other).is_equal()
        };
        // Each difference is sure.
        assert!(equal(&[1.03, 0.96, 1.09, 0.92, 1.0]));
        assert!(!equal(&[1.03, 0.96, 1.11, 0.92, 1.0]));
        assert!(!equal(&[1.06, 1.07]) && !equal(&[0.93, 0.94]));
    }

    /// A curve of seven numbers around a figure, with noise on each repeat.
    fn noisy(random: &mut Noise, figure: f64, repeats: u32, noise: f64) -> Vec<(u32, Estimate)> {
        let mut point = |n| {
            let samples = (1..=repeats).map(|repeat| Sample {
                repeat,
                value: figure * (1.0 + noise * random.normal()),
            });
            (n, Estimate::of(samples.collect()).unwrap())
        };
        (1..=7).map(&mut point).collect()
    }

    fn beside(random: &mut Noise, figure: f64, repeats: u32, noise: f64) -> Crossover {
        let device = noisy(random, figure, repeats, noise);
        compared(&device, &noisy(random, 100.0, repeats, noise))
    }

    #[test]
    fn noise_separates_equal_devices_anywhere_in_one_curve_of_twenty() {
        const CURVES: usize = 2000;
        let mut random = Noise(1);
        for repeats in [2, 3, 5] {
            for noise in [0.01, 0.03] {
                let apart = (0..CURVES).filter(|_| {
                    let found = beside(&mut random, 100.0, repeats, noise);
                    found.course != Course::Same
                });
                let apart = apart.count();
                // 5 %, and two standard deviations of that many curves.
                assert!(
                    apart * 100 <= CURVES * 6,
                    "{repeats} repeats, {noise}: {apart}"
                );
            }
        }
    }

    #[test]
    fn different_devices_are_distinguished_by_enough_repeats() {
        const CURVES: usize = 500;
        let mut random = Noise(2);
        for (repeats, wanted) in [(5, 95), (3, 40)] {
            let faster = (0..CURVES).filter(|_| {
                let found = beside(&mut random, 130.0, repeats, 0.02);
                let ahead = |point: &&CrossoverPoint| point.standing == DeviceStanding::Faster;
                assert!(!found.is_equal());
                // One of seven numbers may fail by chance.
                found.points.iter().filter(ahead).count() >= 6
            });
            let faster = faster.count();
            assert!(faster * 100 >= CURVES * wanted, "{repeats}: {faster}");
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
