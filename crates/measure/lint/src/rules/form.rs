//! How figures are printed: units and digits.

use crate::document::Table;
use crate::finding::{Finding, Rule};
use crate::unit::Quantity;

/// Bit rates of one table in more than one spelling or prefix, where its cells carry their units.
pub(super) fn units(table: &Table) -> Option<Finding> {
    let mut known: Vec<(&str, String)> = Vec::new();
    let mut last = None;
    for cell in table.cells() {
        let Some(unit) = &cell.figure.unit else {
            continue;
        };
        let is_new = known.iter().all(|(text, _)| *text != unit.text);
        if unit.quantity == Quantity::BitRate && is_new {
            known.push((&unit.text, cell.figure.text.clone()));
            last = Some(cell);
        }
    }
    let cell = last.filter(|_| known.len() > 1)?;
    let examples: Vec<&str> = known.iter().map(|(_, text)| text.as_str()).collect();
    let names: Vec<&str> = known.iter().map(|(unit, _)| *unit).collect();
    Some(Finding {
        rule: Rule::UnitsMixed,
        place: cell.figure.place.clone(),
        subject: table.id.clone(),
        arithmetic: format!(
            "{}: the units are {}",
            examples.join(", "),
            names.join(" and ")
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
        let step = 2.0 * cell.figure.half_step;
        let digits = (deviation.value / deviation.step).log10().floor() + 1.0;
        let why = if step < deviation.step * 0.99 {
            format!("the figure is printed in steps of {step}, its deviation in steps of {}", deviation.step)
        } else if digits > 2.0 {
            format!("the deviation {} has {digits} significant digits", deviation.value)
        } else {
            return None;
        };
        Some(Finding {
            rule: Rule::PrecisionBeyondSpread,
            place: cell.figure.place.clone(),
            subject: cell.name(),
            arithmetic: format!("{}: {why}", cell.shown()),
            meaning: "print a deviation with one or two significant digits, and the figure to the same place".to_owned(),
        })
    });
    beyond.collect()
}
