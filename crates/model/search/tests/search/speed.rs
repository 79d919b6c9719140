//! Time to the same width and a zero-loss goal, against bisection with trials of 60 s.
//!
//! Every trial is charged 100 ms beside its duration, for drain and set-up. `examples/compare.rs`
//! prints the same for more devices.

use search::simulate::{Behaviour, Device, run};
use search::{Goal, Limits, Method};

use crate::{MAX_LOAD, MIN_LOAD, NDR, PDR, RFC2544, SECOND, assert_between};

const CAPACITIES: [u64; 5] = [137_531, 1_000_000, 3_141_592, 7_777_777, 13_000_000];

/// Time of a search whose first goal must be met to the width.
fn seconds(method: Method, goals: &[Goal], behaviour: Behaviour, carried: u64) -> f64 {
    let limits = Limits::time(24 * 3_600 * SECOND);
    let mut search = method.start(goals, MIN_LOAD, MAX_LOAD, limits).unwrap();
    run(search.as_mut(), &mut Device::new(behaviour, 0), SECOND / 10);
    assert_between(search.bounds(0), &goals[0], carried);
    search.took_ns() as f64 / SECOND as f64
}

/// Ratio of bisection's time to a search's, on a hard limit; the minimum over capacities.
fn gain(goals: &[Goal]) -> f64 {
    let gains = CAPACITIES.map(|capacity| {
        let device = Behaviour::Hard { capacity };
        let bisection = seconds(Method::Bisection, &[RFC2544], device, capacity);
        let mlr = seconds(Method::Mlr, goals, device, capacity);
        println!("{capacity} frames/s: bisection {bisection:.1} s, MLRsearch {mlr:.1} s");
        bisection / mlr
    });
    gains.into_iter().fold(f64::INFINITY, f64::min)
}

#[test]
fn ndr_and_pdr_by_trials_up_to_a_second_take_an_eighth_of_bisection_at_most() {
    let gain = gain(&[NDR, PDR]);
    assert!(gain >= 8.0, "{gain:.1} times shorter");
}

/// Such a goal takes at least one trial of a minute, and bisection needs nine to sixteen.
#[test]
fn ndr_by_one_trial_of_a_minute_takes_a_seventh_of_bisection_at_most_on_a_hard_limit() {
    let gain = gain(&[RFC2544]);
    assert!(gain >= 7.0, "{gain:.1} times shorter");
}

#[test]
fn ndr_by_one_trial_of_a_minute_takes_half_of_bisection_where_short_trials_mislead() {
    let (capacity, frames) = (3_141_592, 200_000);
    let device = Behaviour::Queue { capacity, frames };
    let carried = capacity + frames / 60;
    let bisection = seconds(Method::Bisection, &[RFC2544], device, carried);
    let mlr = seconds(Method::Mlr, &[RFC2544], device, carried);
    assert!(
        bisection / mlr >= 2.0,
        "bisection {bisection:.1} s, MLRsearch {mlr:.1} s"
    );
}

/// A queue hides an overload from loss, and the growth of delay shows it: short trials still do.
#[test]
fn behind_a_queue_ndr_and_pdr_take_an_eighth_of_bisection_at_most() {
    for capacity in CAPACITIES {
        for queue_ms in [10, 50, 200, 1000] {
            let frames = capacity * queue_ms / 1000;
            let device = Behaviour::Queue { capacity, frames };
            let took_ns = |method: Method, goals: &[Goal]| {
                let limits = Limits::time(24 * 3_600 * SECOND);
                let mut search = method.start(goals, MIN_LOAD, MAX_LOAD, limits).unwrap();
                run(search.as_mut(), &mut Device::new(device, 0), SECOND / 10);
                assert!(!search.timed_out());
                search.took_ns() as f64
            };
            let gain = took_ns(Method::Bisection, &[RFC2544]) / took_ns(Method::Mlr, &[NDR, PDR]);
            assert!(
                gain >= 8.0,
                "{capacity} frames/s, {queue_ms} ms: {gain:.1} times shorter"
            );
        }
    }
}
