//! Tables and rows that were copied, and tables that repeat others on purpose.

use super::rates::percent;
use crate::document::{Axis, Cell, Document, Row, Table};
use crate::finding::{Finding, Rule};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use yaml::Place;

/// The fewest figures of a copy: fewer may be equal by chance.
const FIGURES_MIN: usize = 3;
/// Digits of figures without sizes that count for a copy: data sheets print rounded figures, which
/// two models may share.
const DIGITS_MIN: usize = 3;
/// Figures of one quantity within this factor of each other have one limit, such as a link.
const SPREAD_MIN: f64 = 1.1;
/// Words for one end of a transfer, whose figures the other end may have as well.
const ENDS: [&str; 16] = [
    "sender", "receiver", "sent", "received", "tx", "rx", "client", "server", "in", "out",
    "ingress", "egress", "up", "down", "offered", "forward",
];

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

/// Rows, columns and devices that equal an earlier one of their table, unless every cell is at the
/// link's limit.
pub(super) fn pasted_rows(table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut copied: Vec<Part<'_>> = Vec::new();
    let devices = if table.axis == Axis::Devices {
        devices(table)
    } else {
        Vec::new()
    };
    for (part, same) in equal(devices) {
        findings.extend(found(table, &part, &same, "device"));
        copied.push(part);
    }
    // A column of a copied device is part of that finding.
    let is_new = |part: &Part<'_>| {
        let place = |cell: &Cell<'_>| std::ptr::from_ref(cell.figure);
        let is_in = |known: &Part<'_>| {
            let all = known.cells.iter().map(place).collect::<Vec<_>>();
            part.cells.iter().all(|cell| all.contains(&place(cell)))
        };
        !copied.iter().any(is_in)
    };
    // Rows of tables without sizes may be the two ends of one transfer, and are no courses.
    let courses = table.rate_courses().into_iter();
    let courses = courses.map(|it| Part::new(it.of, "", it.place, it.cells, Cell::size_name));
    let kind = if table.has_size_rows() {
        "column"
    } else {
        "row"
    };
    for (part, same) in equal(courses.collect()) {
        if is_new(&part) {
            findings.extend(found(table, &part, &same, kind));
        }
    }
    findings.extend(unsized_copies(table));
    findings
}

/// A row, column or device that may be copied.
struct Part<'a> {
    /// In words: `row A`.
    of: String,
    /// Its name, if that may show that it has a reason to be equal to others.
    name: &'a str,
    place: &'a Place,
    /// The keys and texts of its figures: equal ones have the same.
    key: Vec<(String, &'a str)>,
    cells: Vec<Cell<'a>>,
}

impl<'a> Part<'a> {
    fn new(
        of: String,
        name: &'a str,
        place: &'a Place,
        cells: Vec<Cell<'a>>,
        key: impl Fn(&Cell<'a>) -> String,
    ) -> Self {
        let text = |cell: &Cell<'a>| cell.figure.text.as_str();
        let key = cells.iter().map(|cell| (key(cell), text(cell))).collect();
        Self {
            of,
            name,
            place,
            key,
            cells,
        }
    }
}

/// The parts that equal an earlier one, with the words for that.
fn equal(parts: Vec<Part<'_>>) -> Vec<(Part<'_>, String)> {
    let mut earlier: HashMap<Vec<(String, &str)>, String> = HashMap::new();
    let mut equal = Vec::new();
    for part in parts {
        match earlier.entry(part.key.clone()) {
            Entry::Occupied(same) => equal.push((part, same.get().clone())),
            Entry::Vacant(none) => {
                none.insert(part.of);
            }
        }
    }
    equal
}

fn found(table: &Table, part: &Part<'_>, same: &str, kind: &str) -> Option<Finding> {
    let cells = &part.cells;
    // Figures of one digit, as 100, 200 and 400, are equal by chance.
    let is_round = cells.iter().all(|cell| cell.figure.significant < 2);
    if cells.len() < FIGURES_MIN || is_round || cells.iter().all(Cell::is_at_link) {
        return None;
    }
    Some(Finding {
        rule: Rule::PastedRow,
        likeness: None,
        place: part.place.clone(),
        subject: format!("{}, {}", table.id, part.of),
        arithmetic: format!(
            "all {} figures are those of {same}, digit for digit",
            cells.len()
        ),
        meaning: format!("one {kind} is probably a copy: the link does not limit them all"),
    })
}

/// The devices with several columns of a table with frame sizes as rows: each system before the
/// sizes, or the columns with the same words.
fn devices(table: &Table) -> Vec<Part<'_>> {
    let has_systems = table.rows.iter().all(|row| !row.system.is_empty());
    let rows = table.rows.iter().map(|row| row.system.as_str());
    let columns = table.columns.iter().map(|column| column.device.as_str());
    let mut names: Vec<&str> = if has_systems {
        rows.collect()
    } else {
        columns.collect()
    };
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    let device = |name: &str| {
        let is_own = |cell: &Cell<'_>| {
            let own = if has_systems {
                &cell.row.system
            } else {
                &cell.column.device
            };
            own == name
        };
        let cells: Vec<Cell<'_>> = table.cells().filter(is_own).collect();
        let mut columns: Vec<&str> = cells.iter().map(|it| it.column.name.as_str()).collect();
        columns.sort_unstable();
        columns.dedup();
        let of = if has_systems {
            name.to_owned()
        } else {
            format!("columns {}", columns.join(", "))
        };
        let place = &cells.first()?.figure.place;
        let key = |cell: &Cell<'_>| {
            let unit = cell.unit().map_or("", |unit| unit.text.as_str());
            let column = if has_systems {
                cell.column.name.clone()
            } else {
                format!("{unit} {:?}", cell.column.layer)
            };
            format!("{} {column}", cell.size_name())
        };
        (columns.len() > 1).then(|| Part::new(of, "", place, cells, key))
    };
    names.into_iter().filter_map(device).collect()
}

/// Copies in tables without sizes, and rows of devices that are printed twice.
fn unsized_copies(table: &Table) -> Vec<Finding> {
    let is_names = table.axis == Axis::Names;
    if table.is_result || !(is_names || table.axis == Axis::Devices) {
        return Vec::new();
    }
    // Rows of one size and device are no course, as their order is unknown.
    let row = |row| {
        let row: &Row = row;
        let size = if is_names { "" } else { row.name.as_str() };
        let key = |cell: &Cell<'_>| format!("{size} {}", cell.column.name);
        let cells = table.cells_of(row).collect();
        Part::new(
            format!("row {}", row.name),
            &row.name,
            &row.place,
            cells,
            key,
        )
    };
    let rows: Vec<Part<'_>> = table.rows.iter().map(row).collect();
    let columns = table.columns.iter().filter(|_| is_names);
    let columns = columns.filter_map(|column| {
        let cells = table.cells();
        let cells: Vec<_> = cells.filter(|it| std::ptr::eq(it.column, column)).collect();
        let place = &cells.first()?.figure.place;
        let unit = column.unit.as_ref().map_or("", |unit| unit.text.as_str());
        let key = |cell: &Cell<'_>| format!("{unit} {}", cell.row.name);
        Some(Part::new(
            format!("column {}", column.name),
            &column.name,
            place,
            cells,
            key,
        ))
    });
    let mut findings = Vec::new();
    for (parts, kind) in [(rows, "row"), (columns.collect(), "column")] {
        let parts = parts.into_iter();
        let parts = parts.filter(|part| is_telling(&part.cells) && !has_reason(part.name));
        for (part, same) in equal(parts.collect()) {
            findings.extend(found(table, &part, &same, kind));
        }
    }
    findings
}

/// Whether figures without sizes are equal by no chance and no common limit: at least three
/// different ones of three digits, and of one quantity not all alike.
fn is_telling(cells: &[Cell<'_>]) -> bool {
    let long = cells
        .iter()
        .filter(|cell| cell.figure.significant >= DIGITS_MIN);
    let mut texts: Vec<&str> = long.map(|cell| cell.figure.text.as_str()).collect();
    texts.sort_unstable();
    texts.dedup();
    let quantity = |cell: &Cell<'_>| cell.unit().map(|unit| unit.quantity);
    let is_one = cells
        .iter()
        .all(|cell| quantity(cell) == cells.first().and_then(quantity));
    let values = || {
        cells
            .iter()
            .map(|cell| cell.figure.value * super::rates::scale(cell))
    };
    let (least, most) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    texts.len() >= FIGURES_MIN && (!is_one || most > least * SPREAD_MIN)
}

/// Whether a row or column may have the figures of another one: the other end of a transfer, or
/// another statistic of one repeat.
fn has_reason(name: &str) -> bool {
    let lower = name.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric());
    words.any(|word| ENDS.contains(&word)) || super::order::named(name).is_some()
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
