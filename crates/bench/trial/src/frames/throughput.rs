//! Throughput: the search for the highest load that meets each goal, and its confirmation.

use super::confirm::{Confirmation, TRIES, is_disturbed};
use super::trials::{EVIDENCE_NS, Trials, latency_trial};
use super::{FrameRun, RigLoad};
use crate::error::TrialError;
use journal::record::{FrameTrial, GoalBounds, SearchEnd, SearchRecord};
use plan::{Profile, ThroughputSearch};
use search::{Limits, Method, Searcher, Step, Trial};

/// How to make the trials that confirm a search's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Confirm {
    /// Like the trials of the search.
    Plain,
    /// With samples: the first one that confirms provides the evidence.
    Sampled,
}

/// Most times that a search which has used up its time is confirmed: each failure leaves a lower
/// bound.
const ROUNDS_AFTER_TIMEOUT: u32 = 3;

/// Searches for all goals of the plan together.
pub(super) fn throughput(
    trials: &mut Trials<'_>,
    plan: &ThroughputSearch,
    confirm: Confirm,
) -> Result<SearchRecord, TrialError> {
    throughput_by(trials, plan, confirm, |trials, load| trials.make(load))
}

/// Searches with trials that `make` makes.
///
/// At the end the load of the first goal is tried again. A trial that contradicts it counts as
/// another trial of the search, which goes on: evidence that contradicts a figure replaces it.
pub(super) fn throughput_by(
    trials: &mut Trials<'_>,
    plan: &ThroughputSearch,
    confirm: Confirm,
    mut make: impl FnMut(&mut Trials<'_>, &RigLoad) -> Result<FrameRun, TrialError>,
) -> Result<SearchRecord, TrialError> {
    let (max_load, max_load_by) = trials.highest_load(plan.max_load)?;
    let goals: Vec<_> = plan.goals.iter().map(|goal| goal.criteria).collect();
    // A device or generator that is slower than the lowest load is measured at its maximum.
    let min_load = plan.min_load.min(max_load);
    let limits = Limits::time(plan.timeout_ns);
    let mut search = method(plan.profile).start(&goals, min_load, max_load, limits)?;
    // The flood trial is no result, but no other trial finds a shaper's bucket this full. At the
    // generator's maximum rate it shows no reserve.
    if let Some(flood) = trials.result.flood_trial {
        learn(&mut *search, &trials.result.trials[flood]);
    }
    let mut rounds_left = ROUNDS_AFTER_TIMEOUT;
    loop {
        while let Step::Measure(trial) = search.next() {
            let load = RigLoad::new(Some(trial.load), trial.duration_ns, plan.drain_ns);
            let run = undisturbed(trials, &load, plan.timeout_ns, &mut make)?;
            record(trials, plan, &mut *search, trial, &run);
        }
        // Without a limit, a device that fails each confirmation would keep a search going that has
        // no time left.
        if search.timed_out() {
            rounds_left -= 1;
        }
        let agrees = agrees(trials, plan, &mut *search, confirm, &mut make)?;
        if agrees || rounds_left == 0 {
            break;
        }
    }
    Ok(SearchRecord {
        max_load,
        max_load_by: max_load_by.to_owned(),
        goals: bounds(&*search, plan),
        end: if search.timed_out() {
            SearchEnd::TimedOut
        } else {
            SearchEnd::Reached
        },
        took_ns: search.took_ns(),
    })
}

/// Adds a trial to the search.
fn record(
    trials: &mut Trials<'_>,
    plan: &ThroughputSearch,
    search: &mut dyn Searcher,
    trial: Trial,
    run: &FrameRun,
) {
    learn(search, &run.trial);
    search.record(trial, run.trial.counts(), run.took_ns);
    trials.bounds = bounds(search, plan);
}

/// Passes the reserves that a trial shows, in each direction, to the search.
fn learn(search: &mut dyn Searcher, made: &FrameTrial) {
    let trial = Trial {
        load: made.load,
        duration_ns: made.duration_ns,
    };
    let each = made.each_direction().iter();
    for reserve in each.filter_map(|own| own.reserve) {
        search.learn(trial, reserve);
    }
}

/// Whether trials at the lower bound of the first goal agree with it, or there is no such bound;
/// otherwise the search goes on.
///
/// Only these trials decide, and each is at least as long as the first, which is longer than the
/// trials of a quick search: shorter trials cannot outvote them.
fn agrees(
    trials: &mut Trials<'_>,
    plan: &ThroughputSearch,
    search: &mut dyn Searcher,
    confirm: Confirm,
    make: &mut impl FnMut(&mut Trials<'_>, &RigLoad) -> Result<FrameRun, TrialError>,
) -> Result<bool, TrialError> {
    // Only the first goal is confirmed by trials: its load is the one of the figures.
    let (Some(goal), Some(lower)) = (plan.goals.first(), search.bounds(0).lower) else {
        return Ok(true);
    };
    let mut load = RigLoad::new(Some(lower), EVIDENCE_NS, plan.drain_ns);
    load.sampled = confirm == Confirm::Sampled;
    let mut runs = vec![undisturbed(trials, &load, plan.timeout_ns, make)?];
    // The last trial that was made: a repeated one replaces the earlier ones, which the tester may
    // have spoilt.
    let place = trials.result.trials.len() - 1;
    load.sampled = false;
    loop {
        let confirmation = Confirmation::by(goal, &trials.result.trials[place..]);
        let Some(duration_ns) = confirmation.next_ns() else {
            break;
        };
        load.duration_ns = duration_ns;
        runs.push(undisturbed(trials, &load, plan.timeout_ns, make)?);
    }
    // Recorded only when all are made: the search must not move its bounds while they are still
    // compared with this one.
    for run in &runs {
        let trial = Trial {
            load: lower,
            duration_ns: run.trial.duration_ns,
        };
        record(trials, plan, search, trial, run);
    }
    // Otherwise the trials have refuted the bound, or left the search undecided about it.
    if search.bounds(0).lower != Some(lower) || search.next() != Step::Done {
        return Ok(false);
    }
    if confirm == Confirm::Sampled {
        trials.result.evidence_trial = Some(place);
        trials.result.latency.push(latency_trial(None, &runs[0]));
    }
    Ok(true)
}

/// Makes a trial, and repeats it while it proves nothing about the device. The last one counts,
/// since a generator that is always late does not offer that load; its time includes the earlier
/// trials.
fn undisturbed(
    trials: &mut Trials<'_>,
    load: &RigLoad,
    timeout_ns: u64,
    make: &mut impl FnMut(&mut Trials<'_>, &RigLoad) -> Result<FrameRun, TrialError>,
) -> Result<FrameRun, TrialError> {
    let mut run = make(trials, load)?;
    for _ in 1..TRIES {
        if !is_disturbed(&run.trial) || run.took_ns > timeout_ns {
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
    let of = |(index, goal): (usize, &plan::Goal)| {
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
