//! A comparison for a page of a browser.

use crate::table::{DIRECTIONS, HEADINGS, ROWS_MAX, WITHOUT_RATIO, counted_title};
use crate::text::{difference, letter};
use crate::{Comparison, Detail, Direction, RunPair, WithoutRatio};
use maud::{Markup, html};

/// Columns of the lists of cells that cannot be compared.
const WITHOUT_CHANGE: [&str; 3] = ["Cell", "Reason", "What to do"];

/// Returns the comparison as HTML without a frame, in the order of [`crate::text`]; pages have no
/// gates. Changes other than regressions and improvements, and differences in machine and settings,
/// are folded.
#[must_use]
pub fn html(comparison: &Comparison) -> String {
    let doubts = comparison.doubts();
    let runs: Vec<Vec<String>> = comparison
        .runs
        .iter()
        .enumerate()
        .map(|(place, run)| {
            vec![
                letter(place),
                run.name.clone(),
                run.started_utc.clone(),
                format!("{} of {}", run.trials_measured, run.trials_planned),
            ]
        })
        .collect();
    let page = html! {
        @for (at, pair) in comparison.pairs.iter().enumerate() { (changes(comparison, at, pair)) }
        @if !doubts.is_empty() {
            section #doubts {
                h2 { "Doubts: " (doubts.len()) }
                ul.what { @for doubt in &doubts { li { (doubt) } } }
            }
        }
        section #runs {
            h2 { "Runs" }
            (table(&["", "Run", "Began", "Trials measured"], &runs))
            @for (at, pair) in comparison.pairs.iter().enumerate() { (differences(at, pair)) }
            p.note { (comparison.method()) }
        }
    };
    page.into_string()
}

fn changes(comparison: &Comparison, at: usize, pair: &RunPair) -> Markup {
    let without: Vec<Vec<String>> = pair
        .without_change
        .iter()
        .map(|found| vec![found.cell.clone(), found.reason.clone(), found.help.clone()])
        .collect();
    let lacking: Vec<Vec<String>> = pair.without_ratio.iter().map(WithoutRatio::row).collect();
    html! {
        section id={ "changes-" (at) } {
            p.answer { (comparison.answer(pair)) }
            @for direction in DIRECTIONS { (direction_of(comparison, at, pair, direction)) }
            @if !without.is_empty() {
                h3 { (counted_title("Cells that cannot be compared", without.len())) }
                (table(&WITHOUT_CHANGE, &without))
            }
            (folded(&format!("lacking-{at}"), WITHOUT_RATIO, &["Cell", "Quantity", "Reason"], &lacking))
            @for (ids, run) in [(&pair.only_in_base, 0), (&pair.only_in_other, pair.run)] {
                @if !ids.is_empty() {
                    h3 { (counted_title(&format!("Cells only in {}", comparison.runs[run].name), ids.len())) }
                    ul.what { @for id in ids.iter().take(ROWS_MAX) { li { code { (id) } } } }
                }
            }
        }
    }
}

fn direction_of(
    comparison: &Comparison,
    at: usize,
    pair: &RunPair,
    direction: Direction,
) -> Markup {
    let rows = comparison.rows(pair, direction);
    // Without rows no heading is taken, and no table is printed.
    let heads = &HEADINGS[..rows.first().map_or(0, Vec::len)];
    let (title, meaning) = comparison.title(direction);
    let title = counted_title(&title, rows.len());
    html! {
        @if rows.is_empty() {} @else if let Some(meaning) = meaning {
            details id=(format!("changes-{at}-{direction:?}")) {
                summary { (title) }
                p.note { (meaning) "." }
                (table(heads, &rows))
            }
        } @else {
            h3 { (title) }
            (table(heads, &rows))
        }
    }
}

fn differences(at: usize, pair: &RunPair) -> Markup {
    let other = format!("A → {}", letter(pair.run));
    html! {
        @for (id, title, found) in [
            ("environment", "Environment that differs", &pair.environment),
            ("settings", "Settings and devices that differ", &pair.settings),
        ] {
            @let rows: Vec<Vec<String>> = found.iter().map(|one| difference(one, Detail::Short).to_vec()).collect();
            (folded(&format!("{id}-{at}"), title, &["What", &other, "Cells"], &rows))
        }
    }
}

/// A table that unfolds on a click; nothing without rows.
fn folded(id: &str, title: &str, heads: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        @if !rows.is_empty() {
            details id=(id) {
                summary { (counted_title(title, rows.len())) }
                (table(heads, rows))
            }
        }
    }
}

/// A table whose cells name their column, for screens that show a row as a paragraph.
fn table(heads: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        div."table list" {
            table {
                thead { tr { @for head in heads { th { (head) } } } }
                tbody {
                    @for row in rows.iter().take(ROWS_MAX) {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                @if at == 0 { th { (cell) } } @else { td.own data-is=[heads.get(at)] { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
