//! Round-trip times.

use super::{FORMAT, cell_table, of_baseline, with_repeats, without_figure};
use crate::format;
use crate::layout::{Run, Set};
use crate::table::{Cell, Table};
use stats::{CellResult, LatencyResult, Metric};

/// Round-trip times of every ping cell of a set.
pub(crate) fn latency(run: &Run<'_>, set: &Set<'_>) -> Table {
    let note = format!(
        "{}; p50 of each repeat: {FORMAT}; the other percentiles are of all repeats pooled, and \
         given where at least one reply lies beyond them{}",
        set.common,
        of_baseline(set, "p50")
    );
    let table = Table::new("Round-trip time by ping", note);
    let titles = ["p50", "p90", "p99", "p99.9", "Max", "Lost"];
    let metric = Some(Metric::LatencyP50);
    cell_table(run, set, table, &titles, metric, |cell| {
        match cell.latency() {
            Some(latency) => figures(cell, latency).into(),
            None => without_figure(cell, titles.len()),
        }
    })
}

fn figures(cell: &CellResult, latency: &LatencyResult) -> [Cell; 6] {
    let pooled = &latency.pooled;
    [
        Cell::plain(with_repeats(format::time(&latency.p50_ns), cell)),
        Cell::time(pooled.p90_ns),
        Cell::time(pooled.p99_ns),
        Cell::time(pooled.p99_9_ns),
        Cell::time(Some(pooled.max_ns)),
        Cell::plain(format!(
            "{} of {}",
            latency.requests_lost, latency.requests_sent
        )),
    ]
}
