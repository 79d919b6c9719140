//! Restarts of an encryptor.

use super::events::{place_cells, without};
use super::{
    EventTopic, OVER_TIME, Words, between, blocks, caption, endless, fill, interval, longest,
    mean_count, mean_time, median, most, time_figure,
};
use crate::kit::format::{counted, time_ns};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::topic::frames::{disturbed, head};
use plan::ProcedureKind;
use stats::ResetResult;

pub(crate) const SECTION: Section = Section::result(EVENT.id, EVENT.kind.title(), |run, out| {
    blocks(run, out, &EVENT)
});

const EVENT: EventTopic = EventTopic {
    id: "reset",
    kind: ProcedureKind::Reset,
    outages: "A mark for each reset: its time by lost frames. Lines: the median. Outlined: its time by timestamps. The axis is \
              logarithmic.",
    timeline: OVER_TIME,
    tables: |run, set| vec![resets(run, set)],
};

/// The reset time by both methods of RFC 6201.
pub(super) fn resets(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; reset time: frames lost by the offered rate (RFC 6201, frame-loss method); by timestamps: from the last \
         frame before to the first frame after (its timestamp method), median; differing: resets whose two times differ; \
         last loss: from the reset on, median; reported: when the device reported that it was up, mean; over the resets of \
         all repeats; medians count those without recovery as longest, the interval leaves them out",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .figures(["Resets", "Reset time, median", "Longest", "95 % interval"])
        .figures(["By timestamps", "Differing", "Last loss", "Reported"])
        .figures(["Lost, mean", "Lost, max", "Without recovery"]);
    fill(table, run, set, |found| Some(cells(found.reset()?)))
}

fn cells(found: &ResetResult) -> [Cell; 11] {
    [
        Cell::plain(found.resets.to_string()),
        median(&found.frame_loss_ns),
        longest(&found.frame_loss_ns),
        interval(&found.frame_loss_ns),
        median(&found.timestamp_ns),
        match found.differing.len() {
            0 => Cell::plain("0"),
            some => Cell::word(format!("{some} of {}", found.resets)),
        },
        median(&found.outage_ns),
        mean_time(found.ready_ns.as_ref()),
        mean_count(found.lost_frames.as_ref()),
        most(found.lost_frames.as_ref()),
        without(&found.outage_ns),
    ]
}

/// Each reset for which the two methods disagree; `None` without any.
pub(super) fn differing(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
    let note = "by timestamps longer: frames were held back and arrived late, so that they are not lost; by lost frames \
                longer: a part of the frames was lost before or after nothing arrived";
    let mut table = head(
        set,
        Table::new(caption(set, "the two methods differ"), note),
    )
    .text("Event")
    .figures(["Repeat", "At", "By lost frames", "By timestamps"]);
    for (point, cell) in set.rows() {
        let found = disturbed::of(cell).and_then(stats::DisturbanceResult::reset);
        for reset in found.map_or(&[][..], |found| &found.differing) {
            let mut cells = place_cells(run, set, (point, cell), &reset.place);
            cells.push(Cell::plain(time_ns(reset.frame_loss_ns)));
            cells.push(Cell::plain(time_ns(reset.timestamp_ns)));
            table.push(cells);
        }
    }
    table.with_rows()
}

pub(super) fn fact(found: &ResetResult) -> Option<Words> {
    (found.frame_loss_ns.events > 0).then_some(())?;
    let (figure, unit) = time_figure(&found.frame_loss_ns);
    let longest = found.frame_loss_ns.max_ns.map_or("no end".into(), time_ns);
    let mut detail = format!(
        "median reset time of {}, by lost frames, longest {longest}",
        counted(found.resets, "reset")
    );
    if let Some(median) = found.timestamp_ns.median_ns {
        detail.push_str(&format!("; by timestamps {}", time_ns(median)));
    }
    // If the methods differ, the range of one of them alone would seem exact.
    let range = match found.differing.len() {
        0 => between(&found.frame_loss_ns),
        differing => format!(
            "{}; the methods differ in {differing} of {}",
            between(&found.frame_loss_ns),
            found.resets
        ),
    };
    if let Some(ready) = &found.ready_ns {
        detail.push_str(&format!("; reported up after {}", time_ns(ready.mean)));
    }
    detail.push_str(&endless(&found.outage_ns));
    Some((figure, unit, range, detail))
}
