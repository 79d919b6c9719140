//! Round-trip times and the route, on the idle path and under loads.

pub(crate) mod columns;

use crate::kit::cells::{
    FORMAT, cell_table, joined_sets, of_baseline, with_repeats, without_figure,
};
use crate::kit::chart::percentiles::{self, Curve};
use crate::kit::chart::with_interval;
use crate::kit::fact::{Fact, Subject, repeats};
use crate::kit::format::{Scale, ratio_number, time, time_ns};
use crate::kit::percentiles::{BY_REPEAT, TITLES, of_round_trips};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::{Point, Protocol, Run, Set};
use maud::Markup;
use stats::{CellResult, Distribution, LatencyResult, Metric, RouteResult};

pub(super) const SECTION: Section = Section::result("latency", "Latency", |run, out| {
    let sets = run.sets_of(Protocol::Ping);
    for (at, set) in sets.iter().enumerate() {
        for (index, point) in set.points.iter().enumerate() {
            let conditions = format!("{}, {}", set.name_of(point), set.common);
            out.chart(
                format!("Round-trip time by percentile: {conditions}"),
                "All repeats pooled. Each nine is as wide as the one before; both axes are logarithmic. \
                 Dotted: fewer than ten replies are slower.",
                || chart(run, set, point, &format!("latency-{at}-{index}")),
            );
        }
    }
    out.tables(joined_sets(PING, &sets, |set| of(run, set)));
    out.tables(loaded(run));
    out.tables(hops(run));
    out.tables(path_mtu(run));
});

const PING: &str = "Round-trip time by ping";

/// Round-trip times of every ping cell of a set.
fn of(run: &Run<'_>, set: &Set<'_>) -> Table {
    let note = format!(
        "{}; percentiles are of all repeats pooled, and given if at least one reply is \
         slower; p50 by repeat: {FORMAT} of the repeats' own medians{}",
        set.common,
        of_baseline(set, "p50")
    );
    let table = Table::new(PING, note);
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
    let median = with_repeats(time(&latency.p50_ns), cell);
    // Lost requests have no time, so the percentiles leave them out.
    let lost = format!("{} of {}", latency.requests_lost, latency.requests_sent);
    let times = of_round_trips(&latency.pooled).into_iter();
    times.chain([median, lost].map(Cell::plain)).collect()
}

/// Round trips when idle and under TCP load; `None` without any under load.
fn loaded(run: &Run<'_>) -> Option<Table> {
    let note = "the same echo requests on the idle path, and while one TCP connection loads it each way; all repeats \
                pooled; ratios: under load by idle; lost: requests without a reply";
    let mut table = Table::new("Round-trip time under TCP load", note)
        .labels(["Cell", "Load"])
        .figures(TITLES)
        .figures(["p50 ratio", "p99 ratio", "Lost"]);
    for (cell, found) in latencies(run).filter(|(_, found)| !found.loaded.is_empty()) {
        let mut row = |load: &str, times: &stats::Pooled, others: [Cell; 3]| {
            let mut cells = vec![Cell::label(&cell.id), Cell::label(load)];
            cells.extend(of_round_trips(times));
            cells.extend(others);
            table.push(cells);
        };
        let lost = Cell::plain(found.requests_lost.to_string());
        // The idle path comes first, as the ratios refer to it.
        row(
            "idle",
            &found.pooled,
            [Cell::missing(), Cell::missing(), lost],
        );
        for under in &found.loaded {
            let p99 = under.p99_by_idle.map(ratio_number);
            let others = [
                Cell::plain(ratio_number(under.p50_by_idle)),
                Cell::or_missing(p99),
                Cell::plain(under.requests_lost.to_string()),
            ];
            row(under.load, &under.pooled, others);
        }
    }
    table.with_rows()
}

/// Hops by traceroute; `None` without any.
fn hops(run: &Run<'_>) -> Option<Table> {
    let note = "traceroute from A to B with echo requests, first repeat; the shortest of three round trips, and what \
                each hop adds to that of the hop before";
    let mut table = Table::new("Hops", note)
        .labels(["Cell", "Hop"])
        .texts(["Address"])
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
fn path_mtu(run: &Run<'_>) -> Option<Table> {
    let note = "found: the longest IP packet with DF set that was answered, by search (RFC 8899 section 5.3); reported: \
                by ICMP for a packet as long as the links' MTU (RFC 1191 section 4)";
    let mut table = Table::new("Path MTU", note)
        .labels(["Cell"])
        .figures(["Links", "Found", "Reported"])
        .texts(["Finding"]);
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
        // A black hole (RFC 2923, section 2.1).
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

/// The round trip of the first set with a figure.
pub(super) fn facts(of: &Subject<'_>) -> Vec<Fact> {
    let mut sets = of.sets_of(Protocol::Ping);
    let fact = sets.find_map(|set| fact(of.run, of.device, set));
    fact.into_iter().collect()
}

/// The first median of a set, and its difference from the baseline's.
fn fact(run: &Run<'_>, device: &str, set: &Set<'_>) -> Option<Fact> {
    let cell = set
        .points
        .iter()
        .find_map(|point| point.cell(device).filter(|cell| cell.latency().is_some()))?;
    let median = |cell: &CellResult| Some(cell.latency()?.p50_ns.mean);
    let own = &cell.latency()?.p50_ns;
    let baseline = run
        .comparison(cell, Metric::LatencyP50)
        .and_then(|found| Some((&found.baseline, median(run.cell(&found.baseline_cell)?)?)));
    let (brief, detail) = match baseline {
        Some((name, other)) if own.mean >= other => {
            let more = time_ns(own.mean - other);
            let brief = format!("{more} more than {name}");
            let detail = format!("median, {brief} ({})", time_ns(other));
            (brief, detail)
        }
        // A negative difference is hard to read, so both medians are named.
        Some((name, other)) => {
            let brief = format!("{name}: {}", time_ns(other));
            let detail = format!("median; {brief}");
            (brief, detail)
        }
        None => (String::new(), "median".into()),
    };
    let scale = Scale::time(own.mean);
    Some(Fact {
        label: "Round trip".into(),
        figure: scale.number(own.mean),
        range: repeats(own, &scale),
        unit: scale.unit,
        detail,
        brief,
    })
}

/// The chart of one point; `None` if no cell has round trips.
fn chart(run: &Run<'_>, set: &Set<'_>, point: &Point<'_>, id: &str) -> Option<Markup> {
    let curves: Vec<Curve<'_>> = point
        .cells
        .iter()
        .filter_map(|cell| curve(run, cell))
        .collect();
    let name = set.name_of(point);
    let svg = percentiles::draw(id, &name, "replies", &curves)?;
    let described: Vec<String> = curves.iter().map(Curve::words).collect();
    let description = format!("{name}, {}. {}.", set.common, described.join("; "));
    Some(svg.finish("Round-trip time by percentile", &description))
}

fn curve<'a>(run: &Run<'_>, cell: &'a CellResult) -> Option<Curve<'a>> {
    let found = cell.latency()?;
    // Each time is one request.
    let times = found.round_trips_ns.iter().map(|time| (*time, 1));
    Some(Curve {
        dut: &cell.dut,
        style: run.color(&cell.dut),
        times: Distribution::of(times)?,
        by_repeat: with_interval(&Scale::time(found.p50_ns.mean), &found.p50_ns),
    })
}
