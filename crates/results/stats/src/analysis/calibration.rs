//! Limits of the rig without a DUT, which bound every verdict.

use crate::cell::CellResult;
use crate::figures::frames::{LayerRates, LoadLatency};
use crate::figures::repeats::ratio;
use schemars::JsonSchema;
use serde::Serialize;

/// The rig's limits in one group.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Calibration {
    /// The group that it bounds.
    pub group: String,
    /// Id of the cell that measured it.
    pub cell: String,
    /// Generator ceiling: the relevant lower bound of the first goal, or the highest forwarding
    /// rate; `null` without either.
    pub ceiling: Option<LayerRates>,
    /// Loss floor: frames lost divided by frames sent, in the trials with recorded evidence.
    pub loss_floor_ppm: Option<f64>,
    /// Frames lost in those trials.
    pub lost: u64,
    /// Frames sent in those trials.
    pub sent: u64,
    /// Lowest load with measured latency, in frames/s.
    pub latency_load_frames_per_s: Option<f64>,
    /// Whether the latency is a round-trip time.
    pub latency_is_round_trip: bool,
    /// Latency floor: median.
    pub latency_p50_ns: Option<u64>,
    /// Its 99th percentile.
    pub latency_p99_ns: Option<u64>,
    /// Its 99th percentile less median.
    pub latency_p99_less_p50_ns: Option<u64>,
}

/// Returns the cell that bounds a group: the calibration, else the straight control; cells with a
/// figure come first.
pub(super) fn rig<'a>(cells: &'a [CellResult], group: &str) -> Option<&'a CellResult> {
    cells
        .iter()
        .filter(|cell| cell.group == group && cell.measures_rig())
        .min_by_key(|cell| (cell.frames().is_none(), !cell.calibration))
}

/// Returns the calibration of each group with a figure of the rig, in the plan's order.
pub(crate) fn calibrations(cells: &[CellResult]) -> Vec<Calibration> {
    let bounds =
        |cell: &&CellResult| rig(cells, &cell.group).is_some_and(|rig| std::ptr::eq(rig, *cell));
    cells.iter().filter(bounds).filter_map(of).collect()
}

fn of(cell: &CellResult) -> Option<Calibration> {
    let frames = cell.frames()?;
    let ceiling = match &frames.throughput {
        Some(found) => found.goals.first().and_then(|goal| goal.lower.clone()),
        None => frames.fastest().map(|load| load.forwarded.clone()),
    };
    let account = frames.at_evidence.as_ref().map(|found| found.account);
    let sent = account.map_or(0, |found| found.sent());
    let lost = account.map_or(0, |found| found.lost);
    let load = |found: &&LoadLatency| found.load_frames_per_s.mean;
    let latency = frames.latency.iter();
    // The lowest load represents an idle path: no frame waits for another one there.
    let idle = latency.min_by(|a, b| load(a).total_cmp(&load(b)));
    Some(Calibration {
        group: cell.group.clone(),
        cell: cell.id.clone(),
        ceiling,
        loss_floor_ppm: ratio(lost, sent).map(|share| 1e6 * share),
        lost,
        sent,
        latency_load_frames_per_s: idle.map(|found| found.load_frames_per_s.mean),
        latency_is_round_trip: idle.is_some_and(|found| found.round_trip.is_some()),
        latency_p50_ns: idle.map(|found| found.p50_ns),
        latency_p99_ns: idle.and_then(|found| found.p99_ns),
        latency_p99_less_p50_ns: idle.and_then(|found| found.p99_less_p50_ns),
    })
}
