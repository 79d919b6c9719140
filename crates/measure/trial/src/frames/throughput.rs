//! Throughput: the search for the highest load that meets each goal.

use super::trials::Trials;
use super::{FrameRun, RigLoad};
use crate::error::TrialError;
use campaign::plan::{Profile, ThroughputSearch};
use journal::record::{GoalBounds, SearchEnd, ThroughputFound};
use search::{Limits, Method, Searcher, Step};

/// Searches for all goals of the plan together.
pub(super) fn throughput(
    trials: &mut Trials<'_>,
    plan: &ThroughputSearch,
) -> Result<ThroughputFound, TrialError> {
    throughput_by(trials, plan, |trials, load| trials.make(load))
}

/// Searches with trials that `make` makes.
pub(super) fn throughput_by(
    trials: &mut Trials<'_>,
    plan: &ThroughputSearch,
    mut make: impl FnMut(&mut Trials<'_>, &RigLoad) -> Result<FrameRun, TrialError>,
) -> Result<ThroughputFound, TrialError> {
    let (max_load, max_load_by) = trials.highest_load(plan.max_load)?;
    let goals: Vec<_> = plan.goals.iter().map(|goal| goal.criteria).collect();
    // A device or generator that is slower than the lowest load is measured at its own maximum.
    let min_load = plan.min_load.min(max_load);
    let limits = Limits::time(plan.timeout_ns);
    let mut search = method(plan.profile).start(&goals, min_load, max_load, limits)?;
    while let Step::Measure(trial) = search.next() {
        let load = RigLoad::new(Some(trial.load), trial.duration_ns, plan.drain_ns);
        let run = undisturbed(trials, &load, plan.timeout_ns, &mut make)?;
        search.record(trial, run.trial.counts(), run.took_ns);
        trials.bounds = bounds(&*search, plan);
    }
    Ok(ThroughputFound {
        max_load,
        max_load_by: max_load_by.to_owned(),
        goals: bounds(&*search, plan),
        end: match search.timed_out() {
            true => SearchEnd::TimedOut,
            false => SearchEnd::Reached,
        },
        took_ns: search.took_ns(),
    })
}

/// Most trials at one load, the first included, while the tester itself may be the cause.
const TRIES: u32 = 3;

/// Makes a trial, and repeats it while it says nothing of the device: the generator was late, or
/// frames found a queue of the machine full that belongs to no interface of the path. The last one
/// counts, since a generator that is always late does not offer that load; its time includes those
/// before.
fn undisturbed(
    trials: &mut Trials<'_>,
    load: &RigLoad,
    timeout_ns: u64,
    make: &mut impl FnMut(&mut Trials<'_>, &RigLoad) -> Result<FrameRun, TrialError>,
) -> Result<FrameRun, TrialError> {
    let mut run = make(trials, load)?;
    for _ in 1..TRIES {
        let is_disturbed = run.trial.took_too_long() || run.trial.unattributed_loss() > 0;
        if !is_disturbed || run.took_ns > timeout_ns {
            break;
        }
        let before_ns = run.took_ns;
        run = make(trials, load)?;
        run.took_ns = run.took_ns.saturating_add(before_ns);
    }
    Ok(run)
}

/// Returns the search method of a profile.
const fn method(profile: Profile) -> Method {
    match profile {
        Profile::Fast | Profile::Rfc2544 | Profile::Custom => Method::Mlr,
        Profile::Tst009 => Method::Tst009,
    }
}

fn bounds(search: &dyn Searcher, plan: &ThroughputSearch) -> Vec<GoalBounds> {
    let of = |(index, goal): (usize, &campaign::plan::Goal)| {
        let found = search.bounds(index);
        GoalBounds {
            goal: goal.name.clone(),
            lower: found.lower,
            upper: found.upper,
            conditional_throughput: found.conditional_throughput,
            lower_trials: found.lower_trials,
            upper_trials: found.upper_trials,
            outcome: Some(found.outcome),
        }
    };
    plan.goals.iter().enumerate().map(of).collect()
}
