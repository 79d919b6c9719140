//! The load on which a procedure's figures are based.

use super::throughput::{Confirm, throughput};
use super::trials::Trials;
use crate::error::TrialError;
use journal::record::{GoalBounds, GoalOutcome};
use plan::ThroughputSearch;
use units::human::duration_ns;

/// The basis of a procedure's figures.
pub(crate) struct Basis {
    pub(super) load: Option<u64>,
    pub(super) drain_ns: u64,
    pub(super) objection: Option<String>,
}

impl Basis {
    pub(super) const fn on(load: u64, drain_ns: u64) -> Self {
        Self {
            load: Some(load),
            drain_ns,
            objection: None,
        }
    }
}

pub(super) fn search(
    trials: &mut Trials<'_>,
    plan: &ThroughputSearch,
    confirm: Confirm,
) -> Result<Basis, TrialError> {
    let found = throughput(trials, plan, confirm)?;
    let lower = found.goals.first().and_then(|goal| goal.lower);
    // Without a bound, the trial with the evidence runs at the lowest load.
    let lowest = plan.min_load.min(found.max_load);
    trials.result.throughput = Some(found);
    Ok(Basis::on(lower.unwrap_or(lowest), plan.drain_ns))
}

/// Searches for the throughput that loads are shares of. Returns it, or the basis with the reason
/// for its lack.
pub(super) fn searched(
    trials: &mut Trials<'_>,
    plan: &ThroughputSearch,
) -> Result<Result<u64, Basis>, TrialError> {
    let mut basis = search(trials, plan, Confirm::Plain)?;
    let goal = trials.bounds.first();
    if let Some(lower) = goal.and_then(|goal| goal.lower) {
        return Ok(Ok(lower));
    }
    basis.objection = Some(no_bound(goal, plan.min_load, plan.timeout_ns));
    Ok(Err(basis))
}

/// Why a search gave no throughput: no load meets the goal, or the time was too short to show one.
fn no_bound(goal: Option<&GoalBounds>, min_load: u64, timeout_ns: u64) -> String {
    let name = goal.map_or("", |goal| &goal.goal);
    let fails = goal.is_none_or(|goal| goal.outcome != Some(GoalOutcome::Unfinished));
    if fails {
        return format!(
            "no load met the goal `{name}`, not even the lowest of {min_load} frames/s, so there is no \
             throughput to take shares of: set a lower `min_load`, or a goal that allows more loss"
        );
    }
    let failed = goal
        .and_then(|goal| goal.upper)
        .map_or_else(String::new, |upper| {
            format!("; the lowest load that surely failed it is {upper} frames/s")
        });
    format!(
        "no load met the goal `{name}` before the search's time, {}, was up{failed}; so there is no \
         throughput to take shares of: set a longer `timeout`, or a goal that allows more loss",
        duration_ns(timeout_ns as f64)
    )
}

/// Returns a share of a load, at least one frame per second.
pub(super) fn share(load: u64, percent: u64) -> u64 {
    let share = u128::from(load) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_whose_time_was_up_is_not_blamed_on_the_lowest_load() {
        let said = |found: &GoalBounds| no_bound(Some(found), 1000, 4_500_000_000);
        let goal = |outcome, upper| GoalBounds {
            goal: "ndr".to_owned(),
            lower: None,
            upper,
            conditional_throughput: 0.0,
            lower_trials: 0,
            upper_trials: 6,
            outcome: Some(outcome),
        };
        let text = said(&goal(GoalOutcome::Unfinished, Some(317_203)));
        assert!(text.contains(" was up; the lowest load that surely failed it is 317203"));
        assert!(
            text.contains("longer `timeout`") && !text.contains("min_load"),
            "{text}"
        );
        let text = said(&goal(GoalOutcome::Unfinished, None));
        assert!(text.contains("was up; so there is"), "{text}");
        let text = said(&goal(GoalOutcome::MinLoadFails, Some(1000)));
        assert!(
            text.contains("not even the lowest of ") && text.contains("min_load"),
            "{text}"
        );
    }
}
