//! Trials of crypto devices that contradict themselves.

use super::*;

#[test]
fn devices() {
    let speed = DeviceResult {
        devices: vec![DeviceFacts::default()],
        found: DeviceRecord::Speed(SpeedTrial {
            span_ns: 10,
            together_ns: 9,
            devices: vec![DeviceSpeed {
                operations: 100,
                slices: vec![50, 50],
                checked: 5,
                invalid: Some(2),
                accepted: Some(2),
                latency_ns_p50: 1,
                latency_ns_p99: 2,
                latency_ns_max: 3,
                operations_min: 40,
                operations_max: 60,
                ..DeviceSpeed::default()
            }],
            ..SpeedTrial::default()
        }),
    };
    fn of(result: &mut DeviceResult) -> &mut SpeedTrial {
        match &mut result.found {
            DeviceRecord::Speed(speed) => speed,
            _ => panic!("no speed"),
        }
    }
    let measurement = Measurement::Device(plan::DeviceTest::Kat(plan::Kat { algorithms: vec![] }));
    let outcome = |result| measured(Figures::Device(Box::new(result)));
    contradicts(
        &measurement,
        &speed,
        outcome,
        &[
            (&|r| of(r).span_ns = 0, "100 operations in no time"),
            (&|r| of(r).together_ns = 90, "90 ns together of 10 ns"),
            (
                &|r| of(r).devices[0].device = 1,
                "a result of device number 1, of 1",
            ),
            (
                &|r| of(r).devices[0].wrong = 6,
                "6 wrong of 5 checked results",
            ),
            (
                &|r| of(r).devices[0].accepted = Some(3),
                "3 accepted of 2 verdicts on invalid inputs",
            ),
            (
                &|r| of(r).devices[0].slices[0] = 90,
                "140 in the slices of 100 operations",
            ),
            (
                &|r| of(r).devices[0].latency_ns_p50 = 4,
                "latency percentiles in ns: 2 after 4",
            ),
        ],
    );
    let fatigue = DeviceResult {
        devices: vec![DeviceFacts::default()],
        found: DeviceRecord::Fatigue(vec![FatigueSegment {
            devices: vec![DeviceFatigue {
                lives: vec![Life {
                    began_ns: 1,
                    ended_ns: 2,
                    failed: true,
                }],
                points: [1, 2]
                    .map(|at_ns| FatiguePoint {
                        at_ns,
                        right: at_ns,
                        bad: 0,
                    })
                    .into(),
                ..DeviceFatigue::default()
            }],
            ..FatigueSegment::default()
        }]),
    };
    fn first(result: &mut DeviceResult) -> &mut DeviceFatigue {
        match &mut result.found {
            DeviceRecord::Fatigue(segments) => &mut segments[0].devices[0],
            _ => panic!("no fatigue"),
        }
    }
    contradicts(
        &measurement,
        &fatigue,
        outcome,
        &[
            (
                &|r| first(r).lives[0].began_ns = 9,
                "a time without failure from 9 ns to 2 ns",
            ),
            (
                &|r| first(r).points[0].right = 9,
                "right results: 2 after 9",
            ),
        ],
    );
}
