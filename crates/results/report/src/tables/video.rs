//! Video: the losses, and the frames that the players showed.

use super::{FORMAT, reason_cell, with_repeats};
use crate::format;
use crate::layout::Run;
use crate::table::{Cell, Table};
use plan::{Measurement, VideoTest};
use stats::{CellResult, VideoFigures};

/// Every cell; `None` if no video is measured.
pub(crate) fn video(run: &Run<'_>) -> Option<Table> {
    let note = format!(
        "Sums over all streams and repeats; ratios: {FORMAT}. Packets: RTP's, of whole clips; late: more than 100 ms \
         above the shortest transit. Frames of the measured part: missing were never shown, damaged differ from the \
         clip's in any bit; PSNR of the worst damaged one. Freezes: gaps of 150 ms more than one frame \
         and three times as long, with their share of the time"
    );
    let figures = [
        "Packets lost",
        "Late",
        "Frames",
        "Missing",
        "Damaged",
        "Worst PSNR",
        "Freezes",
        "Frozen",
        "Longest gap",
    ];
    let mut table = Table::new("Video as players showed it", note)
        .labels(["Traffic", "DUT"])
        .figures(figures);
    for cell in &run.results.cells {
        let Some((planned, test)) = test_of(run, cell) else {
            continue;
        };
        let labels = [Cell::label(test.in_words()), Cell::label(&planned.dut.name)];
        let row = match cell.video() {
            Some(found) => row(cell, found),
            None => {
                let mut row = vec![reason_cell(cell)];
                row.resize(figures.len(), Cell::missing());
                row
            }
        };
        table.push(labels.into_iter().chain(row).collect());
    }
    (!table.rows.is_empty()).then_some(table)
}

fn test_of<'r>(run: &'r Run<'_>, cell: &CellResult) -> Option<(&'r plan::Cell, &'r VideoTest)> {
    let planned = run.planned(cell)?;
    match &planned.measurement {
        Measurement::Video(test) => Some((planned, test)),
        _ => None,
    }
}

fn row(cell: &CellResult, found: &VideoFigures) -> Vec<Cell> {
    let packets = found.packets.as_ref();
    let lost = packets.map(|found| format::loss(found.lost, &found.loss_ratio));
    let late = packets.map(|found| format!("{} of {}", found.late, found.sent));
    let frozen = format!("{:.1} %", 100.0 * found.frozen_ratio.mean);
    vec![
        Cell::or_missing(lost),
        Cell::or_missing(late),
        Cell::plain(with_repeats(found.frames_expected.to_string(), cell)),
        Cell::plain(found.frames_missing.to_string()),
        Cell::plain(found.frames_damaged.to_string()),
        Cell::or_missing(found.psnr_least_db.map(|db| format!("{db:.1} dB"))),
        Cell::plain(found.freezes.to_string()),
        Cell::plain(frozen),
        Cell::time(Some(found.longest_gap_ns)),
    ]
}
