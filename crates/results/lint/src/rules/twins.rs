//! Pairs of tables with the same columns and rows, except that one table lacks a row.

use crate::document::{Document, Table};
use crate::finding::{Finding, Rule};

/// The fewest common rows of two tables: fewer do not show that they are twins.
const ROWS_MIN: usize = 2;

/// Tables with all rows of another one but one.
pub(super) fn missing_rows(document: &Document) -> Vec<Finding> {
    let tables = document.tables.iter().filter(|table| !table.is_result);
    let found = tables.filter_map(|table| {
        let mut others = document.tables.iter().filter(|other| {
            let is_copy = |table: &Table| table.repeats.is_some();
            !std::ptr::eq(*other, table) && !is_copy(other) && !is_copy(table)
        });
        let (twin, missing) = others.find_map(|other| Some((other, missing(table, other)?)))?;
        Some(Finding {
            rule: Rule::RowMissing,
            likeness: None,
            place: table.place.clone(),
            subject: table.id.clone(),
            arithmetic: format!(
                "columns and {} rows are those of table {}, which has row {missing} as well",
                table.rows.len(),
                twin.id
            ),
            meaning: "a figure was left out where the other table has one: print it, or state why there is none"
                .to_owned(),
        })
    });
    found.collect()
}

/// The one row that a table lacks of another one with the same columns and all its other rows.
fn missing<'a>(table: &Table, twin: &'a Table) -> Option<&'a str> {
    let columns = |table: &Table| -> Vec<String> {
        let columns = table.columns.iter();
        columns.map(|column| column.name.clone()).collect()
    };
    let quantity = |table: &Table| {
        let cell = table.cells().next()?;
        Some(cell.unit()?.quantity)
    };
    // Rates and delays by the same rows are two tables on purpose, so the quantity must agree too.
    let is_alike = table.axis == twin.axis
        && columns(table) == columns(twin)
        && quantity(table) == quantity(twin);
    if !is_alike || table.rows.len() < ROWS_MIN || table.rows.len() + 1 != twin.rows.len() {
        return None;
    }
    let has = |table: &Table, name: &str| table.rows.iter().any(|row| row.name == name);
    if !table.rows.iter().all(|row| has(twin, &row.name)) {
        return None;
    }
    let mut rows = twin.rows.iter().map(|row| row.name.as_str());
    rows.find(|name| !has(table, name))
}
