//! Latency under load, bursts and recovery.

use super::{fill, head, labels, mean_rate, verdict, without_figure};
use crate::format::{self, Scale, counted, time_ns};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::order::sorted;
use crate::table::{Cell, Table};
use crate::tables::percentiles::{self, BY_REPEAT, TITLES};
use plan::LatencyPath;
use stats::{BackToBackResult, CellResult, LoadLatency, RecoveryResult, RoundTrip};

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
pub(crate) fn latency_by_load(
    run: &Run<'_>,
    set: &FrameSet<'_>,
    path: LatencyPath,
) -> Option<Table> {
    let found = set.rows().flat_map(|(_, cell)| timed(cell, path));
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
    let caption = super::caption(set, &format!("{what} by load"));
    let mut table = head(set, Table::new(caption, note));
    for percent in &percents {
        let load = match percent {
            0 => "Lowest load".to_owned(),
            percent => format!("{percent} % load"),
        };
        table = table.figures_of(load, ["p50", "p99"]);
    }
    for (point, cell) in set.rows().filter(|(_, cell)| belongs(set, cell, path)) {
        let mut cells = labels(run, set, point, cell);
        if cell.frames().is_none() {
            cells.extend(without_figure(cell, 2 * percents.len()));
            table.push(cells);
            continue;
        }
        for percent in &percents {
            let load = timed(cell, path).find(|latency| latency.percent == Some(*percent));
            cells.push(Cell::time(load.map(|latency| latency.p50_ns)));
            cells.push(Cell::time(load.and_then(|latency| latency.p99_ns)));
        }
        table.push(cells);
    }
    Some(table)
}

/// Whether a cell is in the tables of a path: the timed path, or without times the configured one.
fn belongs(set: &FrameSet<'_>, cell: &CellResult, path: LatencyPath) -> bool {
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
    if let Some(p50_ns) = most(|part| part.reflector_p50_ns) {
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
pub(super) fn across_hosts(set: &FrameSet<'_>) -> String {
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
pub(crate) fn latency(run: &Run<'_>, set: &FrameSet<'_>, path: LatencyPath) -> Table {
    let (over, what) = words(path);
    let note = format!(
        "{}; {over}; load: per cent of the throughput found, 0 being \
         the lowest load; percentiles are of all repeats pooled; p50 by repeat: mean ± largest \
         distance of the repeats' own medians{}",
        set.common,
        how_exact(set, path)
    );
    let caption = super::caption(set, &format!("{what} under load"));
    let mut table = head(set, Table::new(caption, note))
        .label("Load")
        .figure("Frames")
        .figures(TITLES)
        .figures([BY_REPEAT, "p99 − p50"])
        .text("Verdict");
    for (point, cell) in set.rows().filter(|(_, cell)| belongs(set, cell, path)) {
        if timed(cell, path).next().is_none() {
            let mut cells = labels(run, set, point, cell);
            cells.push(Cell::label(""));
            cells.extend(without_figure(cell, TITLES.len() + 4));
            table.push(cells);
        }
        for (index, latency) in timed(cell, path).enumerate() {
            let mut cells = labels(run, set, point, cell);
            cells.push(Cell::label(load_name(latency)));
            cells.extend(latency_cells(latency));
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

/// The load, marked if its times are round trips.
pub(super) fn load_name(latency: &LoadLatency) -> String {
    let rate = mean_rate(&latency.load_frames_per_s);
    let load = match latency.percent {
        Some(percent) => format!("{percent} % ({rate})"),
        None => rate,
    };
    match latency.path() {
        LatencyPath::OneWay => load,
        LatencyPath::RoundTrip => load + ", round trip",
    }
}

fn latency_cells(latency: &LoadLatency) -> Vec<Cell> {
    let by_repeat = Cell::plain(format::time(&latency.p50_each_ns));
    [Cell::plain(latency.frames.to_string())]
        .into_iter()
        .chain(percentiles::of_load(Some(latency)))
        .chain([by_repeat, Cell::time(latency.p99_less_p50_ns)])
        .collect()
}

/// Longest bursts without loss, and the buffer size that they imply.
pub(crate) fn back_to_back(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; longest burst at the highest load without loss; buffer time: the burst by its rate, \
         and less what the device forwards meanwhile where its throughput was measured too (RFC \
         9004 §5.4); with loss: of the bursts that were to confirm a length, after \
         which a shorter one was tried",
        set.common
    );
    let table = head(set, Table::new(super::caption(set, set.kind.name()), note))
        .figures(["Burst, frames", "Rate", "Implied buffer"])
        .figures(["Corrected buffer", "With loss"])
        .text("Verdict");
    fill(table, run, set, |cell| {
        Some(burst_cells(cell, cell.frames()?.back_to_back()?))
    })
}

fn burst_cells(cell: &CellResult, found: &BackToBackResult) -> [Cell; 6] {
    let least = if found.longest_tried_passed {
        "≥ "
    } else {
        ""
    };
    let burst = Scale::plain().estimate(&found.burst_frames);
    let (rate, implied) = (found.burst_frames_per_s, found.implied_buffer_ns);
    let full = !found.longest_tried_passed;
    let corrected = found.corrected_buffer_ns.filter(|_| full);
    [
        Cell::plain(format!("{least}{burst}")),
        Cell::or_missing(rate.map(|rate| Scale::si(rate, "pps").value(rate))),
        Cell::or_missing(implied.map(|time| format!("{least}{}", time_ns(time)))),
        // A burst that ended with the trial does not bound the frames forwarded meanwhile.
        Cell::or_missing(corrected.map(time_ns)),
        Cell::plain(format!(
            "{} of {}",
            found.confirming_with_loss, found.confirming_bursts
        )),
        verdict(cell),
    ]
}

/// Duration of loss after an overload.
pub(crate) fn recovery(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; from the end of the overload to the last loss: mean ± largest distance from it (per \
         cent of the mean); the verdict is on the throughput that the loads are shares of",
        set.common
    );
    let table = head(set, Table::new(super::caption(set, set.kind.name()), note))
        .figures(["Overload", "Relief", "Recovery", "Lost in overload"])
        .figure("Lost afterwards")
        .text("Verdict");
    fill(table, run, set, |cell| {
        Some(recovery_cells(cell, cell.frames()?.recovery()?))
    })
}

fn recovery_cells(cell: &CellResult, found: &RecoveryResult) -> [Cell; 6] {
    let recovery = match &found.recovery_ns {
        Some(time) => Cell::plain(format::time(time)),
        None if found.not_overloaded > 0 => Cell::reason(format!(
            "the overload lost nothing in {}",
            counted(found.not_overloaded, "repeat")
        )),
        None => Cell::reason(format!(
            "loss went on to the end in {}",
            counted(found.not_recovered, "repeat")
        )),
    };
    [
        Cell::plain(mean_rate(&found.overload_frames_per_s)),
        Cell::plain(mean_rate(&found.relief_frames_per_s)),
        recovery,
        Cell::plain(found.overload_lost.to_string()),
        Cell::plain(found.relief_lost.to_string()),
        verdict(cell),
    ]
}
