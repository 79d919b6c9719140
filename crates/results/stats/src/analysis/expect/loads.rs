//! The loads of a frame test to which a limit applies.

use crate::analysis::gate::GateLoad;
use crate::cell::CellResult;
use crate::figures::frames::LoadResult;

/// Loads that are this near are the same: a generator rounds.
const SAME_LOAD: f64 = 0.005;

/// The loads of a frame test that are the asked one; all without one.
pub(super) fn loads_at(cell: &CellResult, at: Option<GateLoad>) -> Vec<&LoadResult> {
    let loads = cell.frames().map_or(&[][..], |frames| frames.loads());
    let is_it = |load: &&LoadResult| match at {
        None => true,
        Some(GateLoad::Percent(percent)) => load.percent == Some(percent.into()),
        Some(GateLoad::FramesPerS(rate)) => {
            let intended = load.intended_frames_per_s.as_ref();
            intended.is_some_and(|found| (found.mean / rate as f64 - 1.0).abs() < SAME_LOAD)
        }
    };
    loads.iter().filter(is_it).collect()
}
