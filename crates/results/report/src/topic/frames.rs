//! Frame tests, and parts that their sections share.
//!
//! Rates are per direction; sizes include the FCS.

mod bursts;
mod chart;
pub(crate) mod columns;
pub(crate) mod disturbed;
mod latency;
mod loads;
mod loss;
mod recovery;
mod search;
mod service;
pub(crate) mod soak;
pub(crate) mod throughput;

use crate::kit::cells::{self, late_mark, partly_mark, without_figure};
use crate::kit::fact::{Fact, Subject};
use crate::kit::format::{Scale, percent, si, time};
use crate::kit::section::Section;
use crate::kit::table::{self, Cell, Table};
use crate::layout::Run;
use crate::layout::frames::{Device, FramePoint, FrameSet, direction_in_words, settings};
use disturbed::interruptions::{DESYNC, FAILOVER, RESET, SETUP};
use disturbed::{hostile, rekey};
use plan::{LatencyPath, ProcedureKind};
use stats::{CellResult, Estimate, FrameOutcome, Limit, LoadLatency};

/// The sections of frame tests, procedure by procedure.
pub(super) const SECTIONS: &[Section] = &[
    throughput::SECTION,
    loads::MRR,
    service::SECTION,
    loss::SECTION,
    latency::SECTION,
    bursts::SECTION,
    recovery::SECTION,
    rekey::SECTION,
    FAILOVER,
    RESET,
    SETUP,
    DESYNC,
    hostile::SECTION,
    soak::SECTION,
];

/// The sets of these kinds, kind by kind.
fn sets_of<'r>(run: &'r Run<'_>, kinds: &[ProcedureKind]) -> Vec<FrameSet<'r>> {
    let sets = kinds.iter().flat_map(|kind| run.frame_sets_of(*kind));
    sets.collect()
}

/// A table of each set; tables that can be joined become one.
pub(super) fn joined(
    what: &str,
    sets: &[FrameSet<'_>],
    table: impl Fn(&FrameSet<'_>) -> Option<Table>,
) -> Vec<Table> {
    let settings = settings(sets).into_iter().zip(sets);
    let tables = settings.filter_map(|(setting, set)| Some((setting, table(set)?)));
    table::joined(what, tables.collect())
}

/// Adds the label columns of tables with one row per cell: the mix, if several, and the device.
pub(super) fn head(set: &FrameSet<'_>, table: Table) -> Table {
    let table = match set.points.len() {
        1 => table,
        _ => table.labels(["Frames"]),
    };
    table.labels(["Device"])
}

fn labels(
    run: &Run<'_>,
    set: &FrameSet<'_>,
    point: &FramePoint<'_>,
    cell: &CellResult,
) -> Vec<Cell> {
    // The marks apply to all figures of the row, so they are next to its name.
    let device = Cell::label(Device::of(cell).label(run) + &partly_mark(cell) + late_mark(cell));
    match set.points.len() {
        1 => vec![device],
        _ => vec![Cell::label(point.short_name()), device],
    }
}

/// Adds the rows of each cell, or one row with the reason for their absence.
pub(super) fn fill<'a, R: IntoIterator<Item: IntoIterator<Item = Cell>>>(
    table: Table,
    run: &Run<'_>,
    set: &FrameSet<'a>,
    rows: impl Fn(&'a CellResult) -> R,
) -> Table {
    fill_some(table, run, set, |_| true, rows)
}

/// Adds the rows of each wanted cell, or one row with the reason for their absence.
fn fill_some<'a, R: IntoIterator<Item: IntoIterator<Item = Cell>>>(
    mut table: Table,
    run: &Run<'_>,
    set: &FrameSet<'a>,
    wanted: impl Fn(&CellResult) -> bool,
    rows: impl Fn(&'a CellResult) -> R,
) -> Table {
    for (point, cell) in set.rows().filter(|(_, cell)| wanted(cell)) {
        // Built once for a cell: `Table::push` marks the repeated ones.
        let labels = labels(run, set, point, cell);
        let mut rows = rows(cell).into_iter().peekable();
        if rows.peek().is_none() {
            let mut cells = labels.clone();
            // Labels after the device name one of its rows (a load, a step), and it has none.
            cells.resize(table.labels, Cell::label(""));
            let figures = table.columns.len() - table.labels;
            cells.extend(without_figure(cell, figures));
            table.push(cells);
        }
        for row in rows {
            table.push(labels.iter().cloned().chain(row).collect());
        }
    }
    table
}

/// The main figure of a frame test, in a few words; `None` if absent.
pub(crate) fn figure(cell: &CellResult) -> Option<String> {
    let found = cell.frames()?;
    // Tests that return here have a result in words, and no bottleneck.
    let figure = match &found.found {
        FrameOutcome::Disturbance(disturbance) => return disturbed::figure(disturbance),
        FrameOutcome::Soak(soak) => return Some(soak::figure(soak)),
        FrameOutcome::Service(service) => return Some(service::figure(service)),
        FrameOutcome::BackToBack(burst) => {
            format!("{} frames", Scale::plain().estimate(&burst.burst_frames))
        }
        FrameOutcome::Recovery(recovery) => time(recovery.recovery_ns.as_ref()?),
        FrameOutcome::Nothing
        | FrameOutcome::Throughput
        | FrameOutcome::Load(_)
        | FrameOutcome::Mrr(_)
        | FrameOutcome::LossCurve(_) => rate(found.frame_rate()?),
    };
    // A figure without its limit could be taken for the limit of the device.
    let limit = cell.verdict().map(|verdict| verdict.limit.name());
    Some(format!("{figure}, {}", limit.unwrap_or("not judged")))
}

/// The verdict as one word.
pub(super) fn verdict(cell: &CellResult) -> Cell {
    match cell.verdict().map(|verdict| verdict.limit) {
        None => Cell::missing(),
        Some(limit @ Limit::Inconclusive) => Cell::word(limit.name()),
        Some(limit) => Cell::term(limit.name()),
    }
}

/// The mark after a figure that is limited by something other than the device.
fn limit_mark(cell: &CellResult) -> &'static str {
    match cell.verdict().map(|verdict| verdict.limit) {
        Some(Limit::TesterLimited) => " T",
        Some(Limit::LinkLimited) => " L",
        Some(Limit::MachineLimited) => " M",
        Some(Limit::Inconclusive) => " ?",
        Some(Limit::DutLimited) | None => "",
    }
}

/// `402 ± 1 kpps (< 1 %)`.
fn rate(estimate: &Estimate) -> String {
    Scale::si(estimate.mean, "pps").estimate(estimate)
}

/// `402 kpps`: the mean alone.
pub(super) fn mean_rate(estimate: &Estimate) -> String {
    si(estimate.mean, "pps")
}

/// `401–403 kpps`, or a note that there are too few repeats for an interval.
fn interval(estimate: &Estimate) -> Cell {
    cells::interval(estimate, &Scale::si(estimate.mean, "pps"))
}

/// `0`, `12 ppm`, `1.25 %`: the share of the frames sent. `0` means none at all.
pub(super) fn share(count: u64, ppm: f64) -> String {
    match (count, ppm) {
        (0, _) => "0".into(),
        (_, ppm) if ppm < 0.01 => "< 0.01 ppm".into(),
        (_, ppm) if ppm < 1000.0 => format!("{} ppm", Scale::plain().number(ppm)),
        (_, ppm) => percent(ppm / 1e4),
    }
}

/// Caption of a set's table: `Throughput, encrypting`; with the direction if the run has several,
/// with the mix if it is the only one, and with the load if the campaign sets it.
pub(super) fn caption(set: &FrameSet<'_>, what: &str) -> String {
    let mut parts = vec![what.to_owned()];
    if set.names_direction {
        parts.push(direction_in_words(set.test.traffic.direction).to_owned());
    }
    if let [only] = set.points.as_slice() {
        parts.push(format!("frames of {}", only.name()));
    }
    parts.extend(set.load());
    parts.join(", ")
}

/// The device's cells of a set, the smallest frames first.
fn cells<'s>(device: &str, set: &'s FrameSet<'_>) -> Vec<(String, &'s CellResult)> {
    let mut points: Vec<_> = set.points.iter().collect();
    // The smallest frames demand the most of a device, so they come first.
    // By the mean, as a mix has no single size.
    points.sort_by(|a, b| {
        a.traffic
            .mean_frame_bytes
            .total_cmp(&b.traffic.mean_frame_bytes)
    });
    let of = |point: &&FramePoint<'s>| {
        let own = |cell: &&&CellResult| cell.dut == device;
        Some((point.name(), *point.cells.iter().find(own)?))
    };
    points.iter().filter_map(of).collect()
}

/// The figures of a device's frame tests, the most important procedures first.
pub(super) fn facts(of: &Subject<'_>) -> Vec<Fact> {
    let mut sets: Vec<&FrameSet<'_>> = of.frame_sets.iter().collect();
    // Stable: sets of one rank are in the plan's order.
    sets.sort_by_key(|set| rank(set.kind));
    let mut facts: Vec<(ProcedureKind, Fact)> = Vec::new();
    for set in sets {
        // One latency is enough: those of other settings are in the tables.
        let is_known = |(kind, _): &(ProcedureKind, Fact)| *kind == ProcedureKind::Latency;
        if set.kind == ProcedureKind::Latency && facts.iter().any(is_known) {
            continue;
        }
        facts.extend(fact(of, set).map(|fact| (set.kind, fact)));
    }
    facts.into_iter().map(|(_, fact)| fact).collect()
}

/// The place of a procedure's fact among those of a device.
const fn rank(kind: ProcedureKind) -> u8 {
    match kind {
        ProcedureKind::Throughput => 0,
        ProcedureKind::Latency => 1,
        ProcedureKind::Mrr
        | ProcedureKind::Service
        | ProcedureKind::LossCurve
        | ProcedureKind::Load
        | ProcedureKind::BackToBack
        | ProcedureKind::Recovery => 2,
        ProcedureKind::Rekey
        | ProcedureKind::Failover
        | ProcedureKind::Reset
        | ProcedureKind::Setup
        | ProcedureKind::Desync
        | ProcedureKind::Hostile => 3,
        ProcedureKind::Soak => 4,
    }
}

fn fact(of: &Subject<'_>, set: &FrameSet<'_>) -> Option<Fact> {
    let device = of.device;
    match set.kind {
        ProcedureKind::Throughput => throughput::fact(of.run, device, set),
        ProcedureKind::Latency => latency::fact(device, set),
        ProcedureKind::Mrr | ProcedureKind::Load => of_smallest(device, set, loads::fact),
        ProcedureKind::LossCurve => of_smallest(device, set, loss::fact),
        ProcedureKind::BackToBack => of_smallest(device, set, bursts::fact),
        ProcedureKind::Recovery => of_smallest(device, set, recovery::fact),
        ProcedureKind::Service => of_smallest(device, set, service::fact),
        ProcedureKind::Rekey
        | ProcedureKind::Failover
        | ProcedureKind::Reset
        | ProcedureKind::Setup
        | ProcedureKind::Desync
        | ProcedureKind::Hostile => disturbed::fact(device, set),
        ProcedureKind::Soak => soak::fact(device, set),
    }
}

/// The first figure of the device; smaller frames come first.
fn of_smallest(
    device: &str,
    set: &FrameSet<'_>,
    fact: fn(&FrameSet<'_>, &CellResult, &str) -> Option<Fact>,
) -> Option<Fact> {
    let cells = cells(device, set);
    cells.iter().find_map(|(size, cell)| fact(set, cell, size))
}

/// `Maximum receive rate of 64 B frames, both directions`.
fn label(set: &FrameSet<'_>, what: &str, size: &str) -> String {
    let direction = direction_in_words(set.test.traffic.direction);
    format!("{what} of {size} frames, {direction}{}", at_load(set))
}

/// `, at 100 kpps`; empty if the campaign leaves the load open.
fn at_load(set: &FrameSet<'_>) -> String {
    let load = set.load();
    load.map_or_else(String::new, |load| format!(", {load}"))
}

/// The load, marked if its times are round trips.
fn load_name(latency: &LoadLatency) -> String {
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
