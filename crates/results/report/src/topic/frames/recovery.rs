//! Recovery from an overload.

use super::loads::of_cells;
use super::search::details;
use super::{caption, fill, head, joined, label, mean_rate, verdict};
use crate::kit::chart::bars::{self, Lying};
use crate::kit::fact::{Fact, repeats};
use crate::kit::format::{Scale, counted, time};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use maud::Markup;
use plan::ProcedureKind;
use stats::{CellResult, RecoveryResult};

pub(super) const SECTION: Section = Section::result(
    "recovery",
    "Recovery from overload",
    |run, out| {
        let sets = run.frame_sets_of(ProcedureKind::Recovery);
        for (index, set) in sets.iter().enumerate() {
            let how = format!(
                "Bars: from the end of the overload to the last lost frame, mean of the repeats. {}",
                run.whiskers()
            );
            out.chart(
                format!("Time to the last loss: {}", set.common),
                how,
                || chart(run, set, &format!("recovery-{index}")),
            );
        }
        out.tables(joined("Recovery", &sets, |set| Some(recovery(run, set))));
        details(run, out, &sets);
    },
);

/// Duration of loss after an overload.
pub(super) fn recovery(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; from the end of the overload to the last loss: mean ± largest distance from it (per \
         cent of the mean); the verdict is on the throughput that the loads are shares of",
        set.common
    );
    let table = head(set, Table::new(caption(set, set.kind.title()), note))
        .figures(["Overload", "Relief", "Recovery", "Lost in overload"])
        .figures(["Lost afterwards"])
        .texts(["Verdict"]);
    fill(table, run, set, |cell| {
        Some(recovery_cells(cell, cell.frames()?.recovery()?))
    })
}

fn recovery_cells(cell: &CellResult, found: &RecoveryResult) -> [Cell; 6] {
    let recovery = match &found.recovery_ns {
        Some(found) => Cell::plain(time(found)),
        // Without an overload there was nothing to recover from, which is no fault of the device.
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

pub(super) fn fact(set: &FrameSet<'_>, cell: &CellResult, size: &str) -> Option<Fact> {
    let found = cell.frames()?.recovery()?;
    let label = label(set, "Recovery", size);
    let detail = format!(
        "after an overload of {}; relief: {}",
        mean_rate(&found.overload_frames_per_s),
        mean_rate(&found.relief_frames_per_s)
    );
    Some(match &found.recovery_ns {
        Some(time) => {
            let scale = Scale::time(time.mean);
            Fact {
                label,
                figure: scale.number(time.mean),
                range: repeats(time, &scale),
                unit: format!("{} to the last loss", scale.unit),
                detail,
                brief: String::new(),
            }
        }
        // Without an overload, or without an end of the losses, there is no time.
        None => Fact {
            label,
            figure: match found.not_overloaded {
                0 => "none".to_owned(),
                _ => "no overload".to_owned(),
            },
            unit: match found.not_overloaded {
                0 => "before the time was up".to_owned(),
                _ => "lost a frame".to_owned(),
            },
            range: String::new(),
            detail,
            brief: String::new(),
        },
    })
}

/// The recovery times; `None` without a figure.
fn chart(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Option<Markup> {
    let bars = of_cells(run, set, |cell| {
        let found = cell.frames()?.recovery()?.recovery_ns.as_ref()?;
        Some(Lying::of(found, time(found)))
    });
    let title = "Time of recovery from an overload";
    let words = (title, "time to the last loss", "");
    bars::draw(run, id, words, &bars, Scale::time)
}
