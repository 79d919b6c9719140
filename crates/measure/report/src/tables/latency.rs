//! Round-trip times.

use super::{FORMAT, Labels, of_baseline, ratio_cell, reason_cell, rows, with_repeats};
use crate::format;
use crate::layout::{Run, Set};
use crate::table::{Cell, Table};
use stats::{CellResult, LatencyResult, Metric};

/// Round-trip times of every ping cell of a set.
pub(crate) fn latency(run: &Run<'_>, set: &Set<'_>) -> Table {
    let ratio = set.compared_with().is_some();
    let note = format!(
        "{}; p50 of each repeat: {FORMAT}; the other percentiles are of all repeats pooled, and \
         given where at least one reply lies beyond them{}",
        set.common,
        of_baseline(set, "p50")
    );
    let mut table = Labels::of(set)
        .head(Table::new("Round-trip time by ping", note))
        .figure("p50")
        .figure("p90")
        .figure("p99")
        .figure("p99.9")
        .figure("Max")
        .figure("Lost");
    if ratio {
        table = table.figure("Ratio");
    }
    for (point, cell) in rows(set) {
        let mut cells = Labels::of(set).cells(point, cell);
        match cell.latency() {
            Some(latency) => cells.extend(figures(cell, latency)),
            None => {
                cells.push(reason_cell(cell));
                cells.extend([(); 5].map(|()| Cell::missing()));
            }
        }
        if ratio {
            cells.push(ratio_cell(run, cell, Metric::LatencyP50));
        }
        table.push(cells);
    }
    table
}

fn figures(cell: &CellResult, latency: &LatencyResult) -> [Cell; 6] {
    let pooled = &latency.pooled;
    let time =
        |value: Option<u64>| Cell::or_missing(value.map(|value| format::time_ns(value as f64)));
    [
        Cell::plain(with_repeats(format::time(&latency.p50_ns), cell)),
        time(pooled.p90_ns),
        time(pooled.p99_ns),
        time(pooled.p99_9_ns),
        time(Some(pooled.max_ns)),
        Cell::plain(format!(
            "{} of {}",
            latency.requests_lost, latency.requests_sent
        )),
    ]
}
