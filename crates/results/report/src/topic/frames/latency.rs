//! Latency of frames under load, and its variation.

mod chart;

use super::chart::Mix;
use super::search::details;
use super::{caption, cells, fill_some, head, joined, labels, load_name, verdict};
use crate::kit::fact::{Fact, repeats};
use crate::kit::format::{Scale, time, time_ns};
use crate::kit::percentiles::{BY_REPEAT, TITLES, of_load};
use crate::kit::section::{Blocks, Section};
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::order::sorted;
use chart::{by_percentile, highest_share, share_name};
use plan::{LatencyPath, ProcedureKind};
use stats::{CellResult, LatencyByTrial, LoadLatency, RoundTrip, TrialSpread};

/// The charts of times over a path, for one mix.
fn latency_charts(out: &mut Blocks, mix: Mix<'_>, path: LatencyPath, id: &str) {
    let (what, over, id) = match path {
        LatencyPath::OneWay => ("latency", "one way", format!("frame-latency-{id}")),
        LatencyPath::RoundTrip => (
            "round-trip time",
            "round trips by reflection at station B",
            format!("frame-round-trip-{id}"),
        ),
    };
    out.chart(
        format!(
            "Frames of {}: {what} by load, {}",
            mix.point.name(),
            mix.set.common
        ),
        format!(
            "Marks: median. Bars: up to the 99th percentile. Lines: up to the slowest frame, with a mark \
             at the 99.9th percentile. All repeats pooled; {over}, from the intended send time; the axis \
             is logarithmic."
        ),
        || chart::draw(mix, path, &id),
    );
    let share = highest_share(mix, path);
    let load = share.map_or_else(String::new, share_name);
    out.chart(
        format!(
            "Frames of {}: {what} by percentile, load {load}",
            mix.point.name()
        ),
        "All repeats pooled. Each nine is as wide as the one before; both axes are \
         logarithmic. Dotted: fewer than ten frames are slower.",
        || by_percentile(mix, path, &format!("{id}-percentiles")),
    );
}

pub(super) const SECTION: Section =
    Section::result("frame-latency", "Latency under load", |run, out| {
        let sets = run.frame_sets_of(ProcedureKind::Latency);
        for (at, set) in sets.iter().enumerate() {
            for (index, point) in set.points.iter().enumerate() {
                let mix = Mix { run, set, point };
                for path in set.paths() {
                    latency_charts(out, mix, path, &format!("{at}-{index}"));
                }
            }
        }
        // Round trips have separate tables, as they are never compared with latencies of one way.
        for path in LatencyPath::ALL {
            let of = |set: &FrameSet<'_>| set.paths().contains(&path);
            let (by_load, under_load) = match path {
                LatencyPath::OneWay => ("Latency by load", "Latency under load"),
                LatencyPath::RoundTrip => ("Round-trip time by load", "Round-trip time under load"),
            };
            out.tables(joined(by_load, &sets, |set| {
                of(set).then(|| latency_by_load(run, set, path))?
            }));
            out.tables(joined(under_load, &sets, |set| {
                of(set).then(|| latency(run, set, path))
            }));
        }
        if !out.is_short() {
            out.tables(latency_directions(run));
            out.tables(joined("Delay variation", &sets, |set| variation(run, set)));
        }
        details(run, out, &sets);
    });

/// Rows for each cell and load with latency in both directions; `None` without any.
fn latency_directions(run: &Run<'_>) -> Option<Table> {
    let note = "cells that load both directions at once; of all repeats pooled, from the intended send time; a percentile needs \
                at least one slower frame";
    let mut table = Table::new("Latency by direction", note)
        .labels(["Cell", "Load", "Direction"])
        .figures(["Frames", "Min.", "p50", "p99", "p99.9", "Max."]);
    // Pooled, a fast direction would hide a slow one.
    for cell in &run.results.cells {
        for latency in cell.frames().map_or(&[][..], |found| &found.latency) {
            for row in latency_rows(&cell.id, latency) {
                table.push(row);
            }
        }
    }
    table.with_rows()
}

fn latency_rows(cell: &str, latency: &LoadLatency) -> impl Iterator<Item = Vec<Cell>> {
    latency.directions.iter().map(move |own| {
        vec![
            Cell::label(cell),
            Cell::label(load_name(latency)),
            Cell::label(own.direction.name()),
            Cell::plain(own.frames.to_string()),
            Cell::time(Some(own.min_ns)),
            Cell::time(Some(own.p50_ns)),
            Cell::time(own.p99_ns),
            Cell::time(own.p99_9_ns),
            Cell::time(Some(own.max_ns)),
        ]
    })
}

/// The latencies of a cell over a path.
fn timed(cell: &CellResult, path: LatencyPath) -> impl Iterator<Item = &LoadLatency> {
    let all = cell.frames().map_or(&[][..], |found| &found.latency);
    all.iter().filter(move |latency| latency.path() == path)
}

/// How times over a path are measured, and their name.
const fn words(path: LatencyPath) -> (&'static str, &'static str) {
    match path {
        LatencyPath::OneWay => ("one way, from the intended send time", "Latency"),
        LatencyPath::RoundTrip => (
            "round trip by reflection at station B, from the intended send time and by station A's clock alone",
            "Round-trip time",
        ),
    }
}

/// Median and 99th percentile, devices as rows and loads as columns; `None` for one load.
fn latency_by_load(run: &Run<'_>, set: &FrameSet<'_>, path: LatencyPath) -> Option<Table> {
    let found = set.rows().flat_map(|(_, cell)| timed(cell, path));
    // Devices may have been timed at different loads.
    let percents = sorted(found.filter_map(|latency| latency.percent));
    if percents.len() < 2 {
        return None;
    }
    let (over, what) = words(path);
    let note = format!(
        "{}; {over}; load: per cent of the throughput of each device; all repeats pooled{}",
        set.common,
        how_exact(set, path)
    );
    let caption = caption(set, &format!("{what} by load"));
    let mut table = head(set, Table::new(caption, note));
    for percent in &percents {
        let load = match percent {
            0 => "Lowest load".to_owned(),
            percent => format!("{percent} % load"),
        };
        table = table.figures_of(load, ["p50", "p99"]);
    }
    let wanted = |cell: &CellResult| belongs(set, cell, path);
    let table = fill_some(table, run, set, wanted, |cell| {
        cell.frames()?;
        let times = percents.iter().flat_map(|percent| {
            let load = timed(cell, path).find(|latency| latency.percent == Some(*percent));
            let p99_ns = load.and_then(|latency| latency.p99_ns);
            [load.map(|latency| latency.p50_ns), p99_ns].map(Cell::time)
        });
        Some(times.collect::<Vec<_>>())
    });
    Some(table)
}

/// Whether a cell is in the tables of a path: the timed path, or without times the configured one.
fn belongs(set: &FrameSet<'_>, cell: &CellResult, path: LatencyPath) -> bool {
    // The clocks of two hosts decide only after a trial which path was timed.
    let was_timed = cell.frames().is_some_and(|found| !found.latency.is_empty());
    if was_timed {
        timed(cell, path).next().is_some()
    } else {
        path == set.path()
    }
}

/// The accuracy of times over a path, as the end of a note: for latencies between two hosts, their
/// possible error; for round trips, the reflector's share.
fn how_exact(set: &FrameSet<'_>, path: LatencyPath) -> String {
    if path == LatencyPath::OneWay {
        return across_hosts(set);
    }
    let all = set.rows().flat_map(|(_, cell)| timed(cell, path));
    let parts: Vec<_> = all
        .filter_map(|latency| latency.round_trip.as_ref())
        .collect();
    let most = |of: fn(&RoundTrip) -> u64| parts.iter().map(|part| of(part)).max();
    let mut note = String::new();
    if path != set.path() {
        note += "; the clocks of the two hosts agree too little for latencies one way";
    }
    // It is stated, not subtracted, as the times of single frames are not known.
    if let Some(p50_ns) = most(|part| part.reflector_p50_ns) {
        // With too few frames for a percentile, the maximum is an upper bound.
        let p99_ns = most(|part| part.reflector_p99_ns.unwrap_or(part.reflector_max_ns));
        note += &format!(
            "; in it is the time at the reflector, by its own clock: at most {} (median) and {} (p99)",
            time_ns(p50_ns as f64),
            time_ns(p99_ns.unwrap_or(p50_ns) as f64)
        );
    }
    if parts.iter().any(|part| !part.from_arrival) {
        note += ", and its wait in the reflector's port, which that does not have";
    }
    note
}

/// The possible error of latencies between two hosts, as the end of a note; empty on one host.
fn across_hosts(set: &FrameSet<'_>) -> String {
    let latencies = set
        .rows()
        .filter_map(|(_, cell)| Some(&cell.frames()?.latency));
    let bounds = latencies
        .flatten()
        .filter_map(|latency| latency.clocks_within_ns);
    bounds.max().map_or_else(String::new, |within_ns| {
        let within = time_ns(within_ns as f64);
        format!("; between two hosts, whose clocks were known to {within} or better either way")
    })
}

/// Percentiles by share of the throughput.
fn latency(run: &Run<'_>, set: &FrameSet<'_>, path: LatencyPath) -> Table {
    let (over, what) = words(path);
    let note = format!(
        "{}; {over}; load: per cent of the throughput found, 0 being \
         the lowest load; percentiles are of all repeats pooled; p50 by repeat: mean ± largest \
         distance of the repeats' own medians{}",
        set.common,
        how_exact(set, path)
    );
    let caption = caption(set, &format!("{what} under load"));
    let table = head(set, Table::new(caption, note))
        .labels(["Load"])
        .figures(["Frames"])
        .figures(TITLES)
        .figures([BY_REPEAT, "p99 − p50"])
        .texts(["Verdict"]);
    let wanted = |cell: &CellResult| belongs(set, cell, path);
    fill_some(table, run, set, wanted, |cell| {
        let loads = timed(cell, path).enumerate();
        loads.map(|(index, latency)| {
            let mut cells = vec![Cell::label(load_name(latency))];
            cells.extend(latency_cells(latency));
            // The verdict is on the throughput, so it is the same for all loads of a cell.
            cells.push(verdict(cell).once(index));
            cells
        })
    })
}

fn latency_cells(latency: &LoadLatency) -> Vec<Cell> {
    let by_repeat = Cell::plain(time(&latency.p50_each_ns));
    [Cell::plain(latency.frames.to_string())]
        .into_iter()
        .chain(of_load(Some(latency)))
        .chain([by_repeat, Cell::time(latency.p99_less_p50_ns)])
        .collect()
}

pub(super) fn fact(device: &str, set: &FrameSet<'_>) -> Option<Fact> {
    let cells = cells(device, set);
    let (size, found) = cells.iter().find_map(|(size, cell)| {
        let latency = &cell.frames()?.latency;
        let distance = |found: &&LoadLatency| found.percent.unwrap_or(0).abs_diff(50);
        Some((size, latency.iter().min_by_key(distance)?))
    })?;
    let scale = Scale::time(found.p50_ns as f64);
    let load = match found.percent {
        Some(percent) => format!("at {percent} % of the throughput"),
        None => "at the load of the evidence".into(),
    };
    let p99 = found.p99_ns.map_or("–".into(), |p99| time_ns(p99 as f64));
    Some(Fact {
        label: match found.path() {
            LatencyPath::OneWay => "Latency, one way",
            LatencyPath::RoundTrip => "Round trip of frames",
        }
        .into(),
        figure: scale.number(found.p50_ns as f64),
        range: repeats(&found.p50_each_ns, &scale),
        unit: scale.unit,
        detail: format!("median {load}, {size} frames; p99 {p99}"),
        brief: String::new(),
    })
}

/// Medians over the trials; `None` if no cell has delay variation.
pub(super) fn variation(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
    let note = format!(
        "{}; each trial is one value: median of the trials (1st to 99th percentile of the trials, by \
         nearest rank); typical latency: the median of a trial, worst case: its 99.9th percentile (RFC \
         8219 §7.2); PDV: delay less the smallest of the trial; IPDV: delay less that of the frame before \
         in the same flow (RFC 5481 §4); with both directions loaded, PDV and IPDV are of the direction \
         that varies more",
        set.common
    );
    let mut table = head(
        set,
        Table::new(caption(set, "Latency and delay variation by trial"), note),
    )
    .labels(["Load"])
    .figures(["Trials", "Typical latency", "Worst case"])
    .figures(["PDV p50", "PDV p99", "PDV p99.9", "PDV max"])
    .figures(["IPDV min", "IPDV p50", "IPDV max"]);
    for (point, cell) in set.rows() {
        for latency in cell.frames().map_or(&[][..], |found| &found.latency) {
            let Some(by_trial) = &latency.by_trial else {
                continue;
            };
            let mut cells = labels(run, set, point, cell);
            cells.push(Cell::label(load_name(latency)));
            cells.extend(figures(by_trial));
            table.push(cells);
        }
    }
    table.with_rows()
}

fn figures(found: &LatencyByTrial) -> [Cell; 10] {
    let one = |spread: &TrialSpread| Cell::plain(in_words(spread, found.trials));
    // A percentile needs slower frames than it, which a short trial may lack.
    let maybe = |spread: Option<&TrialSpread>| {
        Cell::or_missing(spread.map(|it| in_words(it, found.trials)))
    };
    let ipdv = found.ipdv.as_ref();
    [
        Cell::plain(found.trials.to_string()),
        one(&found.typical_ns),
        maybe(found.worst_case_ns.as_ref()),
        one(&found.pdv_p50_ns),
        maybe(found.pdv_p99_ns.as_ref()),
        maybe(found.pdv_p99_9_ns.as_ref()),
        one(&found.pdv_max_ns),
        maybe(ipdv.map(|ipdv| &ipdv.min_ns)),
        maybe(ipdv.map(|ipdv| &ipdv.p50_ns)),
        maybe(ipdv.map(|ipdv| &ipdv.max_ns)),
    ]
}

/// `12 µs (11 µs–15 µs)`; for a single trial, its value.
fn in_words(spread: &TrialSpread, trials: u32) -> String {
    match trials {
        1 => signed(spread.median),
        _ => format!(
            "{} ({} to {})",
            signed(spread.median),
            signed(spread.p1),
            signed(spread.p99)
        ),
    }
}

/// A time that may be negative.
fn signed(ns: f64) -> String {
    if ns < 0.0 {
        format!("−{}", time_ns(-ns))
    } else {
        time_ns(ns)
    }
}
