//! Desynchronised keys.

use super::events::without;
use super::{
    EventTopic, OVER_TIME, Words, between, blocks, caption, endless, fill, interval, longest,
    mean_count, median, most, time_figure,
};
use crate::kit::format::{counted, time_ns};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::topic::frames::head;
use plan::ProcedureKind;
use stats::DesyncResult;

pub(crate) const SECTION: Section = Section::result(EVENT.id, EVENT.kind.title(), |run, out| {
    blocks(run, out, &EVENT)
});

const EVENT: EventTopic = EventTopic {
    id: "desync",
    kind: ProcedureKind::Desync,
    outages: "A mark for each time: from the moment at which keys were put out of step to the last loss. Lines: the \
              median. The axis is logarithmic.",
    timeline: OVER_TIME,
    tables: |run, set| vec![desyncs(run, set)],
};

/// The loss of frames until the device resynchronises without help, and the device's counters.
pub(super) fn desyncs(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; outage: from the moment at which keys were put out of step to the last loss; lost: frames until the next; \
         over the times of all repeats; found, packets, time: what the device itself counted, over both gateways and \
         all repeats: times that it found its keys out of step, packets that it could not open, \
         and the time from the first of these to the next that it could",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .figures(["Times", "Outage, median", "Longest", "95 % interval"])
        .figures(["Lost, mean", "Lost, max", "Without recovery", "Found"])
        .figures(["Packets", "Time"]);
    fill(table, run, set, |found| Some(cells(found.desync()?)))
}

fn cells(found: &DesyncResult) -> [Cell; 10] {
    let reported = found.reported.as_ref();
    let count = |value: Option<u64>| Cell::or_missing(value.map(|value| value.to_string()));
    [
        Cell::plain(found.times.to_string()),
        median(&found.outage_ns),
        longest(&found.outage_ns),
        interval(&found.outage_ns),
        mean_count(found.lost_frames.as_ref()),
        most(found.lost_frames.as_ref()),
        without(&found.outage_ns),
        count(reported.map(|reported| reported.desyncs)),
        count(reported.and_then(|reported| reported.lost_packets)),
        Cell::or_missing(reported.and_then(|reported| Some(time_ns(reported.outage_ns? as f64)))),
    ]
}

pub(super) fn fact(found: &DesyncResult) -> Option<Words> {
    (found.outage_ns.events > 0).then_some(())?;
    let (figure, unit) = time_figure(&found.outage_ns);
    let range = between(&found.outage_ns);
    let longest = found.outage_ns.max_ns.map_or("no end".into(), time_ns);
    let mut detail = format!(
        "median outage of {}, longest {longest}",
        counted(found.times, "time")
    );
    if let Some(lost) = &found.lost_frames {
        detail.push_str(&format!("; {:.0} frames lost at most", lost.max));
    }
    if let Some(reported) = &found.reported {
        detail.push_str(&format!(
            "; found {} by the device",
            counted(reported.desyncs, "time")
        ));
    }
    detail.push_str(&endless(&found.outage_ns));
    Some((figure, unit, range, detail))
}
