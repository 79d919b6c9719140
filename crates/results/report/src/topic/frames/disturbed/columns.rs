//! The columns of loads with events at a device.
//!
//! A trial has a row for each of its frame trials (`quiet`, `disturbed`, `hostile`), and one for
//! each event in them (`event`).

use crate::kit::column::{Declared, text};

pub(crate) const COLUMNS: &[Declared] = &[
    (
        "hostile_percent",
        "intended rate of hostile packets in per cent of the load's",
        |row| text(row.figure.attack?.percent),
    ),
    ("hostile_packets", "hostile packets sent", |row| {
        text(row.figure.attack?.sent)
    }),
    (
        "hostile_elapsed_ns",
        "from the first to the last hostile packet",
        |row| text(row.figure.attack?.elapsed_ns),
    ),
    (
        "event",
        "kind of event: rekey; crash, restart; link-down, link-up; reset; take-down, set-up; wrong-keys, missed-rollover",
        |row| Some(row.figure.event?.name.clone()),
    ),
    (
        "event_at_ns",
        "start of the event, from the intended time of the trial's first frame on",
        |row| text(row.figure.event?.at_ns),
    ),
    (
        "event_took_ns",
        "until the device reported completion",
        |row| text(row.figure.event?.took_ns),
    ),
    (
        "event_frames_lost",
        "frames lost through the event: intended between it and the next event, or the end, except frames in flight then",
        |row| text(row.figure.event?.lost),
    ),
    (
        "event_first_frame_ns",
        "from the event to the first frame that arrived after it; empty if none arrived before the next",
        |row| text(row.figure.event?.first_ns?),
    ),
    (
        "event_outage_ns",
        "from the event to the last loss before the next event, 0 without one; empty if frames were still being lost",
        |row| text(row.figure.event?.outage_ns?),
    ),
    (
        "event_slowest_ns",
        "longest latency from the event until 100 ms after it was done; empty if no frame arrived",
        |row| text(row.figure.event?.slowest_ns?),
    ),
    (
        "event_silent_ns",
        "for a reset: from the last frame that arrived before it to the first after it; empty if none arrived again",
        |row| text(row.figure.event?.reset.as_ref()?.silent_ns?),
    ),
];
