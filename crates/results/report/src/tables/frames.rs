//! Frame tests: throughput in the vendors' form, and its details.
//!
//! Rates are per direction; sizes include the FCS.

mod calibration;
mod details;
mod directions;
mod disturbed;
mod loads;
mod mrr;
mod ports;
mod service;
mod soak;
mod timing;
mod variation;
mod vendor;

pub(crate) use calibration::calibration;
pub(crate) use details::{bounds, goals, layers, verdicts};
pub(crate) use directions::{directions, latency_directions};
pub(crate) use disturbed::{disturbed, exceptions, percent_name};
pub(crate) use loads::{by_load, loads};
pub(crate) use mrr::mrr;
pub(crate) use ports::{cpu, cycles, mixes, ports};
pub(crate) use service::service;
pub(crate) use soak::{bytes, change, drift_cells, soak};
pub(crate) use timing::{back_to_back, latency, latency_by_load, recovery};
pub(crate) use variation::variation;
pub(crate) use vendor::{Quantity, ratios, vendor};

use super::{late_mark, partly_mark, reason_cell, without_figure};
use crate::format::{self, Scale};
use crate::layout::Run;
use crate::layout::frames::{Device, FramePoint, FrameSet};
use crate::table::{Cell, Table};
use stats::{CellResult, Estimate, Limit};

/// Adds the label columns of tables with one row per cell: the mix, if several, and the device.
fn head(set: &FrameSet<'_>, table: Table) -> Table {
    let table = match set.points.len() {
        1 => table,
        _ => table.label("Frames"),
    };
    table.label("Device")
}

fn labels(
    run: &Run<'_>,
    set: &FrameSet<'_>,
    point: &FramePoint<'_>,
    cell: &CellResult,
) -> Vec<Cell> {
    let device = Cell::label(Device::of(cell).label(run) + &partly_mark(cell) + late_mark(cell));
    match set.points.len() {
        1 => vec![device],
        _ => vec![Cell::label(point.short_name()), device],
    }
}

/// Adds one row per cell: its figures, or the reason for their absence.
fn fill<const FIGURES: usize>(
    mut table: Table,
    run: &Run<'_>,
    set: &FrameSet<'_>,
    figures: impl Fn(&CellResult) -> Option<[Cell; FIGURES]>,
) -> Table {
    for (point, cell) in set.rows() {
        let mut cells = labels(run, set, point, cell);
        match figures(cell) {
            Some(figures) => cells.extend(figures),
            None => cells.extend(without_figure(cell, FIGURES)),
        }
        table.push(cells);
    }
    table
}

/// The main figure of a frame test, in a few words; `None` if absent.
pub(crate) fn figure(cell: &CellResult) -> Option<String> {
    let found = cell.frames()?;
    if let Some(disturbance) = &found.disturbance() {
        return disturbed::figure(disturbance);
    }
    if let Some(soak) = &found.soak() {
        return Some(soak::figure(soak));
    }
    if let Some(found) = found.service() {
        return Some(service::figure(found));
    }
    let figure = match (&found.back_to_back(), &found.recovery()) {
        (Some(burst), _) => {
            format!("{} frames", Scale::plain().estimate(&burst.burst_frames))
        }
        (_, Some(recovery)) => format::time(recovery.recovery_ns.as_ref()?),
        _ => rate(found.frame_rate()?),
    };
    let limit = cell.verdict().map(|verdict| verdict.limit.name());
    Some(format!("{figure}, {}", limit.unwrap_or("not judged")))
}

/// The verdict as one word.
fn verdict(cell: &CellResult) -> Cell {
    match cell.verdict().map(|verdict| verdict.limit) {
        None => Cell::missing(),
        Some(limit @ Limit::Inconclusive) => Cell::word(limit.name()),
        Some(limit) => Cell::term(limit.name()),
    }
}

/// The mark after a figure that is limited by something other than the device.
pub(crate) fn limit_mark(cell: &CellResult) -> &'static str {
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
pub(crate) fn mean_rate(estimate: &Estimate) -> String {
    Scale::si(estimate.mean, "pps").value(estimate.mean)
}

/// `401–403 kpps`, or a note that there are too few repeats for an interval.
fn interval(estimate: &Estimate) -> Cell {
    super::spread::interval(estimate, &Scale::si(estimate.mean, "pps"))
}

/// `0`, `12 ppm`, `1.25 %`: the share of the frames sent. `0` means none at all.
pub(crate) fn share(count: u64, ppm: f64) -> String {
    match (count, ppm) {
        (0, _) => "0".into(),
        (_, ppm) if ppm < 0.01 => "< 0.01 ppm".into(),
        (_, ppm) if ppm < 1000.0 => format!("{} ppm", Scale::plain().number(ppm)),
        (_, ppm) => format::percent(ppm / 1e4),
    }
}

/// Caption of a set's table: `Throughput, encrypt`; with the mix if it is the only one, and with
/// the load if the campaign sets it.
fn caption(set: &FrameSet<'_>, what: &str) -> String {
    let mut parts = vec![
        what.to_owned(),
        set.test.traffic.direction.name().to_owned(),
    ];
    if let [only] = set.points.as_slice() {
        parts.push(format!("frames of {}", only.name()));
    }
    parts.extend(set.load());
    parts.join(", ")
}
