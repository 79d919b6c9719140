//! Contradictions of trials of crypto devices.

use super::{Contradictions, sum};
use crate::record::{
    DeviceFatigue, DeviceRecord, DeviceResult, DeviceSpeed, FatigueSegment, SpeedTrial,
};

pub(super) fn of_result(result: &DeviceResult, found: &mut Contradictions) {
    let devices = result.devices.len();
    match &result.found {
        // No operation, so no number.
        DeviceRecord::NotOffered(_) => {}
        // Verdicts have no counts: only their devices can be wrong.
        DeviceRecord::Kat(rows) => {
            for row in rows {
                exists(row.device, devices, found);
            }
        }
        DeviceRecord::Speed(speed) => of_speed(speed, devices, found),
        DeviceRecord::Fatigue(segments) => {
            for segment in segments {
                of_segment(segment, devices, found);
            }
        }
    }
}

fn exists(index: usize, devices: usize, found: &mut Contradictions) {
    found.unless(index < devices, || {
        format!("a result of device number {index}, of {devices}")
    });
}

fn of_speed(speed: &SpeedTrial, devices: usize, found: &mut Contradictions) {
    found.measurable("a time in ns", [speed.span_ns]);
    found.part((speed.together_ns, "ns together"), (speed.span_ns, "ns"));
    // Rates are quotients by the span.
    for device in &speed.devices {
        exists(device.device, devices, found);
        of_device_speed(device, found);
        found.unless(speed.span_ns > 0 || device.operations == 0, || {
            format!("{} operations in no time", device.operations)
        });
    }
    if let Some(reference) = &speed.reference {
        let counts = [reference.operations, reference.cpu_ns, reference.elapsed_ns];
        found.measurable("the reference", counts);
        found.unless(
            reference.elapsed_ns > 0 || reference.operations == 0,
            || {
                format!(
                    "{} operations of the reference in no time",
                    reference.operations
                )
            },
        );
    }
}

fn of_device_speed(device: &DeviceSpeed, found: &mut Contradictions) {
    found.part((device.wrong, "wrong"), (device.checked, "checked results"));
    found.part(
        (device.accepted.unwrap_or(0), "accepted"),
        (device.invalid.unwrap_or(0), "verdicts on invalid inputs"),
    );
    let operations = (device.operations, "operations");
    found.part(
        (sum(device.slices.iter().copied()), "in the slices"),
        operations,
    );
    found.rising(
        "latency percentiles in ns",
        [
            device.latency_ns_p50,
            device.latency_ns_p99,
            device.latency_ns_max,
        ],
    );
    found.rising(
        // One list compares both: the fastest process has at most the operations of all.
        "operations of the slowest process, the fastest and all",
        [
            device.operations_min,
            device.operations_max,
            device.operations,
        ],
    );
}

pub(super) fn of_segment(segment: &FatigueSegment, devices: usize, found: &mut Contradictions) {
    for device in &segment.devices {
        exists(device.device, devices, found);
        of_device_fatigue(device, found);
    }
}

fn of_device_fatigue(device: &DeviceFatigue, found: &mut Contradictions) {
    let counts = &device.counts;
    // Four outcomes, and each operation has one of them.
    let operations = [counts.right, counts.wrong, counts.failed, counts.refused];
    found.measurable("operations", operations);
    let failures = [counts.passed_invalid, counts.restarts, device.crashes];
    found.measurable("failures", failures);
    let others = [
        device.elapsed_ns,
        device.resident_bytes_max,
        device.lives_left_out,
    ];
    found.measurable("a fatigue trial", others.into_iter().chain(device.rounds));
    found.measurable(
        "a time in ns",
        device.lives.iter().map(|life| life.ended_ns),
    );
    // A negative time would become a huge one in an unsigned number.
    for life in &device.lives {
        found.unless(life.began_ns <= life.ended_ns, || {
            format!(
                "a time without failure from {} ns to {} ns",
                life.began_ns, life.ended_ns
            )
        });
    }
    let points = &device.points;
    // Points are cumulative, as checked below, so the last one bounds all.
    if let Some(last) = points.last() {
        found.measurable("the last point", [last.at_ns, last.right, last.bad]);
    }
    found.rising("points in ns", points.iter().map(|point| point.at_ns));
    found.rising("right results", points.iter().map(|point| point.right));
    found.rising("failures", points.iter().map(|point| point.bad));
}
