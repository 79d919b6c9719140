//! Cells without a figure, and why, listed before any figure.

use crate::kit::section::{Blocks, Section};
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::order::{grouped, sorted};
use journal::record::{Explanation, in_brief};
use maud::html;
use stats::Reason;
use units::human::counted;

// The short form prints these reasons in another form.
pub(super) const SECTION: Section = Section::result("trouble", "Trials without a figure", blocks)
    .named("")
    .not_brief();

fn blocks(run: &Run<'_>, out: &mut Blocks) {
    let reasons = reasons(run);
    if reasons.rows.is_empty() {
        return;
    }
    let progress = &run.results.progress;
    out.html(html! {
        p {
            "Of " (counted(progress.trials_planned, "trial")) ", " (progress.trials_invalid) " invalid, "
            (progress.trials_failed) " failed. Where a cell has no figure, the tables below say so in its place; "
            (remedy(run)) "."
        }
    });
    out.table(reasons);
}

/// How to get the figures that are missing. Trials whose settings cannot work fail in each
/// repetition: their remedy is a change, and not `resume`.
pub(crate) fn remedy(run: &Run<'_>) -> &'static str {
    let reasons = || run.results.cells.iter().flat_map(|cell| &cell.reasons);
    let lasting = reasons().filter(|reason| reason.recurs()).count();
    match lasting {
        // Failed trials are repeated without the option.
        0 if run.results.progress.trials_invalid == 0 => "cipherbench resume RUN repeats them",
        0 if run.results.progress.trials_failed == 0 => {
            "cipherbench resume RUN --invalid repeats them"
        }
        0 => {
            "cipherbench resume RUN --invalid repeats all of them, and cipherbench resume RUN the failed ones alone"
        }
        all if all == reasons().count() => {
            "repeated, they would fail again: make the change named with each, and begin a new run"
        }
        _ => {
            "cipherbench resume RUN --invalid repeats them; those whose remedy is a new run would fail again"
        }
    }
}

/// The explanation of the first of several failures of one check.
fn of_first(explanation: &Explanation, failures: usize) -> Explanation {
    let mut found = explanation.clone();
    if failures > 1 {
        found.difference += &format!(" (the first of {failures} failures)");
    }
    found
}

/// The failed check, or the whole reason.
pub(crate) fn kind(reason: &Reason) -> &str {
    match reason.explanation {
        Some(_) => in_brief(&reason.text),
        None => &reason.text,
    }
}

/// Maximum number of cells named in a row of the table of reasons.
const CELLS_NAMED: usize = 4;

/// Why cells lack a figure, or some repeats of it: one row per reason, with the affected cells.
/// Empty without reasons.
fn reasons(run: &Run<'_>) -> Table {
    let note = format!("their figures are not reported; {}", remedy(run));
    let mut table = Table::new("Invalid and failed trials", note)
        .labels(["Cells", "Repeats"])
        .texts(["Reason"]);
    let cells = run.results.cells.iter();
    let all = cells.flat_map(|cell| {
        let own = cell.reasons.iter();
        own.map(move |reason| {
            // The numbers of a check differ in each trial; its cause and remedy do not.
            let same = reason.explanation.as_ref();
            let same = same.map(|found| (&found.cause, &found.advice));
            ((kind(reason), same), (cell.id.as_str(), reason))
        })
    });
    for (_, places) in grouped(all) {
        let Some((
            _,
            Reason {
                text, explanation, ..
            },
        )) = places.first()
        else {
            continue;
        };
        let mut names: Vec<&str> = places.iter().map(|(cell, _)| *cell).collect();
        // The reasons of one cell are adjacent.
        names.dedup();
        let repeats = sorted(places.iter().map(|(_, reason)| reason.repeat));
        let repeats: Vec<String> = repeats.iter().map(u32::to_string).collect();
        let cells = match names.len() {
            count if count > CELLS_NAMED => {
                // One name less than fits, so that it is never `and 1 more`.
                let named = names[..CELLS_NAMED - 1].join(", ");
                format!("{named} and {} more", count + 1 - CELLS_NAMED)
            }
            _ => names.join(", "),
        };
        let mut trials: Vec<_> = places
            .iter()
            .map(|(cell, reason)| (*cell, reason.repeat))
            .collect();
        trials.dedup();
        let mut listed = repeats.join(", ");
        if trials.len() < names.len() * repeats.len() {
            listed.push_str(" (not each of every cell)");
        }
        table.push(vec![
            Cell::label(cells),
            Cell::label(listed),
            match explanation {
                Some(explanation) => {
                    let check = in_brief(text);
                    let explanation = &of_first(explanation, places.len());
                    // The explanation replaces the first words of the reason; its counters follow.
                    let counters = text.strip_prefix(check).unwrap_or(text);
                    Cell::explained(check, explanation, counters.trim_start_matches(": "))
                }
                None => Cell::reason(text),
            },
        ]);
    }
    table
}
