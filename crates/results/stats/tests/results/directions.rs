//! Loads of both directions, of which one loses more.

use crate::fixture::{SECOND_NS, journal};
use crate::frame_fixture::*;
use journal::record::*;
use plan::*;
use stats::{Results, WarningKind};

/// Trials of a load of both directions, with what each direction lost of 1000 frames in each
/// repeat.
fn duplex(lost: &[[u64; 2]]) -> Results {
    let load = Procedure::Load(Load {
        frames_per_s: Some(1_000),
        duration_ns: SECOND_NS,
    });
    let mut cell = cell("auto", 64, load);
    if let Measurement::Frames(test) = &mut cell.measurement {
        test.traffic.duplex = true;
    }
    let mut run = journal(vec![cell.clone()], lost.len() as u32, 8);
    for (repeat, [there, back]) in (1..).zip(lost) {
        let both = FrameTrial {
            load: 1_000,
            directions: [there, back].map(|lost| trial(1_000, 1_000 - lost)).into(),
            ..trial(2_000, 2_000 - there - back)
        };
        let frames = FrameResult {
            trials: vec![both],
            ..FrameResult::default()
        };
        add(&mut run, &cell, repeat, frames);
    }
    Results::of(&run)
}

#[test]
fn loss_in_one_direction_of_two_is_shown_and_warned_of() {
    let is_warned = |lost: &[[u64; 2]]| {
        let results = duplex(lost);
        let mut warnings = results.warnings.into_iter();
        warnings.find(|found| found.kind == WarningKind::DirectionsApart)
    };
    let apart = [[20, 0], [21, 0], [19, 0]];
    let results = duplex(&apart);
    let frames = results.cells[0].frames().unwrap();
    let load = &frames.loads()[0];
    assert_close(load.lost_ppm.mean, 10_000.0);
    let lost = load.directions.iter().map(|one| one.lost_ppm.mean);
    assert_eq!(lost.collect::<Vec<_>>(), [20_000.0, 0.0]);
    assert_eq!(frames.directions, load.directions);
    let warning = is_warned(&apart).unwrap();
    let words = "60 of 3000 frames from A to B, 0 of 3000 frames from B to A";
    assert!(warning.text.contains(words), "{}", warning.text);
    // As much in both; in either, as the repeat has it; so little that it may be chance; once.
    for alike in [
        &[[20, 20], [21, 22], [19, 18]][..],
        &[[20, 0], [0, 20], [20, 0]],
        &[[1, 0], [1, 0], [1, 0]],
        &[[20, 0]],
    ] {
        assert_eq!(is_warned(alike), None, "{alike:?}");
    }
}

/// Half of the frames that the upper bound lost in all were the device's; of one direction, more
/// than the goal allows were.
#[test]
fn the_device_is_the_limit_where_one_direction_of_it_fails_the_goal() {
    let planned = throughput("auto", 64);
    let mut run = journal(vec![planned.clone()], 1, 8);
    let mut searched = found(Some(1_000), Some(2_000));
    let upper = searched
        .trials
        .iter_mut()
        .find(|trial| trial.load == 2_000)
        .unwrap();
    let own = FrameTrial {
        receiver_dropped: 1,
        ..trial(2_000, 1_950)
    };
    *upper = FrameTrial {
        load: 2_000,
        receiver_dropped: 1,
        directions: vec![own, trial(2_000, 2_000)],
        ..trial(4_000, 3_950)
    };
    add(&mut run, &planned, 1, searched);
    let results = Results::of(&run);
    let frames = results.cells[0].frames().unwrap();
    let goal = &frames.throughput.as_ref().unwrap().goals[0];
    let account = goal.upper_account.unwrap();
    assert_eq!((account.intended, account.lost), (2_000, 50));
    assert_eq!(account.lost_on_the_way(), 49);
}
