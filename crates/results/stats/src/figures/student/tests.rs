//! Against published tables, and by simulation.

use super::*;
use crate::figures::noise::Noise;

/// Two-sided 5 % points of Student's t (Fisher and Yates, *Statistical Tables*, table III).
const TABLE: [(f64, f64); 14] = [
    (1.0, 12.706),
    (2.0, 4.303),
    (3.0, 3.182),
    (4.0, 2.776),
    (5.0, 2.571),
    (6.0, 2.447),
    (7.0, 2.365),
    (8.0, 2.306),
    (9.0, 2.262),
    (10.0, 2.228),
    (20.0, 2.086),
    (30.0, 2.042),
    (60.0, 2.000),
    (120.0, 1.980),
];

#[test]
fn quantiles_match_published_tables() {
    for (degrees, expected) in TABLE {
        let found = quantile(0.975, degrees);
        assert!((found - expected).abs() < 6e-4, "{degrees}: {found}");
        assert!((p_two_sided(expected, degrees) - 0.05).abs() < 1e-4);
    }
    // Two-sided 0.1 % points.
    for (degrees, expected) in [(1.0, 636.62), (2.0, 31.599), (4.0, 8.610), (9.0, 4.781)] {
        let found = quantile(0.9995, degrees);
        assert!((found / expected - 1.0).abs() < 1e-4, "{degrees}: {found}");
    }
}

/// With whole degrees the distribution has a closed form (Abramowitz and Stegun, 26.7.3, 26.7.4).
fn closed_form(t: f64, degrees: u32) -> f64 {
    let theta = (t / f64::from(degrees).sqrt()).atan();
    let (sin, cos) = (theta.sin(), theta.cos());
    let within = if degrees.is_multiple_of(2) {
        let (mut term, mut sum, mut k) = (1.0, 0.0, 0);
        while k + 2 <= degrees {
            sum += term;
            k += 2;
            term *= cos * cos * f64::from(k - 1) / f64::from(k);
        }
        sin * sum
    } else {
        let (mut term, mut sum, mut k) = (cos, 0.0, 1);
        while k + 2 <= degrees {
            sum += term;
            k += 2;
            term *= cos * cos * f64::from(k - 1) / f64::from(k);
        }
        (theta + sin * sum) * 2.0 / std::f64::consts::PI
    };
    1.0 - within
}

#[test]
fn p_values_match_the_closed_form_far_into_the_tail() {
    for degrees in 1..=20 {
        for t in [0.1, 0.7, 1.5, 3.0, 8.0, 30.0] {
            let (found, expected) = (p_two_sided(t, degrees.into()), closed_form(t, degrees));
            assert!(
                (found - expected).abs() < 1e-12 + 1e-9 * expected,
                "{degrees}, {t}: {found} {expected}"
            );
        }
    }
}

#[test]
fn interval_and_p_value_say_the_same() {
    let mut random = Noise(7);
    for n in [2, 3, 5, 9] {
        for _ in 0..200 {
            let values: Vec<f64> = (0..n).map(|_| 1.5 + random.normal()).collect();
            let found = Student::of(&values).unwrap();
            let (low, high) = found.interval(ALPHA);
            assert_eq!(found.p_above(0.0) <= ALPHA, low >= 0.0, "{values:?}");
            assert_eq!(found.p_below(0.0) <= ALPHA, high <= 0.0, "{values:?}");
        }
    }
}

#[test]
fn equal_values_have_no_error_and_one_value_no_interval() {
    assert_eq!(Student::of(&[3.0]), None);
    assert_eq!(interval_95(&[3.0]), None);
    // The sum of three times 0.1 is not exactly 0.3.
    assert_eq!(interval_95(&[0.1; 3]), Some((0.1, 0.1)));
    let same = Student::of(&[0.1; 3]).unwrap();
    assert_eq!((same.p_above(0.1), same.p_below(0.1)), (1.0, 1.0));
    assert_eq!((same.p_above(0.0), same.p_below(0.2)), (0.0, 0.0));
}

/// Share of intervals, in per cent, that contain the true value.
fn coverage(n: usize, truth: f64, seed: u64, mut draw: impl FnMut(&mut Noise) -> f64) -> f64 {
    const RUNS: usize = 40_000;
    let mut random = Noise(seed);
    let covered = (0..RUNS).filter(|_| {
        let values: Vec<f64> = (0..n).map(|_| draw(&mut random)).collect();
        let (low, high) = interval_95(&values).unwrap();
        (low..=high).contains(&truth)
    });
    100.0 * covered.count() as f64 / RUNS as f64
}

#[test]
fn the_interval_of_one_quantity_covers_what_it_says() {
    for n in [3, 5, 10] {
        for spread in [0.01, 0.05, 0.1] {
            let found = coverage(n, 100.0, 1, |random| {
                100.0 * (1.0 + spread * random.normal())
            });
            assert!(
                (94.0..=96.5).contains(&found),
                "normal, {n}, {spread}: {found}"
            );
        }
        // The median of a log-normal quantity, with an upper quartile of up to twice the lower.
        for spread in [0.05, 0.2, 0.5] {
            let found = coverage(n, 100.0, 2, |random| {
                100.0 * (spread * random.normal()).exp()
            });
            assert!(
                (94.0..=96.5).contains(&found),
                "log-normal, {n}, {spread}: {found}"
            );
        }
    }
}

/// Why logarithms: of skewed values, intervals of the values themselves miss the mean too often.
#[test]
fn without_logarithms_skewed_values_are_covered_worse() {
    const RUNS: usize = 20_000;
    let mut random = Noise(3);
    let covered = (0..RUNS).filter(|_| {
        let values: Vec<f64> = (0..10).map(|_| (0.5 * random.normal()).exp()).collect();
        let (low, high) = Student::of(&values).unwrap().interval(ALPHA);
        // The mean of a log-normal quantity is exp(σ² / 2), with σ = 0.5 here.
        (low..=high).contains(&0.125_f64.exp())
    });
    let covered = covered.count();
    // At least 6.5 % miss.
    assert!(covered * 1000 < RUNS * 935, "{covered}");
}

#[test]
fn welch_covers_the_difference_of_unlike_spreads() {
    let mut random = Noise(4);
    let covered = (0..20_000).filter(|_| {
        let mut draw = |n: usize, spread: f64| -> Vec<f64> {
            (0..n).map(|_| spread * random.normal()).collect()
        };
        let found = Student::welch(&draw(5, 1.0), &draw(4, 3.0)).unwrap();
        let (low, high) = found.interval(ALPHA);
        (low..=high).contains(&0.0)
    });
    let covered = covered.count();
    // 93.5 to 97 %: the degrees of freedom are an estimate, so 95 % hold approximately.
    assert!((18_700..=19_400).contains(&covered), "{covered}");
}
