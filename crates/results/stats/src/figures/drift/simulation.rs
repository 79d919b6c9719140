//! Simulated series of known truth: false alarms, coverage and power.

use super::*;
use crate::figures::noise::Noise;

const RUNS: u64 = 400;

/// An hour of points around 1000: their standard deviation is `noise`, adjacent ones have this
/// correlation, and from the first to the last they change by `drift`.
fn series(seed: u64, n: usize, noise: f64, correlation: f64, drift: f64) -> Vec<Point> {
    let mut random = Noise(seed.wrapping_mul(0x1234_5678_9abc_def1));
    let mut state = random.normal();
    // Keeps the variance of the state at 1.
    let own = (1.0 - correlation * correlation).sqrt();
    (0..n)
        .map(|index| {
            state = correlation * state + own * random.normal();
            let at = index as f64 / (n - 1) as f64;
            (at, 1000.0 + noise * state + drift * at)
        })
        .collect()
}

/// Share of runs that meet the condition, in per cent.
fn percent(of: impl Fn(u64) -> bool) -> f64 {
    100.0 * (0..RUNS).filter(|&seed| of(seed)).count() as f64 / RUNS as f64
}

#[test]
fn a_steady_series_seems_to_drift_in_6_percent_of_runs_at_most() {
    for (n, correlation) in [
        (30, 0.0),
        (30, 0.3),
        (30, 0.6),
        (60, 0.0),
        (60, 0.3),
        (60, 0.6),
        (120, 0.6),
        (120, 0.8),
    ] {
        let drift = |seed| Drift::of(&[series(seed, n, 20.0, correlation, 0.0)], 1.0, 0.001);
        let found = |seed: u64| drift(seed).expect("points");
        // The verdict: the whole interval is beyond a bound that is nearly none.
        let alarms = percent(|seed| found(seed).judged == DriftJudgement::Drifts);
        assert!(
            alarms <= 6.0,
            "{n} points, correlation {correlation}: {alarms} %"
        );
    }
}

#[test]
fn the_test_alone_keeps_its_level_for_correlated_points() {
    for (n, correlation, most) in [(60, 0.0, 7.0), (60, 0.3, 8.0), (60, 0.6, 9.0)] {
        let p = |seed: u64| {
            let points = series(seed, n, 20.0, correlation, 0.0);
            Drift::of(&[points], 1.0, 0.001).expect("points").p
        };
        let alarms = percent(|seed| p(seed) < 0.05);
        assert!(alarms <= most, "correlation {correlation}: {alarms} %");
    }
}

#[test]
fn a_real_drift_is_found_and_its_interval_covers_it() {
    for (n, correlation) in [(60, 0.0), (60, 0.3), (120, 0.6)] {
        let found = |seed: u64| {
            let points = series(seed, n, 10.0, correlation, 60.0);
            Drift::of(&[points], 1.0, 0.01).expect("points")
        };
        let power = percent(|seed| found(seed).judged == DriftJudgement::Drifts);
        assert!(
            power >= 90.0,
            "{n} points, correlation {correlation}: {power} %"
        );
        let covered = percent(|seed| {
            let drift = found(seed);
            let [low, high] =
                [drift.change_low, drift.change_high].map(|change| change * drift.median);
            (low..=high).contains(&60.0)
        });
        assert!(
            covered >= 91.0,
            "{n} points, correlation {correlation}: {covered} %"
        );
    }
}

/// Probes of the capacity are few and far apart.
#[test]
fn five_probes_give_few_false_alarms_and_find_a_real_loss() {
    for n in [5, 6, 9, 13] {
        let judged = |seed: u64, drift: f64| {
            let points = series(seed, n, 20.0, 0.0, drift);
            let found = Drift::of_at_least(5, &[points], 1.0, 0.05).expect("points");
            found.judged
        };
        let alarms = percent(|seed| judged(seed, 0.0) == DriftJudgement::Drifts);
        assert!(alarms <= 5.0, "{n} probes: {alarms} %");
        // 4.9 % of 1000, with a bound of 5 %.
        let nearly = percent(|seed| judged(seed, 49.0) == DriftJudgement::Drifts);
        assert!(nearly <= 5.0, "{n} probes, just allowed: {nearly} %");
        // From 1000 to 700.
        let power = percent(|seed| judged(seed, -300.0) == DriftJudgement::Drifts);
        assert!(power >= 90.0, "{n} probes: {power} %");
    }
    // With four the interval would be too narrow.
    let four = Drift::of_at_least(5, &[series(1, 4, 0.0, 0.0, -500.0)], 1.0, 0.05);
    assert_eq!(four.expect("points").judged, DriftJudgement::Unclear);
}
