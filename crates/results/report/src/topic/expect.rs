//! Limits of the campaign with their outcomes, before any figure.

use crate::kit::format::counted;
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use stats::{ExpectResult, Expected, ExpectedCell, LimitOutcome, were};
use units::human::duration_ns;

pub(super) const SECTION: Section = Section::result("expect", "Expected limits", |run, out| {
    if let Some(found) = &run.results.expect {
        out.table(outcomes(run, found, out.is_short()));
    }
});

const NOTE: &str = "what the campaign requires; met or violated: the whole interval of the figure is on one side of the limit (Student's t on \
                    logarithms, of losses on the shares; 5 % over all limits and all looks at the figures), else undecided";

/// One row per limited figure, the worst outcome first; in short one per limit and outcome, so that
/// a reason that its cells share is there once.
fn outcomes(run: &Run<'_>, found: &Expected, short: bool) -> Table {
    let note = match (short, rounds(found)) {
        (true, _) => String::new(),
        (false, Some(rounds)) => format!("{NOTE}; {rounds}"),
        (false, None) => NOTE.to_owned(),
    };
    let table = Table::new("Limits", note).labels(["Outcome", "Limit"]);
    // The device is a part of the cell's id.
    let mut table = table.texts(if short {
        // Further columns would not fit, and the reason has the figure.
        vec!["Why"]
    } else {
        vec!["Cell", "Quantity", "Why"]
    });
    let cells = found.limits.iter().flat_map(|limit| {
        let cells = limit.cells.iter().map(Some);
        // A limit without any cell is not passed either.
        let none = limit.cells.is_empty().then_some(None);
        cells.chain(none).map(move |cell| (limit, cell))
    });
    let mut rows: Vec<(&ExpectResult, Option<&ExpectedCell>)> = cells.collect();
    // A stable sort keeps the campaign's order of equals.
    rows.sort_by_key(|(_, cell)| {
        std::cmp::Reverse(cell.map_or(LimitOutcome::Undecided, |cell| cell.outcome))
    });
    let all = rows.clone();
    if short {
        rows.dedup_by_key(|(limit, cell)| (limit.limit.clone(), cell.map(|cell| cell.outcome)));
    }
    for (limit, cell) in rows {
        let outcome = cell.map_or(limit.outcome, |cell| cell.outcome);
        let name = match outcome {
            LimitOutcome::Met => Cell::term(outcome.name()),
            LimitOutcome::Undecided | LimitOutcome::Violated => Cell::word(outcome.name()),
        };
        let known_limit = limit;
        let limit = Cell::label(&limit.limit);
        let row = match cell {
            None => {
                let why = Cell::plain("It is about no cell that this run has.");
                let missing = [Cell::absent("none"), Cell::absent("none")];
                let cells = missing.into_iter().take(if short { 0 } else { 2 });
                [name, limit]
                    .into_iter()
                    .chain(cells)
                    .chain([why])
                    .collect()
            }
            Some(cell) => {
                // By the name for people, which marks devices that must not protect data.
                let id = match run.cell(&cell.cell) {
                    Some(known) => format!("{} in {}", known.dut, known.group),
                    None => cell.cell.clone(),
                };
                if short {
                    let alike = all.iter().filter(|(other, found)| {
                        let is_alike = found.is_some_and(|found| found.outcome == outcome);
                        other.limit == known_limit.limit && is_alike
                    });
                    let more = match alike.count() {
                        0 | 1 => String::new(),
                        count => format!(
                            " Also {} in {}.",
                            outcome.name(),
                            counted(count - 1, "more cell")
                        ),
                    };
                    let why = Cell::plain(format!("{id}: {}{more}", reason(cell)));
                    vec![name, limit, why]
                } else {
                    let cells = [Cell::plain(id), Cell::plain(&cell.quantity)].into_iter();
                    let known = [name, limit].into_iter().chain(cells);
                    known.chain([Cell::plain(reason(cell))]).collect()
                }
            }
        };
        table.push(row);
    }
    table
}

fn reason(cell: &ExpectedCell) -> String {
    match cell.decided_after_rounds {
        None | Some(0) => cell.reason.clone(),
        Some(rounds) => format!(
            "{} Decided after {} of added repeats.",
            cell.reason,
            counted(rounds, "round")
        ),
    }
}

/// The repeats that were added; `None` if none were to be.
fn rounds(found: &Expected) -> Option<String> {
    let most = found.until_decided_ns?;
    Some(if found.rounds == 0 {
        format!(
            "no repeat was added (allowed: up to {})",
            duration_ns(most as f64)
        )
    } else {
        format!(
            "{} added in {} to decide, in {} of at most {}",
            were(found.trials_added, "trial"),
            counted(found.rounds, "round"),
            duration_ns(found.added_ns as f64),
            duration_ns(most as f64)
        )
    })
}

/// The outcomes in a sentence.
pub(crate) fn finding(run: &Run<'_>) -> Vec<String> {
    let Some(found) = &run.results.expect else {
        return Vec::new();
    };
    let count = |outcome| {
        let limits = found.limits.iter();
        limits.filter(|limit| limit.outcome == outcome).count()
    };
    let all = counted(found.limits.len() as u64, "limit");
    let mut text = format!(
        "Of {all}, {} met, {} violated, {} undecided.",
        count(LimitOutcome::Met),
        count(LimitOutcome::Violated),
        count(LimitOutcome::Undecided)
    );
    if let Some(rounds) = rounds(found).filter(|_| found.rounds > 0) {
        // As a sentence: the number comes first.
        text.push_str(&format!(" Of all trials {rounds}."));
    }
    vec![text]
}
