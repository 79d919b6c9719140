//! Crypto devices: correctness, speed and endurance.

mod fatigue;
mod kat;
mod reasons;
mod speed;

pub(crate) use fatigue::{batch_name, class_name, fatigue};
pub(crate) use kat::{kat, kat_cases};
pub(crate) use reasons::not_offered;
pub(crate) use speed::{cells, cells_outside_series, curves, findings, scale, series_name, sizes};

use crate::layout::Run;
use crate::order::grouped;
use crate::table::{Cell, Table};
use stats::CellResult;

/// Facts that each device reports about itself; `None` if there are no facts.
pub(crate) fn facts(run: &Run<'_>) -> Option<Table> {
    let mut table = Table::new("Devices: reported facts", "")
        .label("Device")
        .texts(["Name", "Version", "More"]);
    let found = run.results.cells.iter().filter_map(|cell| cell.device());
    let members = found.flat_map(|found| &found.members);
    for (name, own) in grouped(members.map(|one| (one.member.as_str(), one))) {
        let one = own[0];
        let more: Vec<String> = one
            .more
            .iter()
            .map(|(what, value)| format!("{what}: {value}"))
            .collect();
        table.push(vec![
            Cell::label(name),
            Cell::plain(&one.name),
            Cell::plain(&one.version),
            Cell::plain(more.join("; ")),
        ]);
    }
    table.with_rows()
}

/// The main figure of a cell, in a few words; `None` if absent.
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

/// In place of a figure: that the device does not offer it, or the reason for its absence.
fn without_figure(cell: &CellResult) -> Cell {
    let not_offered = cell.device().and_then(|found| found.not_offered.as_ref());
    match not_offered {
        Some(_) => not_offered_cell(),
        None => super::reason_cell(cell),
    }
}

fn not_offered_cell() -> Cell {
    Cell::absent("not offered")
}
