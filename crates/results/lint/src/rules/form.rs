//! How figures are printed: units and digits.

use crate::document::{Cell, Document, Table};
use crate::finding::{Finding, Rule};
use crate::unit::Quantity;
use units::human::counted;

/// Bit rates with units in their cells: several prefixes within a column, or several spellings of
/// one unit anywhere in the table.
pub(super) fn units(table: &Table) -> Option<Finding> {
    let own = |cell: &Cell<'_>| {
        let unit = cell.figure.unit.as_ref();
        unit.is_some_and(|unit| unit.quantity == Quantity::BitRate)
    };
    // Reports of this program scale each figure alone.
    let is_kept = |cell: &Cell<'_>| own(cell) && !table.is_result;
    let cells: Vec<Cell<'_>> = table.cells().filter(is_kept).collect();
    let text = |cell: &Cell<'_>| cell.unit().map(|unit| unit.text.clone());
    let mut mixed: Option<(Cell<'_>, Cell<'_>)> = None;
    for (at, cell) in cells.iter().enumerate() {
        let differs = |other: &&Cell<'_>| {
            let same_column = other.column.name == cell.column.name;
            let same_unit = other
                .unit()
                .zip(cell.unit())
                .is_some_and(|(a, b)| a.is_same(b));
            text(other) != text(cell) && (same_column || same_unit)
        };
        if let Some(other) = cells[..at].iter().find(differs) {
            mixed = Some((*other, *cell));
            break;
        }
    }
    let (first, second) = mixed?;
    let mut names: Vec<String> = cells.iter().filter_map(text).collect();
    names.sort();
    names.dedup();
    Some(Finding {
        rule: Rule::UnitsMixed,
        likeness: None,
        place: second.figure.place.clone(),
        subject: table.id.clone(),
        arithmetic: format!(
            "{} and {}: the units of the table are {}",
            first.figure.text,
            second.figure.text,
            names.join(", ")
        ),
        meaning:
            "figures of one table are compared at a glance: print all in one unit, in one spelling"
                .to_owned(),
    })
}

/// Figures with digits that their deviation does not support: digits beyond the deviation's last,
/// or a deviation with more than two significant digits (JCGM 100:2008 §7.2.6).
pub(super) fn precision(table: &Table) -> Vec<Finding> {
    let beyond = table.cells().filter_map(|cell| {
        let deviation = cell.figure.deviation.filter(|it| !it.percent && it.value > 0.0)?;
        // For an approximate figure this is the wider step, so `~` excuses it.
        let step = 2.0 * cell.figure.half_step;
        // The value in steps of its last printed digit: 0.25 in steps of 0.01 are 25, two digits.
        let digits = (deviation.value / deviation.step).log10().floor() + 1.0;
        // The steps of digits are powers of ten, so any factor between 0.1 and 1 absorbs the
        // rounding error.
        let why = if step < deviation.step * 0.99 {
            format!("the figure is printed in steps of {step}, its deviation in steps of {}", deviation.step)
        } else if digits > 2.0 && cell.figure.digits > 3 {
            format!("the deviation {} has {digits} significant digits", deviation.value)
        } else {
            return None;
        };
        Some(Finding {
            rule: Rule::PrecisionBeyondSpread,
            likeness: None,
            place: cell.figure.place.clone(),
            subject: cell.name(),
            arithmetic: format!("{}: {why}", cell.shown()),
            meaning: "print a deviation with one or two significant digits, and the figure to the same place".to_owned(),
        })
    });
    beyond.collect()
}

/// Marks of footnotes that the file has no note for; each once a table.
pub(super) fn orphans(document: &Document) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for footnote in document.footnotes.iter().filter(|it| !it.is_explained) {
        let subject = format!("{}, mark `{}`", footnote.table, footnote.mark);
        if findings.iter().any(|known| known.subject == subject) {
            continue;
        }
        let same = document.footnotes.iter();
        let same = same.filter(|it| it.mark == footnote.mark && it.table == footnote.table);
        findings.push(Finding {
            rule: Rule::FootnoteMissing,
            likeness: None,
            place: footnote.place.clone(),
            subject,
            arithmetic: format!(
                "{} with `{}`, and no note",
                counted(same.count() as u64, "cell"),
                footnote.mark
            ),
            meaning: "the condition under which these figures hold is not stated".to_owned(),
        });
    }
    findings
}
