//! The columns of crypto devices.
//!
//! A functional trial has a row per case of each algorithm (`known-answer`), a speed trial one per
//! device (`speed`), a fatigue trial one per device and start (`fatigue`).

use crate::kit::column::figure::Figure;
use crate::kit::column::{Context, Declared, text};
use journal::record::{DeviceFatigue, DeviceSpeed, FatigueSegment, KatOutcome, KatRow, SpeedTrial};
use stats::{DeviceTestInfo, KatVerdict};

pub(crate) const COLUMNS: &[Declared] = &[
    ("device", "name of the row's crypto device", |row| {
        let device = match row.figure? {
            Figure::KnownAnswer(found) => found.device,
            Figure::Speed(_, found) => found.device,
            Figure::Fatigue(_, found) => found.device,
            _ => return None,
        };
        // The index comes from the journal, which may be damaged.
        Some(info(row)?.members.get(device)?.clone())
    }),
    (
        "devices",
        "crypto devices that work in parallel in the cell",
        |row| text(info(row)?.members.len()),
    ),
    (
        "operation",
        "for a speed trial: algorithm and action; for a functional trial: the algorithm",
        |row| match row.figure {
            // A functional trial has rows for several algorithms, which its cell cannot name.
            Some(Figure::KnownAnswer(found)) => Some(found.algorithm.clone()),
            _ => info(row)?.operation.clone(),
        },
    ),
    (
        "input_bytes",
        "bytes of input of one operation; empty if its size has no meaning",
        |row| text(info(row)?.input_bytes?),
    ),
    (
        "at_once",
        "workers in parallel: for a speed trial over all devices, for a fatigue trial on each",
        |row| text(info(row)?.concurrency?),
    ),
    (
        "at_once_by",
        "kind of workers: threads of one process, or processes",
        |row| info(row)?.workers.clone(),
    ),
    (
        "queue_depth",
        "operations that each worker keeps in flight",
        |row| text(info(row)?.depth?),
    ),
    ("known_answer_case", "name of the case", |row| {
        Some(known_answer(row)?.case.clone())
    }),
    ("known_answer_inputs", "number of tested inputs", |row| {
        text(known_answer(row)?.tried)
    }),
    (
        "known_answer_verdict",
        "pass, wrong, error, not offered or none published",
        |row| text(KatVerdict::of(&known_answer(row)?.outcome).name()),
    ),
    (
        "known_answer_first_wrong_byte",
        "offset of the first differing byte of the first input with a wrong result",
        |row| match &known_answer(row)?.outcome {
            KatOutcome::Wrong {
                first_differing, ..
            } => text((*first_differing)?),
            _ => None,
        },
    ),
    (
        "known_answer_detail",
        "the wrong input and its result, or why there is no result",
        |row| match &known_answer(row)?.outcome {
            KatOutcome::Pass | KatOutcome::NonePublished => None,
            KatOutcome::Wrong { input, detail, .. } => Some(format!("{input}: {detail}")),
            KatOutcome::Error(why) | KatOutcome::NotOffered(why) => Some(why.clone()),
        },
    ),
    (
        "operations_done",
        "operations that the device completed without failure; for a fatigue trial, operations with a right result",
        |row| {
            text(counted(
                row,
                |found| found.operations,
                |found| found.counts.right,
            )?)
        },
    ),
    ("operations_per_s", "the same as a rate", |row| {
        match row.figure? {
            Figure::Speed(trial, found) => rate(found.operations, trial.span_ns),
            Figure::Fatigue(_, found) => rate(found.counts.right, found.elapsed_ns),
            _ => None,
        }
    }),
    ("input_bytes_per_s", "their input as a rate", |row| {
        // Without a meaningful size of the input, its rate has no meaning either.
        info(row)?.input_bytes?;
        // The rate is over the span of all workers, as devices in parallel share it.
        let (trial, found) = speed(row)?;
        rate(found.bytes, trial.span_ns)
    }),
    (
        "span_ns",
        "from the first worker's beginning to the last one's end",
        |row| text(speed(row)?.0.span_ns),
    ),
    (
        "together_ns",
        "part of that span in which all workers worked",
        |row| text(speed(row)?.0.together_ns),
    ),
    (
        "cpu_workers_ns",
        "CPU time of the device's workers",
        |row| text(speed(row)?.1.cpu_ns),
    ),
    (
        "cpu_reference_ns_per_operation",
        "CPU time of our engines for one operation; empty if it was not measured",
        |row| {
            let found = speed(row)?.0.reference?;
            // Without an operation, there is no time of one.
            (found.operations > 0)
                .then(|| format!("{:.1}", found.cpu_ns as f64 / found.operations as f64))
        },
    ),
    (
        "operation_p50_ns",
        "median latency of an operation",
        |row| text(speed(row)?.1.latency_ns_p50),
    ),
    ("operation_p99_ns", "99th percentile of it", |row| {
        text(speed(row)?.1.latency_ns_p99)
    }),
    (
        "operation_max_ns",
        "longest latency of a timed operation",
        |row| text(speed(row)?.1.latency_ns_max),
    ),
    (
        "device_counted",
        "operations that the device counted; empty if it does not count",
        |row| text(speed(row)?.1.device_operations?),
    ),
    (
        "work_shown",
        "which part did the work of a device that is declared to spare the CPU, and the proof",
        |row| text(speed(row)?.0.proof?.name()),
    ),
    ("operations_failed", "operations that failed", |row| {
        text(counted(
            row,
            |found| found.failed,
            |found| found.counts.failed,
        )?)
    }),
    (
        "results_wrong",
        "wrong results; for a speed trial, among the checked results",
        |row| {
            text(counted(
                row,
                |found| found.wrong,
                |found| found.counts.wrong,
            )?)
        },
    ),
    (
        "results_checked",
        "results of a speed trial that were checked against the CPU, selected at random",
        |row| text(speed(row)?.1.checked),
    ),
    (
        "results_checked_measured",
        "checked results of the measured time; empty in older journals",
        |row| text(speed(row)?.1.checked_measured?),
    ),
    (
        "wrong_found_percent",
        "probability to detect 1 wrong result in 1000, in per cent; empty in older journals",
        |row| text(f64::from(speed(row)?.1.power_ppm?) / 10_000.0),
    ),
    (
        "acceptance_found_percent",
        "probability to detect 1 accepted of 1000 invalid inputs, in per cent; empty if an operation of a speed trial gives no verdict, and in older journals",
        |row| text(f64::from(speed(row)?.1.acceptance_power_ppm?) / 10_000.0),
    ),
    (
        "invalid_refused",
        "invalid inputs that were refused, as required",
        |row| match speed(row) {
            // Reading a journal checks that no more inputs were accepted than offered.
            Some((_, one)) => text(one.invalid? - one.accepted?),
            None => text(fatigue(row)?.1.counts.refused),
        },
    ),
    (
        "invalid_passed",
        "invalid inputs that were accepted",
        |row| match speed(row) {
            Some((_, one)) => text(one.accepted?),
            None => text(fatigue(row)?.1.counts.passed_invalid),
        },
    ),
    (
        "fatigue_start",
        "1, plus 1 for each resume of the run",
        |row| text(fatigue(row)?.0.start),
    ),
    ("under_load_ns", "time under load", |row| {
        text(fatigue(row)?.1.elapsed_ns)
    }),
    (
        "unreported_ns",
        "part of that time before the death of a process, since its last report: its operations are not counted",
        |row| text(fatigue(row)?.1.unreported_ns),
    ),
    (
        "first_failure_ns",
        "time under load until the first failure; empty without one",
        |row| {
            let found = fatigue(row)?.1;
            let failed = found.lives.iter().find(|life| life.failed)?;
            text(failed.ended_ns)
        },
    ),
    (
        "restarts",
        "times that it was reopened after a failure",
        |row| text(fatigue(row)?.1.counts.restarts),
    ),
    (
        "crashes",
        "times that its process died, or was killed because it hung",
        |row| text(fatigue(row)?.1.crashes),
    ),
    (
        "workers_resident_bytes_max",
        "maximum memory of its processes in RAM",
        |row| text(fatigue(row)?.1.resident_bytes_max),
    ),
];

fn info<'a>(row: &Context<'a>) -> Option<&'a DeviceTestInfo> {
    row.cell.device_test()
}

fn known_answer<'a>(row: &Context<'a>) -> Option<&'a KatRow> {
    match row.figure? {
        Figure::KnownAnswer(found) => Some(found),
        _ => None,
    }
}

fn speed<'a>(row: &Context<'a>) -> Option<(&'a SpeedTrial, &'a DeviceSpeed)> {
    match row.figure? {
        Figure::Speed(trial, found) => Some((trial, found)),
        _ => None,
    }
}

fn fatigue<'a>(row: &Context<'a>) -> Option<(&'a FatigueSegment, &'a DeviceFatigue)> {
    match row.figure? {
        Figure::Fatigue(segment, found) => Some((segment, found)),
        _ => None,
    }
}

/// A count of a speed or fatigue trial.
fn counted(
    row: &Context<'_>,
    of_speed: fn(&DeviceSpeed) -> u64,
    of_fatigue: fn(&DeviceFatigue) -> u64,
) -> Option<u64> {
    speed(row)
        .map(|(_, found)| of_speed(found))
        .or_else(|| fatigue(row).map(|(_, found)| of_fatigue(found)))
}

fn rate(count: u64, ns: u64) -> Option<String> {
    (ns > 0).then(|| format!("{:.1}", count as f64 * 1e9 / ns as f64))
}
