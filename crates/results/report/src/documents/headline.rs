//! The run in a few words and numbers.

mod answer;
mod findings;
mod share;

use crate::kit::fact::{Fact, Subject};
use crate::kit::format::{counted, percent};
use crate::kit::table::Cell;
use crate::layout::Run;
use crate::layout::evidence::Summary;
use crate::order::unique;
use crate::topic;
use crate::topic::frames::throughput;
use crate::topic::trouble;
use stats::{CellResult, LARGE_SPREAD_PERCENT, Reason, Status, WarningKind, was};

/// The beginning of every document.
pub(super) struct FirstScreen {
    /// The run in one sentence; `None` without any figure.
    pub(crate) answer: Option<String>,
    /// Findings from comparisons, the most specific first.
    pub(crate) findings: Vec<String>,
    pub(crate) devices: Vec<Headline>,
    /// How far the run can be relied on.
    pub(crate) soundness: String,
}

impl FirstScreen {
    pub(super) fn of(run: &Run<'_>) -> Self {
        // The answer and the cards are about the same devices, so these come first.
        let devices = headlines(run);
        Self {
            answer: answer::answer(run, &devices),
            findings: findings::findings(run),
            devices,
            soundness: soundness(run),
        }
    }
}

/// Summary of a device.
pub(crate) struct Headline {
    /// Its name.
    pub(crate) device: String,
    /// Its index in the palette.
    pub(crate) color: usize,
    /// The facts, most important first.
    pub(crate) facts: Vec<Fact>,
    /// Without facts: the reason.
    pub(crate) without: Option<String>,
    /// Reasons to doubt its figures; may be empty.
    pub(crate) doubt: String,
}

/// Returns the headlines of all devices but baselines; if there are only baselines, those.
fn headlines(run: &Run<'_>) -> Vec<Headline> {
    let cells = &run.results.cells;
    let only_baselines = cells
        .iter()
        .all(|cell| cell.baseline || cell.measures_rig());
    // Cells of the rig measure the tester, so they are about no device.
    let counts = |cell: &&CellResult| only_baselines || !(cell.baseline || cell.measures_rig());
    // In the order of the plan, which the campaign has chosen.
    let names = unique(cells.iter().filter(counts).map(|cell| cell.dut.as_str()));
    let (sets, frame_sets) = (run.sets(), run.frame_sets());
    let headline = |name: &str| {
        let facts = topic::facts(&Subject {
            run,
            device: name,
            sets: &sets,
            frame_sets: &frame_sets,
        });
        Headline {
            device: run.label(name),
            color: run.color(name),
            without: facts.is_empty().then(|| without(run, name)),
            doubt: if facts.is_empty() {
                String::new()
            } else {
                doubt(run, name)
            },
            facts,
        }
    };
    names.into_iter().map(headline).collect()
}

/// Why a device has no figure: the result of its searches, or the first reason recorded by any of
/// its trials; and the number of further reasons.
fn without(run: &Run<'_>, device: &str) -> String {
    let cells = || run.results.cells.iter().filter(|cell| cell.dut == device);
    // The result of a search says more than the reason of a trial, since its trials were valid.
    let searches = unique(cells().filter_map(throughput::without));
    if let [first, others @ ..] = searches.as_slice() {
        return format!("No figure: {first}{}", and_more(others.len()));
    }
    let all: Vec<&Reason> = cells().flat_map(|cell| &cell.reasons).collect();
    // The numbers of a check differ in each trial, and are no further reasons.
    let kinds = unique(all.iter().map(|reason| trouble::kind(reason)));
    match all.first() {
        Some(first) => {
            let first = match first.explanation {
                Some(_) => first.in_short(),
                None => in_short(&first.text),
            };
            // Joins the lines of an error and its help.
            let first = Cell::reason(format!("No figure: {first}")).text;
            first + &and_more(kinds.len() - 1)
        }
        // After the end of a run, `yet` would promise a figure.
        None if run.results.progress.ended => {
            "No figure: no trial gave one; the tables say why.".to_owned()
        }
        None => "No figure yet.".to_owned(),
    }
}

/// An error without the lines below its help, which are the end of a program's log.
fn in_short(error: &str) -> String {
    let is_help = |line: &&str| line.starts_with("help: ");
    let lines = error.lines();
    let shown = error.lines().position(|line| is_help(&line)).unwrap_or(0);
    lines.take(shown + 1).collect::<Vec<_>>().join("\n")
}

/// ` (and 2 more reasons in the tables)`; may be empty.
fn and_more(reasons: usize) -> String {
    match reasons {
        0 => String::new(),
        _ => format!(
            " (and {} in the tables)",
            counted(reasons as u64, "more reason")
        ),
    }
}

/// Reasons to doubt the figures of one device: cells without a figure, and scattered repeats.
fn doubt(run: &Run<'_>, device: &str) -> String {
    let own = || run.results.cells.iter().filter(|cell| cell.dut == device);
    let mut parts = Vec::new();
    // Cells yet to be measured are no reason for doubt.
    let ended = run.results.progress.ended;
    let without = own().filter(|cell| match cell.status {
        Status::Invalid | Status::Failed => true,
        Status::NotRun => ended && !cell.is_skipped(),
        Status::Measured | Status::Partly => false,
    });
    let without = without.count();
    if without > 0 {
        parts.push(format!(
            "no figure in {without} of {}",
            counted(own().count() as u64, "cell")
        ));
    }
    let partly = own().filter(|cell| cell.status == Status::Partly).count();
    if partly > 0 && ended {
        let cells = counted(partly as u64, "cell");
        parts.push(format!("repeats are invalid or missing in {cells}"));
    }
    let spreads = own().filter_map(|cell| Some((cell, cell.spread_percent()?)));
    let wide = spreads
        .clone()
        .filter(|(_, spread)| *spread > LARGE_SPREAD_PERCENT);
    let wide = wide.count();
    // Only the widest spread is named, as the table of spreads has all.
    let widest = spreads.max_by(|(_, a), (_, b)| a.total_cmp(b));
    if let Some((cell, spread)) = widest.filter(|(_, spread)| *spread > LARGE_SPREAD_PERCENT) {
        // The cell need not be that of a figure above it.
        let whose = match own().count() {
            1 => String::new(),
            all => format!(" in {wide} of {all} cells (most: `{}`)", cell.id),
        };
        parts.push(format!(
            "repeats are up to {} from their mean{whose}",
            percent(spread)
        ));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!("Doubtful: {}", parts.join(", "))
    }
}

/// How far the run can be relied on: `All 42 trials were measured, and all 378 checks passed.`
fn soundness(run: &Run<'_>) -> String {
    let progress = &run.results.progress;
    let checks = Summary::total(run);
    // Skipped trials are beyond the machine's means, so they are no shortcoming of this run.
    let trials = match progress.trials_planned - progress.trials_skipped {
        1 if progress.trials_measured == 1 => "The one trial was measured".to_owned(),
        planned if planned == progress.trials_measured => {
            format!("All {} were measured", counted(planned, "trial"))
        }
        planned => {
            let mut parts = vec![format!(
                "Of {}, {} {} measured",
                counted(planned, "trial"),
                progress.trials_measured,
                was(progress.trials_measured)
            )];
            for (count, what) in [
                (progress.trials_invalid, "found invalid"),
                (progress.trials_failed, "failed"),
                (progress.trials_not_run, "not run"),
            ] {
                if count > 0 {
                    parts.push(format!("{count} {what}"));
                }
            }
            parts.join(", ")
        }
    };
    let bad = match progress.trials_with_bad_device {
        0 => String::new(),
        bad => format!(
            " In {} of them a device failed or gave a wrong result.",
            counted(bad, "trial")
        ),
    };
    let checked = match (checks.checks, checks.passed) {
        (0, _) => format!("{trials}."),
        (1, 1) => format!("{trials}, and the one check of the evidence passed."),
        (made, passed) if made == passed => {
            format!(
                "{trials}, and all {} of the evidence passed.",
                counted(made as u64, "check")
            )
        }
        (made, passed) => format!("{trials}; {passed} of {made} checks of the evidence passed."),
    };
    checked + &unjudged(run, &checks) + &bad + &without_bounds(run) + &left_out(run)
}

/// ` In 20 trials no check judged whether other programs disturbed them …`: without it, the passed
/// checks would contradict the warning that others used the machine. May be empty.
fn unjudged(run: &Run<'_>, checks: &Summary) -> String {
    let mut warnings = run.results.warnings.iter();
    let is_taken = warnings.any(|warning| warning.kind == WarningKind::MachineTaken);
    if !is_taken || checks.machine_unjudged == 0 {
        return String::new();
    }
    format!(
        " In {} no check judged whether other programs disturbed them (shorter than 500 ms, or in \
         memory); a warning says how much these took.",
        counted(checks.machine_unjudged, "trial")
    )
}

/// ` The searches of 2 cells gave no figure; the tables say why.`; may be empty. Searches of which
/// only some repeats found a lower bound have a figure, of these repeats.
fn without_bounds(run: &Run<'_>) -> String {
    let cells = run.results.cells.iter();
    let without = cells.filter(|cell| throughput::without(cell).is_some());
    let (partly, wholly): (Vec<_>, Vec<_>) =
        without.partition(|cell| throughput::is_partly_without(cell));
    let wholly = match wholly.len() {
        0 => String::new(),
        1 => " The search of one cell gave no figure; the tables say why.".to_owned(),
        cells => format!(" The searches of {cells} cells gave no figure; the tables say why."),
    };
    let partly = match partly.len() {
        0 => String::new(),
        1 => " In one cell not every repeat found a throughput; the tables say how many did, and why.".to_owned(),
        cells => format!(" In {cells} cells not every repeat found a throughput; the tables say how many did, and why."),
    };
    wholly + &partly
}

/// One line for trials beyond the machine's means: ` Left out: 84 more trials for which a station
/// needs up to 128 cores; this machine has 2.`
fn left_out(run: &Run<'_>) -> String {
    let skipped = run.results.progress.trials_skipped;
    if skipped == 0 {
        return String::new();
    }
    let cells = run.results.cells.iter().filter(|cell| cell.is_skipped());
    let most = cells.filter_map(|cell| Some(cell.stations?.cores)).max();
    format!(
        " Left out: {} for which a station needs up to {}; this machine has {}.",
        counted(skipped, "more trial"),
        counted(most.unwrap_or(0), "core"),
        run.cpus().unwrap_or(0)
    )
}
