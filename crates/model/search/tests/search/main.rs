//! Searches on simulated devices of known capacity.

mod back_to_back;
mod bisection;
mod classification;
mod contract;
mod delay;
mod loss_curve;
mod mlr;
mod properties;
mod reserve;
mod speed;

use search::simulate::{Behaviour, Device, run};
use search::{Bounds, Goal, Limits, Method, Searcher};

const SECOND: u64 = 1_000_000_000;
const MILLI: u64 = 1_000_000;

/// 64-byte frames on 10 Gbit/s.
const MAX_LOAD: u64 = 14_880_952;
const MIN_LOAD: u64 = 10_000;

/// Zero loss in half of 2 s, by trials from 50 ms to 1 s.
const NDR: Goal = Goal {
    loss_ratio_ppm: 0,
    exceed_ratio_ppm: 500_000,
    initial_trial_ns: 50 * MILLI,
    final_trial_ns: SECOND,
    duration_sum_ns: 2 * SECOND,
    width_ppm: 5_000,
};

const PDR: Goal = Goal {
    loss_ratio_ppm: 5_000,
    ..NDR
};

/// Zero loss in one trial of 60 s (RFC 9971, MLRsearch Compliant with RFC 2544).
const RFC2544: Goal = Goal {
    loss_ratio_ppm: 0,
    exceed_ratio_ppm: 0,
    initial_trial_ns: SECOND,
    final_trial_ns: 60 * SECOND,
    duration_sum_ns: 60 * SECOND,
    width_ppm: 5_000,
};

/// Zero loss in one of two trials of 60 s (RFC 9971, MLRsearch Compliant with TST009).
const TST009: Goal = Goal {
    exceed_ratio_ppm: 500_000,
    initial_trial_ns: 60 * SECOND,
    duration_sum_ns: 120 * SECOND,
    ..RFC2544
};

/// Runs a search to its end, which must not be due to a limit.
fn found(method: Method, goals: &[Goal], behaviour: Behaviour, seed: u64) -> Box<dyn Searcher> {
    // The last line before a failure is the one that failed.
    println!("{method:?} on {behaviour:?}, seed {seed}");
    let limits = Limits::time(24 * 3_600 * SECOND);
    let mut search = method.start(goals, MIN_LOAD, MAX_LOAD, limits).unwrap();
    run(search.as_mut(), &mut Device::new(behaviour, seed), 0);
    assert!(!search.timed_out(), "the search came to a limit");
    search
}

fn mlr(goals: &[Goal], behaviour: Behaviour, seed: u64) -> Box<dyn Searcher> {
    found(Method::Mlr, goals, behaviour, seed)
}

/// Highest load whose loss ratio is within a goal's, for a device of this capacity.
fn truth(capacity: u64, goal: &Goal) -> u64 {
    capacity * 1_000_000 / u64::from(1_000_000 - goal.loss_ratio_ppm)
}

/// Both bounds, which must be as close as the goal requires.
fn regular(bounds: Bounds, goal: &Goal) -> (u64, u64) {
    let (Some(lower), Some(upper)) = (bounds.lower, bounds.upper) else {
        panic!("irregular: {bounds:?}");
    };
    let width = u128::from(upper - lower) * 1_000_000;
    assert!(lower < upper, "{bounds:?}");
    assert!(
        upper - lower == 1 || width <= u128::from(upper) * u128::from(goal.width_ppm),
        "{bounds:?}"
    );
    assert_eq!(bounds.outcome, search::Outcome::Regular);
    (lower, upper)
}

/// The true limit must be between the bounds, apart from what whole frames in the shortest trial
/// can hide.
#[track_caller]
fn assert_between(bounds: Bounds, goal: &Goal, truth: u64) {
    let (lower, upper) = regular(bounds, goal);
    let hidden = 2 * SECOND / goal.initial_trial_ns + 1;
    assert!(
        lower <= truth + hidden && truth <= upper + hidden,
        "{truth} is not in {bounds:?}"
    );
}
