//! The columns of trials of IKEv2.

use crate::kit::column::{Context, Declared, text};
use crate::layout::evidence::measured;
use journal::record::IkeTrial;

pub(crate) const COLUMNS: &[Declared] = &[
    (
        "ike_offered_per_s",
        "IKEv2 set-ups offered per second; of a search the highest rate that was carried",
        |row| text(trial(row)?.per_s),
    ),
    ("ike_intended", "IKEv2 set-ups of the schedule", |row| {
        text(trial(row)?.intended)
    }),
    ("ike_completed", "of these, completed", |row| {
        text(trial(row)?.completed)
    }),
    (
        "ike_in_time",
        "of these, within the time that the campaign allows",
        |row| text(trial(row)?.in_time),
    ),
    ("ike_failed", "set-ups that failed, for any reason", |row| {
        text(trial(row)?.failures())
    }),
    (
        "ike_p50_ns",
        "time from the intended start that half of the intended set-ups did not exceed; empty if fewer completed",
        |row| text(trial(row)?.latency(500)?),
    ),
    ("ike_p99_ns", "the same for 99 %", |row| {
        text(trial(row)?.latency(990)?)
    }),
    (
        "ike_late_p99_ns",
        "delay of starts after their times that one of a hundred exceeds",
        |row| text(trial(row)?.late_p99_ns),
    ),
    (
        "ike_retransmissions",
        "requests of set-ups that peers sent again",
        |row| text(trial(row)?.retransmissions),
    ),
    ("ike_cookies", "cookies that the gateway asked for", |row| {
        text(trial(row)?.cookies)
    }),
    (
        "ike_datagrams",
        "datagrams of the set-ups, both ways",
        |row| {
            let trial = trial(row)?;
            text(trial.sent.saturating_add(trial.received))
        },
    ),
    (
        "ike_bytes",
        "their content in bytes, without headers of UDP and IP",
        |row| {
            let trial = trial(row)?;
            text(trial.sent_bytes.saturating_add(trial.received_bytes))
        },
    ),
    (
        "ike_gateway_cpu_ns",
        "CPU time of the gateway's processes during the set-ups; empty if unknown",
        |row| text(trial(row)?.gateway_cpu_ns?),
    ),
];

fn trial<'a>(row: &Context<'a>) -> Option<&'a IkeTrial> {
    measured(row.trial)?.ike()?.figures()
}
