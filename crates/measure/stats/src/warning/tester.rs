//! Warnings about the tester itself: what it read of the machine, its sender and the path during
//! the trials.
//!
//! Each covers every trial that counts, also one that is invalid for another reason.

use super::{Warning, WarningKind, counted, warning};
use journal::Journal;
use journal::record::{Cpu, FrameResult, FrameTrial, Measured, Outcome, TrialRecord};
use std::collections::BTreeSet;
use units::human::{duration_ns, frame_rate};

/// Cells that a warning describes one by one.
const DESCRIBED: usize = 3;

/// The trials that count, with what was read in them, in the order made.
fn readings(journal: &Journal) -> Vec<(&TrialRecord, &Measured)> {
    let latest = journal.latest_trials();
    let counts = |trial: &&TrialRecord| {
        let last = latest.get(&(trial.cell.as_str(), trial.repeat));
        last.is_some_and(|last| std::ptr::eq(*last, *trial))
    };
    let trials = journal.trials.iter().filter(counts);
    let read = trials.filter_map(|trial| match &trial.outcome {
        Outcome::Measured(measured) | Outcome::Invalid { measured, .. } => {
            Some((trial, measured.as_ref()))
        }
        Outcome::Failed { .. } => None,
    });
    read.collect()
}

/// A finding of one trial: its cell, how much it is, and the words.
struct Finding<'a> {
    cell: &'a str,
    much: u64,
    words: String,
}

/// The cells of the findings in the order made, each once, and the worst findings in words: one of
/// each cell.
fn worst(mut findings: Vec<Finding<'_>>) -> Option<(Vec<String>, String)> {
    findings.first()?;
    let mut cells: Vec<String> = Vec::new();
    for found in &findings {
        if cells.iter().all(|known| known != found.cell) {
            cells.push(found.cell.to_owned());
        }
    }
    findings.sort_by_key(|found| std::cmp::Reverse(found.much));
    let mut described = BTreeSet::new();
    findings.retain(|found| described.insert(found.cell));
    let words: Vec<&str> = findings
        .iter()
        .take(DESCRIBED)
        .map(|found| found.words.as_str())
        .collect();
    let mut words = words.join("; ");
    if let Some(more) = findings
        .len()
        .checked_sub(DESCRIBED)
        .filter(|more| *more > 0)
    {
        words += &format!("; and {} more", counted(more, "cell"));
    }
    Some((cells, words))
}

/// Others used the machine while a figure was measured.
pub(super) fn machine_taken(journal: &Journal) -> Option<Warning> {
    let found = readings(journal).into_iter().filter_map(|(trial, read)| {
        let cpu = &read.cpu;
        let percent = cpu.taken_percent()?;
        let hypervisor = cpu.steal_ns.saturating_mul(100) / cpu.wall_ns;
        let idle = match cpu.idle_ns {
            Some(idle_ns) => format!(
                ", with {:.1} cores idle",
                idle_ns as f64 / cpu.wall_ns as f64
            ),
            None => String::new(),
        };
        (percent > Cpu::TAKEN_PERCENT).then(|| Finding {
            cell: &trial.cell,
            much: percent,
            words: format!(
                "`{}`, repeat {}: {percent} % of one core, of which the hypervisor {hypervisor} %{idle}",
                trial.cell, trial.repeat
            ),
        })
    });
    let (cells, words) = worst(found.collect())?;
    let text = format!(
        "In {} other programs or the hypervisor took more than {} % of one core while the figure was \
         measured: {words}.",
        counted(cells.len(), "cell"),
        Cpu::TAKEN_PERCENT
    );
    let advice = "End the other programs, or use a machine that does nothing else, and measure again: \
                  what they took, the path did not have.";
    warning(WarningKind::MachineTaken, cells, text, advice)
}

/// The trials that a figure rests on: of a search those at its bounds, and of what follows a search
/// those at the loads that were timed; of others all but the one that found the highest load.
fn bearing(found: &FrameResult) -> impl Iterator<Item = &FrameTrial> {
    let bounds = found.throughput.iter().flat_map(|search| &search.goals);
    let mut loads: Vec<u64> = bounds
        .flat_map(|goal| [goal.lower, goal.upper])
        .flatten()
        .collect();
    loads.extend(found.latency.iter().map(|timed| timed.load));
    let searched = found.throughput.is_some();
    let trials = found.trials.iter().enumerate();
    trials
        .filter(move |(place, trial)| {
            found.flood_trial != Some(*place) && (!searched || loads.contains(&trial.load))
        })
        .map(|(_, trial)| trial)
}

/// A sender stood still, and its frames came in bursts afterwards.
pub(super) fn sender_stalled(journal: &Journal) -> Option<Warning> {
    let found = readings(journal).into_iter().filter_map(|(record, read)| {
        let stalled = bearing(read.frames()?).filter(|trial| trial.sender_stalled());
        let trial = stalled.max_by_key(|trial| trial.late_ns_max)?;
        Some(Finding {
            cell: &record.cell,
            much: trial.late_ns_max,
            words: format!(
                "`{}`, repeat {}: it stood still for {} in {} at {}, and {} of {} frames left more than 1 ms late",
                record.cell,
                record.repeat,
                duration_ns(trial.late_ns_max as f64),
                duration_ns(trial.duration_ns as f64),
                frame_rate(trial.load as f64),
                trial.late_frames,
                trial.sent
            ),
        })
    });
    let (cells, words) = worst(found.collect())?;
    let text = format!(
        "In {} the sending station stood still for {} or more, or sent over {} % of its frames late, in a \
         trial that a figure rests on: {words}.",
        counted(cells.len(), "cell"),
        duration_ns(FrameTrial::STALL_NS as f64),
        FrameTrial::LATE_PERCENT
    );
    let advice = "Loss and the upper percentiles of latency there are in part the tester's: measure on a \
                  machine that does nothing else, or give the stations more cores.";
    warning(WarningKind::SenderStalled, cells, text, advice)
}

/// A receiver stood still, and frames waited for it.
pub(super) fn receiver_stalled(journal: &Journal) -> Option<Warning> {
    let found = readings(journal).into_iter().filter_map(|(record, read)| {
        let stalled = bearing(read.frames()?).filter(|trial| trial.receiver_stalled());
        let trial = stalled.max_by_key(|trial| trial.receiver_stood_ns_max)?;
        Some(Finding {
            cell: &record.cell,
            much: trial.receiver_stood_ns_max,
            words: format!(
                "`{}`, repeat {}: for {} in {} at {}",
                record.cell,
                record.repeat,
                duration_ns(trial.receiver_stood_ns_max as f64),
                duration_ns(trial.duration_ns as f64),
                rate(trial.load),
            ),
        })
    });
    let (cells, words) = worst(found.collect())?;
    let text = format!(
        "In {} the receiving station did not look at its port for {} or more in a trial that a figure rests \
         on: {words}.",
        counted(cells.len(), "cell"),
        duration_ns(FrameTrial::STALL_NS as f64)
    );
    let advice = "Frames waited in its buffer meanwhile: what did not fit is in no figure of the device's, but \
                  where the kernel notes no arrival times the latency is too long. Measure on a machine that \
                  does nothing else, or give the stations more cores.";
    warning(WarningKind::ReceiverStalled, cells, text, advice)
}

/// A load in words.
fn rate(load: u64) -> String {
    match load {
        0 => "full speed".to_owned(),
        load => frame_rate(load as f64),
    }
}

/// Counters tell where packets were lost.
pub(super) fn lost_at(journal: &Journal) -> Option<Warning> {
    let found = readings(journal).into_iter().filter_map(|(record, read)| {
        let lost = &read.evidence.lost_at;
        let most = lost.iter().map(journal::record::LostAt::packets).max()?;
        let words: Vec<String> = lost.iter().map(journal::record::LostAt::words).collect();
        Some(Finding {
            cell: &record.cell,
            much: most,
            words: format!(
                "`{}`, repeat {}, {}",
                record.cell,
                record.repeat,
                words.join(" and ")
            ),
        })
    });
    let (cells, words) = worst(found.collect())?;
    let text = format!(
        "In {} counters of the path tell where packets were lost in the trial whose evidence was read: \
         {words}.",
        counted(cells.len(), "cell")
    );
    let advice = "What was lost inside a gateway, or in the queue of an interface that leads to it, is the \
                  device's; what was lost between them, or inside a station, is not.";
    warning(WarningKind::LostAt, cells, text, advice)
}
