//! Loads with a disturbance: from events and attacks to figures and warnings.

use crate::fixture::{SECOND_NS, journal, record};
use crate::frame_fixture::*;
use journal::record::*;
use plan::*;
use stats::{DisturbanceResult, Results, WarningKind};

const MS: u64 = 1_000_000;

fn procedure(event: Event) -> Procedure {
    Procedure::Disturbed(Disturbed {
        load: BaseLoad::Given {
            frames_per_s: 10_000,
        },
        event,
    })
}

fn rekey() -> Procedure {
    procedure(Event::Rekey {
        every_ns: 100 * MS,
        duration_ns: SECOND_NS,
        throughput: false,
    })
}

fn crash() -> Procedure {
    procedure(Event::Failover {
        failure: Failure::Crash,
        times: 1,
        down_ns: 500 * MS,
        watch_ns: SECOND_NS,
    })
}

fn hostile() -> Procedure {
    procedure(Event::Hostile {
        attack: Attack::Replay,
        percents: vec![10, 100],
        trial_ns: SECOND_NS,
    })
}

fn event(name: &str, at_ms: u64, lost: u64, times_ms: (Option<u64>, Option<u64>)) -> DutEvent {
    DutEvent {
        name: name.into(),
        at_ns: at_ms * MS,
        took_ns: 2 * MS,
        lost,
        first_ns: times_ms.0.map(|time| time * MS),
        outage_ns: times_ms.1.map(|time| time * MS),
        slowest_ns: None,
        reset: None,
    }
}

/// A frame trial with its disturbance.
type Trial = (FrameTrial, Vec<DutEvent>, Option<AttackTrial>);

fn result(trials: Vec<Trial>) -> FrameResult {
    let mut found = FrameResult::default();
    let mut disturbances = Vec::new();
    for (trial, events, attack) in trials {
        disturbances.push(Disturbance {
            trial: found.trials.len(),
            events,
            attack,
            histogram: vec![LatencyBucket {
                upto_ns: 1_000 * (1 + found.trials.len() as u64),
                frames: trial.received,
            }],
            ..Disturbance::default()
        });
        found.trials.push(trial);
    }
    found.found = ProcedureRecord::Disturbed(DisturbedTrials {
        disturbances,
        ..DisturbedTrials::default()
    });
    found
}

fn disturbed(found: &mut FrameResult) -> &mut DisturbedTrials {
    match &mut found.found {
        ProcedureRecord::Disturbed(disturbed) => disturbed,
        other => panic!("{other:?}"),
    }
}

/// A run of one cell, a repeat for each result.
fn run(procedure: Procedure, repeats: Vec<Vec<Trial>>) -> Results {
    let cell = cell("auto", 64, procedure);
    let mut run = journal(vec![cell.clone()], repeats.len() as u32, 8);
    for (repeat, trials) in (1..).zip(repeats) {
        add(&mut run, &cell, repeat, result(trials));
    }
    Results::of(&run)
}

fn figures(results: &Results) -> &DisturbanceResult {
    let frames = results.cells[0].frames().unwrap();
    frames.disturbance().unwrap()
}

fn warned(results: &Results, kind: WarningKind) -> bool {
    kinds(results).contains(&kind)
}

/// Returns the text of the warning of that kind.
fn finding(results: &Results, kind: WarningKind) -> &str {
    let mut found = results.warnings.iter().filter(|one| one.kind == kind);
    &found.next().expect("there is such a warning").text
}

fn quiet(received: u64) -> Trial {
    (trial(10_000, received), vec![], None)
}

#[test]
fn costs_of_rekeys_are_over_rekeys_and_rates_over_repeats() {
    let rekeys = |lost: [u64; 3]| -> Trial {
        let events = (1..).zip(lost).map(|(index, lost)| {
            let outage = if lost > 0 { 7 } else { 0 };
            event("rekey", 250 * index, lost, (Some(0), Some(outage)))
        });
        (
            trial(10_000, 10_000 - lost.iter().sum::<u64>()),
            events.collect(),
            None,
        )
    };
    let results = run(
        rekey(),
        vec![
            vec![quiet(10_000), rekeys([0, 10, 0])],
            vec![quiet(5_000), rekeys([0, 0, 50])],
        ],
    );
    let found = figures(&results);
    let figure = found.rekey().unwrap();
    assert_eq!((figure.rekeys, figure.with_loss), (6, 2));
    let lost = figure.lost_frames.as_ref().unwrap();
    assert_eq!(lost.n, 6);
    assert_close(lost.mean, 10.0);
    assert_close(lost.max, 50.0);
    assert_close(figure.asked_per_s, 10.0);
    // Two intervals of 250 ms between three rekeys.
    assert_close(figure.reached_per_s.as_ref().unwrap().mean, 4.0);
    assert_close(figure.took_ns.as_ref().unwrap().mean, 2e6);
    assert_close(figure.outage_ns.max_ns.unwrap(), 7e6);
    let kept = figure.kept_ratio.as_ref().unwrap();
    assert_eq!(kept.n, 2);
    assert_close(kept.at(1).unwrap(), 0.999);
    assert_close(kept.at(2).unwrap(), 1.99);
    let p50 = |load: &stats::DisturbedLoad| load.latency.as_ref().unwrap().p50_ns;
    assert_eq!(p50(found.quiet.as_ref().unwrap()), 1_000);
    assert_eq!(p50(&figure.disturbed), 2_000);
    // The second control lost half of the load, for any reason.
    assert!(warned(&results, WarningKind::QuietLoss));
    let clean = stats::CleanRekeys {
        repeats: 1,
        of_repeats: 2,
        rekeys: 3,
        lost: 10,
    };
    assert_eq!(figure.clean, clean);
    assert!(!warned(&results, WarningKind::NotRecovered));
    assert!(!warned(&results, WarningKind::NoCalibration));
    assert_eq!(results.cells[0].verdict(), None);
}

#[test]
fn loss_between_two_rekeys_is_no_failure_to_recover_but_loss_at_the_end_is() {
    let last = |outage| -> Vec<Vec<Trial>> {
        let events = vec![
            event("rekey", 100, 900, (None, None)),
            event("rekey", 200, 5, (Some(0), outage)),
        ];
        vec![vec![quiet(10_000), (trial(10_000, 9_095), events, None)]]
    };
    let results = run(rekey(), last(Some(1)));
    assert!(figures(&results).not_recovered().is_empty());
    assert_eq!(figures(&results).rekey().unwrap().outage_ns.endless(), 1);
    let results = run(rekey(), last(None));
    let [place] = figures(&results).not_recovered() else {
        panic!("one rekey did not recover");
    };
    assert_eq!((place.number, place.at_ns), (2, 200 * MS));
    assert!(warned(&results, WarningKind::NotRecovered));
}

#[test]
fn an_outage_lasts_from_the_failure_to_the_last_loss_after_the_recovery() {
    let pair = |broke, mended| vec![broke, mended];
    let restarted = || event("restart", 1_500, 300, (Some(20), Some(30)));
    let outage = |events: Vec<DutEvent>| {
        let trials = vec![(trial(10_000, 9_000), events, None)];
        let results = run(crash(), vec![trials]);
        figures(&results).failover().unwrap().clone()
    };
    let found = outage(pair(
        event("crash", 1_000, 5_000, (None, None)),
        restarted(),
    ));
    assert_eq!((found.failure.as_str(), found.failures), ("crash", 1));
    assert_eq!(found.outage_ns.median_ns, Some(530e6));
    assert_eq!(found.after_mending_ns.median_ns, Some(30e6));
    assert_eq!(found.first_frame_ns.median_ns, Some(20e6));
    assert_close(found.down_ns.unwrap().mean, 500e6);
    assert_close(found.lost_frames.unwrap().mean, 5_300.0);
    // Another path took over before the recovery: the outage is within the failure.
    let calm = || event("restart", 1_500, 0, (Some(0), Some(0)));
    let found = outage(pair(event("crash", 1_000, 80, (Some(9), Some(8))), calm()));
    assert_eq!(found.outage_ns.median_ns, Some(8e6));
    // Everything before the recovery was lost, and nothing after it.
    let found = outage(pair(event("crash", 1_000, 5_000, (None, None)), calm()));
    assert_eq!(found.outage_ns.median_ns, Some(500e6));
    assert_eq!(found.not_recovered, []);
    // It never recovered.
    let found = outage(vec![event("crash", 1_000, 5_000, (None, None))]);
    assert_eq!(
        (found.outage_ns.median_ns, found.outage_ns.events),
        (None, 1)
    );
    assert_eq!(found.not_recovered[0].name, "crash");
}

#[test]
fn an_encryptor_fails_closed_if_no_trial_saw_a_frame_of_the_stations_in_clear() {
    let verdict = |failure: Failure, watches: &[Option<(u64, u64)>]| {
        let procedure = procedure(Event::Failover {
            failure,
            times: 1,
            down_ns: 500 * MS,
            watch_ns: SECOND_NS,
        });
        let repeats = watches.iter().map(|watch| {
            let mut counts = trial(10_000, 9_000);
            let events = vec![
                event("crash", 100, 500, (None, None)),
                event("restart", 600, 500, (Some(5), Some(50))),
            ];
            counts.readings = Some(Box::new(TrialReadings {
                watch: watch.map(|(foreign_frames, marker_frames)| CipherWatch {
                    foreign_frames,
                    marker_frames,
                    ..CipherWatch::default()
                }),
                ..TrialReadings::default()
            }));
            vec![(counts, events, None)]
        });
        let results = run(procedure, repeats.collect());
        let found = figures(&results).failover().unwrap();
        let open = found.fails_closed() == Some(false);
        assert_eq!(warned(&results, WarningKind::FailsOpen), open);
        (found.fails_closed(), found.clear_frames)
    };
    let closed = Some((0, 0));
    assert_eq!(
        verdict(Failure::Bypass, &[closed, closed]),
        (Some(true), Some(0))
    );
    assert_eq!(
        verdict(Failure::Bypass, &[closed, Some((700, 64)), Some((1, 1))]),
        (Some(false), Some(701))
    );
    // Frames of another program are no leak; without a filter nothing is known.
    assert_eq!(
        verdict(Failure::Bypass, &[Some((3, 0))]),
        (Some(true), Some(0))
    );
    assert_eq!(verdict(Failure::Bypass, &[closed, None]), (None, None));
    // Only the first foreign frames are looked at: the stations' may have come after them.
    assert_eq!(
        verdict(Failure::Bypass, &[closed, Some((500, 0))]),
        (None, None)
    );
    // One of the stations' frames does not make the other program's theirs.
    assert_eq!(
        verdict(Failure::Bypass, &[Some((500, 1)), Some((10, 3)), None]),
        (Some(false), Some(4))
    );
    assert_eq!(verdict(Failure::Crash, &[closed]), (None, None));
}

#[test]
fn an_event_without_recovery_is_the_longest_and_is_named() {
    let failure = |after_ms: Option<u64>| -> Vec<Trial> {
        let events = vec![
            event("crash", 1_000, 5_000, (None, None)),
            event("restart", 1_500, 0, (after_ms, after_ms)),
        ];
        vec![(trial(10_000, 5_000), events, None)]
    };
    let results = run(
        crash(),
        vec![failure(Some(10)), failure(None), failure(Some(30))],
    );
    let found = figures(&results).failover().unwrap();
    let times = &found.outage_ns;
    assert_eq!((times.events, times.endless()), (3, 1));
    assert_eq!(times.median_ns, Some(530e6));
    assert_eq!(times.max_ns, None);
    // The mean is over the events that ended, with their number.
    let ended = times.ended_ns.as_ref().unwrap();
    assert_eq!(ended.n, 2);
    assert_close(ended.mean, 520e6);
    let [place] = found.not_recovered.as_slice() else {
        panic!("{:?}", found.not_recovered);
    };
    assert_eq!((place.repeat, place.number), (2, 1));
    assert!(finding(&results, WarningKind::NotRecovered).contains("after 1 × crash"));
    // If most never recover, there is no median.
    let results = run(
        crash(),
        vec![failure(None), failure(Some(10)), failure(None)],
    );
    let times = &figures(&results).failover().unwrap().outage_ns;
    assert_eq!(times.median_ns, None);
}

#[test]
fn tunnels_per_second_are_by_the_time_until_all_carry_and_are_reported_up() {
    let mut cell = cell(
        "auto",
        64,
        procedure(Event::Setup {
            times: 2,
            watch_ns: SECOND_NS,
        }),
    );
    if let Measurement::Frames(test) = &mut cell.measurement {
        test.traffic.frames.tunnels = 100;
    }
    let mut run = journal(vec![cell.clone()], 1, 8);
    let events = vec![
        event("take-down", 100, 1_000, (None, None)),
        event("set-up", 200, 400, (Some(5), Some(50))),
        event("take-down", 1_200, 1_000, (None, None)),
        event("set-up", 1_300, 900, (Some(7), Some(200))),
        event("take-down", 2_200, 0, (None, None)),
        // All frames were held back until the tunnels were up, 2 ms later.
        event("set-up", 2_300, 0, (Some(0), Some(0))),
    ];
    let trials = vec![(trial(10_000, 6_700), events, None)];
    add(&mut run, &cell, 1, result(trials));
    let results = Results::of(&run);
    let found = figures(&results).setup().unwrap();
    assert_eq!((found.tunnels, found.set_ups), (100, 3));
    let rate = found.tunnels_per_s.as_ref().unwrap();
    assert_eq!(rate.values.len(), 3);
    assert_close(rate.max, 50_000.0);
    assert_close(rate.median, 2_000.0);
    assert_close(rate.min, 500.0);
    assert_eq!(found.first_frame_ns.median_ns, Some(5e6));
    assert_eq!(found.all_carry_ns.max_ns, Some(200e6));
    assert_close(found.lost_frames.as_ref().unwrap().max, 1_900.0);
}

fn attacked(percent: u16, received: u64, sent: u64) -> Trial {
    let attack = AttackTrial {
        percent,
        sent,
        elapsed_ns: SECOND_NS,
    };
    (trial(10_000, received), vec![], Some(attack))
}

#[test]
fn the_share_from_which_a_load_suffers_is_the_first_that_costs_more_than_a_thousandth() {
    let results = |quiet_received, at_10, at_100| {
        run(
            hostile(),
            vec![vec![
                quiet(quiet_received),
                attacked(10, at_10, 1_001),
                attacked(100, at_100, 10_001),
            ]],
        )
    };
    let from = |results: &Results| {
        let found = figures(results).hostile().unwrap();
        found.suffers_from_percent
    };
    // 10 of 10 000 are exactly the limit.
    assert_eq!(from(&results(10_000, 10_000, 9_990)), None);
    assert_eq!(from(&results(10_000, 9_990, 9_989)), Some(100));
    assert_eq!(from(&results(10_000, 9_989, 10_000)), Some(10));
    // Loss without hostile packets is not caused by them.
    let lossy = results(9_000, 9_000, 9_000);
    assert_eq!(from(&lossy), None);
    assert!(warned(&lossy, WarningKind::QuietLoss));

    let fine = results(10_000, 10_000, 5_000);
    let found = figures(&fine).hostile().unwrap();
    let share = &found.shares[1];
    assert_close(share.packets_per_s.as_ref().unwrap().mean, 10_000.0);
    assert_close(share.forwarded_ratio.mean, 0.5);
    assert_eq!(
        (share.percent, share.sent, share.delivered),
        (100, 10_001, 0)
    );
    for kind in [
        WarningKind::HostileDelivered,
        WarningKind::HostileShortfall,
        WarningKind::QuietLoss,
    ] {
        assert!(!warned(&fine, kind), "{kind:?}");
    }
}

#[test]
fn delivered_hostile_packets_cause_a_warning() {
    let with = |change: fn(&mut FrameTrial)| {
        let mut trial = attacked(10, 10_000, 1_001);
        change(&mut trial.0);
        run(hostile(), vec![vec![quiet(10_000), trial]])
    };
    // A replayed packet may be too old to be distinguished from a late one.
    let changes: [fn(&mut FrameTrial); 3] = [
        |trial| trial.duplicated = 1,
        |trial| trial.corrupted = 1,
        |trial| trial.too_late = 1,
    ];
    for change in changes {
        let results = with(change);
        let found = figures(&results).hostile().unwrap();
        assert_eq!((found.delivered, found.shares[0].delivered), (1, 1));
        assert!(warned(&results, WarningKind::HostileDelivered));
    }
}

#[test]
fn delivered_hostile_packets_cause_a_warning_without_a_figure_too() {
    let cell = cell("auto", 64, hostile());
    let mut run = journal(vec![cell.clone()], 1, 8);
    let mut attacked = attacked(10, 10_000, 1_001);
    attacked.0.duplicated = 3;
    let found = Measured {
        figures: Figures::Frames(Box::new(result(vec![quiet(10_000), attacked]))),
        ..Measured::default()
    };
    let invalid = Outcome::Invalid {
        reasons: vec!["3 frames came twice".into()],
        measured: Box::new(found),
    };
    record(&mut run, &cell.id, 1, invalid);
    let results = Results::of(&run);
    assert!(results.cells[0].frames().is_none());
    assert!(finding(&results, WarningKind::HostileDelivered).contains("(3 frames)"));
    // It is a finding about the device without a figure too, and no limit of the tester affects it.
    assert!(!warned(&results, WarningKind::NoCalibration));
    // Nor does it disappear when the trial is repeated.
    let clean = Measured {
        figures: Figures::Frames(Box::new(result(vec![quiet(10_000)]))),
        ..Measured::default()
    };
    record(&mut run, &cell.id, 1, Outcome::Measured(Box::new(clean)));
    let results = Results::of(&run);
    assert!(finding(&results, WarningKind::HostileDelivered).contains("(3 frames)"));
}

#[test]
fn an_attacker_that_did_not_keep_up_is_reported() {
    let sent = |packets| {
        let trials = vec![quiet(10_000), attacked(100, 10_000, packets)];
        warned(&run(hostile(), vec![trials]), WarningKind::HostileShortfall)
    };
    assert!(!sent(9_501));
    assert!(sent(9_500));
    assert!(sent(0));
}

#[test]
fn the_cost_of_a_rekey_is_relative_to_the_same_time_of_the_control() {
    let cell = cell("auto", 64, rekey());
    let mut run = journal(vec![cell.clone()], 1, 8);
    let timed = |at_ms: u64, slowest: u64| DutEvent {
        slowest_ns: Some(slowest),
        ..event("rekey", at_ms, 0, (Some(0), Some(0)))
    };
    // Bins of 100 ms, the control's slowest frames rising by 1000 ns a bin.
    let bins = |base: u64| Timeline {
        bin_ns: 100 * MS,
        bins: (0..10)
            .map(|bin| TimeBin {
                intended: 10,
                received: 10,
                latency_ns_max: base + 1000 * bin,
            })
            .collect(),
    };
    let histogram = |upto_ns: u64| {
        vec![
            LatencyBucket {
                upto_ns: 500,
                frames: 9_000,
            },
            LatencyBucket {
                upto_ns,
                frames: 1_000,
            },
        ]
    };
    let mut found = result(vec![quiet(10_000), (trial(10_000, 10_000), vec![], None)]);
    disturbed(&mut found).disturbances[0].timeline = bins(20_000);
    disturbed(&mut found).disturbances[0].histogram = histogram(30_000);
    disturbed(&mut found).disturbances[1].events = vec![timed(200, 90_000), timed(700, 50_000)];
    disturbed(&mut found).disturbances[1].histogram = histogram(90_000);
    let goals = |lower| SearchRecord {
        goals: vec![GoalBounds {
            lower: Some(lower),
            ..GoalBounds::default()
        }],
        ..SearchRecord::default()
    };
    found.throughput = Some(goals(100_000));
    disturbed(&mut found).rekeyed_throughput = Some(goals(98_000));
    add(&mut run, &cell, 1, found);
    let results = Results::of(&run);
    let figure = figures(&results).rekey().unwrap();
    let mean = |found: &Option<stats::Estimate>| found.as_ref().unwrap().mean;
    assert_close(mean(&figure.added_p99_ns), 60_000.0);
    assert_close(mean(&figure.added_max_ns), 60_000.0);
    assert!(mean(&figure.added_p50_ns).abs() < 1e-9);
    assert_close(mean(&figure.slowest_ns), 70_000.0);
    // From 200 to 302 ms is in the control's bins 2 and 3, from 700 to 802 ms in 7 and 8.
    let added = figure.added_slowest_ns.as_ref().unwrap();
    assert_eq!(added.n, 2);
    assert_close(added.max, 90_000.0 - 23_000.0);
    assert_close(added.min, 50_000.0 - 28_000.0);
    assert_close(mean(&figure.throughput_ratio), 0.98);
}

#[test]
fn keys_out_of_step_are_detected_by_frames_and_reported_by_the_device() {
    let procedure = procedure(Event::Desync {
        cause: Desync::WrongKeys,
        times: 2,
        watch_ns: SECOND_NS,
    });
    let cell = cell("auto", 64, procedure);
    let mut run = journal(vec![cell.clone()], 2, 8);
    for (repeat, last) in [(1, Some(60)), (2, None)] {
        let events = vec![
            event("wrong-keys", 1000, 400, (Some(0), Some(40))),
            event("wrong-keys", 2000, 600, (Some(0), last)),
        ];
        let mut found = result(vec![(trial(10_000, 9_000), events, None)]);
        let counters = [
            ("gw1/desyncs", 1),
            ("gw2/desyncs", 1),
            ("gw2/desync_lost_packets", 480),
            ("gw2/desync_outage_ns", 70 * MS),
            ("gw2/rekeys", 2),
        ];
        disturbed(&mut found).disturbances[0].dut_counters = counters
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        add(&mut run, &cell, repeat, found);
    }
    let results = Results::of(&run);
    let found = figures(&results);
    assert!(found.quiet.is_none());
    assert_eq!(found.not_recovered().len(), 1);
    let figure = found.desync().unwrap();
    assert_eq!((figure.cause.as_str(), figure.times), ("wrong-keys", 4));
    assert_eq!(
        (figure.outage_ns.events, figure.outage_ns.endless()),
        (4, 1)
    );
    assert_eq!(figure.outage_ns.median_ns, Some(50.0 * MS as f64));
    assert_close(figure.lost_frames.as_ref().unwrap().mean, 500.0);
    let reported = figure.reported.unwrap();
    assert_eq!((reported.desyncs, reported.lost_packets), (4, Some(960)));
    assert_eq!(reported.outage_ns, Some(140 * MS));
    assert!(warned(&results, WarningKind::NotRecovered));
}
