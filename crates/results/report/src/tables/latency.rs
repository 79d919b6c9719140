//! Round-trip times.

use super::percentiles::{self, BY_REPEAT, TITLES};
use super::{FORMAT, cell_table, of_baseline, with_repeats, without_figure};
use crate::format;
use crate::layout::{Run, Set};
use crate::table::{Cell, Table, joined};
use stats::{CellResult, LatencyResult, Metric};

/// Round-trip times of every ping cell.
pub(crate) fn latency(run: &Run<'_>, sets: &[Set<'_>]) -> Vec<Table> {
    let tables = sets.iter().map(|set| of(run, set));
    let settings = Set::settings(sets).into_iter();
    joined("Round-trip time by ping", settings.zip(tables).collect())
}

fn of(run: &Run<'_>, set: &Set<'_>) -> Table {
    let note = format!(
        "{}; percentiles are of all repeats pooled, and given if at least one reply is \
         slower; p50 by repeat: {FORMAT} of the repeats' own medians{}",
        set.common,
        of_baseline(set, "p50")
    );
    let table = Table::new("Round-trip time by ping", note);
    let titles = [&TITLES[..], &[BY_REPEAT, "Lost"]].concat();
    let metric = Some(Metric::LatencyP50);
    cell_table(run, set, table, &titles, metric, |cell| {
        match cell.latency() {
            Some(latency) => figures(cell, latency),
            None => without_figure(cell, titles.len()),
        }
    })
}

fn figures(cell: &CellResult, latency: &LatencyResult) -> Vec<Cell> {
    let median = with_repeats(format::time(&latency.p50_ns), cell);
    let lost = format!("{} of {}", latency.requests_lost, latency.requests_sent);
    let times = percentiles::of_round_trips(&latency.pooled).into_iter();
    times.chain([median, lost].map(Cell::plain)).collect()
}
