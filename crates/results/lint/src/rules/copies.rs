//! Tables and rows that were copied, and tables that repeat others on purpose.

use super::rates::percent;
use crate::document::{Axis, Cell, Document, Row, Table};
use crate::finding::{Finding, Rule};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// The fewest figures of a copy: fewer may be equal by chance.
const FIGURES_MIN: usize = 3;

/// Tables that equal an earlier one digit for digit, with their ids.
pub(super) fn pasted_tables(document: &Document) -> Vec<(&str, Finding)> {
    let mut found = Vec::new();
    let indexed = document.tables.iter().enumerate();
    for (at, table) in indexed.filter(|(_, table)| !table.is_result) {
        let count = table.cells().count();
        // The rates in these tables follow from the load, which may be the same in two tests.
        let is_load = table.axis == Axis::Rates;
        let is_declared = table.repeats.is_some();
        if count < FIGURES_MIN || is_load || is_declared || table.cells().all(|it| it.is_at_link())
        {
            continue;
        }
        // Only earlier tables, so that the first of two equal ones counts as the original and is
        // still checked by the other rules.
        let mut earlier = document.tables[..at].iter();
        let Some(same) = earlier.find(|earlier| is_same(earlier, table)) else {
            continue;
        };
        let first = table
            .cells()
            .next()
            .map(|it| it.shown())
            .unwrap_or_default();
        found.push((table.id.as_str(), Finding {
            rule: Rule::PastedTable,
            likeness: None,
            place: table.place.clone(),
            subject: table.id.clone(),
            arithmetic: format!(
                "all {count} figures from {first} on are those of table {}, with the same digits and deviations",
                same.id
            ),
            meaning: "two measurements do not agree to the last digit: one table is a copy, and its own figures are \
                      missing. No other rule is applied to it"
                .to_owned(),
        }));
    }
    found
}

/// Whether two tables of network or device rates have the same figures at the same columns.
fn is_same(a: &Table, b: &Table) -> bool {
    let names = |table: &Table| -> Vec<String> {
        table
            .columns
            .iter()
            .map(|column| column.name.clone())
            .collect()
    };
    a.axis == b.axis
        && names(a) == names(b)
        && a.rows.len() == b.rows.len()
        && a.rows
            .iter()
            .zip(&b.rows)
            .all(|(a, b)| digits(a) == digits(b))
}

/// The texts of a row's figures.
fn digits(row: &Row) -> Vec<Option<&str>> {
    let cells = row.cells.iter();
    cells
        .map(|cell| cell.as_ref().map(|it| it.text.as_str()))
        .collect()
}

/// Rows, or columns of devices, that equal an earlier one of their table, unless every cell is at
/// the link's limit.
pub(super) fn pasted_rows(table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut earlier: HashMap<Vec<(String, &str)>, String> = HashMap::new();
    // Rows of tables without sizes may be the two ends of one transfer, and are no courses.
    for course in table.courses() {
        let cells = course.cells;
        let digits = cells
            .iter()
            .map(|cell| (cell.size_name(), cell.figure.text.as_str()));
        let same = match earlier.entry(digits.collect()) {
            Entry::Occupied(same) => same.get().clone(),
            Entry::Vacant(none) => {
                none.insert(course.of);
                continue;
            }
        };
        // Figures of one digit, as 100, 200 and 400, are equal by chance.
        let is_round = cells.iter().all(|cell| cell.figure.significant < 2);
        if cells.len() < FIGURES_MIN || is_round || cells.iter().all(Cell::is_at_link) {
            continue;
        }
        findings.push(Finding {
            rule: Rule::PastedRow,
            likeness: None,
            place: course.place.clone(),
            subject: format!("{}, {}", table.id, course.of),
            arithmetic: format!(
                "all {} figures are those of {same}, digit for digit",
                cells.len()
            ),
            meaning: format!(
                "one {} is probably a copy: the link does not limit them all",
                if table.has_size_rows() {
                    "column"
                } else {
                    "row"
                }
            ),
        });
    }
    findings
}

/// Cells of a declared repeat that do not agree with the original.
pub(super) fn repeats(document: &Document, table: &Table) -> Vec<Finding> {
    let Some(original) = table.repeats.as_ref().and_then(|it| document.table(&it.id)) else {
        return Vec::new();
    };
    let differs = table.cells().filter_map(|cell| {
        let first = original.cell(&cell.row.name, &cell.column.name)?;
        let finding = |arithmetic| Finding {
            rule: Rule::RepeatDiffers,
            likeness: None,
            place: cell.figure.place.clone(),
            subject: cell.name(),
            arithmetic,
            meaning: format!(
                "the table repeats table {}, and one of the two is wrong",
                original.id
            ),
        };
        let scales = (super::rates::scale(&cell), super::rates::scale(&first));
        let (again, once) = (
            cell.rounded().scaled(scales.0),
            first.rounded().scaled(scales.1),
        );
        if !again.meets(once) {
            return Some(finding(format!(
                "{} here, {} there",
                cell.shown(),
                first.shown()
            )));
        }
        let (here, there) = (cell.figure.deviation?, first.figure.deviation?);
        // Both as shares of the rate, each with its rounding.
        let share = |cell: &Cell<'_>| {
            let half = cell.figure.deviation_max() - cell.figure.deviation_value();
            let deviation = crate::Interval::around(cell.figure.deviation_value(), half);
            deviation / cell.rounded()
        };
        // One table may print `± 3.6` and its repeat `± 4.5 %`.
        if share(&cell).meets(share(&first)) {
            return None;
        }
        let shown = |value: f64, is_percent: bool| {
            if is_percent {
                format!("± {value} %")
            } else {
                format!("± {value}")
            }
        };
        Some(finding(format!(
            "{} here; {} of {} there is {}",
            shown(here.value, here.percent),
            shown(there.value, there.percent),
            first.figure.value,
            percent(first.figure.deviation_value() / first.figure.value),
        )))
    });
    differs.collect()
}
