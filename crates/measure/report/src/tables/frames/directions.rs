//! Loss of each direction where both are loaded.

use super::share;
use crate::format::Scale;
use crate::layout::Run;
use crate::table::{Cell, Table};
use stats::DirectionLoss;

/// A row for each cell that loads both directions; `None` without any.
pub(crate) fn directions(run: &Run<'_>) -> Option<Table> {
    let note = "cells that load both directions at once; over every frame trial but the one that \
                found the highest load, overloads of a search included; lost: of the frames that left \
                the sender, mean of the repeats; a search holds the worse direction to its goal";
    let mut table = Table::new("Loss by direction", note)
        .label("Cell")
        .figures(["Sent, A to B", "Lost, A to B"])
        .figures(["Sent, B to A", "Lost, B to A"]);
    for cell in &run.results.cells {
        let found = cell.frames().map_or(&[][..], |found| &found.directions);
        if found.is_empty() {
            continue;
        }
        let mut cells = vec![Cell::label(&cell.id)];
        cells.extend(found.iter().flat_map(figures));
        table.push(cells);
    }
    table.with_rows()
}

fn figures(found: &DirectionLoss) -> [Cell; 2] {
    let sent = found.account.sent() as f64;
    [
        Cell::plain(Scale::si(sent, "").value(sent)),
        Cell::plain(share(found.account.lost, found.lost_ppm.mean)),
    ]
}
