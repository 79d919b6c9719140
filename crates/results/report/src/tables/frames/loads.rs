//! Loads: loss, reordering, duplication and corruption, counted separately.

use super::{head, labels, mean_rate, share, verdict, without_figure};
use crate::layout::Run;
use crate::layout::frames::{FrameKind, FrameSet};
use crate::order::sorted;
use crate::table::{Cell, Table};
use stats::LoadResult;

/// The loss at each load of a curve, devices as rows, loads as columns; `None` for one load.
pub(crate) fn by_load(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
    let loads = set
        .rows()
        .filter_map(|(_, cell)| Some(cell.frames()?.loads()));
    let percents = sorted(loads.flatten().filter_map(|load| load.percent));
    if percents.len() < 2 {
        return None;
    }
    let note = format!(
        "{}; lost, of the frames that left the sender, by load in per cent of the highest; mean of the repeats; 0 means \
         none at all",
        set.common
    );
    let mut table = head(
        set,
        Table::new(super::caption(set, "Frames lost by load"), note),
    );
    table = table.figures(percents.iter().map(|percent| format!("{percent} %")));
    for (point, cell) in set.rows() {
        let mut cells = labels(run, set, point, cell);
        let Some(found) = cell.frames() else {
            cells.extend(without_figure(cell, percents.len()));
            table.push(cells);
            continue;
        };
        cells.extend(percents.iter().map(|percent| {
            let mut loads = found.loads().iter();
            let load = loads.find(|load| load.percent == Some(*percent));
            Cell::or_missing(load.map(|load| share(load.account.lost, load.lost_ppm.mean)))
        }));
        table.push(cells);
    }
    Some(table)
}

/// Every load of a loss curve, or the single load of a `load` test.
pub(crate) fn loads(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; frames/s of one direction; lost, reordered, duplicated, corrupted: of the frames that \
         left the sender, mean of the repeats; 0 means none at all; not sent, sent too late: frames that the \
         generator kept back, or that left when the load's time was over, over all repeats",
        set.common
    );
    let curve = set.kind == FrameKind::LossCurve;
    let mut table = head(set, Table::new(super::caption(set, set.kind.name()), note));
    if curve {
        table = table.label("Load");
    }
    table = table
        .figures(["Offered", "Forwarded", "Lost", "Not sent"])
        .figures(["Sent too late", "Reordered", "Duplicated", "Corrupted"])
        .text("Verdict");
    for (point, cell) in set.rows() {
        let loads = cell.frames().map_or(&[][..], |found| found.loads());
        if loads.is_empty() {
            let mut cells = labels(run, set, point, cell);
            if curve {
                cells.push(Cell::label(""));
            }
            cells.extend(without_figure(cell, 9));
            table.push(cells);
        }
        for (index, load) in loads.iter().enumerate() {
            let mut cells = labels(run, set, point, cell);
            if let Some(percent) = load.percent {
                cells.push(Cell::label(format!("{percent} %")));
            }
            cells.extend(load_cells(load));
            cells.push(if index == 0 {
                verdict(cell)
            } else {
                Cell::plain("")
            });
            table.push(cells);
        }
    }
    table
}

fn load_cells(load: &LoadResult) -> [Cell; 8] {
    let account = &load.account;
    [
        Cell::plain(mean_rate(&load.offered.frames_per_s)),
        Cell::plain(mean_rate(&load.forwarded.frames_per_s)),
        Cell::plain(share(account.lost, load.lost_ppm.mean)),
        Cell::plain(account.not_sent.to_string()),
        Cell::plain(account.too_late.to_string()),
        Cell::plain(share(account.reordered, load.reordered_ppm.mean)),
        Cell::plain(share(account.duplicated, load.duplicated_ppm.mean)),
        Cell::plain(share(account.corrupted, load.corrupted_ppm.mean)),
    ]
}
