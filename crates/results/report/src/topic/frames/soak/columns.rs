//! The columns of soaks.
//!
//! A trial has a row for each segment (`segment`), and one for each point in it (`point`).

use crate::kit::column::{Context, Declared, text};
use journal::record::DevicePoint;

pub(crate) const COLUMNS: &[Declared] = &[
    (
        "device_start",
        "number of the device's start that a segment ran on: more than one if the run was interrupted",
        |row| text(row.figure.segment?.start),
    ),
    (
        "segment_started_unix_ns",
        "intended time of the segment's first frame, since 1970-01-01 UTC",
        |row| text(row.figure.segment?.started_unix_ns),
    ),
    (
        "point_at_ns",
        "start of a point of a soak, from the segment's first frame on",
        |row| text(row.figure.point?.at_ns),
    ),
    (
        "point_silent_ns",
        "longest span of intended times without a received frame that ended in the point, or went on at its end",
        |row| text(row.figure.point?.silent_ns),
    ),
    (
        "device_wall_ns",
        "time between two readings of the device at the point's ends",
        |row| text(device(row)?.wall_ns),
    ),
    (
        "device_cpu_ns",
        "CPU time of its processes in that time; empty if it does not report it",
        |row| text(device(row)?.cpu_ns?),
    ),
    (
        "device_resident_bytes",
        "memory of its processes in RAM at the end of that time; empty likewise",
        |row| text(device(row)?.resident_bytes?),
    ),
    (
        "device_rekeys",
        "times that it changed to new keys in that time; empty likewise",
        |row| text(device(row)?.rekeys?),
    ),
    (
        "device_desyncs",
        "times that it detected that its keys were out of step in that time; empty likewise",
        |row| text(device(row)?.desyncs?),
    ),
    (
        "capacity_per_s",
        "frames/s over all directions that the device forwarded at the maximum offered load before the segment; empty without a probe",
        |row| text(capacity(row)?),
    ),
    (
        "soak_verdict",
        "whether the soak was stable: stable, inconclusive or unstable; of the repeat",
        |row| {
            row.figure.segment?;
            let runs = &row.cell.frames()?.soak()?.runs;
            let run = runs.iter().find(|run| run.repeat == row.trial.repeat)?;
            text(run.verdict.name())
        },
    ),
];

/// Frames/s that the device forwarded in the probe before a segment.
fn capacity(row: &Context<'_>) -> Option<f64> {
    // A point belongs to a segment, but the probe is not its figure.
    let segment = row.figure.segment.filter(|_| row.figure.point.is_none());
    let trial = &segment?.probes.first()?.trial;
    // Frames that the receiving station dropped were forwarded by the device.
    let forwarded = (trial.received + trial.receiver_dropped).min(trial.sent);
    // A stalled sender makes a trial longer than planned.
    let time_ns = trial.elapsed_ns.max(trial.duration_ns);
    (time_ns > 0).then(|| (forwarded as f64 * 1e9 / time_ns as f64).round())
}

fn device(row: &Context<'_>) -> Option<DevicePoint> {
    row.figure.point?.device
}
