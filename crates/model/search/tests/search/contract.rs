//! Guarantees to any driver: limits, rejected parameters, and trials that differ from the request.

use proptest::prelude::*;
use search::simulate::{Behaviour, Device, run};
use search::{
    Counts, Goal, Limits, Method, MlrSearch, Outcome, SearchError, Searcher, Step, Trial,
};

use crate::{MAX_LOAD, MIN_LOAD, NDR, PDR, RFC2544, SECOND, TST009, mlr};

const HARD: Behaviour = Behaviour::Hard {
    capacity: 3_141_592,
};
const METHODS: [Method; 3] = [Method::Mlr, Method::Bisection, Method::Tst009];
const FOREVER: Limits = Limits::time(u64::MAX);

#[test]
fn a_time_limit_ends_a_search_with_what_is_known() {
    for method in METHODS {
        let limits = Limits::time(200 * SECOND);
        let mut search = method.start(&[TST009], MIN_LOAD, MAX_LOAD, limits).unwrap();
        run(search.as_mut(), &mut Device::new(HARD, 0), 0);
        assert!(search.timed_out() && search.next() == Step::Done);
        assert!(
            search.took_ns() <= limits.time_ns,
            "{} ns",
            search.took_ns()
        );
        let bounds = search.bounds(0);
        assert_eq!(bounds.outcome, Outcome::Unfinished);
        assert!(
            bounds.lower.or(bounds.upper).is_some(),
            "{method:?}: {bounds:?}"
        );
    }
}

#[test]
fn no_trial_is_begun_that_would_not_end_in_time() {
    for method in METHODS {
        let limits = Limits::time(59 * SECOND);
        let search = method.start(&[TST009], MIN_LOAD, MAX_LOAD, limits).unwrap();
        assert_eq!((search.next(), search.timed_out()), (Step::Done, true));
    }
}

#[test]
fn a_search_that_reached_its_goals_in_time_was_not_timed_out() {
    let search = mlr(&[NDR], HARD, 0);
    assert_eq!((search.next(), search.timed_out()), (Step::Done, false));
}

#[test]
fn a_limit_on_trials_ends_a_search_on_a_device_that_answers_at_random() {
    for method in METHODS {
        let limits = Limits {
            time_ns: u64::MAX,
            trials: 500,
        };
        let mut search = method.start(&[TST009], MIN_LOAD, MAX_LOAD, limits).unwrap();
        let device = Behaviour::TwoBands {
            low: 0,
            high: MAX_LOAD,
            low_ppm: 500_000,
        };
        run(search.as_mut(), &mut Device::new(device, 7), 0);
        assert_eq!(search.next(), Step::Done);
        assert!(search.trials() <= 500);
    }
}

#[test]
fn asking_twice_changes_nothing() {
    let mut search = MlrSearch::new(&[NDR, PDR], MIN_LOAD, MAX_LOAD, FOREVER).unwrap();
    let mut device = Device::new(HARD, 0);
    while let Step::Measure(trial) = search.next() {
        assert_eq!(search.next(), Step::Measure(trial));
        assert_eq!(search.bounds(0), search.bounds(0));
        search.record(trial, device.measure(trial), trial.duration_ns);
    }
}

#[test]
fn a_range_of_one_load_is_decided_there() {
    for (capacity, outcome) in [(2_000, Outcome::MaxLoadMeets), (500, Outcome::MinLoadFails)] {
        for method in METHODS {
            let mut search = method.start(&[TST009], 1_000, 1_000, FOREVER).unwrap();
            run(
                search.as_mut(),
                &mut Device::new(Behaviour::Hard { capacity }, 0),
                0,
            );
            assert_eq!(search.bounds(0).outcome, outcome);
        }
    }
}

#[test]
fn loads_one_frame_apart_are_close_enough() {
    let goal = Goal {
        width_ppm: 1,
        ..RFC2544
    };
    for method in METHODS {
        let mut search = method.start(&[goal], 1, 1_000, FOREVER).unwrap();
        run(
            search.as_mut(),
            &mut Device::new(Behaviour::Hard { capacity: 314 }, 0),
            0,
        );
        let bounds = search.bounds(0);
        assert_eq!(
            (bounds.lower, bounds.upper),
            (Some(314), Some(315)),
            "{method:?}"
        );
        assert_eq!(bounds.outcome, Outcome::Regular);
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let start = |goals: &[Goal], min, max| {
        MlrSearch::new(goals, min, max, Limits::time(SECOND))
            .err()
            .map(|error| error.to_string())
    };
    let refused = |goal| start(&[NDR, goal], MIN_LOAD, MAX_LOAD).unwrap_or_default();
    assert!(start(&[], 1, 2).is_some());
    for (min, max) in [(0, MAX_LOAD), (MAX_LOAD, MIN_LOAD)] {
        assert!(
            start(&[NDR], min, max)
                .unwrap()
                .contains(&format!("loads from {min} to {max}"))
        );
    }
    let refusals = [
        (
            Goal {
                loss_ratio_ppm: 1_000_000,
                ..NDR
            },
            "loss ratio of 1000000 ppm",
        ),
        (
            Goal {
                exceed_ratio_ppm: 1_000_000,
                ..NDR
            },
            "exceed ratio of 1000000 ppm",
        ),
        (
            Goal {
                width_ppm: 0,
                ..NDR
            },
            "width of 0 ppm",
        ),
        (
            Goal {
                width_ppm: 1_000_000,
                ..NDR
            },
            "width of 1000000 ppm",
        ),
        (
            Goal {
                initial_trial_ns: 0,
                ..NDR
            },
            "rising order",
        ),
        (
            Goal {
                initial_trial_ns: 2 * SECOND,
                ..NDR
            },
            "rising order",
        ),
        (
            Goal {
                duration_sum_ns: SECOND / 2,
                ..NDR
            },
            "rising order",
        ),
        (
            Goal {
                initial_trial_ns: 99_999,
                ..NDR
            },
            "has no frame",
        ),
    ];
    for (goal, text) in refusals {
        let error = refused(goal);
        assert!(
            error.starts_with("goal 2: ") && error.contains(text),
            "{error}"
        );
    }
    for limits in [
        Limits::time(0),
        Limits {
            time_ns: SECOND,
            trials: 0,
        },
    ] {
        let error = MlrSearch::new(&[NDR], 1_000, 2_000, limits).err();
        assert_eq!(error, Some(SearchError::Limits));
    }
}

proptest! {
    /// A search ends with true bounds even if the tester cannot set each load or duration exactly.
    #[test]
    fn trials_that_differ_from_those_asked_for_count_as_what_they_were(
        capacity in 50_000_u64..10_000_000,
        grid in 1_u64..2_000,
        cut in 0_u64..SECOND / 100,
    ) {
        for method in METHODS {
            let limits = Limits { time_ns: u64::MAX, trials: 300 };
            let goals = if method == Method::Mlr { vec![NDR, PDR] } else { vec![NDR] };
            let mut search = method.start(&goals, MIN_LOAD, MAX_LOAD, limits).unwrap();
            let mut device = Device::new(Behaviour::Hard { capacity }, 0);
            let mut turn = 0_u64;
            while let Step::Measure(Trial { load, duration_ns }) = search.next() {
                turn += 1;
                // Each third trial is cut short.
                let short = if turn.is_multiple_of(3) { cut } else { 0 };
                let duration_ns = duration_ns - short;
                let trial = Trial { load: load.div_ceil(grid) * grid, duration_ns };
                search.record(trial, device.measure(trial), duration_ns);
            }
            let bounds = search.bounds(0);
            let hidden = 50;
            prop_assert!(bounds.lower.is_none_or(|lower| lower <= capacity + hidden));
            prop_assert!(bounds.upper.is_none_or(|upper| capacity < upper + hidden));
        }
    }

    /// With any answers of the device, loads stay in range, trials have frames, bounds are in
    /// order.
    #[test]
    fn any_answers_lead_to_bounds_in_order(answers in prop::collection::vec(0_u64..=100, 1..200)) {
        for method in METHODS {
            let limits = Limits { time_ns: u64::MAX, trials: 400 };
            let goals = if method == Method::Mlr { vec![NDR, PDR, RFC2544] } else { vec![NDR] };
            let mut search = method.start(&goals, MIN_LOAD, MAX_LOAD, limits).unwrap();
            let mut turn = answers.iter().cycle();
            while let Step::Measure(trial) = search.next() {
                prop_assert!((MIN_LOAD..=MAX_LOAD).contains(&trial.load));
                let forwarded = *turn.next().unwrap();
                search.record(trial, Counts { intended: 100, forwarded }, trial.duration_ns);
                for (place, goal) in goals.iter().enumerate() {
                    let bounds = search.bounds(place);
                    if let (Some(lower), Some(upper)) = (bounds.lower, bounds.upper) {
                        prop_assert!(lower < upper);
                    }
                    let most = bounds.lower.map_or(0.0, |lower| lower as f64);
                    let least = most * (1.0 - f64::from(goal.loss_ratio_ppm) / 1e6) - 1e-6;
                    prop_assert!((least..=most).contains(&bounds.conditional_throughput));
                }
            }
        }
    }
}
