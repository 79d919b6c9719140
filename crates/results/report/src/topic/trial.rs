//! Columns of every trial: its cell and its outcome.

use crate::kit::column::{Declared, text};
use crate::layout::evidence::outcome_name;
use journal::record::{Outcome, TrialRecord};

/// Keys include units. Figures that do not apply, or of invalid and failed trials, are empty.
pub(super) const CELL: &[Declared] = &[
    ("cell", "id of the cell", |row| Some(row.cell.id.clone())),
    (
        "group",
        "id without the device: cells of a group are compared",
        |row| Some(row.cell.group.clone()),
    ),
    ("dut", "device under test", |row| {
        // Names in the results are marked for people; the plan has the plain one.
        let planned = row.planned.map(|planned| &planned.dut.name);
        Some(planned.unwrap_or(&row.cell.dut).clone())
    }),
    (
        "insecure",
        "why the device must not protect data; empty if it may, or is not meant to",
        |row| row.cell.insecure.clone(),
    ),
    ("baseline", "true if nothing is encrypted", |row| {
        text(row.cell.baseline)
    }),
    (
        "protocol",
        "tcp, udp, ping, http, flows, video, a frame test's procedure, or for crypto devices kat, speed or fatigue",
        |row| Some(row.cell.protocol.clone()),
    ),
];

/// The trial's outcome.
pub(super) const TRIAL: &[Declared] = &[
    ("repeat", "from 1", |row| text(row.trial.repeat)),
    ("started_utc", "start of the trial", |row| {
        Some(journal::time::utc(row.trial.started_unix_ns))
    }),
    ("duration_ns", "wall time of the whole trial", |row| {
        text(row.trial.duration_ns)
    }),
    ("outcome", "measured, invalid or failed", |row| {
        text(outcome_name(row.trial))
    }),
    (
        "counts",
        "false if a later trial of the same cell and repeat replaces this one",
        |row| text(row.counts),
    ),
    ("reasons", "why it is invalid or failed", |row| {
        reasons(row.trial)
    }),
    (
        "warnings",
        "kinds of the warnings about the cell or the whole run, as in results.json and separated by spaces; the report has their words",
        |row| Some(row.warnings.clone()),
    ),
];

fn reasons(trial: &TrialRecord) -> Option<String> {
    match &trial.outcome {
        Outcome::Measured(_) => None,
        Outcome::Invalid { reasons, .. } => Some(reasons.join("; ")),
        Outcome::Failed { reason } => Some(reason.clone()),
    }
}
