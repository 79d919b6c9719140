//! The columns of crypto devices.
//!
//! A functional trial has a row per case of each algorithm (`known-answer`), a speed trial one per
//! device (`speed`), a fatigue trial one per device and start (`fatigue`).

use crate::kit::column::{Context, Declared, text};
use journal::record::{DeviceFatigue, DeviceSpeed, KatOutcome};
use stats::{DeviceTestInfo, KatVerdict};

pub(crate) const COLUMNS: &[Declared] = &[
    ("device", "name of the row's crypto device", |row| {
        let figure = &row.figure;
        let device = figure.known_answer.map(|found| found.device);
        let device = device.or_else(|| Some(figure.speed?.1.device));
        let device = device.or_else(|| Some(figure.fatigue?.1.device))?;
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
        // A functional trial has rows for several algorithms, which its cell cannot name.
        |row| match row.figure.known_answer {
            Some(found) => Some(found.algorithm.clone()),
            None => info(row)?.operation.clone(),
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
        Some(row.figure.known_answer?.case.clone())
    }),
    ("known_answer_inputs", "number of tested inputs", |row| {
        text(row.figure.known_answer?.tried)
    }),
    (
        "known_answer_verdict",
        "pass, wrong, error, not offered or none published",
        |row| text(KatVerdict::of(&row.figure.known_answer?.outcome).name()),
    ),
    (
        "known_answer_first_wrong_byte",
        "offset of the first differing byte of the first input with a wrong result",
        |row| match &row.figure.known_answer?.outcome {
            KatOutcome::Wrong {
                first_differing, ..
            } => text((*first_differing)?),
            _ => None,
        },
    ),
    (
        "known_answer_detail",
        "the wrong input and its result, or why there is no result",
        |row| match &row.figure.known_answer?.outcome {
            KatOutcome::Pass | KatOutcome::NonePublished => None,
            KatOutcome::Wrong { input, detail, .. } => Some(format!("{input}: {detail}")),
            KatOutcome::Error(why) | KatOutcome::NotOffered(why) => Some(why.clone()),
        },
    ),
    (
        "operations_done",
        "operations that the device completed without failure; for a fatigue trial, operations with a right result",
        |row| text(counted(row)?[0]),
    ),
    ("operations_per_s", "the same as a rate", |row| {
        match row.figure.speed {
            Some((trial, found)) => rate(found.operations, trial.span_ns),
            None => {
                let found = row.figure.fatigue?.1;
                rate(found.counts.right, found.elapsed_ns)
            }
        }
    }),
    ("input_bytes_per_s", "their input as a rate", |row| {
        // Without a meaningful size of the input, its rate has no meaning either.
        info(row)?.input_bytes?;
        // The rate is over the span of all workers, as devices in parallel share it.
        let (trial, found) = row.figure.speed?;
        rate(found.bytes, trial.span_ns)
    }),
    (
        "span_ns",
        "from the first worker's beginning to the last one's end",
        |row| text(row.figure.speed?.0.span_ns),
    ),
    (
        "together_ns",
        "part of that span in which all workers worked",
        |row| text(row.figure.speed?.0.together_ns),
    ),
    (
        "cpu_workers_ns",
        "CPU time of the device's workers",
        |row| text(row.figure.speed?.1.cpu_ns),
    ),
    (
        "cpu_reference_ns_per_operation",
        "CPU time of our engines for one operation; empty if it was not measured",
        |row| {
            let found = row.figure.speed?.0.reference?;
            // Without an operation, there is no time of one.
            (found.operations > 0)
                .then(|| format!("{:.1}", found.cpu_ns as f64 / found.operations as f64))
        },
    ),
    (
        "operation_p50_ns",
        "median latency of an operation",
        |row| text(row.figure.speed?.1.latency_ns_p50),
    ),
    ("operation_p99_ns", "99th percentile of it", |row| {
        text(row.figure.speed?.1.latency_ns_p99)
    }),
    (
        "operation_max_ns",
        "longest latency of a timed operation",
        |row| text(row.figure.speed?.1.latency_ns_max),
    ),
    (
        "device_counted",
        "operations that the device counted; empty if it does not count",
        |row| text(row.figure.speed?.1.device_operations?),
    ),
    (
        "work_shown",
        "which part did the work of a device that is declared to spare the CPU, and the proof",
        |row| text(row.figure.speed?.0.proof?.name()),
    ),
    ("operations_failed", "operations that failed", |row| {
        text(counted(row)?[1])
    }),
    (
        "results_wrong",
        "wrong results; for a speed trial, among the checked results",
        |row| text(counted(row)?[2]),
    ),
    (
        "results_checked",
        "results of a speed trial that were checked against the CPU, selected at random",
        |row| text(row.figure.speed?.1.checked),
    ),
    (
        "results_checked_measured",
        "checked results of the measured time; empty in older journals",
        |row| text(row.figure.speed?.1.checked_measured?),
    ),
    (
        "wrong_found_percent",
        "probability to detect 1 wrong result in 1000, in per cent; empty in older journals",
        |row| text(f64::from(row.figure.speed?.1.power_ppm?) / 10_000.0),
    ),
    (
        "acceptance_found_percent",
        "probability to detect 1 accepted of 1000 invalid inputs, in per cent; empty if an operation of a speed trial gives no verdict, and in older journals",
        |row| text(f64::from(row.figure.speed?.1.acceptance_power_ppm?) / 10_000.0),
    ),
    (
        "invalid_refused",
        "invalid inputs that were refused, as required",
        |row| match row.figure.speed {
            // Reading a journal checks that no more inputs were accepted than offered.
            Some((_, one)) => text(one.invalid? - one.accepted?),
            None => text(row.figure.fatigue?.1.counts.refused),
        },
    ),
    (
        "invalid_passed",
        "invalid inputs that were accepted",
        |row| match row.figure.speed {
            Some((_, one)) => text(one.accepted?),
            None => text(row.figure.fatigue?.1.counts.passed_invalid),
        },
    ),
    (
        "fatigue_start",
        "1, plus 1 for each resume of the run",
        |row| text(row.figure.fatigue?.0.start),
    ),
    ("under_load_ns", "time under load", |row| {
        text(row.figure.fatigue?.1.elapsed_ns)
    }),
    (
        "unreported_ns",
        "part of that time before the death of a process, since its last report: its operations are not counted",
        |row| text(row.figure.fatigue?.1.unreported_ns),
    ),
    (
        "first_failure_ns",
        "time under load until the first failure; empty without one",
        |row| {
            let found = row.figure.fatigue?.1;
            let failed = found.lives.iter().find(|life| life.failed)?;
            text(failed.ended_ns)
        },
    ),
    (
        "restarts",
        "times that it was reopened after a failure",
        |row| text(row.figure.fatigue?.1.counts.restarts),
    ),
    (
        "crashes",
        "times that its process died, or was killed because it hung",
        |row| text(row.figure.fatigue?.1.crashes),
    ),
    (
        "workers_resident_bytes_max",
        "maximum memory of its processes in RAM",
        |row| text(row.figure.fatigue?.1.resident_bytes_max),
    ),
];

fn info<'a>(row: &Context<'a>) -> Option<&'a DeviceTestInfo> {
    row.cell.device_test()
}

/// Operations of a speed or fatigue trial: completed, failed, with a wrong result.
fn counted(row: &Context<'_>) -> Option<[u64; 3]> {
    let speed = |found: &DeviceSpeed| [found.operations, found.failed, found.wrong];
    let fatigue = |found: &DeviceFatigue| {
        let counts = &found.counts;
        [counts.right, counts.failed, counts.wrong]
    };
    let counted = row.figure.speed.map(|(_, found)| speed(found));
    counted.or_else(|| Some(fatigue(row.figure.fatigue?.1)))
}

fn rate(count: u64, ns: u64) -> Option<String> {
    (ns > 0).then(|| format!("{:.1}", count as f64 * 1e9 / ns as f64))
}
