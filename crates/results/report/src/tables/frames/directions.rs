//! Loss and latency of each direction, for loads in both.

use super::share;
use super::timing::load_name;
use crate::format::{Scale, time_ns};
use crate::layout::Run;
use crate::table::{Cell, Table};
use stats::{DirectionLoss, LoadLatency};

/// One row per cell that loads both directions; `None` without any.
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

/// Rows for each cell and load with latency in both directions; `None` without any.
pub(crate) fn latency_directions(run: &Run<'_>) -> Option<Table> {
    let note = "cells that load both directions at once; of all repeats pooled, from the intended send time; a percentile needs \
                at least one slower frame";
    let mut table = Table::new("Latency by direction", note)
        .labels(["Cell", "Load", "Direction"])
        .figures(["Frames", "Min.", "p50", "p99", "p99.9", "Max."]);
    for cell in &run.results.cells {
        for latency in cell.frames().map_or(&[][..], |found| &found.latency) {
            for row in latency_rows(&cell.id, latency) {
                table.push(row);
            }
        }
    }
    table.with_rows()
}

fn latency_rows(cell: &str, latency: &LoadLatency) -> Vec<Vec<Cell>> {
    let time =
        |ns: Option<u64>| ns.map_or_else(Cell::missing, |ns| Cell::plain(time_ns(ns as f64)));
    let rows = latency.directions.iter().map(|own| {
        vec![
            Cell::label(cell),
            Cell::label(load_name(latency)),
            Cell::label(own.direction.name()),
            Cell::plain(own.frames.to_string()),
            time(Some(own.min_ns)),
            time(Some(own.p50_ns)),
            time(own.p99_ns),
            time(own.p99_9_ns),
            time(Some(own.max_ns)),
        ]
    });
    rows.collect()
}
