//! Whole runs on the fake bench.

use crate::bench::{ESTIMATE_NS, FakeBench, Script, encrypting, ping, plan, said, udp};
use journal::record::{
    FrameTrial, Outcome, Record, SoakProgress, SoakSegment, ToolParameters, TrialRecord,
};
use plan::{Adapter, Measurement, Order, Plan, WireGuard, WireGuardProgram};
use std::convert::Infallible;
use std::time::Duration;
use testbed::{Interrupt, LabError, NodeId};
use trial::{
    Checkpoint, Conclusion, Done, EventSink, Measurer, OnBench, Progress, RunEvent, Trial,
    TrialEvent, run,
};

/// Runs a plan and returns how it ended with all records.
fn records(bench: &mut FakeBench, plan: &Plan, done: &Done) -> (Conclusion, Vec<Record>) {
    let mut records = Vec::new();
    let mut sink = |record: &Record| {
        records.push(record.clone());
        Ok::<_, Infallible>(())
    };
    let ended = run(
        plan,
        &mut OnBench {
            bench,
            folder: None,
        },
        done,
        &mut sink,
        &mut |_| {},
        &Interrupt::new(),
    )
    .unwrap();
    bench.assert_clean();
    (ended, records)
}

fn two_duts(repeats: u32) -> Plan {
    plan(vec![ping(Adapter::Direct), ping(encrypting())], repeats)
}

/// Cell and repeat of the trials among records.
fn trials(records: &[Record]) -> Vec<(&str, u32)> {
    let trials = records.iter().filter_map(|record| match record {
        Record::Trial(trial) => Some((trial.cell.as_str(), trial.repeat)),
        _ => None,
    });
    trials.collect()
}

const DIRECT: &str = "ping/cores=1/direct";
const CIPHERBENCH: &str = "ping/cores=1/cipherbench";

#[test]
fn every_trial_is_made_in_interleaved_order_and_recorded() {
    let mut bench = FakeBench::new(Script::default());
    let (ended, records) = records(&mut bench, &two_duts(2), &Done::default());
    let expected = [(DIRECT, 1), (CIPHERBENCH, 1), (DIRECT, 2), (CIPHERBENCH, 2)];
    assert_eq!(trials(&records), expected);
    // The fake's watch sees clear-text, so the encrypting DUT's trials are invalid.
    assert_eq!(
        ended,
        Conclusion::Finished {
            measured: 2,
            invalid: 2,
            failed: 0
        }
    );
    assert!(matches!(records.last(), Some(Record::End(_))));
    assert_eq!(records.len(), 5);
}

#[test]
fn a_trial_that_fails_does_not_end_the_run() {
    let script = Script {
        dut_comes_up: Err("is stuck".to_owned()),
        ..Script::default()
    };
    let mut bench = FakeBench::new(script);
    let (ended, records) = records(&mut bench, &two_duts(1), &Done::default());
    assert_eq!(
        ended,
        Conclusion::Finished {
            measured: 0,
            invalid: 0,
            failed: 2
        }
    );
    let Record::Trial(trial) = &records[0] else {
        panic!("expected a trial")
    };
    assert!(matches!(&trial.outcome, Outcome::Failed { reason } if reason.contains("is stuck")));
}

#[test]
fn a_dut_whose_program_is_missing_fails_its_own_cells_with_the_reason_and_the_run_goes_on() {
    let reason = "needs the program `wireguard-go`, which is not here\n\
                  help: sudo apt install wireguard-go";
    let script = Script {
        missing: Some(reason.to_owned()),
        ..Script::default()
    };
    let mut bench = FakeBench::new(script);
    let wireguard = Adapter::WireGuard(WireGuard {
        program: WireGuardProgram::Go,
    });
    // First in the plan: what fails has others behind it.
    let plan = plan(vec![ping(wireguard), ping(Adapter::Direct)], 2);
    let (ended, records) = records(&mut bench, &plan, &Done::default());
    let finished = Conclusion::Finished {
        measured: 2,
        invalid: 0,
        failed: 2,
    };
    assert_eq!(ended, finished);
    let trials: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Trial(trial) => Some((trial.cell.as_str(), &trial.outcome)),
            _ => None,
        })
        .collect();
    assert_eq!(trials.len(), 4);
    for (cell, outcome) in trials {
        match outcome {
            Outcome::Failed { reason: found } if cell == CIPHERBENCH => {
                assert!(found.ends_with(reason), "{found}");
            }
            Outcome::Measured(_) => assert_eq!(cell, DIRECT),
            other => panic!("{cell}: {other:?}"),
        }
    }
}

#[test]
fn what_is_done_is_not_done_again() {
    let mut bench = FakeBench::new(Script::default());
    let trials_done = [(DIRECT.to_owned(), 1), (CIPHERBENCH.to_owned(), 2)];
    let done = Done {
        trials: trials_done.into(),
        ..Done::default()
    };
    let (_, made) = records(&mut bench, &two_duts(2), &done);
    assert_eq!(trials(&made), [(CIPHERBENCH, 1), (DIRECT, 2)]);

    let plan = two_duts(1);
    let all = plan
        .trials()
        .map(|trial| (trial.cell.id.clone(), trial.repeat))
        .collect();
    let (ended, made) = records(
        &mut bench,
        &plan,
        &Done {
            trials: all,
            ..Done::default()
        },
    );
    assert_eq!(
        ended,
        Conclusion::Finished {
            measured: 0,
            invalid: 0,
            failed: 0
        }
    );
    assert!(matches!(made[..], [Record::End(_)]));
}

#[test]
fn a_resumed_run_continues_in_the_random_order_of_its_seed() {
    let mut plan = two_duts(6);
    plan.order = Order::Random { seed: Some(3) };
    let planned = |plan: &Plan| -> Vec<(String, u32)> {
        let trials = plan.trials();
        trials
            .map(|trial| (trial.cell.id.clone(), trial.repeat))
            .collect()
    };
    let all = planned(&plan);
    let made = |done: &[(String, u32)]| -> Vec<(String, u32)> {
        let done = Done {
            trials: done.iter().cloned().collect(),
            ..Done::default()
        };
        let (_, made) = records(&mut FakeBench::new(Script::default()), &plan, &done);
        let owned = |(cell, repeat): (&str, u32)| (cell.to_owned(), repeat);
        trials(&made).into_iter().map(owned).collect()
    };
    assert_eq!(made(&[]), all);
    for broken_off in [1, 4, 7] {
        let (before, after) = all.split_at(broken_off);
        assert_eq!(made(before), after);
    }
    let order = |seed| {
        let mut plan = two_duts(6);
        plan.order = Order::Random { seed: Some(seed) };
        planned(&plan)
    };
    assert!((0..4).any(|seed| order(seed) != all));
}

#[test]
fn a_cell_is_tuned_once_before_its_first_trial_and_its_trials_use_what_was_found() {
    let data = |role: &str| {
        let name = format!("tests/data/iperf3-3.12-udp-100m.{role}.json");
        said(&std::fs::read_to_string(name).unwrap())
    };
    let script = Script {
        clients: vec![data("client")],
        servers: vec![data("server")],
        carried_bytes: 12_491_392,
        header_bytes: 8486 * 42,
        ..Script::default()
    };
    let mut cell = udp(Adapter::Direct);
    cell.tune = true;
    if let Measurement::Udp { datagram_bytes, .. } = &mut cell.measurement {
        *datagram_bytes = None;
    }
    let plan = plan(vec![cell], 1);
    let mut bench = FakeBench::new(script.clone());
    let (ended, made) = records(&mut bench, &plan, &Done::default());
    assert_eq!(
        ended,
        Conclusion::Finished {
            measured: 1,
            invalid: 0,
            failed: 0
        }
    );
    let Record::Tuned(tuned) = &made[0] else {
        panic!("expected the search first")
    };
    // The recorded output fits datagrams of 1472 B only.
    assert_eq!(tuned.best.datagram_bytes, Some(1472));
    assert_eq!(
        tuned
            .attempts
            .iter()
            .filter(|attempt| attempt.error.is_some())
            .count(),
        2
    );
    assert_eq!(tuned.attempts[0].payload_bps / 1_000_000, 99);
    assert_eq!(tuned.attempts[0].lost_ppm, Some(0));

    // A later start takes up what was found.
    let best = ToolParameters {
        streams: Some(1),
        ..tuned.best.clone()
    };
    let done = Done {
        tuned: [(tuned.cell.clone(), best)].into(),
        ..Done::default()
    };
    let (_, made) = records(&mut FakeBench::new(script), &plan, &done);
    let Record::Trial(trial) = &made[0] else {
        panic!("expected a trial")
    };
    assert!(
        trial.commands[1].join(" ").contains("-P 1 "),
        "{:?}",
        trial.commands
    );
}

#[test]
fn a_run_that_cannot_be_recorded_ends_with_that_error() {
    let mut bench = FakeBench::new(Script::default());
    let mut room = 1;
    let mut sink = |_: &Record| {
        room -= 1;
        if room < 0 { Err("disk full") } else { Ok(()) }
    };
    let plan = two_duts(2);
    let interrupt = Interrupt::new();
    let ended = run(
        &plan,
        &mut OnBench {
            bench: &mut bench,
            folder: None,
        },
        &Done::default(),
        &mut sink,
        &mut |_| {},
        &interrupt,
    );
    assert_eq!(ended, Err("disk full"));
    assert_eq!(
        bench.world.lock().unwrap().runs,
        2,
        "no trial after the one that was lost"
    );
    bench.assert_clean();
}

#[test]
fn an_interrupt_ends_the_run_with_what_is_finished_recorded() {
    let mut bench = FakeBench::new(Script::default());
    let interrupt = Interrupt::new();
    let mut records = Vec::new();
    let mut sink = |record: &Record| {
        records.push(record.clone());
        Ok::<_, Infallible>(())
    };
    // Ctrl-C as the second trial begins.
    let mut progress = |progress: Progress<'_>| {
        if progress.trial == 2 {
            interrupt.set();
        }
    };
    let plan = two_duts(2);
    let done = Done::default();
    let ended = run(
        &plan,
        &mut OnBench {
            bench: &mut bench,
            folder: None,
        },
        &done,
        &mut sink,
        &mut progress,
        &interrupt,
    );
    assert_eq!(ended, Ok(Conclusion::Interrupted));
    assert_eq!(trials(&records), [(DIRECT, 1)]);
    assert_eq!(records.len(), 1, "no end is recorded");
    bench.assert_clean();
}

#[test]
fn cells_that_are_left_out_fail_with_the_reason_and_without_an_attempt() {
    let mut cell = udp(Adapter::Direct);
    cell.tune = true;
    let plan = plan(vec![ping(Adapter::Direct), cell], 2);
    let id = plan.cells[1].id.clone();
    let done = Done {
        trials: [(id.clone(), 1)].into(),
        left_out: [(id.clone(), "`iperf3` is not here".to_owned())].into(),
        ..Done::default()
    };
    let mut bench = FakeBench::new(Script::default());
    let (ended, records) = records(&mut bench, &plan, &done);
    // The first of the two was measured earlier; none is tuned.
    assert_eq!(trials(&records), [(DIRECT, 1), (DIRECT, 2), (&*id, 2)]);
    let failed: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Trial(trial) if trial.cell == id => Some(&trial.outcome),
            _ => None,
        })
        .collect();
    let reason = "`iperf3` is not here".to_owned();
    assert_eq!(failed, [&Outcome::Failed { reason }]);
    let expected = Conclusion::Finished {
        measured: 2,
        invalid: 0,
        failed: 1,
    };
    assert_eq!(ended, expected);
    assert_eq!(records.len(), 4, "nothing but trials and the end");
}

#[test]
fn a_station_that_is_gone_ends_the_run_and_its_trial_is_not_recorded() {
    for id in NodeId::ALL {
        let script = Script {
            dies_in_trial: Some((id, 2)),
            ..Script::default()
        };
        let (ended, records) = records(&mut FakeBench::new(script), &two_duts(2), &Done::default());
        let reason = format!("{}: the station ended (signal: 9)", id.name());
        assert_eq!(
            ended,
            Conclusion::LabLost {
                reason,
                made: [(DIRECT.to_owned(), 1)].into()
            }
        );
        assert_eq!(trials(&records), [(DIRECT, 1)]);
        assert_eq!(records.len(), 1, "no end is recorded");
    }
}

#[test]
fn progress_has_the_trial_and_the_time_left() {
    let plan = two_duts(2);
    let mut seen = Vec::new();
    let mut progress = |progress: Progress<'_>| {
        let ended = matches!(progress.event, RunEvent::Ended(_));
        seen.push((progress.trial, progress.trials, ended, progress.left));
    };
    let mut sink = |_: &Record| Ok::<_, Infallible>(());
    let mut bench = FakeBench::new(Script::default());
    let done = Done {
        trials: [(DIRECT.to_owned(), 1)].into(),
        ..Done::default()
    };
    run(
        &plan,
        &mut OnBench {
            bench: &mut bench,
            folder: None,
        },
        &done,
        &mut sink,
        &mut progress,
        &Interrupt::new(),
    )
    .unwrap();
    let steps: Vec<_> = seen
        .iter()
        .map(|&(trial, of, ended, _)| (trial, of, ended))
        .collect();
    let expected = [2, 3, 4]
        .map(|trial| [(trial, 4, false), (trial, 4, true)])
        .concat();
    assert_eq!(steps, expected);
    assert_eq!(
        seen[0].3,
        Duration::from_nanos(3 * ESTIMATE_NS),
        "the estimate, nothing being known"
    );
    // The trials take nothing like their estimates.
    assert!(
        seen[1].3 < Duration::from_nanos(ESTIMATE_NS),
        "{:?}",
        seen[1]
    );
    assert_eq!(seen[5].3, Duration::ZERO);
}

#[test]
fn the_search_is_part_of_the_time_left_until_it_is_done() {
    let mut cell = udp(Adapter::Direct);
    cell.tune = true;
    if let Measurement::Udp { rate_bps, .. } = &mut cell.measurement {
        *rate_bps = None;
    }
    cell.estimate_ns = plan::estimate::trial_ns(&cell, 2);
    let plan = plan(vec![cell], 2);
    let first_left = |done: &Done| {
        let interrupt = Interrupt::new();
        let mut left = None;
        // Only the first progress event matters here.
        let mut progress = |progress: Progress<'_>| {
            left.get_or_insert(progress.left);
            interrupt.set();
        };
        let mut sink = |_: &Record| Ok::<_, Infallible>(());
        let mut bench = FakeBench::new(Script::default());
        run(
            &plan,
            &mut OnBench {
                bench: &mut bench,
                folder: None,
            },
            done,
            &mut sink,
            &mut progress,
            &interrupt,
        )
        .unwrap();
        left.unwrap()
    };
    let whole = first_left(&Done::default());
    assert!(whole.as_nanos().abs_diff(u128::from(plan.estimate_ns())) < 10);
    let tuned = [(plan.cells[0].id.clone(), ToolParameters::default())].into();
    let without_search = first_left(&Done {
        tuned,
        ..Done::default()
    });
    let second = Duration::from_secs(1);
    assert_eq!(without_search, 2 * (second + plan::estimate::BRING_UP));
}

/// Reports this many segments and is interrupted then; or, with earlier segments, finishes.
struct Soaker {
    segments: u64,
    earlier: Vec<Checkpoint>,
}

impl Measurer for Soaker {
    fn measure(
        &mut self,
        trial: &Trial<'_>,
        events: EventSink<'_>,
        _interrupt: &Interrupt,
    ) -> Result<TrialRecord, LabError> {
        self.earlier = trial.checkpoints.to_vec();
        for number in 0..self.segments {
            let counts = FrameTrial {
                intended: number,
                ..FrameTrial::default()
            };
            let progress = SoakProgress {
                cell: trial.cell.id.clone(),
                repeat: trial.repeat,
                load: 5,
                throughput: None,
                trial: counts,
                segment: SoakSegment::default(),
            };
            events(TrialEvent::Checkpoint(&progress.into()));
        }
        if self.earlier.is_empty() {
            return Err(LabError::Interrupted);
        }
        Ok(TrialRecord {
            cell: trial.cell.id.clone(),
            repeat: trial.repeat,
            started_unix_ns: 1,
            duration_ns: 1,
            clock_step_ns: 0,
            commands: Vec::new(),
            outcome: Outcome::Measured(Box::default()),
        })
    }
}

#[test]
fn segments_of_a_soak_are_recorded_as_they_end_and_handed_to_the_trial_that_goes_on() {
    let plan = plan(vec![ping(Adapter::Direct)], 1);
    let soak = |segments, done: &Done| {
        let mut soaker = Soaker {
            segments,
            earlier: Vec::new(),
        };
        let mut records = Vec::new();
        let mut sink = |record: &Record| {
            records.push(record.clone());
            Ok::<_, Infallible>(())
        };
        let interrupt = Interrupt::new();
        let ended = run(&plan, &mut soaker, done, &mut sink, &mut |_| {}, &interrupt).unwrap();
        (ended, records, soaker.earlier)
    };
    let (ended, records, _) = soak(2, &Done::default());
    assert_eq!(ended, Conclusion::Interrupted);
    let soaked: Vec<SoakProgress> = records
        .iter()
        .map(|record| match record {
            Record::Soaked(soaked) => (**soaked).clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    let segments = soaked
        .iter()
        .map(|one| (one.cell.as_str(), one.repeat, one.load, one.trial.intended));
    assert!(segments.eq([(DIRECT, 1, 5, 0), (DIRECT, 1, 5, 1)]));

    let done = Done {
        checkpoints: soaked.iter().cloned().map(Checkpoint::from).collect(),
        ..Done::default()
    };
    let (ended, records, earlier) = soak(1, &done);
    assert_eq!(earlier, done.checkpoints);
    assert!(matches!(ended, Conclusion::Finished { measured: 1, .. }));
    assert!(matches!(
        records[..],
        [Record::Soaked(_), Record::Trial(_), Record::End(_)]
    ));
}

#[test]
fn a_segment_that_cannot_be_recorded_ends_the_run_after_its_trial() {
    let plan = plan(vec![ping(Adapter::Direct)], 1);
    let mut soaker = Soaker {
        segments: 1,
        earlier: Vec::new(),
    };
    let done = Done {
        checkpoints: vec![Checkpoint::from(SoakProgress {
            cell: DIRECT.to_owned(),
            repeat: 1,
            load: 5,
            throughput: None,
            trial: FrameTrial::default(),
            segment: SoakSegment::default(),
        })],
        ..Done::default()
    };
    let mut sink = |_: &Record| Err("disk full");
    let interrupt = Interrupt::new();
    let ended = run(
        &plan,
        &mut soaker,
        &done,
        &mut sink,
        &mut |_| {},
        &interrupt,
    );
    assert_eq!(ended, Err("disk full"));
}
