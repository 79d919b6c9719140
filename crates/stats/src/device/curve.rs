//! Two curves over one axis (so many at once, so many bytes each): from where on one is above the other.
//!
//! A figure is above another where it is so by more than the farthest repeat of either, and by more than 2 %: what is
//! less is as good as the same. A crossover is named only where one curve is above the other from some number on to the
//! largest that was measured; where it lies between two numbers is read off the straight line that joins their ratios
//! on logarithmic axes.

use crate::estimate::Estimate;
use crate::scaling::{RatioRange, is_above};
use schemars::JsonSchema;
use serde::Serialize;

/// One figure of a curve: the number on the axis, and the estimate there.
pub(crate) type Figure<'a> = (u32, &'a Estimate);

/// How one device does beside another over an axis.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Crossover {
    /// Which of them is faster where.
    pub course: Course,
    /// The smallest number measured from which on the device is faster; `null` where there is none.
    pub faster_from: Option<u32>,
    /// The largest number measured up to which the device is faster; `null` where it is not at the smallest.
    pub faster_until: Option<u32>,
    /// Where both do the same, read between the two numbers measured on both sides of it; `null` without a crossover.
    pub crosses_at: Option<f64>,
    /// Each number that both have a figure at, rising.
    pub points: Vec<CrossoverPoint>,
    /// The number at which the device is farthest ahead, or least behind.
    pub best_at: u32,
    /// Its figure there by the other's.
    pub best_ratio: f64,
}

/// Which of two devices is faster where, over the numbers that were measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Course {
    /// The device, everywhere.
    Faster,
    /// The device, from some number on.
    FasterFrom,
    /// The device, up to some number; from some larger one on the other.
    FasterUntil,
    /// The other, everywhere.
    Slower,
    /// Neither, anywhere.
    Same,
    /// The device nowhere, the other not everywhere.
    NotFaster,
    /// The other nowhere, the device not everywhere, nor from some number on.
    NotSlower,
    /// Now the one, now the other.
    Mixed,
}

/// Two devices at one number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct CrossoverPoint {
    /// The number on the axis.
    pub n: u32,
    /// The device's figure by the other's.
    pub ratio: f64,
    /// Smallest ratio of a pair of repeats; `null` when no repeat was measured for both.
    pub low: Option<f64>,
    /// Largest ratio of a pair.
    pub high: Option<f64>,
    /// Which is faster.
    pub standing: DeviceStanding,
}

/// Which of two is faster at one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceStanding {
    /// The device, by more than the farthest repeat of either and by more than 2 %.
    Faster,
    /// Neither.
    Same,
    /// The other.
    Slower,
}

impl Crossover {
    /// Sets a device's curve, rising in n, beside another's; `None` where they have no number in common.
    pub(crate) fn of(device: &[Figure<'_>], other: &[Figure<'_>]) -> Option<Self> {
        let points: Vec<CrossoverPoint> = device
            .iter()
            .filter_map(|&(n, own)| {
                let (_, other) = other.iter().find(|(there, _)| *there == n)?;
                CrossoverPoint::of(n, own, other)
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
        Some(Self {
            course,
            faster_from: points.get(from).map(|point| point.n),
            faster_until: until.checked_sub(1).map(|last| points[last].n),
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

    /// The device's figure by the other's at a number.
    #[must_use]
    pub fn ratio_at(&self, n: u32) -> Option<f64> {
        let point = self.points.iter().find(|point| point.n == n)?;
        Some(point.ratio)
    }

    /// The largest number that both have a figure at.
    #[must_use]
    pub fn largest_n(&self) -> u32 {
        self.points.last().map_or(0, |point| point.n)
    }
}

impl CrossoverPoint {
    fn of(n: u32, own: &Estimate, other: &Estimate) -> Option<Self> {
        let ratio = RatioRange::of(own, other)?;
        let apart = |a: &Estimate, b: &Estimate| {
            is_above((a.mean, a.largest_distance), (b.mean, b.largest_distance))
        };
        Some(Self {
            n,
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

/// Of at least one point.
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
    // Past the first run of one, none of the other.
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

/// Where the ratio of two neighbours is 1, on logarithmic axes; `None` where it is not in between.
fn between(before: &CrossoverPoint, after: &CrossoverPoint) -> Option<f64> {
    let (low, high) = (before.ratio.ln(), after.ratio.ln());
    // The neighbour that is as good as the same may lie on the other side of 1 by a little.
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
        let figures = |curve: &'static [(u32, Estimate)]| -> Vec<Figure<'static>> {
            curve.iter().map(|(n, found)| (*n, found)).collect()
        };
        Crossover::of(&figures(device.leak()), &figures(other.leak())).unwrap()
    }

    #[test]
    fn a_card_whose_latency_is_hidden_by_many_at_once_is_faster_from_about_30() {
        // As the source report has it: a CPU that does the same however many ask, and a card that each more helps.
        let numbers = [1, 5, 10, 20, 40, 70, 110];
        let card = numbers.map(|n| (n, 33.0 * f64::from(n.min(80))));
        let cpu = numbers.map(|n| (n, 1000.0));
        let found = crossover(&card, &cpu);
        assert_eq!(found.course, Course::FasterFrom);
        assert_eq!((found.faster_from, found.faster_until), (Some(40), None));
        assert!((found.crosses_at.unwrap() - 30.3).abs() < 0.1, "{found:?}");
        assert_eq!((found.best_at, found.largest_n()), (110, 110));
        assert!((found.best_ratio - 2.64).abs() < 1e-9);
        assert!((found.ratio_at(20).unwrap() - 0.66).abs() < 1e-9);
        // The other way round, the CPU is faster up to there.
        let cpu = crossover(&cpu, &card);
        assert_eq!(cpu.course, Course::FasterUntil);
        assert_eq!((cpu.faster_from, cpu.faster_until), (None, Some(20)));
        assert!((cpu.crosses_at.unwrap() - 30.3).abs() < 0.1, "{cpu:?}");
    }

    #[test]
    fn what_is_the_same_within_the_spread_is_no_crossover() {
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
    }

    #[test]
    fn numbers_of_one_alone_do_not_count() {
        let found = crossover(&[(1, 1.0), (5, 9.0)], &[(1, 5.0), (10, 5.0)]);
        assert_eq!(found.points.len(), 1);
        assert_eq!(found.course, Course::Slower);
    }

    proptest! {
        #[test]
        fn the_crossing_is_between_the_numbers_on_both_sides(
            slope in 0.3..3.0_f64,
            at in 2.0..900.0_f64,
        ) {
            // A power law against a constant crosses where it is made to.
            let numbers = [1, 5, 10, 20, 40, 70, 110, 160, 200, 250, 500, 1000];
            let device = numbers.map(|n| (n, (f64::from(n) / at).powf(slope)));
            let other = numbers.map(|n| (n, 1.0));
            let found = crossover(&device, &other);
            let from = found.faster_from.unwrap();
            prop_assert_eq!(found.course, Course::FasterFrom);
            // A neighbour within 2 % is as good as the same, and then the crossing is told as there.
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
