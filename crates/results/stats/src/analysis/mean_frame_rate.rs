//! Mean frame rates over the frame sizes that the device limits, and over all sizes, as vendors
//! print it next to their tables.

use crate::cell::CellResult;
use crate::figures::frames::Limit;
use crate::figures::series::Series;
use journal::Journal;
use plan::{Axis, Cell, Common, Dimension, FrameTest, ProcedureKind};
use schemars::JsonSchema;
use serde::Serialize;
use wire::mix::FrameMix;

/// The mean frame rates over the fixed sizes of a table. A device that works frame by frame has
/// about one frame rate at every size, until the line is full: the mean over all sizes is then also
/// the line's.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MeanFrameRate {
    /// Name of the DUT.
    pub dut: String,
    /// Ids of the averaged cells.
    pub cells: Vec<String>,
    /// Their sizes, FCS included, rising.
    pub frame_bytes: Vec<u16>,
    /// Ids of the cells left out because a link was the limit there.
    pub link_limited_cells: Vec<String>,
    /// Their sizes.
    pub link_limited_frame_bytes: Vec<u16>,
    /// Sizes that have no figure.
    pub missing_frame_bytes: Vec<u16>,
    /// Arithmetic mean of the cells' frame rates; `null` when no size is left.
    pub frames_per_s: Option<f64>,
    /// Arithmetic mean over all sizes, including sizes limited by a link, as vendors print it;
    /// `null` when a size has no figure.
    pub all_sizes_frames_per_s: Option<f64>,
}

impl MeanFrameRate {
    /// `5 of 6 sizes` if a size that belongs to the mean has no figure: this mean is not comparable
    /// with a complete one.
    #[must_use]
    pub fn lacking(&self) -> Option<String> {
        let (known, missing) = (self.frame_bytes.len(), self.missing_frame_bytes.len());
        (missing > 0).then(|| format!("{known} of {} sizes", known + missing))
    }
}

/// All that the cells of a table share.
#[derive(PartialEq)]
struct Key {
    common: Common,
    calibration: bool,
    /// Without the mix and what follows from it.
    test: FrameTest,
}

/// For each DUT and table of throughput with more than one size, in the plan's order.
pub(crate) fn mean_frame_rates(journal: &Journal, cells: &[CellResult]) -> Vec<MeanFrameRate> {
    let both = journal.header.plan.cells.iter().zip(cells);
    let tables = Series::all(both.filter_map(|(cell, result)| {
        let size = result.traffic().and_then(|found| found.frame_bytes)?;
        Some((key(cell)?, (size, result)))
    }));
    // The mean over one size would be that size.
    let of_sizes = tables.into_iter().filter(|table| table.members.len() > 1);
    of_sizes.map(|table| mean(table.members)).collect()
}

fn key(cell: &Cell) -> Option<Key> {
    let test = cell.measurement.frames()?;
    let mut test = test.clone();
    // The size varies within a table, so it is taken out of the key.
    test.traffic.frames.mix = FrameMix::fixed(0);
    if test.procedure.kind() != ProcedureKind::Throughput {
        return None;
    }
    // The highest and lowest load may depend on the size.
    test.procedure = test.procedure.plan().without_loads();
    let (_, common) = cell.along(Dimension::Axis(Axis::Frame))?;
    Some(Key {
        common,
        calibration: cell.calibration,
        test,
    })
}

fn mean(mut found: Vec<(u16, &CellResult)>) -> MeanFrameRate {
    let dut = found.first().map(|(_, cell)| cell.dut.clone());
    found.sort_by_key(|(size, _)| *size);
    let mut mean = MeanFrameRate {
        dut: dut.unwrap_or_default(),
        cells: Vec::new(),
        frame_bytes: Vec::new(),
        link_limited_cells: Vec::new(),
        link_limited_frame_bytes: Vec::new(),
        missing_frame_bytes: Vec::new(),
        frames_per_s: None,
        all_sizes_frames_per_s: None,
    };
    let sizes = found.len() as f64;
    let (mut sum, mut sum_at_link) = (0.0, 0.0);
    for (size, cell) in found {
        let verdict = cell.verdict().map(|verdict| verdict.limit);
        match cell.frame_rate() {
            None => mean.missing_frame_bytes.push(size),
            Some(rate) if verdict == Some(Limit::LinkLimited) => {
                sum_at_link += rate.mean;
                mean.link_limited_frame_bytes.push(size);
                mean.link_limited_cells.push(cell.id.clone());
            }
            Some(rate) => {
                sum += rate.mean;
                mean.frame_bytes.push(size);
                mean.cells.push(cell.id.clone());
            }
        }
    }
    let n = mean.frame_bytes.len();
    mean.frames_per_s = (n > 0).then(|| sum / n as f64);
    let is_whole = mean.missing_frame_bytes.is_empty();
    mean.all_sizes_frames_per_s = is_whole.then(|| (sum + sum_at_link) / sizes);
    mean
}
