//! Events that interrupt a load: failures of an encryptor or its link, restarts, the set-up of
//! tunnels, and keys out of step. Each lasts for a time: that of the loss, or until tunnels carry.

use super::{
    EventTopic, OF_FAILURES, OVER_TIME, Words, blocks, caption, device, fill, longest, mean_count,
    mean_time, median, most,
};
use crate::kit::cells;
use crate::kit::format::{Scale, counted, time_ns};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::{FramePoint, FrameSet};
use crate::topic::frames::{disturbed, head};
use plan::{Failure, ProcedureKind};
use stats::{
    CellResult, DesyncResult, EventPlace, EventTimes, FailoverResult, ResetResult, SetupResult,
};

pub(crate) const FAILOVER: Section = Section::result(
    FAILOVER_TOPIC.id,
    FAILOVER_TOPIC.kind.title(),
    |run, out| blocks(run, out, &FAILOVER_TOPIC),
);

const FAILOVER_TOPIC: EventTopic = EventTopic {
    id: "failover",
    kind: ProcedureKind::Failover,
    outages: OF_FAILURES,
    timeline: OVER_TIME,
    tables: |run, set| {
        // With a way past the device, the table shows whether clear text took it.
        // All cells of a set have the same event.
        let opens_bypass = set
            .disturbance()
            .is_some_and(|test| test.event.opens_bypass());
        let table = if opens_bypass { bypasses } else { outages };
        vec![table(run, set)]
    },
};

/// The duration of frame loss.
fn outages(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; outage: from the failure to the last loss, the time down included; first frame, last loss: from \
        the start of the recovery on; lost: frames per failure; over the failures of all repeats; medians count \
         those without recovery as longest, the interval leaves them out",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .figures(["Failures", "Outage, median", "Longest", "95 % interval"])
        .figures(["First frame", "Last loss", "Lost, mean", "Lost, max"])
        .figures(["Without recovery"]);
    fill(table, run, set, |found| {
        Some(outage_cells(found.failover()?))
    })
}

fn outage_cells(found: &FailoverResult) -> [Cell; 9] {
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
fn bypasses(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; a default route of gw1 leads past the encryptor, over the link between the gateways, to a router that \
         does not exist; in clear: frames of the stations on that link, by the filter that sees every frame; over \
         the failures of all repeats",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .texts(["Fails closed"])
        .figures(["In clear", "Failures", "Outage, median", "Longest"]);
    fill(table, run, set, |found| {
        Some(bypass_cells(found.failover()?))
    })
}

fn bypass_cells(found: &FailoverResult) -> [Cell; 5] {
    let closed = found.fails_closed();
    // In capitals, as a device that fails open leaks in use.
    let word = closed.map(|closed| if closed { "yes" } else { "NO" }.to_owned());
    [
        Cell::or_missing(word),
        Cell::or_missing(found.clear_frames.map(|frames| frames.to_string())),
        Cell::plain(found.failures.to_string()),
        median(&found.outage_ns),
        longest(&found.outage_ns),
    ]
}

pub(super) fn failover_fact(failure: Failure, found: &FailoverResult) -> Option<Words> {
    let longest = longest_text(&found.outage_ns);
    let mended = match failure {
        Failure::Crash | Failure::Bypass => "started again",
        Failure::Link => "joined again",
    };
    let mut detail = format!(
        "median outage of {}, longest {longest}",
        counted(found.failures, "failure")
    );
    if let Some(down) = &found.down_ns {
        detail.push_str(&format!("; {mended} after {}", time_ns(down.mean)));
    }
    if let Some(first) = found.first_frame_ns.median_ns {
        detail.push_str(&format!("; first frame {} later", time_ns(first)));
    }
    lasting(&found.outage_ns, detail + &endless(&found.outage_ns))
}

/// Whether the device fails closed, with the count that shows it.
pub(super) fn bypass(found: &FailoverResult) -> Option<Words> {
    let figure = if found.fails_closed()? {
        "fails closed"
    } else {
        "FAILS OPEN"
    };
    let detail = format!(
        "{} of the stations in clear between the gateways in {}, each with a default route past the \
         encryptor",
        counted(found.clear_frames?, "frame"),
        counted(found.failures, "failure")
    );
    Some((figure.into(), String::new(), String::new(), detail))
}

pub(crate) const RESET: Section =
    Section::result(RESET_TOPIC.id, RESET_TOPIC.kind.title(), |run, out| {
        blocks(run, out, &RESET_TOPIC)
    });

const RESET_TOPIC: EventTopic = EventTopic {
    id: "reset",
    kind: ProcedureKind::Reset,
    outages: "A mark for each reset: its time by lost frames. Lines: the median. Outlined: its time by timestamps. The axis is \
              logarithmic.",
    timeline: OVER_TIME,
    tables: |run, set| vec![resets(run, set)],
};

/// The reset time by both methods of RFC 6201.
fn resets(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
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
    fill(table, run, set, |found| Some(reset_cells(found.reset()?)))
}

fn reset_cells(found: &ResetResult) -> [Cell; 11] {
    [
        Cell::plain(found.resets.to_string()),
        median(&found.frame_loss_ns),
        longest(&found.frame_loss_ns),
        interval(&found.frame_loss_ns),
        median(&found.timestamp_ns),
        // Both methods measure the same event, so a difference needs an explanation.
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
    .texts(["Event"])
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

pub(super) fn reset_fact(found: &ResetResult) -> Option<Words> {
    let longest = longest_text(&found.frame_loss_ns);
    let mut detail = format!(
        "median reset time of {}, by lost frames, longest {longest}",
        counted(found.resets, "reset")
    );
    if let Some(median) = found.timestamp_ns.median_ns {
        detail.push_str(&format!("; by timestamps {}", time_ns(median)));
    }
    if let Some(ready) = &found.ready_ns {
        detail.push_str(&format!("; reported up after {}", time_ns(ready.mean)));
    }
    let detail = detail + &endless(&found.outage_ns);
    let (figure, unit, mut range, detail) = lasting(&found.frame_loss_ns, detail)?;
    // If the methods differ, the range of one of them alone would seem exact.
    if !found.differing.is_empty() {
        let (differing, resets) = (found.differing.len(), found.resets);
        range.push_str(&format!("; the methods differ in {differing} of {resets}"));
    }
    Some((figure, unit, range, detail))
}

pub(crate) const SETUP: Section =
    Section::result(SETUP_TOPIC.id, SETUP_TOPIC.kind.title(), |run, out| {
        blocks(run, out, &SETUP_TOPIC)
    });

const SETUP_TOPIC: EventTopic = EventTopic {
    id: "setup",
    kind: ProcedureKind::Setup,
    outages: "A mark for each set-up: from the order until all tunnels carried. Outlined: until the first frame came \
              through. Lines: the median. The axis is logarithmic.",
    timeline: OVER_TIME,
    tables: |run, set| vec![setups(run, set)],
};

/// The time until tunnels carry traffic.
fn setups(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
    let note = format!(
        "{}; all times from the order to set all tunnels up; first frame: intended time of the \
        first received; all carry: nothing is lost from then on; tunnels/s: by that time, or by the \
         device's report if later; reported: when the device reported them up, mean; over the set-ups of all repeats",
        set.common
    );
    let table = head(set, Table::new(caption(set, ""), note))
        .figures(["Tunnels", "Set-ups", "First frame", "All carry, median"])
        .figures(["Longest", "95 % interval", "Tunnels/s", "Reported"])
        .figures(["Without recovery"]);
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

pub(super) fn setup_fact(found: &SetupResult) -> Option<Words> {
    let mut detail = format!(
        "until {}, median of {}",
        match found.tunnels {
            1 => "the tunnel carries".to_owned(),
            tunnels => format!("all {tunnels} tunnels carry"),
        },
        counted(found.set_ups, "set-up")
    );
    if let Some(first) = found.first_frame_ns.median_ns {
        detail.push_str(&format!("; first frame after {}", time_ns(first)));
    }
    // The rate of one tunnel would only be the inverse of its time.
    if let Some(rate) = found.tunnels_per_s.as_ref().filter(|_| found.tunnels > 1) {
        let rate = Scale::plain().number(rate.mean);
        detail.push_str(&format!("; {rate} tunnels/s"));
    }
    lasting(&found.all_carry_ns, detail + &endless(&found.all_carry_ns))
}

pub(crate) const DESYNC: Section =
    Section::result(DESYNC_TOPIC.id, DESYNC_TOPIC.kind.title(), |run, out| {
        blocks(run, out, &DESYNC_TOPIC)
    });

const DESYNC_TOPIC: EventTopic = EventTopic {
    id: "desync",
    kind: ProcedureKind::Desync,
    outages: "A mark for each time: from the moment at which keys were put out of step to the last loss. Lines: the \
              median. The axis is logarithmic.",
    timeline: OVER_TIME,
    tables: |run, set| vec![desyncs(run, set)],
};

/// The loss of frames until the device resynchronises without help, and the device's counters.
fn desyncs(run: &Run<'_>, set: &FrameSet<'_>) -> Table {
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
    fill(table, run, set, |found| Some(desync_cells(found.desync()?)))
}

fn desync_cells(found: &DesyncResult) -> [Cell; 10] {
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

pub(super) fn desync_fact(found: &DesyncResult) -> Option<Words> {
    let longest = longest_text(&found.outage_ns);
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
    lasting(&found.outage_ns, detail + &endless(&found.outage_ns))
}

fn without(times: &EventTimes) -> Cell {
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
        .texts(["Event"])
        .figures(["Repeat", "At"]);
    for (point, cell) in set.rows() {
        let found = disturbed::of(cell).map_or(&[][..], stats::DisturbanceResult::not_recovered);
        for event in found {
            table.push(place_cells(run, set, (point, cell), event));
        }
    }
    table.with_rows()
}

/// The first cells of an event's row: frames (if several mixes), device, event, repeat, time.
fn place_cells(
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

/// The interval over events that ended, or only their number if too few: these tables are wide.
fn interval(times: &EventTimes) -> Cell {
    let Some(found) = &times.ended_ns else {
        return Cell::missing();
    };
    match found.interval_95.ends() {
        Some(_) => cells::interval(found, &Scale::time(found.mean)),
        // Longer words would push the last column off the page.
        None => Cell::absent(format!("n = {}", found.n)),
    }
}

/// The fact of events that last: the median and the range; `None` without an event.
fn lasting(times: &EventTimes, detail: String) -> Option<Words> {
    let (figure, unit) = match times.median_ns {
        _ if times.events == 0 => return None,
        Some(median) => {
            let scale = Scale::time(median);
            (scale.number(median), scale.unit)
        }
        // Most events have no duration.
        None => ("no recovery".into(), String::new()),
    };
    Some((figure, unit, between(times), detail))
}

fn longest_text(times: &EventTimes) -> String {
    times.max_ns.map_or("no end".into(), time_ns)
}

/// `events 1.00–1.06 s`: the shortest and the longest event.
fn between(times: &EventTimes) -> String {
    let Some(ended) = &times.ended_ns else {
        return String::new();
    };
    let scale = Scale::time(ended.max);
    let value = scale.value(ended.max);
    let shortest = scale.number(ended.min);
    let range = match (ended.n, shortest == scale.number(ended.max)) {
        (1, _) => return "one event".to_owned(),
        (_, true) => format!("events {value}"),
        (_, false) => format!("events {shortest}–{value}"),
    };
    // Events without an end have no time, so the range only mentions them.
    match times.endless() {
        0 => range,
        _ => format!("{range}, or no end"),
    }
}

/// `; 2 of 10 without recovery`.
fn endless(times: &EventTimes) -> String {
    match times.endless() {
        0 => String::new(),
        some => format!("; {some} of {} without recovery", times.events),
    }
}
