//! The maximum receive rate.

use super::{fill, head, mean_rate, rate, share, verdict};
use crate::format::Scale;
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::table::{Cell, Table};
use stats::{CellResult, MrrResult};

/// Forwarding rate at the highest load.
pub(crate) fn mrr(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; frames/s of one direction; received: forwarding rate at the offered load, mean ± largest \
         distance of the repeats; deviation, lowest, highest: of single trials; a load above the \
         throughput loses frames, so this is no throughput",
        set.common
    );
    let table = head(set, Table::new(super::caption(set, set.kind.name()), note))
        .figures(["Received", "Lost", "Offered", "Deviation"])
        .figures(["Lowest", "Highest", "L2", "Trials"])
        .text("Verdict");
    fill(table, run, set, |cell| {
        Some(cells(cell, cell.frames()?.mrr()?))
    })
}

fn cells(cell: &CellResult, found: &MrrResult) -> [Cell; 9] {
    let load = &found.load;
    let forwarded = &load.forwarded;
    let pps = |value: f64| Scale::si(value, "pps").value(value);
    let l2 = forwarded.l2_bps.mean;
    [
        Cell::plain(rate(&forwarded.frames_per_s)),
        Cell::plain(share(load.account.lost, load.lost_ppm.mean)),
        Cell::plain(mean_rate(&load.offered.frames_per_s)),
        Cell::or_missing(found.standard_deviation_frames_per_s.map(pps)),
        Cell::plain(pps(found.min_frames_per_s)),
        Cell::plain(pps(found.max_frames_per_s)),
        Cell::plain(Scale::si(l2, "bit/s").value(l2)),
        Cell::plain(found.trials.to_string()),
        verdict(cell),
    ]
}
