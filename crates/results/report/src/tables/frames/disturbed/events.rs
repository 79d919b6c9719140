//! Failover, tunnel set-up, and events without recovery.

use super::{
    Table, caption, device, fill, head, interval, longest, mean_count, mean_time, median, most, of,
};
use crate::format::{Scale, time_ns};
use crate::layout::Run;
use crate::layout::frames::{FramePoint, FrameSet};
use crate::table::Cell;
use stats::{CellResult, EventPlace, EventTimes, FailoverResult, SetupResult};

/// The duration of frame loss.
pub(super) fn failover(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; outage: from the failure to the last loss, the time down included; first frame, last loss: from \
        the start of the recovery on; lost: frames per failure; over the failures of all repeats; medians count \
         those without recovery as longest, the interval leaves them out",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .figures(["Failures", "Outage, median", "Longest", "95 % interval"])
        .figures(["First frame", "Last loss", "Lost, mean", "Lost, max"])
        .figure("Without recovery");
    fill(table, run, set, |found| {
        Some(failover_cells(found.failover()?))
    })
}

fn failover_cells(found: &FailoverResult) -> [Cell; 9] {
    [
        Cell::plain(found.failures.to_string()),
        median(&found.outage_ns),
        longest(&found.outage_ns),
        interval(&found.outage_ns),
        median(&found.first_frame_ns),
        median(&found.after_mending_ns),
        mean_count(found.lost_frames.as_ref()),
        most(found.lost_frames.as_ref()),
        without(&found.outage_ns),
    ]
}

/// Whether packets pass in clear while an encryptor is dead.
pub(super) fn bypass(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; a default route of gw1 leads past the encryptor, over the link between the gateways, to a router that \
         does not exist; in clear: frames of the stations on that link, by the filter that sees every frame; over \
         the failures of all repeats",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .text("Fails closed")
        .figures(["In clear", "Failures", "Outage, median", "Longest"]);
    fill(table, run, set, |found| {
        Some(bypass_cells(found.failover()?))
    })
}

fn bypass_cells(found: &FailoverResult) -> [Cell; 5] {
    let closed = found.fails_closed();
    let word = closed.map(|closed| if closed { "yes" } else { "NO" }.to_owned());
    [
        Cell::or_missing(word),
        Cell::or_missing(found.clear_frames.map(|frames| frames.to_string())),
        Cell::plain(found.failures.to_string()),
        median(&found.outage_ns),
        longest(&found.outage_ns),
    ]
}

/// The time until tunnels carry traffic.
pub(super) fn setup(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; all times from the order to set all tunnels up; first frame: intended time of the \
        first received; all carry: nothing is lost from then on; tunnels/s: by that time, or by the \
         device's report if later; reported: when the device reported them up, mean; over the set-ups of all repeats",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .figures(["Tunnels", "Set-ups", "First frame", "All carry, median"])
        .figures(["Longest", "95 % interval", "Tunnels/s", "Reported"])
        .figure("Without recovery");
    fill(table, run, set, |found| Some(setup_cells(found.setup()?)))
}

fn setup_cells(found: &SetupResult) -> [Cell; 9] {
    let rate = found.tunnels_per_s.as_ref();
    [
        Cell::plain(found.tunnels.to_string()),
        Cell::plain(found.set_ups.to_string()),
        median(&found.first_frame_ns),
        median(&found.all_carry_ns),
        longest(&found.all_carry_ns),
        interval(&found.all_carry_ns),
        Cell::or_missing(rate.map(|rate| Scale::plain().number(rate.mean))),
        mean_time(found.ready_ns.as_ref()),
        without(&found.all_carry_ns),
    ]
}

pub(super) fn without(times: &EventTimes) -> Cell {
    match times.endless() {
        0 => Cell::plain("0"),
        some => Cell::word(format!("{some} of {}", times.events)),
    }
}

/// Each event with continued loss; `None` without any.
pub(super) fn not_recovered(run: &Run<'_>, set: &FrameSet<'_>) -> Option<Table> {
    let note = "frames were still being lost when the next event came, or the trial's end; times from the trial's \
                first frame on";
    let mut table = head(set, Table::new(caption(set, "without recovery"), note))
        .text("Event")
        .figures(["Repeat", "At"]);
    for (point, cell) in set.rows() {
        let found = of(cell).map_or(&[][..], stats::DisturbanceResult::not_recovered);
        for event in found {
            table.push(place_cells(run, set, (point, cell), event));
        }
    }
    table.with_rows()
}

/// The first cells of an event's row: frames (if several mixes), device, event, repeat, time.
pub(super) fn place_cells(
    run: &Run<'_>,
    set: &FrameSet<'_>,
    (point, cell): (&FramePoint<'_>, &CellResult),
    event: &EventPlace,
) -> Vec<Cell> {
    let mut cells = match set.points.len() {
        1 => Vec::new(),
        _ => vec![Cell::label(point.short_name())],
    };
    cells.push(Cell::label(device(run, cell)));
    cells.extend([
        Cell::plain(format!("{} no. {}", event.name, event.number)),
        Cell::plain(event.repeat.to_string()),
        Cell::plain(time_ns(event.at_ns as f64)),
    ]);
    cells
}
