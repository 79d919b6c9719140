//! Units in headings: columns of one rate in two units, and units that differ in scale.

use super::rates::percent;
use crate::document::{Axis, Cell, Column, Table};
use crate::finding::{Finding, Likeness, Rule};
use crate::unit::{Quantity, Unit};

/// Columns with the same heading except for the unit: both print one rate, and must agree.
pub(super) fn unequal(table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    for row in &table.rows {
        let cells: Vec<Cell<'_>> = table.cells_of(row).collect();
        for (at, cell) in cells.iter().enumerate() {
            let is_same = |other: &&Cell<'_>| is_same_rate(other.column, cell.column);
            let Some(other) = cells[..at].iter().find(is_same) else {
                continue;
            };
            let (Some(here), Some(there)) = (cell.cut_off(), other.cut_off()) else {
                continue;
            };
            let (Some(unit), Some(rate)) = (cell.unit(), other.rate()) else {
                continue;
            };
            if here.meets(there) {
                continue;
            }
            let printed = cell.figure.value * unit.scale;
            let expected = rate.middle();
            // Two digits more than the printed figure has.
            let step = 2.0 * cell.figure.half_step;
            let digits = (2.0 - step.log10().round()).clamp(0.0, 9.0) as usize;
            findings.push(Finding {
                rule: Rule::LayersDisagree,
                likeness: Some(Likeness {
                    ratio: printed / expected,
                    bytes: None,
                    against: format!("column {} of table {}", other.column.name, table.id),
                }),
                place: cell.figure.place.clone(),
                subject: cell.name(),
                arithmetic: format!(
                    "{} = {:.digits$} {}, printed {} ({})",
                    other.shown(),
                    expected / unit.scale,
                    unit.text,
                    cell.shown(),
                    percent(printed / expected - 1.0),
                ),
                meaning: "both columns print one rate in two units: one of the two figures, or a unit, is wrong"
                    .to_owned(),
            });
        }
    }
    findings
}

/// Whether two columns have one heading except for the unit, and units of one quantity that differ
/// in scale.
fn is_same_rate(one: &Column, other: &Column) -> bool {
    let (Some(a), Some(b)) = (&one.unit, &other.unit) else {
        return false;
    };
    let is_rate = matches!(a.quantity, Quantity::BitRate | Quantity::FrameRate);
    is_rate
        && a.quantity == b.quantity
        && !a.is_same(b)
        && one.layer == other.layer
        && one.words == other.words
}

/// Units of bit rates in headings that readers would take as one: of different scale above sizes,
/// or one that counts 1000 and one that counts 1024.
pub(super) fn mixed(table: &Table) -> Option<Finding> {
    let units = |column: &'_ Column| -> Option<Unit> {
        let unit = column.unit.clone()?;
        (unit.quantity == Quantity::BitRate).then_some(unit)
    };
    let are_sizes = table.has_sizes() || table.axis == Axis::Mix;
    let mut found: Option<(&Column, &Column)> = None;
    for (at, column) in table.columns.iter().enumerate() {
        let Some(unit) = units(column) else { continue };
        let differs = |other: &&Column| {
            let Some(known) = units(other) else {
                return false;
            };
            // Nobody takes Mbit/s for MiB/s.
            let is_alike = known.is_of_bytes() == unit.is_of_bytes();
            let is_mixed = are_sizes || (is_alike && known.is_binary() != unit.is_binary());
            is_mixed && !known.is_same(&unit) && !is_same_rate(other, column)
        };
        if let Some(other) = table.columns[..at].iter().find(differs) {
            found = Some((other, column));
            break;
        }
    }
    let (first, second) = found?;
    let shown = |column: &Column| {
        let unit = column.unit.as_ref().map_or("", |unit| unit.text.as_str());
        let name = table.column_name(column);
        if name.contains(unit) {
            return format!("`{name}`");
        }
        format!("{name} is in {unit}")
    };
    let with_figure = |cell: &Cell<'_>| std::ptr::eq(cell.column, second);
    let cell = table.cells().find(with_figure)?;
    Some(Finding {
        rule: Rule::UnitsMixed,
        likeness: None,
        place: cell.figure.place.clone(),
        subject: table.id.clone(),
        arithmetic: format!("{} and {}", shown(first), shown(second)),
        meaning: if are_sizes {
            "figures of one row are compared at a glance: print all in one unit".to_owned()
        } else {
            "Mi counts 1048576, M a million, and readers take one for the other: print all in one unit".to_owned()
        },
    })
}
