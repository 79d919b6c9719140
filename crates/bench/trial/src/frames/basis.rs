//! The load on which a procedure's figures are based.

use super::throughput::{Confirm, throughput};
use super::trials::Trials;
use crate::error::TrialError;
use plan::ThroughputSearch;

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
    let name = goal.map_or("", |goal| &goal.goal);
    basis.objection = Some(format!(
        "no load met the goal `{name}`, not even the lowest of {} frames/s, so there is no throughput to \
         take shares of: set a lower `min_load`, or a goal that allows more loss",
        plan.min_load
    ));
    Ok(Err(basis))
}

/// Returns a share of a load, at least one frame per second.
pub(super) fn share(load: u64, percent: u64) -> u64 {
    let share = u128::from(load) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX).max(1)
}
