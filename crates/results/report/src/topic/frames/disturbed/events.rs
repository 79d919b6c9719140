//! Single events in tables.

use super::{caption, device};
use crate::kit::format::time_ns;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::{FramePoint, FrameSet};
use crate::topic::frames::{disturbed, head};
use stats::{CellResult, EventPlace, EventTimes};

pub(super) fn without(times: &EventTimes) -> Cell {
    match times.endless() {
        0 => Cell::plain("0"),
        some => Cell::word(format!("{some} of {}", times.events)),
    }
}

/// Each event with continued loss; `None` without any.
pub(super) fn not_recovered(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
    let note = "frames were still being lost when the next event came, or the trial's end; times from the trial's \
                first frame on";
    let mut table = head(set, Table::new(caption(set, "without recovery"), note))
        .text("Event")
        .figures(["Repeat", "At"]);
    for (point, cell) in set.rows() {
        let found = disturbed::of(cell).map_or(&[][..], stats::DisturbanceResult::not_recovered);
        for event in found {
            table.push(place_cells(run, set, (point, cell), event));
        }
    }
    table.with_rows()
}

/// The first cells of an event's row: frames (if several mixes), device, event, repeat, time.
pub(super) fn place_cells(
    run: &Run<'_>,
    set: &FrameSet<'_>,
    (point, cell): (&FramePoint<'_>, &CellResult),
    event: &EventPlace,
) -> Vec<Cell> {
    let mut cells = match set.points.len() {
        1 => Vec::new(),
        _ => vec![Cell::label(point.short_name())],
    };
    cells.push(Cell::label(device(run, cell)));
    cells.extend([
        Cell::plain(format!("{} no. {}", event.name, event.number)),
        Cell::plain(event.repeat.to_string()),
        Cell::plain(time_ns(event.at_ns as f64)),
    ]);
    cells
}
