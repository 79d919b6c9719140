//! Compares tables with a device to tables without it.

use super::rates::{percent, scale};
use crate::document::{Cell, Column, Document, Row, Table};
use crate::encapsulation::is_bare_link;
use crate::finding::{Finding, Likeness, Rule};
use units::human::number;

/// Repeats of one measurement differ by this share: a rate that is higher by less is a note.
const FASTER_MIN: f64 = 0.01;
/// Rates of CPU and accelerator count as equal if every pair differs by no more than this …
const EQUAL_SHARE: f64 = 0.05;
/// … and half of the pairs by no more than this.
const EQUAL_MEDIAN_SHARE: f64 = 0.01;

/// Cells that are faster with the device than without it, beyond the deviations of both: of the
/// table's `baseline`, or without one in its row or column for the bare link.
pub(super) fn faster(document: &Document, table: &Table) -> Vec<Finding> {
    let Some(baseline) = &table.baseline else {
        return faster_than_clear(table);
    };
    let Some(baseline) = document.table(&baseline.id) else {
        return Vec::new();
    };
    let place = format!("in table {}", baseline.id);
    let faster = table.cells().filter_map(|with| {
        let without = baseline.cell(&with.row.name, &with.column.name)?;
        faster_by(&with, &without, &place)
    });
    faster.collect()
}

/// Compares the rows, or else the columns, of a table with the one that is named after the bare
/// link.
fn faster_than_clear(table: &Table) -> Vec<Finding> {
    // Devices of our own results are compared with all their repeats elsewhere.
    if table.is_result {
        return Vec::new();
    }
    let columns = || table.columns.iter().filter(|it| is_bare_column(it));
    let mut rows = table.rows.iter().filter(|row| is_bare_row(row));
    let found: Vec<Option<Finding>> = match (rows.next(), rows.next()) {
        (Some(clear), None) => {
            let place = format!("in row {}", clear.name);
            let others = table.cells().filter(|cell| cell.row.name != clear.name);
            let compared = others.map(|with| {
                let mut clear = table.cells_of(clear);
                let without = clear.find(|it| std::ptr::eq(it.column, with.column))?;
                faster_by(&with, &without, &place)
            });
            compared.collect()
        }
        (None, _) if columns().count() == 1 => {
            let compared = table.cells().map(|with| {
                let mut row = table.cells_of(with.row);
                let without = row.find(|it| is_bare_column(it.column))?;
                let is_other = !std::ptr::eq(without.column, with.column);
                let place = format!("in column {}", without.column.name);
                faster_by(&with, &without, &place).filter(|_| is_other)
            });
            compared.collect()
        }
        _ => Vec::new(),
    };
    found.into_iter().flatten().collect()
}

fn is_bare_row(row: &Row) -> bool {
    is_bare_link(before_brackets(&row.name))
}

fn is_bare_column(column: &Column) -> bool {
    is_bare_link(before_brackets(&column.words))
}

/// A name without the unit or condition in brackets: `plain [Mbit/s]`.
fn before_brackets(name: &str) -> &str {
    name.split(['[', '(']).next().unwrap_or(name)
}

/// Whether a row or column is named after the bare link, so that the others are compared with it.
pub(super) fn has_bare_link(table: &Table) -> bool {
    table.rows.iter().any(is_bare_row) || table.columns.iter().any(is_bare_column)
}

/// The finding that a cell with the device is faster than the one without it.
fn faster_by(with: &Cell<'_>, without: &Cell<'_>, place: &str) -> Option<Finding> {
    let kind = |cell: &Cell<'_>| Some((cell.unit()?.quantity, cell.own_layer(), cell.row.size));
    if kind(with) != kind(without) {
        return None;
    }
    // Rounding and deviation of both sides work against the finding: only a gap between the
    // intervals counts.
    let low = with.rate()?.low - with.figure.deviation_max() * scale(with);
    let high = without.rate()?.high + without.figure.deviation_max() * scale(without);
    // The margin is for errors of scaling, as between 1.07 Gbit/s and 1070 Mbit/s.
    if low <= high * (1.0 + 1e-9) {
        return None;
    }
    let ratio = with.figure.value * scale(with) / (without.figure.value * scale(without));
    let is_little = ratio <= 1.0 + FASTER_MIN;
    let (rule, meaning) = if is_little {
        let share = number(FASTER_MIN * 100.0);
        let meaning = format!(
            "a device in the path makes nothing faster, and repeats of one measurement differ by {share} %: a loss \
                 by the device below that is not visible"
        );
        (Rule::FasterByLittle, meaning)
    } else {
        let meaning = "a device in the path makes nothing faster: the measurement without it was not at its \
             highest, or the stations were tuned in between. A loss by the device below that is not visible";
        (Rule::FasterWithDevice, meaning.to_owned())
    };
    Some(Finding {
        rule,
        likeness: Some(Likeness {
            ratio,
            bytes: None,
            against: format!("{} ({})", without.shown(), without.name()),
        }),
        place: with.figure.place.clone(),
        subject: with.name(),
        arithmetic: format!(
            "{} with the device, {} without it {place} ({})",
            with.shown(),
            without.shown(),
            percent(ratio - 1.0),
        ),
        meaning,
    })
}

/// Baselines without deviations, to which tables with deviations are compared.
pub(super) fn deviations(document: &Document, is_pasted: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let has = |table: &Table| table.cells().any(|cell| cell.figure.deviation.is_some());
    let tables = document.tables.iter().filter(|table| !table.is_result);
    let one_sided = tables.filter_map(|baseline| {
        let compared = document.tables.iter().filter(|table| {
            let of_this = table.baseline.as_ref().is_some_and(|it| it.id == baseline.id);
            // The figures of a pasted table are another table's, as are its deviations.
            of_this && !is_pasted(&table.id) && has(table) != has(baseline)
        });
        let compared: Vec<&Table> = compared.collect();
        let first = compared.first()?;
        let ids: Vec<&str> = compared.iter().map(|table| table.id.as_str()).collect();
        let (example, side) = if has(baseline) { (example(baseline)?, "without the device") } else { (example(first)?, "with the device") };
        Some(Finding {
            rule: Rule::DeviationOnOneSide,
            likeness: None,
            place: baseline.place.clone(),
            subject: baseline.id.clone(),
            arithmetic: format!(
                "deviations only {side} ({example}); compared: table {} without the device, {} with it",
                baseline.id,
                ids.join(", ")
            ),
            meaning: "whether a difference between the two is more than chance cannot be said".to_owned(),
        })
    });
    one_sided.collect()
}

fn example(table: &Table) -> Option<String> {
    let mut cells = table.cells();
    let cell = cells.find(|cell| cell.figure.deviation.is_some())?;
    Some(format!("{} in table {}", cell.shown(), table.id))
}

/// Rows of an accelerator with the rates of the CPU: the work was not handed over.
pub(super) fn equal_to_cpu(document: &Document, table: &Table) -> Option<Finding> {
    let cpu = document.table(&table.accelerates.as_ref()?.id)?;
    let mut equal: Vec<(&str, f64, Cell<'_>)> = Vec::new();
    for row in &table.rows {
        let pairs = table.cells_of(row).filter_map(|cell| {
            let other = cpu.cell(&row.name, &cell.column.name)?;
            let (here, there) = (
                cell.figure.value * scale(&cell),
                other.figure.value * scale(&other),
            );
            Some(((here / there - 1.0).abs(), cell))
        });
        let mut pairs: Vec<(f64, Cell<'_>)> = pairs.collect();
        // Sorted by the difference, so that the middle one is the median and the last the largest.
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(middle), Some(last)) = (pairs.get(pairs.len() / 2), pairs.last()) else {
            continue;
        };
        if pairs.len() >= 3 && last.0 <= EQUAL_SHARE && middle.0 <= EQUAL_MEDIAN_SHARE {
            equal.push((&row.name, last.0, last.1));
        }
    }
    let most = equal.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let names: Vec<&str> = equal.iter().map(|(name, ..)| *name).collect();
    let other = cpu.cell(&most.2.row.name, &most.2.column.name)?;
    Some(Finding {
        rule: Rule::AcceleratorEqualsCpu,
        likeness: None,
        place: table.place.clone(),
        subject: format!("{}, rows {}", table.id, names.join(", ")),
        arithmetic: format!(
            "every size of these {} rows of {} is that of table {} within {} %; the most at {}: {}, CPU {}",
            equal.len(),
            table.rows.len(),
            cpu.id,
            number(most.1 * 100.0),
            most.2.name(),
            most.2.shown(),
            other.shown(),
        ),
        meaning: "an accelerator has other costs at small and large inputs than the CPU: the CPU probably did the work"
            .to_owned(),
    })
}
