//! The columns of loads with events at a device.
//!
//! A trial has a row for each of its frame trials (`quiet`, `disturbed`, `hostile`), and one for
//! each event in them (`event`).

use crate::kit::column::figure::Figure;
use crate::kit::column::{Context, Declared, text};
use journal::record::{AttackTrial, DutEvent};

pub(crate) const COLUMNS: &[Declared] = &[
    (
        "hostile_percent",
        "intended rate of hostile packets in per cent of the load's",
        |row| text(attack(row)?.percent),
    ),
    ("hostile_packets", "hostile packets sent", |row| {
        text(attack(row)?.sent)
    }),
    (
        "hostile_elapsed_ns",
        "from the first to the last hostile packet",
        |row| text(attack(row)?.elapsed_ns),
    ),
    (
        "event",
        "kind of event: rekey; crash, restart; link-down, link-up; reset; take-down, set-up; wrong-keys, missed-rollover",
        |row| Some(event(row)?.name.clone()),
    ),
    (
        "event_at_ns",
        "start of the event, from the intended time of the trial's first frame on",
        |row| text(event(row)?.at_ns),
    ),
    (
        "event_took_ns",
        "until the device reported completion",
        |row| text(event(row)?.took_ns),
    ),
    (
        "event_frames_lost",
        "frames lost through the event: intended between it and the next event, or the end, except frames in flight then",
        |row| text(event(row)?.lost),
    ),
    (
        "event_first_frame_ns",
        "from the event to the first frame that arrived after it; empty if none arrived before the next",
        |row| text(event(row)?.first_ns?),
    ),
    (
        "event_outage_ns",
        "from the event to the last loss before the next event, 0 without one; empty if frames were still being lost",
        |row| text(event(row)?.outage_ns?),
    ),
    (
        "event_slowest_ns",
        "longest latency from the event until 100 ms after it was done; empty if no frame arrived",
        |row| text(event(row)?.slowest_ns?),
    ),
    (
        "event_silent_ns",
        "for a reset: from the last frame that arrived before it to the first after it; empty if none arrived again",
        |row| text(event(row)?.reset.as_ref()?.silent_ns?),
    ),
];

fn attack(row: &Context<'_>) -> Option<AttackTrial> {
    match row.figure? {
        Figure::Disturbance(found, _) => found.attack,
        _ => None,
    }
}

fn event<'a>(row: &Context<'a>) -> Option<&'a DutEvent> {
    match row.figure? {
        Figure::Event(found) => Some(found),
        _ => None,
    }
}
