//! The maximum receive rate.

use super::loads::received_of_offered;
use super::{caption, fill, head, joined, mean_rate, rate, share, verdict};
use crate::kit::format::si;
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use plan::ProcedureKind;
use stats::{CellResult, MrrResult};

pub(super) const SECTION: Section = Section::result("mrr", "Maximum receive rate", |run, out| {
    let sets = run.frame_sets_of(ProcedureKind::Mrr);
    for (index, set) in sets.iter().enumerate() {
        received_of_offered(run, out, set, &format!("mrr-{index}"));
    }
    out.tables(joined(ProcedureKind::Mrr.title(), &sets, |set| {
        Some(mrr(run, set))
    }));
});

/// Forwarding rate at the highest load.
fn mrr(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; frames/s of one direction; received: forwarding rate at the offered load, mean ± largest \
         distance of the repeats; deviation, lowest, highest: of single trials; a load above the \
         throughput loses frames, so this is no throughput",
        set.common
    );
    let table = head(set, Table::new(caption(set, set.kind.title()), note))
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
    let pps = |value: f64| si(value, "pps");
    let l2 = forwarded.l2_bps.mean;
    [
        Cell::plain(rate(&forwarded.frames_per_s)),
        Cell::plain(share(load.account.lost, load.lost_ppm.mean)),
        Cell::plain(mean_rate(&load.offered.frames_per_s)),
        // A single trial has no deviation.
        Cell::or_missing(found.standard_deviation_frames_per_s.map(pps)),
        Cell::plain(pps(found.min_frames_per_s)),
        Cell::plain(pps(found.max_frames_per_s)),
        Cell::plain(si(l2, "bit/s")),
        Cell::plain(found.trials.to_string()),
        verdict(cell),
    ]
}
