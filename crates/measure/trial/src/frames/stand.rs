//! The load that a procedure's figures stand on.

use super::FrameRun;
use super::throughput::throughput;
use super::trials::Trials;
use crate::error::TrialError;
use campaign::plan::ThroughputSearch;
use journal::record::LatencyTrial;

/// What a procedure's figures stand on.
pub(super) struct Stand {
    pub(super) load: Option<u64>,
    pub(super) drain_ns: u64,
    pub(super) objection: Option<String>,
}

impl Stand {
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
) -> Result<Stand, TrialError> {
    let found = throughput(trials, plan)?;
    let lower = found.goals.first().and_then(|goal| goal.lower);
    let lowest = plan.min_load.min(found.max_load);
    trials.result.throughput = Some(found);
    Ok(Stand::on(lower.unwrap_or(lowest), plan.drain_ns))
}

/// The throughput that shares are taken of, or why there is none.
pub(super) fn searched(
    trials: &mut Trials<'_>,
    plan: &ThroughputSearch,
) -> Result<Result<u64, Stand>, TrialError> {
    let mut stand = search(trials, plan)?;
    let goal = trials.bounds.first();
    if let Some(lower) = goal.and_then(|goal| goal.lower) {
        return Ok(Ok(lower));
    }
    let name = goal.map_or("", |goal| &goal.goal);
    stand.objection = Some(format!(
        "no load met the goal `{name}`, not even the lowest of {} frames/s, so there is no throughput to \
         take shares of: set a lower `min_load`, or a goal that allows more loss",
        plan.min_load
    ));
    Ok(Err(stand))
}

/// A share of a load, at least one frame per second.
pub(super) fn share(load: u64, percent: u64) -> u64 {
    let share = u128::from(load) * u128::from(percent) / 100;
    u64::try_from(share).unwrap_or(u64::MAX).max(1)
}

/// The latency of a frame trial.
pub(super) fn timed(percent: Option<u8>, run: &FrameRun) -> LatencyTrial {
    LatencyTrial {
        percent,
        load: run.trial.load,
        frames: run.latency.iter().map(|bucket| bucket.frames).sum(),
        histogram: run.latency.clone(),
    }
}
