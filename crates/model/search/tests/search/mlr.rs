//! MLRsearch on each kind of device.

use search::Outcome;
use search::simulate::Behaviour;

use crate::{MAX_LOAD, MIN_LOAD, NDR, PDR, RFC2544, SECOND, assert_between, mlr, regular, truth};

const CAPACITY: u64 = 3_141_592;
const SEEDS: std::ops::Range<u64> = 0..200;

#[test]
fn finds_a_hard_limit_for_both_goals_in_a_dozen_trials() {
    let search = mlr(&[NDR, PDR], Behaviour::Hard { capacity: CAPACITY }, 0);
    assert_between(search.bounds(0), &NDR, CAPACITY);
    assert_between(search.bounds(1), &PDR, truth(CAPACITY, &PDR));
    assert!(search.trials() <= 12, "{} trials", search.trials());
}

#[test]
fn a_hard_limit_needs_one_trial_of_full_length_where_no_loss_is_tolerated() {
    let search = mlr(&[RFC2544], Behaviour::Hard { capacity: CAPACITY }, 0);
    assert_between(search.bounds(0), &RFC2544, CAPACITY);
    assert!(
        search.took_ns() < 2 * RFC2544.final_trial_ns,
        "{} ns",
        search.took_ns()
    );
}

#[test]
fn throughput_by_rfc2544_is_the_lower_bound() {
    let bounds = mlr(&[RFC2544], Behaviour::Hard { capacity: CAPACITY }, 0).bounds(0);
    assert_eq!(
        bounds.lower,
        Some(bounds.conditional_throughput.round() as u64)
    );
    assert!(bounds.lower_trials >= 1 && bounds.upper_trials >= 1);
}

#[test]
fn finds_a_limit_that_an_overload_hides() {
    for cost_ppm in [100_000, 500_000, 1_000_000, 10_000_000] {
        let search = mlr(
            &[NDR, PDR],
            Behaviour::Collapsing {
                capacity: CAPACITY,
                cost_ppm,
            },
            0,
        );
        assert_between(search.bounds(0), &NDR, CAPACITY);
        let (lower, upper) = regular(search.bounds(1), &PDR);
        assert!(
            lower <= truth(CAPACITY, &PDR) && CAPACITY <= upper,
            "{lower} {upper}"
        );
        assert!(search.trials() <= 60, "{} trials", search.trials());
    }
}

#[test]
fn noise_near_the_limit_puts_the_bounds_into_the_noise() {
    for seed in SEEDS {
        let device = Behaviour::Noisy {
            capacity: CAPACITY,
            band_ppm: 50_000,
        };
        let search = mlr(&[NDR, PDR, RFC2544], device, seed);
        for (goal, place) in [(NDR, 0), (RFC2544, 2)] {
            let (lower, upper) = regular(search.bounds(place), &goal);
            assert!(lower <= CAPACITY + 40, "seed {seed}: {lower}");
            assert!(upper >= CAPACITY / 100 * 95, "seed {seed}: {upper}");
        }
        assert_between(search.bounds(1), &PDR, truth(CAPACITY, &PDR));
        assert!(
            search.trials() <= 100,
            "seed {seed}: {} trials",
            search.trials()
        );
    }
}

#[test]
fn bounds_of_a_goal_that_allows_for_noise_are_in_its_middle() {
    let device = Behaviour::Noisy {
        capacity: CAPACITY,
        band_ppm: 50_000,
    };
    let mut lowers: Vec<_> = SEEDS
        .map(|seed| regular(mlr(&[NDR], device, seed).bounds(0), &NDR).0)
        .collect();
    lowers.sort_unstable();
    let median = lowers[lowers.len() / 2] as f64 / CAPACITY as f64;
    // Half of the trials lose something at 2.5 % below the capacity.
    assert!((0.960..0.985).contains(&median), "{median}");
}

#[test]
fn two_bands_are_answered_by_one_of_them() {
    let (low, high) = (3_000_000, 3_300_000);
    let mut in_high = 0;
    for seed in SEEDS {
        let device = Behaviour::TwoBands {
            low,
            high,
            low_ppm: 200_000,
        };
        let search = mlr(&[NDR, PDR], device, seed);
        for (place, goal) in [NDR, PDR].iter().enumerate() {
            let (lower, upper) = regular(search.bounds(place), goal);
            assert!(
                lower <= truth(high, goal) + 40 && low <= upper + 40,
                "seed {seed}: {lower}"
            );
        }
        assert!(
            search.trials() <= 100,
            "seed {seed}: {} trials",
            search.trials()
        );
        in_high += u32::from(search.bounds(0).upper.is_some_and(|upper| upper >= high));
    }
    // A goal that tolerates half of the trials does not see a band of one trial in five, mostly.
    assert!(in_high > 120, "{in_high} of 200 in the high band");
}

/// A bound is above the capacity by 1 % at most: what grows more slowly is taken for noise.
#[test]
fn a_queue_does_not_lift_the_bounds_over_what_the_device_sustains() {
    for frames in [1_000, 50_000, 200_000, 5_000_000] {
        let device = Behaviour::Queue {
            capacity: CAPACITY,
            frames,
        };
        for goals in [&[NDR, PDR][..], &[RFC2544]] {
            let search = mlr(goals, device, 0);
            for (place, goal) in goals.iter().enumerate() {
                let (lower, upper) = regular(search.bounds(place), goal);
                let sustained = truth(CAPACITY, goal);
                assert!(
                    lower <= sustained / 1000 * 1011 && upper >= sustained,
                    "{frames}: {lower} {upper}"
                );
            }
            assert!(search.trials() <= 40, "{} trials", search.trials());
        }
    }
}

/// Trials longer than a goal's own count for it too (RFC 9971, Goal Final Trial Duration): goals of
/// different durations in one search share their trials.
#[test]
fn behind_a_queue_goals_of_different_durations_end_between_their_truths() {
    let frames = 200_000;
    let search = mlr(
        &[NDR, RFC2544],
        Behaviour::Queue {
            capacity: CAPACITY,
            frames,
        },
        0,
    );
    let (lower, upper) = regular(search.bounds(0), &NDR);
    assert!(
        lower <= CAPACITY + frames && CAPACITY <= upper,
        "{lower} {upper}"
    );
    assert_between(search.bounds(1), &RFC2544, CAPACITY + frames / 60);
}

#[test]
fn a_drifting_limit_is_found_between_where_it_began_and_where_it_is() {
    for per_second in [-2_000, -300, 300, 2_000] {
        let search = mlr(
            &[NDR, PDR],
            Behaviour::Drifting {
                capacity: CAPACITY,
                per_second,
            },
            0,
        );
        let seconds = i64::try_from(search.took_ns() / SECOND).unwrap();
        let last = CAPACITY.saturating_add_signed(per_second * (seconds + 1));
        let (least, most) = (CAPACITY.min(last), CAPACITY.max(last));
        for (place, goal) in [NDR, PDR].iter().enumerate() {
            let (lower, upper) = regular(search.bounds(place), goal);
            assert!(lower <= truth(most, goal) + 40, "{per_second}: {lower}");
            assert!(upper + 40 >= truth(least, goal), "{per_second}: {upper}");
        }
        assert!(search.trials() <= 60, "{} trials", search.trials());
    }
}

#[test]
fn loss_at_all_loads_fails_ndr_and_not_pdr() {
    for seed in SEEDS {
        let device = Behaviour::Lossy {
            capacity: CAPACITY,
            loss_ppm: 1_000,
        };
        let search = mlr(&[NDR, PDR], device, seed);
        let ndr = search.bounds(0);
        assert_eq!(
            (ndr.outcome, ndr.lower),
            (Outcome::MinLoadFails, None),
            "seed {seed}"
        );
        assert_eq!(ndr.upper, Some(MIN_LOAD), "seed {seed}");
        assert_between(search.bounds(1), &PDR, truth(CAPACITY, &PDR));
        assert!(
            search.trials() <= 60,
            "seed {seed}: {} trials",
            search.trials()
        );
    }
}

#[test]
fn what_the_tester_cannot_send_is_no_throughput() {
    let rate = 9_000_000;
    let search = mlr(&[NDR, PDR], Behaviour::TesterLimited { rate }, 0);
    assert_between(search.bounds(0), &NDR, rate);
    assert_between(search.bounds(1), &PDR, truth(rate, &PDR));
}

#[test]
fn a_device_that_carries_all_has_no_upper_bound() {
    let search = mlr(
        &[NDR, PDR, RFC2544],
        Behaviour::Hard {
            capacity: 2 * MAX_LOAD,
        },
        0,
    );
    for place in 0..3 {
        let bounds = search.bounds(place);
        assert_eq!(bounds.outcome, Outcome::MaxLoadMeets);
        assert_eq!((bounds.lower, bounds.upper), (Some(MAX_LOAD), None));
        assert_eq!(bounds.conditional_throughput.round() as u64, MAX_LOAD);
    }
    assert!(search.trials() <= 6, "{} trials", search.trials());
}

#[test]
fn a_device_below_the_lowest_load_has_no_lower_bound() {
    for capacity in [0, 1, MIN_LOAD / 2] {
        let search = mlr(&[NDR, PDR, RFC2544], Behaviour::Hard { capacity }, 0);
        for place in 0..3 {
            let bounds = search.bounds(place);
            assert_eq!(bounds.outcome, Outcome::MinLoadFails);
            assert_eq!((bounds.lower, bounds.upper), (None, Some(MIN_LOAD)));
            assert!(bounds.conditional_throughput.abs() < f64::EPSILON);
        }
        assert!(search.trials() <= 20, "{} trials", search.trials());
    }
}

#[test]
fn goals_share_their_trials() {
    let device = Behaviour::Hard { capacity: CAPACITY };
    let trials = |goals: &[_]| mlr(goals, device, 0).trials();
    let near = search::Goal {
        loss_ratio_ppm: 1_000,
        ..NDR
    };
    let apart = trials(&[NDR]) + trials(&[near]) + trials(&[PDR]);
    let together = trials(&[NDR, near, PDR]);
    assert!(
        together * 3 < apart * 2,
        "{together} together, {apart} apart"
    );
}

#[test]
fn the_order_of_goals_changes_nothing() {
    let device = Behaviour::Queue {
        capacity: CAPACITY,
        frames: 50_000,
    };
    let (one, other) = (mlr(&[NDR, PDR], device, 0), mlr(&[PDR, NDR], device, 0));
    assert_eq!(one.bounds(0), other.bounds(1));
    assert_eq!(one.bounds(1), other.bounds(0));
}
