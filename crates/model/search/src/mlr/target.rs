//! Targets: intermediate stages of a goal.
//!
//! A target is a goal with a shorter duration sum and a wider width. Targets are reached in order,
//! so that the long trials of the last are made near the answer that short ones have found.

use crate::{Goal, width};

/// Maximum ratio of successive targets' duration sums, approximately: fewer targets need fewer
/// trials, more of them mislead less (simulated).
const GROWTH: f64 = 12.0;

/// Maximum number of targets before the goal itself.
const PRECEDING: u32 = 4;

/// The targets of a goal in the order to reach them; the last is the goal.
pub(super) fn targets(goal: &Goal) -> Vec<Goal> {
    let growth = goal.duration_sum_ns as f64 / goal.initial_trial_ns as f64;
    let preceding = (growth.ln() / GROWTH.ln()).ceil().min(f64::from(PRECEDING)) as u32;
    let mut targets = vec![*goal];
    let mut width_ppm = goal.width_ppm;
    for before in 1..=preceding {
        // For a goal that tolerates no loss, one lossy short trial settles an upper bound. The
        // target before the last then narrows to the final width: a failed long trial is expensive,
        // a short one is not.
        if before > 1 || goal.exceed_ratio_ppm > 0 {
            width_ppm = width::doubled(width_ppm);
        }
        let left = 1.0 - f64::from(before) / f64::from(preceding);
        // Sums in equal ratios, from the initial duration to the duration sum of the goal.
        let sum = (goal.initial_trial_ns as f64 * growth.powf(left)) as u64;
        let duration_sum_ns = sum.max(goal.initial_trial_ns);
        targets.push(Goal {
            duration_sum_ns,
            final_trial_ns: duration_sum_ns.min(goal.final_trial_ns),
            width_ppm,
            ..*goal
        });
    }
    // Widths double from the goal on backwards.
    targets.reverse();
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    const GOAL: Goal = Goal {
        loss_ratio_ppm: 0,
        exceed_ratio_ppm: 500_000,
        initial_trial_ns: SECOND / 20,
        final_trial_ns: SECOND,
        duration_sum_ns: 2 * SECOND,
        width_ppm: 5_000,
    };

    #[test]
    fn targets_begin_with_the_initial_duration_and_end_with_the_goal() {
        let targets = targets(&GOAL);
        let trials: Vec<_> = targets.iter().map(|target| target.final_trial_ns).collect();
        assert_eq!(trials, [SECOND / 20, 316_227_766, SECOND]);
        let widths: Vec<_> = targets.iter().map(|target| target.width_ppm).collect();
        assert_eq!(widths, [19_850, 9_975, 5_000]);
        assert_eq!(targets[2], GOAL);
    }

    #[test]
    fn a_goal_of_one_duration_is_its_only_target() {
        let goal = Goal {
            initial_trial_ns: 2 * SECOND,
            final_trial_ns: 2 * SECOND,
            ..GOAL
        };
        assert_eq!(targets(&goal), [goal]);
    }
}
