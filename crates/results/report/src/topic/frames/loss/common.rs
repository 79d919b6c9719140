//! A load at which the devices of a loss curve can be compared.
//!
//! 100 % of a curve is the highest load that was offered to its device: without a given one or a
//! line rate that the generator reaches, it differs by device, and equal per cent are other loads.

use super::super::{mean_rate, share};
use crate::layout::frames::FrameSet;
use stats::{CellResult, LoadResult};

/// Highest loads that differ by less are one: the generator's own scatter.
const SAME_RATIO: f64 = 1.01;
/// Loads of repeats that differ by less have one loss.
const SIMILAR_RATIO: f64 = 1.1;

/// The rate of 100 %, in frames/s; `None` if no repeat has it.
pub(super) fn highest(loads: &[LoadResult]) -> Option<f64> {
    Some(intended(whole(loads)?))
}

/// The load of 100 %; `None` if no repeat has it.
pub(super) fn whole(loads: &[LoadResult]) -> Option<&LoadResult> {
    loads.iter().find(|load| load.percent == Some(100))
}

/// The lowest and the highest load of the repeats, in frames/s, if they differ so much that their
/// losses are not of one load: without a given highest load each repeat finds its own.
pub(super) fn apart(load: &LoadResult) -> Option<[f64; 2]> {
    let loads = load.intended_frames_per_s.as_ref()?;
    (loads.max > SIMILAR_RATIO * loads.min).then_some([loads.min, loads.max])
}

fn intended(load: &LoadResult) -> f64 {
    let intended = load.intended_frames_per_s.as_ref();
    intended.unwrap_or(&load.offered.frames_per_s).mean
}

/// Whether the highest loads of devices differ in any mix.
pub(super) fn differ(set: &FrameSet<'_>) -> bool {
    set.points.iter().any(|point| {
        let own = point
            .cells
            .iter()
            .filter_map(|cell| highest(cell.frames()?.loads()));
        let own: Vec<f64> = own.collect();
        let least = own.iter().copied().fold(f64::INFINITY, f64::min);
        own.iter().any(|rate| *rate > SAME_RATIO * least)
    })
}

/// The loss of a device at the lowest of the highest loads of its mix: `2.00 %`, or that of the
/// measured loads around it, `0 to 2.00 %`. A curve that ended above it has its last loss:
/// `0 at 900 kpps`.
pub(super) fn lost(set: &FrameSet<'_>, cell: &CellResult) -> Option<String> {
    let mut points = set.points.iter();
    let point = points.find(|point| point.cells.iter().any(|own| own.id == cell.id))?;
    let own = point
        .cells
        .iter()
        .filter_map(|cell| highest(cell.frames()?.loads()));
    let common = own.fold(f64::INFINITY, f64::min);
    let loads = cell.frames()?.loads();
    let words = |load: &LoadResult| share(load.account.lost, load.lost_ppm.mean);
    let near = |load: &&LoadResult| {
        let rate = intended(load);
        rate <= SAME_RATIO * common && common <= SAME_RATIO * rate
    };
    if let Some(at) = loads.iter().find(near) {
        return Some(words(at));
    }
    // The highest load comes first.
    let above = loads.iter().rfind(|load| intended(load) > common)?;
    match loads.iter().find(|load| intended(load) < common) {
        Some(below) if words(below) == words(above) => Some(words(below)),
        Some(below) => Some(format!("{} to {}", words(below), words(above))),
        None => {
            let rate = mean_rate(&above.offered.frames_per_s);
            Some(format!("{} at {rate}", words(above)))
        }
    }
}
