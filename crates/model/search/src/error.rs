//! Errors in the parameters of a search.

use crate::{Goal, Limits, PPM};

/// An error in the parameters of a search. Goals are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The list is empty.
    #[error("the search has no goal; give at least one")]
    NoGoals,
    /// Bisection takes one goal.
    #[error("this search takes one goal, not {found}; MLRsearch takes several")]
    OneGoal {
        /// Goals given.
        found: usize,
    },
    /// The lowest load is 0 or over the highest.
    #[error(
        "loads from {min_load} to {max_load} frames/s are not a range; \
         the lowest must be at least 1 and at most the highest"
    )]
    Loads {
        /// Lowest load.
        min_load: u64,
        /// Highest load.
        max_load: u64,
    },
    /// A trial at the lowest load would have no frame.
    #[error(
        "goal {goal}: a trial of {initial_trial_ns} ns at the lowest load of {min_load} frames/s \
         has no frame; make the initial trials longer or the lowest load higher"
    )]
    EmptyTrial {
        /// Number of the goal.
        goal: usize,
        /// Its shortest trial.
        initial_trial_ns: u64,
        /// Lowest load.
        min_load: u64,
    },
    /// A ratio is out of range.
    #[error("goal {goal}: {what} of {ppm} ppm is out of range; it must be {expected}")]
    Ratio {
        /// Number of the goal.
        goal: usize,
        /// Name of the ratio.
        what: &'static str,
        /// Its value.
        ppm: u32,
        /// The allowed range.
        expected: &'static str,
    },
    /// Durations are not in order.
    #[error(
        "goal {goal}: initial trial {initial_trial_ns} ns, final trial {final_trial_ns} ns and \
         duration sum {duration_sum_ns} ns must be over 0 and in rising order"
    )]
    Durations {
        /// Which goal.
        goal: usize,
        /// Its initial trial duration.
        initial_trial_ns: u64,
        /// Its final trial duration.
        final_trial_ns: u64,
        /// Its duration sum.
        duration_sum_ns: u64,
    },
    /// A limit of 0.
    #[error("the search's limit of time or trials is 0; it must be at least 1")]
    Limits,
    /// A loss curve's step is out of range.
    #[error("a step of {percent} % is out of range; it must be from 1 to 50")]
    CurveStep {
        /// The step.
        percent: u8,
    },
    /// A parameter is 0.
    #[error("{what} is 0; it must be at least 1")]
    Zero {
        /// Name of the parameter.
        what: &'static str,
    },
}

/// Checks the common parameters of all searches for throughput.
pub(crate) fn check(
    goals: &[Goal],
    min_load: u64,
    max_load: u64,
    limits: Limits,
) -> Result<(), SearchError> {
    if goals.is_empty() {
        return Err(SearchError::NoGoals);
    }
    if min_load == 0 || min_load > max_load {
        return Err(SearchError::Loads { min_load, max_load });
    }
    if limits.time_ns == 0 || limits.trials == 0 {
        return Err(SearchError::Limits);
    }
    goals
        .iter()
        .zip(1..)
        .try_for_each(|(goal, number)| check_goal(goal, number, min_load))
}

fn check_goal(goal: &Goal, number: usize, min_load: u64) -> Result<(), SearchError> {
    let ratio = |what, ppm, least, expected| {
        if (least..PPM).contains(&ppm) {
            return Ok(());
        }
        Err(SearchError::Ratio {
            goal: number,
            what,
            ppm,
            expected,
        })
    };
    ratio("loss ratio", goal.loss_ratio_ppm, 0, "under 1000000")?;
    ratio("exceed ratio", goal.exceed_ratio_ppm, 0, "under 1000000")?;
    ratio("width", goal.width_ppm, 1, "from 1 to 999999")?;
    let (first, last) = (goal.initial_trial_ns, goal.final_trial_ns);
    if first == 0 || first > last || last > goal.duration_sum_ns {
        return Err(SearchError::Durations {
            goal: number,
            initial_trial_ns: first,
            final_trial_ns: last,
            duration_sum_ns: goal.duration_sum_ns,
        });
    }
    // Less than one frame in the shortest trial at the lowest load.
    if u128::from(min_load) * u128::from(first) < 1_000_000_000 {
        return Err(SearchError::EmptyTrial {
            goal: number,
            initial_trial_ns: first,
            min_load,
        });
    }
    Ok(())
}
