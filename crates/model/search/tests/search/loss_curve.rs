//! The frame-loss curve (RFC 2544 §26.3).

use search::simulate::{Behaviour, Device};
use search::{LossCurve, SearchError, Step};

use crate::SECOND;

/// The loads tried, in per cent of 1 000 000 frames/s, and whether each lost frames.
fn curve(behaviour: Behaviour, step_percent: u8) -> Vec<(u64, bool)> {
    let mut curve = LossCurve::new(1_000_000, step_percent, SECOND).unwrap();
    let mut device = Device::new(behaviour, 0);
    while let Step::Measure(trial) = curve.next() {
        assert_eq!(
            (trial.duration_ns, curve.next()),
            (SECOND, Step::Measure(trial))
        );
        curve.record(trial, device.measure(trial));
    }
    curve
        .points()
        .iter()
        .map(|(trial, counts)| (trial.load / 10_000, counts.lost() > 0))
        .collect()
}

#[test]
fn ends_after_two_successive_loads_without_loss() {
    let points = curve(Behaviour::Hard { capacity: 750_000 }, 10);
    assert_eq!(
        points,
        [
            (100, true),
            (90, true),
            (80, true),
            (70, false),
            (60, false)
        ]
    );
}

#[test]
fn a_device_that_carries_all_has_two_points() {
    assert_eq!(
        curve(
            Behaviour::Hard {
                capacity: 1_000_000
            },
            10
        ),
        [(100, false), (90, false)]
    );
}

#[test]
fn a_single_load_without_loss_does_not_end_it() {
    let device = Behaviour::TwoBands {
        low: 0,
        high: 1_000_000,
        low_ppm: 500_000,
    };
    let points = curve(device, 1);
    let (last, before) = points.split_at(points.len() - 2);
    assert!(
        last.windows(2).all(|pair| pair[0].1 || pair[1].1),
        "{points:?}"
    );
    assert!(
        before.iter().all(|(_, lost)| !lost) || points.len() == 100,
        "{points:?}"
    );
}

#[test]
fn a_device_that_always_loses_is_tried_at_each_load() {
    let points = curve(
        Behaviour::Lossy {
            capacity: 1_000_000,
            loss_ppm: 10_000,
        },
        25,
    );
    assert_eq!(points, [(100, true), (75, true), (50, true), (25, true)]);
    let points = curve(
        Behaviour::Lossy {
            capacity: 1_000_000,
            loss_ppm: 10_000,
        },
        30,
    );
    assert_eq!(points.last(), Some(&(10, true)));
}

#[test]
fn steps_and_loads_that_make_no_curve_are_refused() {
    for percent in [0, 51, 255] {
        let error = LossCurve::new(1, percent, 1).err();
        assert_eq!(error, Some(SearchError::CurveStep { percent }));
    }
    assert!(LossCurve::new(0, 10, 1).is_err());
    assert!(LossCurve::new(1, 10, 0).is_err());
}
