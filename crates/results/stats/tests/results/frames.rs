//! Frame tests: from records to figures, verdicts and warnings.

use crate::fixture::{SECOND_NS, journal, measured, record};
use crate::frame_fixture::*;
use journal::record::*;
use plan::*;
use stats::{Limit, Results, WarningKind};
use wire::Suite;

#[test]
fn bounds_become_rates_at_every_layer_and_a_verdict_by_the_rig() {
    let bounds = [400, 402, 398].map(|kpps| (Some(kpps * 1_000), Some(kpps * 1_010)));
    let run = searched(&[
        (throughput("auto", 64), &bounds),
        (throughput("straight", 64), &RIG),
    ]);
    let results = Results::of(&run);
    let cell = &results.cells[0];
    let found = cell.frames().unwrap().throughput.as_ref().unwrap();
    let goal = &found.goals[0];
    let lower = goal.lower.as_ref().unwrap();
    assert_eq!(lower.frames_per_s.n, 3);
    assert_close(lower.frames_per_s.mean, 400e3);
    assert_close(lower.frames_per_s.largest_distance, 2e3);
    assert_close(lower.l1_bps.mean, 400e3 * 84.0 * 8.0);
    assert_close(lower.l2_bps.mean, 400e3 * 64.0 * 8.0);
    assert_close(lower.ip_bps.mean, 400e3 * 46.0 * 8.0);
    assert_eq!((goal.lower_trials, goal.upper_trials), (3, 3));
    assert_eq!((found.frame_trials, found.timed_out), (9, 0));
    assert_close(found.search_ns.mean, 3e9);
    // 7 lost of each of three trials at the upper bound, all of them on the way.
    let account = goal.upper_account.unwrap();
    assert_eq!(
        (account.trials, account.lost, account.lost_on_the_way()),
        (3, 21, 21)
    );

    assert_eq!(limit(cell), Limit::DutLimited);
    assert_eq!(limit(&results.cells[1]), Limit::TesterLimited);
    let verdict = cell.verdict().unwrap();
    assert_close(verdict.rig.unwrap(), 1.4e6);
    assert_eq!(
        verdict.rig_cell.as_deref(),
        Some("throughput/frame=64/direction=both/straight")
    );
    let ceiling = results.calibrations[0].ceiling.as_ref().unwrap();
    assert_eq!(results.calibrations.len(), 1);
    assert_close(ceiling.frames_per_s.mean, 1.4e6);
}

#[test]
fn a_load_that_failed_because_the_receiver_lost_frames_is_the_testers_limit() {
    let bounds = [(Some(400_000), Some(402_000)); 3];
    let run = |dropped: u64| {
        let search = throughput("auto", 64);
        let rig = throughput("straight", 64);
        let mut run = journal(vec![search.clone(), rig.clone()], 3, 8);
        for (repeat, (lower, upper)) in (1..).zip(bounds) {
            let mut searched = found(lower, upper);
            for trial in searched.trials.iter_mut().filter(|trial| trial.lost() > 0) {
                trial.receiver_dropped = dropped;
            }
            add(&mut run, &search, repeat, searched);
            add(
                &mut run,
                &rig,
                repeat,
                found(Some(1_400_000), Some(1_407_000)),
            );
        }
        Results::of(&run).cells[0].verdict().cloned().unwrap()
    };
    // Of the 7 that were lost at the upper bound.
    let verdict = run(7);
    assert_eq!(verdict.limit, Limit::TesterLimited);
    assert!(
        verdict
            .reason
            .contains("and the receiving station lost 21; lost on the way: 0 frames"),
        "{}",
        verdict.reason
    );
    assert_eq!(run(6).limit, Limit::DutLimited);
    // Foreign frames that the receiver lost cannot excuse more than the loss.
    assert_eq!(run(700).limit, Limit::TesterLimited);
}

#[test]
fn a_burst_that_the_receiver_lost_is_the_testers_limit() {
    let verdict = |dropped: u64| {
        let test = BackToBack {
            burst_ns_max: 2 * SECOND_NS,
            bursts: 1,
            drain_ns: 0,
        };
        let cell = cell("auto", 64, Procedure::BackToBack(test));
        let mut run = journal(vec![cell.clone()], 2, 8);
        let burst = |frames, lost, confirming| BurstTrial {
            frames,
            lost,
            confirming,
        };
        let of = |frames, received| FrameTrial {
            load: 1_000_000,
            ..trial(frames, received)
        };
        let mut frames = FrameResult {
            trials: vec![
                trial(1_000_000, 1_000_000),
                of(9_000, 8_000),
                of(5_001, 4_991),
                of(5_000, 5_000),
                of(5_001, 0),
            ],
            evidence_trial: Some(4),
            found: ProcedureRecord::Bursts(vec![
                burst(9_000, 1_000, false),
                burst(5_001, 10, false),
                burst(5_000, 0, true),
            ]),
            ..FrameResult::default()
        };
        frames.trials[2].receiver_dropped = dropped;
        add(&mut run, &cell, 1, frames.clone());
        add(&mut run, &cell, 2, frames);
        Results::of(&run).cells[0].verdict().cloned().unwrap()
    };
    let found = verdict(10);
    assert_eq!(found.limit, Limit::TesterLimited, "{}", found.reason);
    assert!(
        found
            .reason
            .contains("Of 10002 frames intended in the shortest bursts"),
        "{}",
        found.reason
    );
    assert_eq!(verdict(9).limit, Limit::Inconclusive);
}

#[test]
fn a_missing_bound_is_reported_with_its_repeats_and_never_averaged_away() {
    let some = (Some(400_000), Some(402_000));
    let low = [some, (None, Some(1_000)), some];
    let high = [some, some, (Some(1_500_000), None)];
    let run = searched(&[
        (throughput("auto", 64), &low),
        (throughput("null", 64), &high),
    ]);
    let results = Results::of(&run);
    let goal = |index: usize| {
        let found = results.cells[index].frames().unwrap();
        &found.throughput.as_ref().unwrap().goals[0]
    };
    assert_eq!(goal(0).lower, None);
    assert!(goal(0).upper.is_some());
    assert_eq!(
        goal(0).irregular,
        ["No lower bound in repeat 2: even the lowest load, 1 kpps, does not meet the goal."]
    );
    assert!(goal(1).lower.is_some() && goal(1).upper.is_none());
    assert!(
        goal(1).irregular[0].contains("No upper bound in repeat 3"),
        "{:?}",
        goal(1).irregular
    );
    assert_eq!(limit(&results.cells[0]), Limit::Inconclusive);
    assert!(kinds(&results).contains(&WarningKind::Irregular));
    assert!(kinds(&results).contains(&WarningKind::NoCalibration));
}

#[test]
fn a_search_that_timed_out_is_not_confused_with_one_without_a_limit() {
    let bounds = [
        (Some(400_000), None),
        (Some(400_000), Some(402_000)),
        (None, Some(500_000)),
    ];
    let run = searched(&[(throughput("auto", 64), &bounds)]);
    let results = Results::of(&run);
    let found = results.cells[0]
        .frames()
        .unwrap()
        .throughput
        .as_ref()
        .unwrap();
    let goal = &found.goals[0];
    assert_eq!(goal.time_was_up, 2);
    assert_eq!(
        goal.irregular,
        ["One bound only in repeats 1, 3: the search's time, 60 s, was up."]
    );

    let bounds = [(Some(400_000), None); 3];
    let run = searched(&[
        (throughput("auto", 64), &bounds),
        (throughput("straight", 64), &RIG),
    ]);
    let verdict = Results::of(&run).cells[0].verdict().cloned().unwrap();
    assert_eq!(verdict.limit, Limit::Inconclusive, "{verdict:?}");
    assert!(verdict.reason.contains("time was up"), "{verdict:?}");
}

#[test]
fn encryption_fills_the_cipher_link_before_the_clear_one() {
    // 64 B frames are 120 B on the cipher side's line and more: 1 Gbit/s is full below 0.9 Mpps.
    let bytes = wire::overhead::outer_bytes(Suite::Aes256Gcm, wire::overhead::Outer::UDP_IPV4, 46)
        as u64
        + 38;
    let full = 1_000_000_000 / (8 * bytes);
    let bounds = [(Some(full), Some(full + 5_000)); 3];
    let mut run = searched(&[
        (throughput("auto", 64), &bounds),
        (throughput("router", 64), &bounds),
        (throughput("straight", 64), &RIG),
    ]);
    run.header.plan.lab.link_bps = Some(1_000_000_000);
    let results = Results::of(&run);
    assert_eq!(limit(&results.cells[0]), Limit::LinkLimited);
    assert!(
        results.cells[0]
            .verdict()
            .unwrap()
            .reason
            .contains("cipher side")
    );
    // Unencrypted, the same frame rate leaves room.
    assert_eq!(limit(&results.cells[1]), Limit::DutLimited);
}

/// By hand: IPv4 and UDP 28, type to counter 16, tag 16; the padding of 1500 to 1504 ends at the
/// tunnel's MTU. Around it 18 of Ethernet and 20 of preamble and gap.
#[test]
fn the_cipher_sides_link_is_as_full_as_wireguard_pads() {
    let bounds = [(Some(80_000), Some(80_100)); 3];
    let mut wireguard = throughput("router", 1518);
    wireguard.dut.adapter = Adapter::WireGuard(WireGuard {
        program: WireGuardProgram::Go,
    });
    let mut run = searched(&[(wireguard, &bounds)]);
    run.header.plan.lab.link_bps = Some(1_000_000_000);
    let results = Results::of(&run);
    let verdict = results.cells[0].verdict().unwrap();
    assert_close(verdict.l1_bps.unwrap(), 8.0 * 1598.0 * 80e3);
}

#[test]
fn the_mean_frame_rate_leaves_out_sizes_at_which_the_link_is_the_limit() {
    let at = |rate: u64| [(Some(rate), Some(rate + 1_000)); 3];
    let (small, middle, large) = (at(400_000), at(380_000), at(80_900));
    let mut run = searched(&[
        (throughput("router", 64), &small),
        (throughput("router", 256), &middle),
        (throughput("router", 1518), &large),
    ]);
    run.header.plan.lab.link_bps = Some(1_000_000_000);
    let results = Results::of(&run);
    let mean = &results.mean_frame_rates[0];
    assert_eq!(mean.frame_bytes, [64, 256]);
    assert_eq!(mean.link_limited_frame_bytes, [1518]);
    assert_close(mean.frames_per_s.unwrap(), 390e3);
    let at_link = results.cells[2].frame_rate().unwrap().mean;
    let of_all = mean.all_sizes_frames_per_s.unwrap();
    assert_close(of_all, 2.0f64.mul_add(390e3, at_link) / 3.0);
}

#[test]
fn a_loss_curve_pairs_repeats_by_share_of_their_highest_load() {
    let curve = cell(
        "auto",
        64,
        Procedure::LossCurve(LossCurve {
            max_load: None,
            step_percent: 10,
            trial_ns: SECOND_NS,
            drain_ns: 0,
        }),
    );
    let mut run = journal(vec![curve.clone()], 2, 8);
    for (repeat, highest) in [(1, 1_000_000), (2, 1_100_000)] {
        let mut trials = vec![
            trial(highest, highest / 2),
            trial(highest * 9 / 10, highest / 2),
        ];
        trials[1].reordered = 45;
        trials[1].receiver_dropped = 1_000;
        let frames = FrameResult {
            trials,
            ..FrameResult::default()
        };
        add(&mut run, &curve, repeat, frames);
    }
    let results = Results::of(&run);
    let loads = &results.cells[0].frames().unwrap().loads();
    assert_eq!(
        loads.iter().map(|load| load.percent).collect::<Vec<_>>(),
        [Some(100), Some(90)]
    );
    assert_eq!(loads[0].lost_ppm.n, 2);
    assert!((loads[0].lost_ppm.mean - 500e3).abs() < 1e-6);
    assert_close(
        loads[0].intended_frames_per_s.as_ref().unwrap().mean,
        1.05e6,
    );
    let account = &loads[1].account;
    assert_eq!((account.trials, account.reordered), (2, 90));
    assert_eq!(account.lost - account.lost_on_the_way(), 2_000);
    assert_eq!(
        account.intended,
        account.not_sent + account.received + account.lost
    );
}

#[test]
fn the_trial_for_the_evidence_is_no_load_of_the_procedure() {
    let load = Procedure::Load(Load {
        frames_per_s: Some(1_000),
        duration_ns: SECOND_NS,
    });
    let cell = cell("auto", 64, load);
    let mut run = journal(vec![cell.clone()], 1, 8);
    let mut slow = trial(1_000, 1_000);
    slow.elapsed_ns = 2 * SECOND_NS;
    let frames = FrameResult {
        trials: vec![slow, trial(1_000, 900)],
        evidence_trial: Some(1),
        ..FrameResult::default()
    };
    add(&mut run, &cell, 1, frames);
    let results = Results::of(&run);
    let found = results.cells[0].frames().unwrap();
    let account = found.loads()[0].account;
    assert_eq!((account.lost, account.not_sent), (0, 0));
    // Half of it left within the second of the load.
    assert_eq!((account.too_late, account.lost_by_tester()), (500, 500));
    assert_eq!(found.at_evidence.as_ref().unwrap().account.lost, 100);
}

#[test]
fn the_trial_that_found_the_highest_load_is_no_row_of_the_curve() {
    let curve = Procedure::LossCurve(LossCurve {
        max_load: None,
        step_percent: 50,
        trial_ns: SECOND_NS,
        drain_ns: 0,
    });
    let cell = cell("auto", 64, curve);
    let mut run = journal(vec![cell.clone()], 1, 8);
    let of = |load, frames, received| FrameTrial {
        load,
        ..trial(frames, received)
    };
    let frames = FrameResult {
        trials: vec![
            // Paced at a line rate that the generator is far from.
            of(14_000_000, 1_000, 1_000),
            of(1_000, 1_000, 900),
            of(500, 500, 500),
        ],
        flood_trial: Some(0),
        ..FrameResult::default()
    };
    add(&mut run, &cell, 1, frames);
    let results = Results::of(&run);
    let loads = &results.cells[0].frames().unwrap().loads();
    let percents: Vec<_> = loads.iter().map(|load| load.percent).collect();
    assert_eq!(percents, [Some(100), Some(50)]);
}

#[test]
fn a_bursts_buffer_is_corrected_by_the_throughput_of_the_same_traffic() {
    let test = BackToBack {
        burst_ns_max: 2 * SECOND_NS,
        bursts: 2,
        drain_ns: 0,
    };
    let burst = cell("auto", 64, Procedure::BackToBack(test));
    let bounds = [(Some(400_000), Some(402_000))];
    let search = throughput("auto", 64);
    let mut run = searched(&[(search.clone(), &bounds)]);
    run.header.plan.cells.push(burst.clone());
    let length = |frames, confirming| BurstTrial {
        frames,
        lost: 0,
        confirming,
    };
    let frames = FrameResult {
        trials: vec![trial(1_000_000, 1_000_000)],
        found: ProcedureRecord::Bursts(vec![
            length(9_000, false),
            BurstTrial {
                lost: 1,
                ..length(7_000, true)
            },
            length(5_000, true),
            length(5_000, true),
        ]),
        ..FrameResult::default()
    };
    add(&mut run, &burst, 1, frames);
    let results = Results::of(&run);
    let found = results.cells[1].frames().unwrap().back_to_back().unwrap();
    assert_close(found.burst_frames.mean, 5_000.0);
    // 5000 frames at 1 Mpps are 5 ms, of which 40 % were forwarded meanwhile.
    assert!((found.implied_buffer_ns.unwrap() - 5e6).abs() < 1.0);
    assert!((found.corrected_buffer_ns.unwrap() - 3e6).abs() < 1.0);
    assert_eq!(found.throughput_cell.as_ref(), Some(&search.id));
    assert_eq!(
        (found.confirming_bursts, found.longest_tried_passed),
        (3, false)
    );
}

#[test]
fn recovery_has_no_figure_when_loss_continued_to_the_end() {
    let test = Recovery {
        search: search(),
        overload_percent: 110,
        relief_percent: 50,
        overload_ns: SECOND_NS,
        relief_ns: SECOND_NS,
    };
    let cell = cell("auto", 64, Procedure::Recovery(test));
    let mut run = journal(vec![cell.clone()], 2, 8);
    for (repeat, recovered) in [(1, true), (2, false)] {
        let frames = FrameResult {
            found: ProcedureRecord::Recovery(RecoveryTrial {
                overload: 440_000,
                relief: 200_000,
                recovery_ns: 1_000_000,
                recovered,
                overload_lost: 40,
                relief_lost: 2,
            }),
            ..found(Some(400_000), Some(402_000))
        };
        add(&mut run, &cell, repeat, frames);
    }
    let results = Results::of(&run);
    let found = results.cells[0].frames().unwrap().recovery().unwrap();
    assert_eq!((found.recovery_ns.as_ref(), found.not_recovered), (None, 1));
    assert_eq!((found.overload_lost, found.relief_lost), (80, 4));
    assert_eq!(found.not_overloaded, 0);
}

#[test]
fn recovery_has_no_figure_when_the_overload_lost_nothing() {
    let test = Recovery {
        search: search(),
        overload_percent: 110,
        relief_percent: 50,
        overload_ns: SECOND_NS,
        relief_ns: SECOND_NS,
    };
    let cell = cell("auto", 64, Procedure::Recovery(test));
    let mut run = journal(vec![cell.clone()], 1, 8);
    let frames = FrameResult {
        found: ProcedureRecord::Recovery(RecoveryTrial {
            overload: 440_000,
            relief: 200_000,
            recovered: true,
            ..RecoveryTrial::default()
        }),
        ..found(Some(400_000), Some(402_000))
    };
    add(&mut run, &cell, 1, frames);
    let results = Results::of(&run);
    let found = results.cells[0].frames().unwrap();
    let recovery = found.recovery().unwrap();
    assert_eq!(
        (recovery.recovery_ns.as_ref(), recovery.not_overloaded),
        (None, 1)
    );
}

#[test]
fn rates_of_both_directions_at_once_are_per_direction() {
    let load = Procedure::Load(Load {
        frames_per_s: Some(1_000),
        duration_ns: SECOND_NS,
    });
    let mut cell = cell("auto", 64, load);
    if let Measurement::Frames(test) = &mut cell.measurement {
        test.traffic.duplex = true;
    }
    let mut run = journal(vec![cell.clone()], 1, 8);
    let both = FrameTrial {
        load: 1_000,
        ..trial(2_000, 1_900)
    };
    let frames = FrameResult {
        trials: vec![both],
        ..FrameResult::default()
    };
    add(&mut run, &cell, 1, frames);
    let results = Results::of(&run);
    let load = &results.cells[0].frames().unwrap().loads()[0];
    assert_close(load.offered.frames_per_s.mean, 1_000.0);
    assert_close(load.forwarded.frames_per_s.mean, 950.0);
    assert_eq!(load.account.lost, 100);
    assert_close(load.lost_ppm.mean, 50_000.0);
}

#[test]
fn a_measured_trial_without_frames_is_failed_and_says_so() {
    let cell = throughput("auto", 64);
    let mut run = journal(vec![cell.clone()], 1, 8);
    record(&mut run, &cell.id, 1, measured(Measured::default()));
    let results = Results::of(&run);
    assert_eq!(
        results.cells[0].reasons[0].text,
        "the record holds no frames"
    );
    assert_eq!(
        (&results.cells[0].frames(), &results.cells[0].verdict()),
        (&None, &None)
    );
}

#[test]
fn evidence_that_contradicts_the_figure_and_damage_are_reported() {
    let cell = throughput("auto", 64);
    let with = |received: u64, [corrupted, duplicated]: [u64; 2]| {
        let mut run = journal(vec![cell.clone()], 1, 8);
        let mut frames = found(Some(400_000), Some(402_000));
        // Of a trial of the search, which is in no table.
        frames.trials[0].duplicated = duplicated;
        let mut seen = trial(400_000, received);
        seen.corrupted = corrupted;
        frames.trials.push(seen);
        frames.evidence_trial = Some(frames.trials.len() - 1);
        add(&mut run, &cell, 1, frames);
        kinds(&Results::of(&run))
    };
    assert!(!with(400_000, [0, 0]).contains(&WarningKind::LossyEvidence));
    assert!(with(390_000, [0, 0]).contains(&WarningKind::LossyEvidence));
    assert!(!with(390_000, [0, 0]).contains(&WarningKind::DamagedFrames));
    assert!(with(390_000, [3, 0]).contains(&WarningKind::DamagedFrames));
    assert!(with(400_000, [0, 1]).contains(&WarningKind::DamagedFrames));
}

#[test]
fn the_maximum_receive_rate_is_the_mean_of_its_trials_without_flood_and_evidence() {
    let test = Mrr {
        max_load: None,
        trials: 2,
        trial_ns: SECOND_NS,
        drain_ns: 0,
    };
    let cell = cell("auto", 64, Procedure::Mrr(test));
    let mut run = journal(vec![cell.clone()], 2, 8);
    let of = |received| FrameTrial {
        load: 1000,
        duration_ns: SECOND_NS,
        elapsed_ns: SECOND_NS,
        ..trial(1000, received)
    };
    for (repeat, received) in [(1, [800, 900]), (2, [600, 700])] {
        let found = FrameResult {
            trials: vec![of(1), of(received[0]), of(received[1]), of(2)],
            flood_trial: Some(0),
            evidence_trial: Some(3),
            ..FrameResult::default()
        };
        add(&mut run, &cell, repeat, found);
    }
    let results = Results::of(&run);
    let found = results.cells[0].frames().unwrap();
    let mrr = found.mrr().unwrap();
    let forwarded = &mrr.load.forwarded.frames_per_s;
    assert_eq!(
        (forwarded.n, forwarded.at(1), forwarded.at(2)),
        (2, Some(850.0), Some(650.0))
    );
    assert_close(mrr.load.lost_ppm.mean, 250_000.0);
    assert_eq!((mrr.trials, mrr.load.account.trials), (4, 4));
    assert_close(mrr.min_frames_per_s, 600.0);
    assert_close(mrr.max_frames_per_s, 900.0);
    // Of 800, 900, 600 and 700: the squares of 50, 150, 150 and 50 by 3.
    assert_close(
        mrr.standard_deviation_frames_per_s.unwrap(),
        (50_000.0_f64 / 3.0).sqrt(),
    );
    assert_close(found.frame_rate().unwrap().mean, 750.0);
}
