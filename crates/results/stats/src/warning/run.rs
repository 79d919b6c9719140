//! Warnings about the course of the run.

use super::{Warning, WarningKind, counted, warning, were};
use crate::analysis::cores::{machines, machines_of};
use crate::cell::{CellResult, Progress};
use journal::Journal;
use journal::record::{Outcome, TrialRecord, in_brief};
use plan::{Cell, Measurement};
use std::collections::BTreeSet;
use units::human::duration_ns;

/// Cells with late repeats that are named.
const LATE_NAMED: usize = 4;
/// Fewer repeats than the source reports made.
const FEW_REPEATS: u32 = 3;

pub(super) fn not_ended(progress: &Progress) -> Option<Warning> {
    let (made, planned) = (
        progress.trials_planned - progress.trials_not_run,
        progress.trials_planned,
    );
    // A record that contradicts itself is not used, so an ended run may still lack trials.
    if progress.ended && made == planned {
        return None;
    }
    let text = if made == planned {
        // A run may be interrupted while it repeats trials.
        format!(
            "The run did not come to its end: all {planned} trials were made, but it may have been \
             repeating some."
        )
    } else {
        format!("The run did not come to its end: {made} of {planned} trials were made.")
    };
    warning(
        WarningKind::NotEnded,
        vec![],
        text,
        "Go on with it: cipherbench resume RUN.",
    )
}

pub(super) fn unfinished_line(journal: &Journal) -> Option<Warning> {
    of_reader(
        journal,
        WarningKind::UnfinishedLine,
        |found| matches!(found, journal::Warning::UnfinishedLine { .. }),
        "Only the trial in progress is lost: cipherbench resume RUN repeats it.",
    )
}

pub(super) fn no_checksums(journal: &Journal) -> Option<Warning> {
    of_reader(
        journal,
        WarningKind::NoChecksums,
        |found| matches!(found, journal::Warning::NoChecksums { .. }),
        "Compare the journal with a copy that nobody could change, or make a new run.",
    )
}

pub(super) fn contradiction(journal: &Journal) -> Option<Warning> {
    of_reader(
        journal,
        WarningKind::Contradiction,
        |found| matches!(found, journal::Warning::Contradiction { .. }),
        "cipherbench resume RUN measures it again.",
    )
}

/// The reader's warnings of one kind as one warning.
fn of_reader(
    journal: &Journal,
    kind: WarningKind,
    is_kind: impl Fn(&journal::Warning) -> bool,
    advice: &str,
) -> Option<Warning> {
    let found = journal.warnings.iter().filter(|found| is_kind(found));
    let texts: Vec<String> = found.map(ToString::to_string).collect();
    let text = texts.join("; ");
    // The reader's texts begin in lower case, as parts of a sentence. Without any text there is no
    // warning.
    let first = text.get(..1)?.to_uppercase();
    warning(kind, vec![], format!("{first}{}.", &text[1..]), advice)
}

/// Invalid trials are repeated only on request; a reader of the figures must know this, and why the
/// others were invalid.
pub(super) fn made_again(journal: &Journal) -> Option<Warning> {
    let latest = journal.latest_trials();
    let is_latest = |trial: &TrialRecord| {
        let last = latest.get(&(trial.cell.as_str(), trial.repeat));
        last.is_some_and(|last| std::ptr::eq(*last, trial))
    };
    // A later attempt of the same repeat replaces an earlier one in every figure, so this is about
    // the earlier ones.
    let again = journal.trials.iter().filter(|trial| !is_latest(trial));
    let again: Vec<(&str, &[String])> = again
        .filter_map(|trial| match &trial.outcome {
            Outcome::Invalid { reasons, .. } => Some((trial.cell.as_str(), &reasons[..])),
            _ => None,
        })
        .collect();
    let cells: BTreeSet<&str> = again.iter().map(|&(cell, _)| cell).collect();
    (!cells.is_empty()).then_some(())?;
    // Names of checks without their numbers, which differ in each attempt.
    let reasons = again.iter().flat_map(|&(_, reasons)| reasons);
    let names: BTreeSet<String> = reasons
        .map(|reason| format!("`{}`", in_brief(reason)))
        .collect();
    let text = format!(
        "{} invalid ({}) and repeated: the last attempt counts.",
        were(again.len() as u64, "trial"),
        Vec::from_iter(names).join(", ")
    );
    warning(
        WarningKind::Repeated,
        cells.into_iter().map(str::to_owned).collect(),
        text,
        "Read in journal.jsonl why the earlier attempts were invalid, and remove a cause that recurs.",
    )
}

/// Repeats that were measured at another time than the repeats of the baseline or of rivals.
pub(super) fn sittings_apart(cells: &[CellResult]) -> Option<Warning> {
    let late = || cells.iter().filter(|cell| !cell.late_repeats.is_empty());
    let named = late().take(LATE_NAMED).map(|cell| {
        let repeats = cell.late_repeats.iter().map(|late| late.repeat.to_string());
        let repeats: Vec<String> = repeats.collect();
        let noun = if repeats.len() == 1 {
            "repeat"
        } else {
            "repeats"
        };
        format!("{} ({noun} {})", cell.id, repeats.join(", "))
    });
    let mut named: Vec<String> = named.collect();
    let more = late().count().saturating_sub(LATE_NAMED);
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let all = || late().flat_map(|cell| &cell.late_repeats);
    let (least_ns, most_ns) = (
        all().map(|late| late.later_ns).min()?,
        all().map(|late| late.later_ns).max()?,
    );
    let apart = match (duration_ns(least_ns as f64), duration_ns(most_ns as f64)) {
        (least, most) if least == most => most,
        (least, most) => format!("{least} to {most}"),
    };
    warning(
        WarningKind::SittingsApart,
        late().map(|cell| cell.id.clone()).collect(),
        format!(
            "In {} {} measured after a resume, {apart} later than the same repeats of the baseline or of rivals: {}.",
            counted(late().count(), "cell"),
            were(all().count() as u64, "repeat"),
            named.join(", ")
        ),
        "A change of the machine between the two is in their ratio and rank; if that matters, measure all \
         of them in a new run.",
    )
}

pub(super) fn environment_changed(journal: &Journal) -> Option<Warning> {
    let header = &journal.header;
    let changed = journal.resumed.iter().any(|resumed| {
        let now = machines(&header.plan.lab, &resumed.environment);
        // Hosts are paired by name, as one of the two records may not describe both.
        // The machine of the run may change between two sittings if it is none of the hosts.
        let mut pairs = now.filter_map(|now| {
            let then = machines_of(header).find(|then| then.host == now.host)?;
            Some((then.environment, now.environment))
        });
        resumed.program != header.program
            // Memory, uptime and the like differ at every start and change no figure.
            || pairs.any(|(then, now)| {
                (&now.cpu_model, now.cpus, &now.kernel) != (&then.cpu_model, then.cpus, &then.kernel)
            })
    });
    changed.then_some(())?;
    warning(
        WarningKind::EnvironmentChanged,
        vec![],
        "The run was resumed with another program revision, kernel or machine: its trials were not \
         all made under the same conditions."
            .into(),
        "Start a new run if that matters.",
    )
}

pub(super) fn few_repeats(journal: &Journal, progress: &Progress) -> Option<Warning> {
    let repeats = journal.header.plan.repeats;
    (repeats < FEW_REPEATS).then_some(())?;
    warning(
        WarningKind::FewRepeats,
        vec![],
        format!(
            "Each cell {} {}: the spread says little.",
            if progress.trials_measured + progress.trials_skipped == progress.trials_planned {
                "was measured"
            } else {
                // Some repeats are invalid, failed or still to come.
                "is to be measured"
            },
            times(repeats)
        ),
        "Use at least 3 repeats, and 5 if devices are compared.",
    )
}

/// Without a tap between external devices, their encryption is only declared by their owner.
pub(super) fn not_proven(journal: &Journal) -> Option<Warning> {
    let plan = &journal.header.plan;
    let cables = plan.lab.external.as_ref()?;
    let cells = plan.cells.iter();
    let cells: Vec<String> = cells
        .filter(|cell| {
            let adapter = &cell.dut.adapter;
            // With a tap the filter watches the link between the boxes.
            cables.tap.is_none() && adapter.external().is_some() && adapter.encrypts()
        })
        .map(|cell| cell.id.clone())
        .collect();
    (!cells.is_empty()).then_some(())?;
    let text = format!(
        "That anything was encrypted in {} was NOT PROVEN: the traffic between the boxes was not observed.",
        counted(cells.len(), "cell")
    );
    warning(
        WarningKind::NotProven,
        cells,
        text,
        "Lead the link between the boxes through two interfaces of one machine of the lab, and name them as the lab's `tap`.",
    )
}

/// Frames are spread over tunnels; a tool uses one pair of addresses, and so one tunnel.
pub(super) fn one_tunnel(journal: &Journal) -> Option<Warning> {
    let by_tool = |cell: &&Cell| !matches!(cell.measurement, Measurement::Frames(_));
    let cells = journal.header.plan.cells.iter().filter(by_tool);
    let cells: Vec<&Cell> = cells
        .filter(|cell| cell.dut.adapter.profile().tunnels > 1)
        .collect();
    (!cells.is_empty()).then_some(())?;
    warning(
        WarningKind::OneTunnel,
        cells.iter().map(|cell| cell.id.clone()).collect(),
        format!(
            "In {} all traffic goes through the first of several tunnels: the others are there, and idle.",
            counted(cells.len(), "cell")
        ),
        "Measure many tunnels with frame tests, which spread their flows over all of them.",
    )
}

fn times(count: u32) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        _ => format!("{count} times"),
    }
}
