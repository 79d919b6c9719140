//! Readings at an interval, and captures.

use journal::record::{
    CaptureContents, Captured, LengthCount, LoadReading, Monitored, MonitoredDevice, ProtocolCount,
    Series, SeriesGap, SeriesPoint, TrafficWindow,
};
use plan::{CapturePoint, ReadingKind};
use proptest::prelude::*;

/// Any readings at an interval. Without a device there is nothing to record.
pub(super) fn monitored() -> impl Strategy<Value = Monitored> {
    let numbers = any::<([u64; 5], [i64; 4], Option<u64>, String)>();
    numbers.prop_map(|(counts, values, load, text)| Monitored {
        windows: vec![TrafficWindow {
            load,
            start_ns: counts[0],
            end_ns: counts[1],
        }],
        devices: vec![MonitoredDevice {
            name: text.clone(),
            is_machine: load.is_some(),
            interval_ns: counts[2],
            cpu_ns: counts[3],
            series: vec![Series {
                name: text.clone(),
                kind: ReadingKind::Power,
                unit: text.clone(),
                point_ns: counts[4],
                points: vec![SeriesPoint {
                    at_ns: counts[0],
                    mean_milli: values[0],
                    max_milli: values[1],
                    readings: counts[1],
                }],
                gaps: vec![SeriesGap {
                    at_ns: counts[2],
                    readings: counts[3],
                    reason: text,
                }],
                missed: counts[4],
                loads: vec![LoadReading {
                    load,
                    mean_milli: values[2],
                    max_milli: values[3],
                    readings: counts[0],
                }],
            }],
        }],
    })
}

/// Any captures.
pub(super) fn captures() -> impl Strategy<Value = Vec<Captured>> {
    let capture = any::<([u64; 6], [u32; 3], Option<String>, String)>();
    let capture = capture.prop_map(|(counts, lengths, file, text)| Captured {
        at: CapturePoint::StationB,
        interface: text.clone(),
        secrets: file.clone(),
        problem: file.clone(),
        file,
        contents: CaptureContents {
            frames: counts[0],
            bytes: counts[1],
            selected: counts[2],
            dropped: counts[3],
            one_in: lengths[0],
            first_unix_ns: counts[4],
            last_unix_ns: counts[5],
            cpu_ns: counts[0],
            protocols: vec![ProtocolCount {
                path: text,
                frames: counts[1],
                bytes: counts[2],
            }],
            lengths: vec![LengthCount {
                upto_bytes: lengths[1],
                frames: counts[3],
            }],
            commonest: vec![LengthCount {
                upto_bytes: lengths[2],
                frames: counts[4],
            }],
        },
    });
    proptest::collection::vec(capture, 0..3)
}
