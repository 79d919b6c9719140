//! A comparison for a pull request.

use crate::table::{DIRECTIONS, ROWS_MAX, counted_title, of_direction};
use crate::text::{difference, heading, letter};
use crate::{Comparison, Direction, Outcome};
use std::fmt::Write;
use units::human::in_markdown;

/// The comparison as Markdown: outcome and gates first, then as [`crate::text`]; what is neither a
/// regression nor an improvement is folded.
#[must_use]
pub fn markdown(comparison: &Comparison) -> String {
    let mut text = String::new();
    let title = match (comparison.gates.is_empty(), comparison.outcome()) {
        (true, _) => "Comparison of runs".to_owned(),
        (false, Outcome::Passed) => "Comparison of runs: passed".to_owned(),
        (false, outcome) => format!("Comparison of runs: **{}**", outcome.name()),
    };
    let _ = writeln!(text, "## {title}\n");
    let bad = comparison.gates.iter().flat_map(|gate| {
        let bad = gate
            .cells
            .iter()
            .filter(|cell| cell.outcome != Outcome::Passed);
        bad.map(|cell| {
            let cells = [&cell.cell, &cell.quantity, &cell.reason].map(Clone::clone);
            [
                vec![cell.outcome.name().to_owned(), gate.gate.clone()],
                cells.to_vec(),
            ]
            .concat()
        })
    });
    let bad: Vec<Vec<String>> = bad.collect();
    if !comparison.gates.is_empty() {
        let gates = comparison.gates.iter().map(|gate| {
            vec![
                gate.gate.clone(),
                gate.outcome.name().to_owned(),
                gate.cells.len().to_string(),
            ]
        });
        table(
            &mut text,
            None,
            &["Gate", "Outcome", "Cells"],
            gates.collect(),
        );
        let head = ["Outcome", "Gate", "Cell", "Quantity", "Change"];
        table(&mut text, Some("Gates that do not hold"), &head, bad);
    }
    let runs = comparison.runs.iter().enumerate().map(|(place, run)| {
        let measured = format!("{} of {}", run.trials_measured, run.trials_planned);
        let warnings = run.warnings.join("; ");
        vec![
            letter(place),
            run.name.clone(),
            run.started_utc.clone(),
            measured,
            warnings,
        ]
    });
    let head = ["", "Run", "Began", "Trials measured", "Warnings"];
    table(&mut text, None, &head, runs.collect());
    for pair in &comparison.pairs {
        let _ = writeln!(text, "### {}\n", heading(pair));
        let what = ["What", "A → B", "Cells"];
        let rows = |found: &[crate::Difference]| {
            found.iter().map(|one| difference(one).to_vec()).collect()
        };
        table(
            &mut text,
            Some("Environment that differs"),
            &what,
            rows(&pair.environment),
        );
        table(
            &mut text,
            Some("Settings and devices that differ"),
            &what,
            rows(&pair.settings),
        );
        for (direction, title) in DIRECTIONS {
            let rows = of_direction(&pair.changes, direction).map(|change| change.row().to_vec());
            let rows: Vec<_> = rows.collect();
            let folds = !matches!(direction, Direction::Regression | Direction::Improvement);
            let title = match direction {
                Direction::Unchanged => format!("{title} beyond {} %", comparison.margin_percent),
                _ => title.to_owned(),
            };
            let mut part = String::new();
            let head = ["Cell", "Quantity", "A → B", "Change"];
            match folds && !rows.is_empty() {
                true => {
                    let summary = counted_title(&title, rows.len());
                    table(&mut part, None, &head, rows);
                    let _ = write!(
                        text,
                        "<details><summary>{summary}</summary>\n\n{part}</details>\n\n"
                    );
                }
                false => table(&mut text, Some(&title), &head, rows),
            }
        }
        let without = pair.without_change.iter();
        let without = without.map(|found| vec![found.cell.clone(), found.reason.clone()]);
        let title = "Cells that cannot be compared";
        table(
            &mut text,
            Some(title),
            &["Cell", "Reason"],
            without.collect(),
        );
        for (ids, run) in [(&pair.only_in_base, 0), (&pair.only_in_other, pair.run)] {
            let title = format!("Cells only in {}", letter(run));
            let rows = ids.iter().map(|id| vec![id.clone()]).collect();
            table(&mut text, Some(&title), &["Cell"], rows);
        }
    }
    let _ = writeln!(text, "{}", comparison.method());
    text
}

/// Nothing without rows.
fn table(text: &mut String, title: Option<&str>, head: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    if let Some(title) = title {
        let _ = writeln!(text, "**{}**\n", counted_title(title, rows.len()));
    }
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let cells: Vec<String> = cells.collect();
        format!("| {} |\n", cells.join(" | "))
    };
    text.push_str(&line(&mut head.iter().map(|cell| (*cell).to_owned())));
    text.push_str(&line(&mut head.iter().map(|_| "---".to_owned())));
    for row in rows.iter().take(ROWS_MAX) {
        text.push_str(&line(&mut row.iter().map(|cell| in_markdown(cell))));
    }
    text.push('\n');
}
