//! A comparison for a pull request.

use crate::table::{DIRECTIONS, HEADINGS, ROWS_MAX, WITHOUT_RATIO, counted_title};
use crate::text::{difference, letter};
use crate::{Comparison, Detail, Outcome, WithoutRatio};
use std::fmt::Write;
use units::human::in_markdown;

/// Returns the comparison as Markdown, in the order of [`crate::text`]. Changes other than
/// regressions and improvements, and differences in machine and settings, are folded.
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
        gate.bad().map(move |cell| {
            let outcome = cell.outcome.name();
            let texts = [&gate.gate, &cell.cell, &cell.quantity, &cell.reason];
            let [gate, cell, quantity, reason] = texts.map(String::as_str);
            [outcome, gate, cell, quantity, reason]
                .map(str::to_owned)
                .to_vec()
        })
    });
    // Above everything else: a reader of a pull request first wants to know why a gate fails.
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
    for pair in &comparison.pairs {
        let _ = writeln!(text, "{}\n", in_markdown(&comparison.answer(pair)));
        for direction in DIRECTIONS {
            let rows = comparison.rows(pair, direction);
            let columns = rows.first().map_or(0, Vec::len);
            // Without rows no heading is taken, and no table is printed.
            let head = &HEADINGS[..columns];
            match comparison.title(direction) {
                (title, Some(meaning)) => {
                    let title = format!("{}: {meaning}", counted_title(&title, rows.len()));
                    folded(&mut text, &title, head, rows);
                }
                (title, None) => table(&mut text, Some(&title), head, rows),
            }
        }
        let without = pair.without_change.iter();
        let without =
            without.map(|found| vec![found.cell.clone(), found.reason.clone(), found.help.clone()]);
        let title = "Cells that cannot be compared";
        table(
            &mut text,
            Some(title),
            &["Cell", "Reason", "What to do"],
            without.collect(),
        );
        let lacking = pair.without_ratio.iter().map(WithoutRatio::row).collect();
        let head = ["Cell", "Quantity", "Reason"];
        folded(&mut text, WITHOUT_RATIO, &head, lacking);
        for (ids, run) in [(&pair.only_in_base, 0), (&pair.only_in_other, pair.run)] {
            let title = match pair.run {
                0 => "Cells without the other device".to_owned(),
                _ => format!("Cells only in {}", in_markdown(&comparison.runs[run].name)),
            };
            let rows = ids.iter().map(|id| vec![id.clone()]).collect();
            table(&mut text, Some(&title), &["Cell"], rows);
        }
    }
    let doubts = comparison.doubts();
    if !doubts.is_empty() {
        let _ = writeln!(text, "**Doubts ({})**\n", doubts.len());
        for doubt in doubts {
            let _ = writeln!(text, "- {}", prose(&doubt));
        }
        text.push('\n');
    }
    let runs = comparison.runs.iter().enumerate().map(|(place, run)| {
        let measured = format!("{} of {}", run.trials_measured, run.trials_planned);
        vec![
            letter(place),
            run.name.clone(),
            run.started_utc.clone(),
            measured,
        ]
    });
    let head = ["", "Run", "Began", "Trials measured"];
    table(&mut text, None, &head, runs.collect());
    for pair in &comparison.pairs {
        for (title, found) in [
            ("Environment that differs", &pair.environment),
            ("Settings and devices that differ", &pair.settings),
        ] {
            let rows = found
                .iter()
                .map(|one| difference(one, Detail::Short).to_vec());
            let other = match pair.run {
                0 => "Old → new device".to_owned(),
                run => format!("A → {}", letter(run)),
            };
            let head = ["What", &other, "Cells"];
            let title = counted_title(title, found.len());
            folded(&mut text, &title, &head, rows.collect());
        }
    }
    let _ = writeln!(text, "{}", comparison.method());
    text
}

/// Appends a table that unfolds on a click; nothing without rows.
fn folded(text: &mut String, summary: &str, head: &[&str], rows: Vec<Vec<String>>) {
    if rows.is_empty() {
        return;
    }
    let mut part = String::new();
    table(&mut part, None, head, rows);
    let _ = write!(
        text,
        // The blank line after `summary` makes GitHub read the table as Markdown.
        "<details><summary>{summary}</summary>\n\n{part}</details>\n\n"
    );
}

/// Appends a table; nothing without rows.
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
        text.push_str(&line(&mut row.iter().map(|cell| prose(cell))));
    }
    text.push('\n');
}

/// A sentence as Markdown, with commands and names in back-ticks as code.
fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // A bar in code ends a cell of a table, and an empty or unclosed code is none. Names come from
    // other people's journals, so these are escaped like all other text.
    let is_code =
        |part: &str| !part.is_empty() && !part.contains(|c: char| c == '|' || c.is_control());
    let codes = parts.iter().skip(1).step_by(2);
    if parts.len().is_multiple_of(2) || !codes.into_iter().all(|part| is_code(part)) {
        return in_markdown(text);
    }
    let indexed = parts.iter().enumerate();
    let shown = indexed.map(|(at, part)| match at % 2 {
        0 => in_markdown(part),
        _ => format!("`{part}`"),
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_code_and_nothing_else_is_markup() {
        for (text, shown) in [
            (
                "do it (`run CAMPAIGN --repeats 12`)",
                "do it (`run CAMPAIGN --repeats 12`)",
            ),
            ("in `a_b/<c>`, 5 * 6 < 40", "in `a_b/<c>`, 5 \\* 6 &lt; 40"),
            ("`a|b` and `c`", "\\`a\\|b\\` and \\`c\\`"),
            ("one ` alone", "one \\` alone"),
            ("empty `` code", "empty \\`\\` code"),
        ] {
            assert_eq!(prose(text), shown);
        }
    }
}
