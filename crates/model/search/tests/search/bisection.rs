//! Bisection, with and without loss verification.

use proptest::prelude::*;
use search::simulate::Behaviour;
use search::{
    Bisection, Counts, Goal, Limits, Method, Outcome, SearchError, Searcher, Step, Trial,
};

use crate::{
    MAX_LOAD, MIN_LOAD, NDR, PDR, RFC2544, SECOND, TST009, assert_between, found, regular,
};

const CAPACITY: u64 = 3_141_592;

fn bisection(goal: Goal, behaviour: Behaviour) -> Box<dyn Searcher> {
    found(Method::Bisection, &[goal], behaviour, 0)
}

#[test]
fn begins_at_the_highest_load_and_halves() {
    let search = bisection(RFC2544, Behaviour::Hard { capacity: CAPACITY });
    assert_between(search.bounds(0), &RFC2544, CAPACITY);
    // One trial at the highest load, and ten halvings down to 0.5 % of the remaining interval.
    assert_eq!(search.trials(), 11);
    assert_eq!(search.took_ns(), 11 * 60 * SECOND);
}

#[test]
fn a_device_that_carries_all_needs_one_trial() {
    for method in [Method::Bisection, Method::Tst009] {
        let search = found(method, &[TST009], Behaviour::Hard { capacity: MAX_LOAD }, 0);
        assert_eq!(
            (search.trials(), search.bounds(0).outcome),
            (1, Outcome::MaxLoadMeets)
        );
        assert_eq!(
            (search.bounds(0).lower, search.bounds(0).upper),
            (Some(MAX_LOAD), None)
        );
    }
}

#[test]
fn a_device_below_the_lowest_load_has_no_lower_bound() {
    for method in [Method::Bisection, Method::Tst009] {
        let search = found(
            method,
            &[TST009],
            Behaviour::Hard {
                capacity: MIN_LOAD - 1,
            },
            0,
        );
        let bounds = search.bounds(0);
        assert_eq!(bounds.outcome, Outcome::MinLoadFails);
        assert_eq!((bounds.lower, bounds.upper), (None, Some(MIN_LOAD)));
    }
}

#[test]
fn a_lowest_load_that_passes_is_tried_before_it_is_a_bound() {
    let bounds = bisection(RFC2544, Behaviour::Hard { capacity: MIN_LOAD }).bounds(0);
    assert_eq!((bounds.lower, bounds.lower_trials), (Some(MIN_LOAD), 1));
    regular(bounds, &RFC2544);
}

#[test]
fn loss_verification_repeats_lossy_trials_only() {
    let plain = bisection(TST009, Behaviour::Hard { capacity: CAPACITY });
    let search = found(
        Method::Tst009,
        &[TST009],
        Behaviour::Hard { capacity: CAPACITY },
        0,
    );
    let bounds = search.bounds(0);
    assert_eq!(bounds.lower, plain.bounds(0).lower);
    assert_eq!((bounds.lower_trials, bounds.upper_trials), (1, 2));
}

#[test]
fn lossy_trials_at_two_loads_are_no_repeats_of_one() {
    let mut search =
        Bisection::tst009(&[TST009], MIN_LOAD, MAX_LOAD, Limits::time(600 * SECOND)).unwrap();
    let lossy = Counts {
        intended: 1000,
        forwarded: 999,
    };
    let mut record = |load| {
        let trial = Trial {
            load,
            duration_ns: TST009.final_trial_ns,
        };
        search.record(trial, lossy, 0);
        let bounds = search.bounds(0);
        (bounds.upper, bounds.upper_trials)
    };
    // A tester that cannot set the same load twice.
    assert_eq!(record(MAX_LOAD), (None, 0));
    assert_eq!(record(MAX_LOAD - 1), (None, 0));
    assert_eq!(record(MAX_LOAD), (None, 0));
    assert_eq!(record(MAX_LOAD), (Some(MAX_LOAD), 2));
}

#[test]
fn loss_verification_finds_the_better_of_two_bands() {
    let (low, high) = (3_000_000, 3_300_000);
    let device = Behaviour::TwoBands {
        low,
        high,
        low_ppm: 300_000,
    };
    let in_high = |method| {
        (0..200)
            .filter(|&seed| {
                let bounds = found(method, &[TST009], device, seed).bounds(0);
                let (lower, upper) = regular(bounds, &TST009);
                assert!(lower <= high && low <= upper, "seed {seed}: {bounds:?}");
                upper > high
            })
            .count()
    };
    let (once, twice) = (in_high(Method::Bisection), in_high(Method::Tst009));
    assert!(
        twice > once + 40,
        "{once} of 200 without verification, {twice} with it"
    );
}

#[test]
fn a_short_trial_decides_nothing() {
    let mut search =
        Bisection::rfc2544(&[RFC2544], MIN_LOAD, MAX_LOAD, Limits::time(u64::MAX)).unwrap();
    let trial = Trial {
        load: MAX_LOAD,
        duration_ns: SECOND,
    };
    Searcher::record(
        &mut search,
        trial,
        Counts {
            intended: 9,
            forwarded: 9,
        },
        SECOND,
    );
    assert_eq!(Searcher::bounds(&search, 0).lower, None);
}

/// The trials of a device of this capacity, until the search ends.
fn go_on(search: &mut Bisection, capacity: u64) -> u32 {
    let mut made = 0;
    while let Step::Measure(trial) = search.next() {
        record(search, trial.load, capacity);
        made += 1;
    }
    made
}

fn record(search: &mut Bisection, load: u64, capacity: u64) {
    let counts = Counts {
        intended: load,
        forwarded: load.min(capacity),
    };
    let trial = Trial {
        load,
        duration_ns: 60 * SECOND,
    };
    Searcher::record(search, trial, counts, 60 * SECOND);
}

#[test]
fn a_search_whose_lower_bound_is_contradicted_goes_on_below_it() {
    let limits = || Limits::time(u64::MAX);
    let rfc2544 = Bisection::rfc2544(&[RFC2544], MIN_LOAD, MAX_LOAD, limits()).unwrap();
    let tst009 = Bisection::tst009(&[TST009], MIN_LOAD, MAX_LOAD, limits()).unwrap();
    for (mut search, goal) in [(rfc2544, RFC2544), (tst009, TST009)] {
        go_on(&mut search, CAPACITY);
        let lower = search.bounds(0).lower.unwrap();
        // What passes again changes nothing.
        record(&mut search, lower, CAPACITY);
        assert_eq!(
            (search.next(), search.bounds(0).lower),
            (Step::Done, Some(lower))
        );
        let weaker = CAPACITY / 10 * 9;
        // Each bound that passed before is tried again.
        while let Some(lower) = search.bounds(0).lower.filter(|lower| *lower > weaker) {
            record(&mut search, lower, weaker);
            go_on(&mut search, weaker);
        }
        assert_between(search.bounds(0), &goal, weaker);
    }
}

#[test]
fn loss_verification_repeats_the_trial_that_contradicts() {
    let limits = Limits::time(u64::MAX);
    let mut search = Bisection::tst009(&[TST009], MIN_LOAD, MAX_LOAD, limits).unwrap();
    go_on(&mut search, CAPACITY);
    let before = search.bounds(0);
    let lower = before.lower.unwrap();
    record(&mut search, lower, lower - 1);
    let again = Trial {
        load: lower,
        duration_ns: 60 * SECOND,
    };
    assert_eq!(search.next(), Step::Measure(again));
    assert_eq!(go_on(&mut search, CAPACITY), 1);
    let after = search.bounds(0);
    assert_eq!((after.lower, after.upper), (before.lower, before.upper));
}

#[test]
fn takes_one_goal() {
    let error = Method::Bisection
        .start(&[NDR, PDR], MIN_LOAD, MAX_LOAD, Limits::time(SECOND))
        .err();
    assert_eq!(error, Some(SearchError::OneGoal { found: 2 }));
}

proptest! {
    #[test]
    fn finds_any_hard_limit(capacity in MIN_LOAD..MAX_LOAD, width_ppm in 1_u32..200_000) {
        let goal = Goal { width_ppm, ..RFC2544 };
        for method in [Method::Bisection, Method::Tst009] {
            let search = found(method, &[goal], Behaviour::Hard { capacity }, 0);
            let (lower, upper) = regular(search.bounds(0), &goal);
            prop_assert!(lower <= capacity && capacity < upper);
            prop_assert!(search.trials() <= 26);
        }
    }
}
