//! Any goals on any device with a capacity: the search ends, regular, with the true limit between
//! the bounds.

use proptest::collection::vec;
use proptest::prelude::*;
use search::GROWTH_NS_MAX;
use search::Goal;
use search::simulate::Behaviour;

use crate::{MAX_LOAD, MILLI, MIN_LOAD, SECOND, assert_between, mlr, regular, truth};

prop_compose! {
    fn any_goal()(
        loss_ratio_ppm in prop_oneof![Just(0_u32), 0_u32..200_000],
        exceed_ratio_ppm in prop_oneof![Just(0_u32), Just(500_000), 0_u32..900_000],
        initial in 10_u64..200,
        growth in 1_u64..100,
        repeats in 1_u64..8,
        width_ppm in prop_oneof![Just(5_000_u32), 500_u32..200_000],
    ) -> Goal {
        Goal {
            loss_ratio_ppm,
            exceed_ratio_ppm,
            initial_trial_ns: initial * MILLI,
            final_trial_ns: initial * growth * MILLI,
            duration_sum_ns: initial * growth * repeats * MILLI,
            width_ppm,
        }
    }
}

/// Distributed evenly over magnitudes, and away from the ends of the range so that all results are
/// regular.
fn any_capacity() -> impl Strategy<Value = u64> {
    (0.1_f64..0.9).prop_map(|part| {
        let (min, max) = (MIN_LOAD as f64, MAX_LOAD as f64);
        (min * (max / min).powf(part)) as u64
    })
}

/// The goals that a device fails at the highest load, and their places.
fn within_reach(goals: &[Goal], capacity: u64) -> impl Iterator<Item = (usize, &Goal)> {
    let places = goals.iter().enumerate();
    places.filter(move |(_, goal)| truth(capacity, goal) < MAX_LOAD)
}

/// Loads that a search may try for each goal, twenty-five, and trials that each may need.
fn most_trials(goals: &[Goal]) -> u64 {
    goals
        .iter()
        .map(|goal| 25 * (1 + goal.duration_sum_ns / goal.final_trial_ns))
        .sum()
}

proptest! {
    #[test]
    fn finds_a_hard_limit(capacity in any_capacity(), goals in vec(any_goal(), 1..4)) {
        let search = mlr(&goals, Behaviour::Hard { capacity }, 0);
        for (place, goal) in within_reach(&goals, capacity) {
            assert_between(search.bounds(place), goal, truth(capacity, goal));
        }
        prop_assert!(u64::from(search.trials()) <= most_trials(&goals), "{}", search.trials());
    }

    #[test]
    fn finds_a_limit_that_an_overload_hides(
        capacity in any_capacity(),
        cost_ppm in 0_u32..20_000_000,
        goals in vec(any_goal(), 1..4),
    ) {
        let search = mlr(&goals, Behaviour::Collapsing { capacity, cost_ppm }, 0);
        for (place, goal) in within_reach(&goals, capacity) {
            let (lower, upper) = regular(search.bounds(place), goal);
            // With a loss ratio the limit is somewhat above the capacity: by less, the more an
            // overload costs.
            prop_assert!(lower <= truth(capacity, goal) + 250 && capacity <= upper + 250);
        }
        prop_assert!(u64::from(search.trials()) <= most_trials(&goals), "{}", search.trials());
    }

    #[test]
    fn finds_what_a_device_sustains_behind_a_queue(
        capacity in any_capacity(),
        frames in 0_u64..1_000_000,
        goal in any_goal(),
    ) {
        // Growth that may be noise, or a queue that fills within two thirds of a trial and makes it
        // lose frames only then; and in any case the frames that a queue hides from a trial of the
        // goal's full length.
        let unseen = (SECOND / 100).max(SECOND * GROWTH_NS_MAX / goal.final_trial_ns);
        let unseen = capacity as f64 * (1.0 + unseen as f64 / SECOND as f64);
        let late_loss = 1.0 - 3.0 * f64::from(goal.loss_ratio_ppm) / 1e6;
        let hidden = capacity + frames * SECOND / goal.final_trial_ns;
        let most = (unseen / late_loss).min(truth(hidden, &goal) as f64);
        let most = (1.002 * most) as u64;
        prop_assume!(most < MAX_LOAD / 10 * 9);
        let search = mlr(&[goal], Behaviour::Queue { capacity, frames }, 0);
        let (lower, upper) = regular(search.bounds(0), &goal);
        let hidden = 2 * SECOND / goal.initial_trial_ns + 1;
        let least = truth(capacity, &goal);
        prop_assert!(lower <= most + hidden, "{} over {}", lower, most);
        prop_assert!(least <= upper + hidden, "{} under {}", upper, least);
        prop_assert!(u64::from(search.trials()) <= most_trials(&[goal]), "{}", search.trials());
    }

    #[test]
    fn ends_on_a_device_that_changes_its_mind(
        low in any_capacity(),
        high in any_capacity(),
        low_ppm in 0_u32..1_000_000,
        seed: u64,
        goals in vec(any_goal(), 1..4),
    ) {
        let (low, high) = (low.min(high), low.max(high));
        let search = mlr(&goals, Behaviour::TwoBands { low, high, low_ppm }, seed);
        for (place, goal) in within_reach(&goals, high) {
            let (lower, upper) = regular(search.bounds(place), goal);
            prop_assert!(lower <= truth(high, goal) + 250 && low <= upper + 250);
        }
        prop_assert!(u64::from(search.trials()) <= most_trials(&goals), "{}", search.trials());
    }
}
