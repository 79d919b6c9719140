//! Holm's level against its definition, and coverage and false answers by simulation.

use super::*;
use crate::figures::noise::Noise;
use proptest::prelude::*;

fn estimate(values: impl IntoIterator<Item = f64>) -> Estimate {
    let samples = (1..).zip(values);
    let samples = samples.map(|(repeat, value)| Sample { repeat, value });
    Estimate::of(samples.collect()).unwrap()
}

/// Holm's adjusted p-values, word by word: the largest so far of (m - i) p(i).
fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, place) in order.into_iter().enumerate() {
        largest = largest.max((p_values.len() - rank) as f64 * p_values[place]);
        adjusted[place] = largest;
    }
    adjusted
}

proptest! {
    #[test]
    fn the_level_decides_as_holm_does(
        exponents in proptest::collection::vec(0.0..5.0_f64, 0..12),
    ) {
        let p_values: Vec<f64> = exponents.iter().map(|e| 10_f64.powf(-e)).collect();
        // One level for all must decide each comparison as its adjusted p-value does.
        let level = Level::of(p_values.iter().copied());
        for (p, adjusted) in p_values.iter().zip(holm(&p_values)) {
            prop_assert_eq!(level.allows(*p), adjusted <= ALPHA);
        }
    }
}

#[test]
fn a_question_of_one_comparison_has_the_whole_level() {
    assert_eq!(Level::of([]), Level::default());
    assert_eq!(Level::of([0.2]), Level(ALPHA));
    assert_eq!(Level::of([0.2, 0.3]), Level(ALPHA / 2.0));
    // The first is decided, so the other gets the whole level.
    assert_eq!(Level::of([0.001, 0.3]), Level(ALPHA));
    // The same p-value counts alone, and not as one of two.
    let questions = Questions::of([("a", Some(0.04)), ("b", Some(0.04)), ("b", Some(0.04))]);
    assert_eq!(questions.answer(&"a", Some(0.04)), Some(true));
    assert_eq!(questions.answer(&"b", Some(0.04)), Some(false));
    assert_eq!(questions.answer(&"b", None), None);
}

#[test]
fn pairs_are_of_the_same_repeat_and_a_drift_cancels() {
    // Both grow eightfold over the run, and their ratio stays near 2.
    let own = estimate([100.0, 210.0, 400.0, 790.0]);
    let other = estimate([50.0, 100.0, 200.0, 400.0]);
    let found = Ratio::of(&own, &other).unwrap();
    let logs = [2.0_f64, 2.1, 2.0, 1.975].map(f64::ln);
    let mean = logs.iter().sum::<f64>() / 4.0;
    assert!((found.ratio / mean.exp() - 1.0).abs() < 1e-12);
    assert!(
        found.low.unwrap() > 1.9 && found.high.unwrap() < 2.15,
        "{found:?}"
    );
    assert!(p_differ(&own, &other).unwrap() < 1e-3);
}

#[test]
fn without_pairs_both_are_taken_as_independent_and_one_repeat_shows_nothing() {
    let later = |values: [f64; 2]| {
        // Other numbers of repeats, so that no two form a pair.
        let samples = (11..).zip(values);
        let samples = samples.map(|(repeat, value)| Sample { repeat, value });
        Estimate::of(samples.collect()).unwrap()
    };
    let own = estimate([100.0, 102.0]);
    let found = Ratio::of(&own, &later([50.0, 51.0])).unwrap();
    assert!((found.ratio - 2.0).abs() < 1e-9, "{found:?}");
    assert!(found.low.unwrap() < 2.0 && found.high.unwrap() > 2.0);
    let single = estimate([100.0]);
    let found = Ratio::of(&single, &own).unwrap();
    assert_eq!((found.low, found.high, found.ratio), (None, None, 1.0));
    assert_eq!(
        (p_differ(&single, &own), against(&single, 1.0)),
        (None, None)
    );
}

#[test]
fn zeros_are_compared_as_they_are() {
    let nothing = estimate([0.0, 0.0, 0.0]);
    let some = estimate([99.0, 100.0, 101.0]);
    assert!(Level::default().is_below(&nothing, &some, 1.0));
    let found = Ratio::of(&nothing, &some).unwrap();
    assert_eq!((found.ratio, found.low), (0.0, None));
    // A ratio to 0 has no value.
    assert_eq!(Ratio::of(&some, &nothing), None);
}

/// Share of intervals of a ratio, in per cent, that contain it.
fn coverage(runs: usize, mut draw: impl FnMut() -> (Estimate, Estimate)) -> f64 {
    let covered = (0..runs).filter(|_| {
        let (own, other) = draw();
        let found = Ratio::of(&own, &other).unwrap();
        (found.low.unwrap()..=found.high.unwrap()).contains(&2.0)
    });
    100.0 * covered.count() as f64 / runs as f64
}

#[test]
fn the_interval_of_a_ratio_covers_what_it_says() {
    let mut random = Noise(11);
    for n in [3, 5, 10] {
        for spread in [0.01, 0.05] {
            let found = coverage(20_000, || {
                let mut draw =
                    |mean| estimate((0..n).map(|_| mean * (1.0 + spread * random.normal())));
                (draw(200.0), draw(100.0))
            });
            assert!(
                (94.0..=96.5).contains(&found),
                "normal, {n}, {spread}: {found}"
            );
        }
        for spread in [0.05, 0.5] {
            let found = coverage(20_000, || {
                let mut draw =
                    |mean| estimate((0..n).map(|_| mean * (spread * random.normal()).exp()));
                (draw(200.0), draw(100.0))
            });
            assert!(
                (94.0..=96.5).contains(&found),
                "log-normal, {n}, {spread}: {found}"
            );
        }
    }
}

/// All cells once in random order, then all again; the machine becomes slower all the time.
fn blocks(random: &mut Noise, cells: usize, repeats: usize, drift: f64) -> Vec<Estimate> {
    let mut values = vec![Vec::new(); cells];
    for block in 0..repeats {
        for (at, cell) in random.order(cells).into_iter().enumerate() {
            // The time of a trial as a share of the run.
            let time = (block * cells + at) as f64 / (repeats * cells) as f64;
            let mean = if cell == 0 { 200.0 } else { 100.0 };
            values[cell].push(mean * (0.02 * random.normal() - drift * time).exp());
        }
    }
    values.into_iter().map(estimate).collect()
}

#[test]
fn a_drift_in_randomised_blocks_leaves_the_interval_right() {
    let mut random = Noise(12);
    // From no drift to one that takes a fifth of the speed.
    for drift in [0.0, 0.05, 0.2] {
        for n in [3, 5, 10] {
            let found = coverage(20_000, || {
                let mut cells = blocks(&mut random, 6, n, drift).into_iter();
                (cells.next().unwrap(), cells.next().unwrap())
            });
            assert!(found >= 93.0, "{n} repeats, drift {drift}: {found}");
        }
    }
}

#[test]
fn equal_devices_are_distinguished_in_one_run_of_twenty() {
    let mut random = Noise(13);
    const RUNS: usize = 20_000;
    for n in [2, 3, 5] {
        let wrong = (0..RUNS).filter(|_| {
            let mut draw = || estimate((0..n).map(|_| 100.0 * (1.0 + 0.03 * random.normal())));
            let (own, other) = (draw(), draw());
            let level = Level::default();
            level.is_above(&own, &other, 1.0) || level.is_below(&own, &other, 1.0)
        });
        let wrong = wrong.count();
        // 5 %, and two standard deviations of that many runs.
        assert!(wrong * 1000 <= RUNS * 53, "{n} repeats: {wrong}");
    }
}

#[test]
fn fifty_equal_cells_have_no_difference_in_nineteen_runs_of_twenty() {
    const RUNS: usize = 4000;
    let mut random = Noise(14);
    for n in [2, 3, 5] {
        let wrong = (0..RUNS).filter(|_| {
            let mut draw = || estimate((0..n).map(|_| 100.0 * (0.03 * random.normal()).exp()));
            // All against one baseline, so that they share its noise.
            let baseline = draw();
            let cells: Vec<Option<f64>> = (0..50).map(|_| p_differ(&draw(), &baseline)).collect();
            let level = Level::of(cells.iter().copied().flatten());
            cells.iter().flatten().any(|p| level.allows(*p))
        });
        let wrong = wrong.count();
        // 5 %, and two standard deviations of that many runs.
        assert!(wrong * 1000 <= RUNS * 57, "{n} repeats: {wrong}");
    }
}

/// What few repeats can show of a difference, at a noise of 1 % (docs/methodology/statistics.md).
#[test]
fn more_repeats_show_smaller_differences() {
    let smallest = |n: usize, comparisons: f64| {
        // The ratio of two independent quantities with a noise of 1 % each, from n pairs.
        let error = 0.01 * (2.0 / n as f64).sqrt();
        let t = crate::figures::student::quantile(1.0 - ALPHA / comparisons / 2.0, n as f64 - 1.0);
        100.0 * ((t * error).exp() - 1.0)
    };
    for (n, comparisons, expected) in [
        (2, 1.0, 13.5),
        (3, 1.0, 3.6),
        (5, 1.0, 1.8),
        (10, 1.0, 1.0),
        (3, 50.0, 29.4),
        (5, 50.0, 5.6),
        (10, 50.0, 2.2),
    ] {
        let found = smallest(n, comparisons);
        assert!(
            (found - expected).abs() < 0.06,
            "{n}, {comparisons}: {found}"
        );
    }
}
