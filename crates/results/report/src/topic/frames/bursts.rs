//! The longest burst without loss.

use super::loads::of_cells;
use super::{caption, fill, head, joined, label, verdict};
use crate::kit::chart::bars::{self, Lying};
use crate::kit::fact::{Fact, repeats};
use crate::kit::format::{Scale, si, time_ns};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use maud::Markup;
use plan::ProcedureKind;
use stats::{BackToBackResult, CellResult};

pub(super) const SECTION: Section = Section::result("bursts", "Back-to-back frames", |run, out| {
    let sets = run.frame_sets_of(ProcedureKind::BackToBack);
    for (index, set) in sets.iter().enumerate() {
        let how = format!(
            "Bars: the longest burst without loss at the highest load, mean of the repeats. {}",
            run.whiskers()
        );
        out.chart(
            format!("Longest burst without loss: {}", set.common),
            how,
            || chart(run, set, &format!("bursts-{index}")),
        );
    }
    out.tables(joined("Back-to-back frames", &sets, |set| {
        Some(back_to_back(run, set))
    }));
});

/// Longest bursts without loss, and the buffer size that they imply.
fn back_to_back(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; longest burst at the highest load without loss; buffer time: the burst by its rate, \
         and less what the device forwards meanwhile where its throughput was measured too (RFC \
         9004 §5.4); with loss: of the bursts that were to confirm a length, after \
         which a shorter one was tried",
        set.common
    );
    let table = head(set, Table::new(caption(set, set.kind.title()), note))
        .figures(["Burst, frames", "Rate", "Implied buffer"])
        .figures(["Corrected buffer", "With loss"])
        .texts(["Verdict"]);
    fill(table, run, set, |cell| {
        Some(burst_cells(cell, cell.frames()?.back_to_back()?))
    })
}

/// The mark of a bound: the longest burst that was tried passed, so a longer one may pass as well.
const fn least(found: &BackToBackResult) -> &'static str {
    if found.longest_tried_passed {
        "≥ "
    } else {
        ""
    }
}

fn burst_cells(cell: &CellResult, found: &BackToBackResult) -> [Cell; 6] {
    let least = least(found);
    let burst = Scale::plain().estimate(&found.burst_frames);
    let (rate, implied) = (found.burst_frames_per_s, found.implied_buffer_ns);
    let corrected = found.corrected_buffer_ns;
    let corrected = corrected.filter(|_| !found.longest_tried_passed);
    [
        Cell::plain(format!("{least}{burst}")),
        Cell::or_missing(rate.map(|rate| si(rate, "pps"))),
        Cell::or_missing(implied.map(|time| format!("{least}{}", time_ns(time)))),
        // A burst that ended with the trial does not bound the frames forwarded meanwhile.
        Cell::or_missing(corrected.map(time_ns)),
        Cell::plain(format!(
            "{} of {}",
            found.confirming_with_loss, found.confirming_bursts
        )),
        verdict(cell),
    ]
}

pub(super) fn fact(set: &FrameSet<'_>, cell: &CellResult, size: &str) -> Option<Fact> {
    let found = cell.frames()?.back_to_back()?;
    let scale = Scale::plain();
    let least = least(found);
    let mut detail = Vec::new();
    if let Some(rate) = found.burst_frames_per_s {
        detail.push(format!("at {}", si(rate, "pps")));
    }
    if let Some(buffer) = found.implied_buffer_ns {
        detail.push(format!("{least}{} of buffer", time_ns(buffer)));
    }
    Some(Fact {
        label: label(set, "Longest burst", size),
        figure: format!("{least}{}", scale.number(found.burst_frames.mean)),
        unit: "frames without loss".to_owned(),
        range: repeats(&found.burst_frames, &scale),
        detail: detail.join(", "),
        brief: String::new(),
    })
}

/// The longest bursts without loss; `None` without a figure.
fn chart(run: &Run<'_>, set: &FrameSet<'_>, id: &str) -> Option<Markup> {
    let bars = of_cells(run, set, |cell| {
        let found = cell.frames()?.back_to_back()?;
        let text = Scale::plain().estimate(&found.burst_frames);
        let text = format!("{}{text}", least(found));
        Some(Lying::of(&found.burst_frames, text))
    });
    let words = ("Longest burst without loss", "frames in a burst", "");
    bars::draw(run, id, words, &bars, |most| Scale::si(most, ""))
}
