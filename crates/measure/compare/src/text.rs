//! A comparison for a terminal.

use crate::table::{DIRECTIONS, ROWS_MAX, counted_title, of_direction};
use crate::{Comparison, Difference, Direction, Outcome, RunPair};
use guard::visible;
use std::fmt::Write;

/// The comparison as text: what differs in machine and settings, then what changed, regressions
/// first; gates last.
#[must_use]
pub fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (place, run) in comparison.runs.iter().enumerate() {
        let _ = writeln!(
            text,
            "{}  {}: {}, {}, {} of {} trials measured",
            letter(place),
            visible(run.name.as_ref()),
            visible(run.campaign.as_ref()),
            run.started_utc,
            run.trials_measured,
            run.trials_planned,
        );
        for warning in &run.warnings {
            let _ = writeln!(text, "   warning: {}", visible(warning));
        }
    }
    for pair in &comparison.pairs {
        let _ = writeln!(text, "\n{}", heading(pair));
        let environment = pair
            .environment
            .iter()
            .map(|found| difference(found).to_vec());
        section(&mut text, "Environment that differs", environment.collect());
        let settings = pair.settings.iter().map(|found| difference(found).to_vec());
        section(
            &mut text,
            "Settings and devices that differ",
            settings.collect(),
        );
        for (direction, title) in DIRECTIONS {
            let rows = of_direction(&pair.changes, direction).map(|change| change.row().to_vec());
            let title = match direction {
                Direction::Unchanged => {
                    format!("{title} beyond {} %", comparison.margin_percent)
                }
                _ => title.to_owned(),
            };
            section(&mut text, &title, rows.collect());
        }
        let without = pair.without_change.iter();
        let without = without.map(|found| vec![found.cell.clone(), found.reason.clone()]);
        section(
            &mut text,
            "Cells that cannot be compared",
            without.collect(),
        );
        let single = |ids: &[String]| ids.iter().map(|id| vec![id.clone()]).collect();
        let (base, other) = (letter(0), letter(pair.run));
        section(
            &mut text,
            &format!("Cells only in {base}"),
            single(&pair.only_in_base),
        );
        section(
            &mut text,
            &format!("Cells only in {other}"),
            single(&pair.only_in_other),
        );
        if pair.changes.is_empty() {
            text.push_str("\nNo cell can be compared.\n");
        }
    }
    let _ = writeln!(text, "\n{}", comparison.method());
    gates(&mut text, comparison);
    text
}

/// Runs are lettered in the order given.
pub(crate) fn letter(place: usize) -> String {
    match u8::try_from(place).ok().filter(|place| *place < 26) {
        Some(place) => char::from(b'A' + place).to_string(),
        None => format!("run {}", place + 1),
    }
}

pub(crate) fn heading(pair: &RunPair) -> String {
    match pair.run {
        0 => "Devices within A".to_owned(),
        run => format!("{} compared with A", letter(run)),
    }
}

/// What, values, cells.
pub(crate) fn difference(found: &Difference) -> [String; 3] {
    let shown = |value: &str| match value {
        "" => "(none)".to_owned(),
        value => shortened(value),
    };
    let cells = found
        .cells
        .map(|cells| units::human::counted(cells as u64, "cell"));
    [
        found.what.clone(),
        format!("{} → {}", shown(&found.base), shown(&found.other)),
        cells.unwrap_or_default(),
    ]
}

/// Lists of CPUs and the like are cut; JSON has them whole.
fn shortened(value: &str) -> String {
    const CHARS_MAX: usize = 100;
    match value.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &value[..end]),
        None => value.to_owned(),
    }
}

/// Nothing without rows. Columns are aligned.
fn section(text: &mut String, title: &str, rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", counted_title(title, rows.len()));
    let shown = rows.iter().take(ROWS_MAX).map(|row| {
        let cells = row.iter().map(|cell| visible(cell));
        cells.collect::<Vec<_>>()
    });
    let rows: Vec<_> = shown.collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, &width)| format!("{cell:<width$}"))
            .collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
}

fn gates(text: &mut String, comparison: &Comparison) {
    if comparison.gates.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{}", comparison.gates_in_words());
    for gate in &comparison.gates {
        let cells = units::human::counted(gate.cells.len() as u64, "cell");
        let _ = writeln!(
            text,
            "  {}: {} ({cells}): {}",
            gate.outcome.name(),
            visible(&gate.gate),
            gate.in_words()
        );
        let bad = gate
            .cells
            .iter()
            .filter(|cell| cell.outcome != Outcome::Passed);
        for cell in bad.take(ROWS_MAX) {
            let _ = writeln!(
                text,
                "    {}: {} {} of {}: {}",
                cell.outcome.name(),
                visible(&cell.cell),
                visible(&cell.quantity),
                letter(cell.run),
                visible(&cell.reason)
            );
        }
    }
}
