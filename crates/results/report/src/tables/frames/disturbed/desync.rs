//! Desynchronised keys.

use super::{Table, caption, fill, head, interval, longest, mean_count, median, most};
use crate::format::time_ns;
use crate::layout::Run;
use crate::layout::frames::FrameSet;
use crate::table::Cell;
use stats::DesyncResult;

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
        super::events::without(&found.outage_ns),
        count(reported.map(|reported| reported.desyncs)),
        count(reported.and_then(|reported| reported.lost_packets)),
        Cell::or_missing(reported.and_then(|reported| Some(time_ns(reported.outage_ns? as f64)))),
    ]
}
