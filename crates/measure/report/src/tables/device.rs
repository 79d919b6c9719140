//! Crypto devices: whether they are right, how fast they are, how long they last.

mod fatigue;
mod kat;
mod speed;

pub(crate) use fatigue::{batch_name, class_name, fatigue};
pub(crate) use kat::{kat, kat_cases};
pub(crate) use speed::{cells, cells_outside_series, curves, findings, scale, series_name, sizes};

use crate::layout::Run;
use crate::table::{Cell, Table};
use stats::CellResult;

/// What the devices say of themselves, each once; `None` where none says anything.
pub(crate) fn facts(run: &Run<'_>) -> Option<Table> {
    let mut table = Table::new("Devices: what they say of themselves", "")
        .label("Device")
        .text("Name")
        .text("Version")
        .text("More");
    let mut told: Vec<&str> = Vec::new();
    let cells = run.results.cells.iter();
    for one in cells
        .filter_map(|cell| cell.device())
        .flat_map(|found| &found.members)
    {
        if told.contains(&one.member.as_str()) {
            continue;
        }
        told.push(&one.member);
        let more: Vec<String> = one
            .more
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        table.push(vec![
            Cell::label(&one.member),
            Cell::plain(&one.name),
            Cell::plain(&one.version),
            Cell::plain(more.join("; ")),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The figure that a cell is there for, in a few words; `None` of one that has none.
pub(crate) fn figure(cell: &CellResult) -> Option<String> {
    let found = cell.device()?;
    if found.not_offered.is_some() {
        return Some("not offered".into());
    }
    if let Some(kat) = &found.kat() {
        return Some(kat::summary(kat));
    }
    if let Some(speed) = &found.speed() {
        return Some(speed::figure(speed));
    }
    found.fatigue().map(fatigue::summary)
}

/// What stands in place of a figure: that the device does not have it, or why there is none.
fn without_figure(cell: &CellResult) -> Cell {
    let not_offered = cell.device().and_then(|found| found.not_offered.as_ref());
    match not_offered {
        Some(_) => not_offered_cell(),
        None => super::reason_cell(cell),
    }
}

fn not_offered_cell() -> Cell {
    Cell {
        text: "not offered".into(),
        ..Cell::missing()
    }
}
