//! Resets: from events to the reset time by both methods.

use crate::fixture::{SECOND_NS, journal};
use crate::frame_fixture::*;
use journal::record::*;
use plan::*;
use stats::{ResetResult, Results, WarningKind};

const MS: u64 = 1_000_000;

fn procedure() -> Procedure {
    Procedure::Disturbed(Disturbed {
        load: BaseLoad::Given {
            frames_per_s: 10_000,
        },
        event: Event::Reset {
            kind: Reset::Process,
            times: 2,
            watch_ns: SECOND_NS,
        },
    })
}

/// A reset under 10 frames per millisecond: lost frames, and the silence and the outage in
/// milliseconds.
fn reset(at_ms: u64, lost: u64, silent_ms: Option<u64>, outage_ms: Option<u64>) -> DutEvent {
    DutEvent {
        name: "reset".into(),
        at_ns: at_ms * MS,
        took_ns: 20 * MS,
        lost,
        first_ns: Some(0),
        outage_ns: outage_ms.map(|time| time * MS),
        slowest_ns: None,
        reset: Some(ResetRecord {
            silent_ns: silent_ms.map(|time| time * MS),
            bin_ns: MS,
            before: vec!["pid 1".into()],
            after: vec!["pid 2".into()],
        }),
    }
}

/// A run of one cell with one trial of a second per repeat.
fn run(repeats: Vec<Vec<DutEvent>>) -> Results {
    let cell = cell("auto", 64, procedure());
    let mut run = journal(vec![cell.clone()], repeats.len() as u32, 8);
    for (repeat, events) in (1..).zip(repeats) {
        let lost: u64 = events.iter().map(|event| event.lost).sum();
        let found = FrameResult {
            trials: vec![FrameTrial {
                duration_ns: SECOND_NS,
                ..trial(10_000, 10_000 - lost)
            }],
            found: ProcedureRecord::Disturbed(DisturbedTrials {
                disturbances: vec![Disturbance {
                    events,
                    ..Disturbance::default()
                }],
                ..DisturbedTrials::default()
            }),
            ..FrameResult::default()
        };
        add(&mut run, &cell, repeat, found);
    }
    Results::of(&run)
}

fn figure(results: &Results) -> &ResetResult {
    let frames = results.cells[0].frames().unwrap();
    frames.disturbance().unwrap().reset().unwrap()
}

#[test]
fn lost_frames_by_the_offered_rate_and_the_silence_are_two_reset_times() {
    let results = run(vec![
        vec![
            reset(100, 400, Some(41), Some(45)),
            reset(500, 500, Some(50), Some(50)),
        ],
        vec![reset(100, 600, Some(61), Some(60))],
    ]);
    let found = figure(&results);
    assert_eq!((found.kind.as_str(), found.resets), ("process", 3));
    assert_eq!(found.frame_loss_ns.median_ns, Some(50e6));
    assert_eq!(found.frame_loss_ns.max_ns, Some(60e6));
    assert_eq!(found.timestamp_ns.median_ns, Some(50e6));
    assert_eq!(found.outage_ns.median_ns, Some(50e6));
    assert_close(found.ready_ns.as_ref().unwrap().mean, 20e6);
    assert_close(found.lost_frames.as_ref().unwrap().mean, 500.0);
    assert_eq!(
        (&found.differing[..], &found.not_recovered[..]),
        (&[][..], &[][..])
    );
}

#[test]
fn resets_whose_times_differ_by_more_than_rounding_are_named() {
    // Rounding: two bins and two frames, 2.2 ms; 5 % of a longer time is more.
    let results = run(vec![vec![
        reset(100, 100, Some(12), Some(12)),
        reset(200, 100, Some(13), Some(13)),
        reset(300, 2_000, Some(209), Some(209)),
        reset(600, 2_000, Some(150), Some(209)),
    ]]);
    let differing = &figure(&results).differing;
    let places: Vec<(u32, u64)> = differing
        .iter()
        .map(|one| (one.place.number, one.place.at_ns / MS))
        .collect();
    assert_eq!(places, [(2, 200), (4, 600)]);
    assert_close(differing[1].frame_loss_ns, 200e6);
    assert_close(differing[1].timestamp_ns, 150e6);
}

#[test]
fn a_reset_without_recovery_has_neither_time() {
    let results = run(vec![vec![
        reset(100, 100, Some(11), Some(11)),
        reset(500, 5_000, None, None),
    ]]);
    let found = figure(&results);
    assert_eq!(found.frame_loss_ns.endless(), 1);
    assert_eq!(found.timestamp_ns.endless(), 1);
    assert_eq!(found.frame_loss_ns.max_ns, None);
    let [place] = found.not_recovered.as_slice() else {
        panic!("{:?}", found.not_recovered);
    };
    assert_eq!((place.name.as_str(), place.number), ("reset", 2));
    assert!(kinds(&results).contains(&WarningKind::NotRecovered));
    // Frames pass again, and some are still lost: only the silence has ended.
    let results = run(vec![vec![reset(100, 5_000, Some(30), None)]]);
    let found = figure(&results);
    assert_eq!(
        (found.frame_loss_ns.endless(), found.timestamp_ns.endless()),
        (1, 0)
    );
    assert!(found.differing.is_empty());
}
