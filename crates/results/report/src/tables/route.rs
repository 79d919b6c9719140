//! Further figures of ping cells: round trips under load, hops, and path MTU.

use super::percentiles::{self, TITLES};
use crate::format;
use crate::layout::Run;
use crate::table::{Cell, Table};
use stats::{CellResult, LatencyResult, RouteResult};

/// Round trips when idle and under TCP load; `None` without any under load.
pub(crate) fn loaded(run: &Run<'_>) -> Option<Table> {
    let note = "the same echo requests on the idle path, and while one TCP connection loads it each way; all repeats \
                pooled; ratios: under load by idle; lost: requests without a reply";
    let mut table = Table::new("Round-trip time under TCP load", note)
        .labels(["Cell", "Load"])
        .figures(TITLES)
        .figures(["p50 ratio", "p99 ratio", "Lost"]);
    for (cell, found) in latencies(run).filter(|(_, found)| !found.loaded.is_empty()) {
        let mut row = |load: &str, times: &stats::Pooled, others: [Cell; 3]| {
            let mut cells = vec![Cell::label(&cell.id), Cell::label(load)];
            cells.extend(percentiles::of_round_trips(times));
            cells.extend(others);
            table.push(cells);
        };
        let lost = Cell::plain(found.requests_lost.to_string());
        row(
            "idle",
            &found.pooled,
            [Cell::missing(), Cell::missing(), lost],
        );
        for under in &found.loaded {
            let p99 = under.p99_by_idle.map(format::ratio_number);
            let others = [
                Cell::plain(format::ratio_number(under.p50_by_idle)),
                Cell::or_missing(p99),
                Cell::plain(under.requests_lost.to_string()),
            ];
            row(under.load, &under.pooled, others);
        }
    }
    table.with_rows()
}

/// Hops by traceroute; `None` without any.
pub(crate) fn hops(run: &Run<'_>) -> Option<Table> {
    let note = "traceroute from A to B with echo requests, first repeat; the shortest of three round trips, and what \
                each hop adds to that of the hop before";
    let mut table = Table::new("Hops", note)
        .labels(["Cell", "Hop"])
        .text("Address")
        .figures(["Round trip", "Added"]);
    for (cell, route) in routes(run) {
        for (at, hop) in route.hops.iter().enumerate() {
            table.push(vec![
                Cell::label(&cell.id),
                Cell::label((at + 1).to_string()),
                Cell::plain(hop.address.as_deref().unwrap_or("no answer")),
                Cell::time(hop.min_ns),
                Cell::time(hop.added_ns),
            ]);
        }
    }
    table.with_rows()
}

/// Path MTU as found and as reported; `None` if it was not searched for.
pub(crate) fn path_mtu(run: &Run<'_>) -> Option<Table> {
    let note = "found: the longest IP packet with DF set that was answered, by search (RFC 8899 section 5.3); reported: \
                by ICMP for a packet as long as the links' MTU (RFC 1191 section 4)";
    let mut table = Table::new("Path MTU", note)
        .label("Cell")
        .figures(["Links", "Found", "Reported"])
        .text("Finding");
    for (cell, route) in routes(run) {
        let bytes = |mtu: Option<u16>| Cell::or_missing(mtu.map(|mtu| format!("{mtu} B")));
        table.push(vec![
            Cell::label(&cell.id),
            bytes(Some(route.link_mtu_bytes)),
            bytes(route.path_mtu_bytes),
            bytes(route.reported_mtu_bytes),
            finding(route),
        ]);
    }
    table.with_rows()
}

fn finding(route: &RouteResult) -> Cell {
    match (
        route.mtu_agrees,
        route.path_mtu_bytes,
        route.reported_mtu_bytes,
    ) {
        (true, ..) => Cell::term("agrees"),
        (false, None, _) => Cell::word("no packet was answered"),
        (false, Some(_), None) => {
            Cell::word("longer packets vanish without a report: TCP with large segments stalls")
        }
        (false, Some(found), Some(reported)) if reported > found => {
            Cell::word("reported is more than is carried: packets of that length vanish")
        }
        (false, Some(_), Some(_)) => Cell::word("reported is less than is carried"),
    }
}

fn latencies<'r>(run: &'r Run<'_>) -> impl Iterator<Item = (&'r CellResult, &'r LatencyResult)> {
    let cells = run.results.cells.iter();
    cells.filter_map(|cell| Some((cell, cell.latency()?)))
}

fn routes<'r>(run: &'r Run<'_>) -> impl Iterator<Item = (&'r CellResult, &'r RouteResult)> {
    latencies(run).filter_map(|(cell, found)| Some((cell, found.route.as_ref()?)))
}
