//! Readings at an interval.

use campaign::plan::ReadingKind;
use journal::record::{
    LoadReading, Monitored, MonitoredDevice, Series, SeriesGap, SeriesPoint, TrafficWindow,
};
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
