//! Warnings about frame tests.

use super::{Warning, WarningKind, about, counted, warning};
use crate::analysis::verdict::TESTER_LIMITED_RATIO;
use crate::cell::CellResult;
use crate::figures::frames::Limit;
use crate::figures::frames::{FrameFigures, LossAccount};
use crate::figures::repeats::Total;
use journal::Journal;
use journal::record::{FrameTrial, GoalOutcome, Outcome, TrialRecord};
use plan::{Event, ImpairProfile, Measurement, ThroughputSearch};
use std::collections::{BTreeMap, BTreeSet};

fn with(cells: &[CellResult], found: impl Fn(&FrameFigures) -> bool) -> Vec<&CellResult> {
    let is = |cell: &&CellResult| cell.frames().is_some_and(&found);
    cells.iter().filter(is).collect()
}

/// Cells with a goal that had this outcome in a repeat.
fn ended(cells: &[CellResult], outcome: GoalOutcome) -> Vec<&CellResult> {
    with(cells, |frames| {
        let goals = frames.throughput.iter().flat_map(|found| &found.goals);
        let mut outcomes = goals.flat_map(|goal| &goal.outcomes);
        outcomes.any(|found| found.outcome == outcome)
    })
}

/// Without a lower bound there is no figure. RFC 9971 requires that irregular results are marked.
pub(super) fn lowest_load_fails(cells: &[CellResult]) -> Option<Warning> {
    about(
        WarningKind::Irregular,
        ended(cells, GoalOutcome::MinLoadFails),
        |_, count| {
            format!(
                "In {count} not even the lowest load met a goal (irregular, RFC 9971): there is no figure \
                 of it."
            )
        },
        "Lower `min_load`; if the device carries hardly anything, look first at its losses.",
    )
}

/// Without an upper bound the figure is a minimum, unless the line bounds it.
pub(super) fn highest_load_meets(cells: &[CellResult]) -> Option<Warning> {
    let mut found = ended(cells, GoalOutcome::MaxLoadMeets);
    found.retain(|cell| {
        let search = cell.frames().and_then(|frames| frames.throughput.as_ref());
        // A device that carries the whole line has no higher rate to find.
        search.is_some_and(|search| !search.is_bounded_by_line())
    });
    about(
        WarningKind::Irregular,
        found,
        |_, count| {
            format!(
                "In {count} the highest load met a goal (irregular, RFC 9971): the figure is a lower \
                 bound."
            )
        },
        "Raise `max_load` if the campaign sets it; if the generator is the limit, give the \
         stations more cores.",
    )
}

/// Cells of the plan with a search that meets the condition.
fn searching(journal: &Journal, is: impl Fn(&ThroughputSearch) -> bool) -> Vec<String> {
    let cells = journal.header.plan.cells.iter();
    let found = cells.filter(|cell| match &cell.measurement {
        Measurement::Frames(test) => test.procedure.search().is_some_and(&is),
        _ => false,
    });
    found.map(|cell| cell.id.clone()).collect()
}

/// If bounds are closer than the loss that a goal allows, they differ by less than the uncounted
/// loss.
pub(super) fn narrow_goals(journal: &Journal) -> Option<Warning> {
    let narrow = searching(journal, |search| {
        let mut goals = search.goals.iter();
        goals.any(|goal| goal.criteria.width_ppm < goal.criteria.loss_ratio_ppm)
    });
    (!narrow.is_empty()).then_some(())?;
    let text = format!(
        "In {} the width of a goal is less than its loss ratio: its bounds differ by less than the loss \
         that it does not count.",
        counted(narrow.len(), "cell")
    );
    warning(
        WarningKind::NarrowGoal,
        narrow,
        text,
        "Compare by the conditional throughput, or give the goal a `width` of its `loss` or more.",
    )
}

/// RFC 9971 recommends one final trial duration for all goals of a search.
pub(super) fn unequal_goals(journal: &Journal) -> Option<Warning> {
    let unequal = searching(journal, |search| {
        let mut durations = search.goals.iter().map(|goal| goal.criteria.final_trial_ns);
        let first = durations.next();
        durations.any(|duration| Some(duration) != first)
    });
    (!unequal.is_empty()).then_some(())?;
    let text = format!(
        "In {} goals of one search have trials of different final durations: the longer ones count for \
         every goal, and may lower a bound that short trials would not.",
        counted(unequal.len(), "cell")
    );
    warning(
        WarningKind::UnequalGoals,
        unequal,
        text,
        "Give all goals of a search the same `final`, or search for them in separate trials.",
    )
}

/// Frames that a queue holds when the load ends were not carried at that load.
pub(super) fn carried_by_queue(cells: &[CellResult]) -> Option<Warning> {
    let queued = with(cells, |frames| {
        let load = frames.loads().first();
        load.is_some_and(|load| load.account.queued > 0)
    });
    about(
        WarningKind::CarriedByQueue,
        queued,
        |_, count| {
            format!(
                "In {count} one-way delay grew as long as the load lasted: a queue carried what the device \
                 did not, and the forwarding rate cannot be sustained."
            )
        },
        "Read the throughput, which counts such a load as too much, or make the trial longer than the \
         queue is deep.",
    )
}

/// A search that ends before its bounds are close gives a lower bound, or no figure.
pub(super) fn timed_out(cells: &[CellResult]) -> Option<Warning> {
    let late = with(cells, |frames| {
        let search = frames.throughput.as_ref();
        search.is_some_and(|found| {
            let mut outcomes = found.goals.iter().flat_map(|goal| &goal.outcomes);
            // A search may be out of time after the last goal was reached, while it confirmed the
            // load.
            found.timed_out > 0 || outcomes.any(|one| one.outcome == GoalOutcome::Unfinished)
        })
    });
    let lacks = |cell: &&&CellResult| {
        let search = cell.frames().and_then(|frames| frames.throughput.as_ref());
        search.is_some_and(|found| found.goals.iter().any(|goal| goal.time_was_up > 0))
    };
    about(
        WarningKind::SearchTimedOut,
        late,
        |cells, count| {
            let lacking = match cells.iter().filter(lacks).count() {
                0 => String::new(),
                all if all == cells.len() => "; one of them is missing".to_owned(),
                some => format!("; in {some} one of them is missing"),
            };
            format!(
                "In {count} a search ran out of time before its bounds were as close as asked (irregular, \
                 RFC 9971){lacking}."
            )
        },
        "Raise the search's `timeout`, or ask for a wider goal (`width`).",
    )
}

pub(super) fn no_calibration(journal: &Journal) -> Option<Warning> {
    let cells = &journal.header.plan.cells;
    // By the plan and not by figures: a rig that failed has its reason in the tables.
    let rigs = cells.iter().filter(|cell| cell.calibrates());
    let groups: BTreeSet<&str> = rigs.map(|cell| cell.group.as_str()).collect();
    let judged = cells.iter().filter(|cell| cell.measurement.has_ceiling());
    let alone = judged.filter(|cell| !groups.contains(cell.group.as_str()));
    let alone: Vec<String> = alone.map(|cell| cell.id.clone()).collect();
    (!alone.is_empty()).then_some(())?;
    let text = format!(
        "{} cannot be distinguished from the tester's own limit: nothing measures the rig without a device there.",
        counted(alone.len(), "cell")
    );
    warning(
        WarningKind::NoCalibration,
        alone,
        text,
        "Leave out `calibrate: off`, or add `straight` to the devices; to compare two runs of one tester neither is \
         needed.",
    )
}

pub(super) fn tester_limited(cells: &[CellResult]) -> Option<Warning> {
    let limited = |cell: &&CellResult| {
        let limit = cell.verdict().map(|verdict| verdict.limit);
        limit == Some(Limit::TesterLimited) && !cell.measures_rig()
    };
    about(
        WarningKind::TesterLimited,
        cells.iter().filter(limited),
        |_, count| {
            format!(
                "In {count} the tester is the limit (at least {:.0} % of its rate without a device, \
                 or loss of its own): the figure is a lower bound of the device's.",
                100.0 * TESTER_LIMITED_RATIO
            )
        },
        "Give the stations more cores or a faster port before you compare devices by these figures.",
    )
}

/// A search counts frames that were not offered as lost, so that a shortfall shows; a load does
/// not.
pub(super) fn offered_shortfall(cells: &[CellResult]) -> Option<Warning> {
    // More than 5 %, in integers.
    let short = |account: &LossAccount| account.not_sent.saturating_mul(20) > account.intended;
    let found = with(cells, |frames| {
        frames.loads().iter().any(|load| short(&load.account))
    });
    about(
        WarningKind::OfferedShortfall,
        found,
        |_, count| {
            format!(
                "In {count} the generator sent less than 95 % of the frames that a load asked for."
            )
        },
        "Read the offered load, not the intended one; give the stations more cores.",
    )
}

/// The trial with the samples lost more than the goal allows. If later trials outweighed it, the
/// figure is valid; otherwise it is missing (`throughput-confirmed`).
pub(super) fn lossy_evidence(cells: &[CellResult]) -> Option<Warning> {
    let lossy = with(cells, |frames| {
        let goal = frames
            .throughput
            .as_ref()
            .and_then(|found| found.goals.first());
        let Some((goal, seen)) = goal.zip(frames.at_evidence.as_ref()) else {
            return false;
        };
        let is_lossy = |account: &LossAccount| {
            let allowed = u128::from(account.intended) * u128::from(goal.parameters.loss_ratio_ppm);
            u128::from(account.lost) * 1_000_000 > allowed
        };
        let mut directions = seen.directions.iter();
        // The sum of both directions may be within the goal while one of them is not.
        is_lossy(&seen.account) || directions.any(|one| is_lossy(&one.account))
    });
    about(
        WarningKind::LossyEvidence,
        lossy,
        |_, count| {
            format!(
                "In {count} the trial whose evidence is recorded lost more than the first goal allows, at the \
                 very load that the search found: not every trial meets the goal there."
            )
        },
        "Read the figure as a load that most trials carry; a goal with a lower `exceed`, or with \
         longer trials, finds one that all carry.",
    )
}

/// Frames that came out damaged or more than once, in any frame trial, valid or not: the elements
/// of a path do neither. Under hostile packets, the trial measures both, so it is left out.
pub(super) fn damaged(journal: &Journal) -> Option<Warning> {
    let cells = journal.header.plan.cells.iter();
    let cells = cells.filter(|cell| !is_attacked(&cell.measurement));
    let mut found: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for cell in cells {
        // All attempts and not only the latest: damage is a finding about the device in an invalid
        // trial too.
        let trials = journal.trials.iter().filter(|trial| trial.cell == cell.id);
        for trial in trials.flat_map(frame_trials) {
            // Between the gateways the path itself may send frames twice, as the campaign orders.
            // It damages only what the gateways then refuse.
            let orders = cell.impair.as_ref().is_some_and(ImpairProfile::duplicates);
            let duplicated = if orders { 0 } else { trial.duplicated };
            let counts = [trial.corrupted, duplicated];
            // A cell without damage must not get an entry, as each entry is named in the
            // warning.
            if counts != [0, 0] {
                let sums = found.entry(&cell.id).or_default();
                *sums = [0, 1].map(|at: usize| sums[at].saturating_add(counts[at]));
            }
        }
    }
    let sum = |of: usize| found.values().map(|counts| counts[of]).total();
    (!found.is_empty()).then_some(())?;
    let text = format!(
        "In {} frames came out damaged ({}) or more than once ({}), which nothing on the path but the \
         device does.",
        counted(found.len(), "cell"),
        sum(0),
        sum(1)
    );
    warning(
        WarningKind::DamagedFrames,
        found.into_keys().map(str::to_owned).collect(),
        text,
        "Look for what changes or repeats frames on the way: a tunnel must never do so.",
    )
}

/// The frame trials of a trial, valid or not.
fn frame_trials(trial: &TrialRecord) -> impl Iterator<Item = &FrameTrial> {
    let measured = match &trial.outcome {
        Outcome::Measured(measured) | Outcome::Invalid { measured, .. } => Some(measured),
        Outcome::Failed { .. } => None,
    };
    let frames = measured.and_then(|measured| measured.frames());
    frames.into_iter().flat_map(|frames| &frames.trials)
}

fn is_attacked(measurement: &Measurement) -> bool {
    match measurement {
        Measurement::Frames(test) => {
            matches!(test.procedure.event(), Some(Event::Hostile { .. }))
        }
        _ => false,
    }
}
