//! One frame test on a fake bench: the specs of its stations, and that nothing is left after any
//! failure.

use crate::stations::{Script, StationBench, cell, test};
use journal::record::{CipherLink, Measured, Outcome, TrialRecord};
use plan::{Cell, Direction, FrameTest, IpVersion, Load, PortKind, Ports, Procedure};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use testbed::{Interrupt, LabError, NodeId};
use traffic_spec::{Receive, Role, Send};
use trial::{Trial, links, measure};

const MS: u64 = crate::bench::MS;

fn run(
    bench: &mut StationBench,
    cell: &Cell,
    interrupt: &Interrupt,
) -> Result<TrialRecord, LabError> {
    let links = links(&crate::bench::plan(vec![cell.clone()], 1), cell);
    let result = measure(bench, &Trial::of(cell, 1, links), interrupt);
    bench.assert_clean();
    result
}

fn outcome(script: Script, test: FrameTest) -> Outcome {
    let mut bench = StationBench::new(script);
    run(&mut bench, &cell(test), &Interrupt::new())
        .unwrap()
        .outcome
}

fn measured(outcome: Outcome) -> Measured {
    match outcome {
        Outcome::Measured(measured) => *measured,
        other => panic!("expected a measured trial, got {other:?}"),
    }
}

fn failure(script: Script, test: FrameTest) -> String {
    match outcome(script, test) {
        Outcome::Failed { reason } => reason,
        other => panic!("expected a failed trial, got {other:?}"),
    }
}

fn reasons(script: Script) -> Vec<String> {
    match outcome(script, test()) {
        Outcome::Invalid { reasons, .. } => reasons,
        other => panic!("expected an invalid trial, got {other:?}"),
    }
}

/// The specs of the first sender and the first receiver.
fn specs(bench: &StationBench) -> (Send, Receive) {
    let world = bench.world.lock().unwrap();
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for (_, _, spec) in &world.started {
        match &spec.role {
            Role::Send(send) => sends.push(send.clone()),
            Role::Receive(receive) => receives.push(receive.clone()),
            Role::Reflect(_) | Role::Attack(_) => {}
        }
    }
    (sends.swap_remove(0), receives.swap_remove(0))
}

#[test]
fn a_load_is_measured_and_then_once_more_with_its_evidence() {
    let mut bench = StationBench::new(Script::default());
    let record = run(&mut bench, &cell(test()), &Interrupt::new()).unwrap();
    assert_eq!(record.commands.len(), 2);
    assert_eq!(record.commands[0][..3], ["cipherbench", "frames", "<<<"]);
    let measured = measured(record.outcome);
    let frames = measured.frames().cloned().unwrap();
    let counts = frames
        .trials
        .iter()
        .map(|trial| (trial.load, trial.sent, trial.received));
    assert_eq!(
        counts.collect::<Vec<_>>(),
        // 20 ms of load, then the second of the trial with the evidence.
        [(50_000, 1000, 1000), (50_000, 50_000, 50_000)]
    );
    assert_eq!(frames.evidence_trial, Some(1));
    assert_eq!(frames.latency[0].frames, 1000);
    assert_eq!(frames.sender.kind, Some(PortKind::Packet));
    assert_eq!(frames.receiver.passed_over, ["AF_XDP: the fake has none"]);
    assert_eq!(measured.evidence.interfaces["a/a0"].tx_packets, 50_000);
    // Only the trial with the evidence is watched.
    assert_eq!(bench.world.lock().unwrap().watches, [NodeId::Gw1]);
}

#[test]
fn stations_have_the_specs_of_the_plan() {
    let mut bench = StationBench::new(Script::default());
    run(&mut bench, &cell(test()), &Interrupt::new()).unwrap();
    let (send, receive) = specs(&bench);
    assert_eq!((send.frames.flows, send.frames.tunnels), (8, 2));
    assert_eq!(send.addresses.source_mac, [2, 0, 0, 0, 0, 18]);
    assert_eq!(send.addresses.target_mac, [2, 0, 0, 0, 1, 18]);
    assert_eq!(send.addresses.source, IpAddr::from([198, 18, 0, 1]));
    assert_eq!(send.addresses.target, IpAddr::from([198, 19, 0, 1]));
    assert_eq!(
        (send.frames_per_s, send.duration_ns),
        (Some(50_000), 20 * MS)
    );
    assert_eq!((receive.frames.flows, receive.expected), (8, Some(1000)));
    let longest = test().traffic.frames.mix.largest_bytes();
    assert_eq!(receive.frames.mix.largest_bytes(), longest);
    let world = bench.world.lock().unwrap();
    let places = world
        .started
        .iter()
        .map(|(node, cores, _)| (*node, cores.clone()));
    let expected = [(NodeId::B, vec![1]), (NodeId::A, vec![0])];
    assert_eq!(places.collect::<Vec<_>>()[..2], expected);
    // Both ends of a trial know each other by its tag, and no other trial's.
    let tags: Vec<u16> = world.started.iter().map(|(_, _, spec)| spec.tag).collect();
    assert!(
        tags[0] == tags[1] && tags[2] == tags[3] && tags[1] != tags[2],
        "{tags:?}"
    );
}

#[test]
fn ports_and_ip_versions_are_as_the_plan_says() {
    let addresses = |ports, ip| {
        let mut test = test();
        test.traffic.ports = ports;
        test.traffic.ip = ip;
        let mut bench = StationBench::new(Script::default());
        run(&mut bench, &cell(test), &Interrupt::new()).unwrap();
        let send = specs(&bench).0.addresses;
        let port = bench.world.lock().unwrap().started[1].2.port;
        (send.source.to_string(), send.target.to_string(), port)
    };
    let (source, target, port) = addresses(Ports::default(), IpVersion::V6);
    assert_eq!(
        (source.as_str(), target.as_str()),
        ("2001:2:0:12::1", "2001:2:0:13::1")
    );
    assert_eq!(port, None);
    // The kernel makes headers with its own addresses only.
    let sockets = Ports {
        tx: Some(PortKind::Socket),
        rx: Some(PortKind::Packet),
    };
    let (source, target, port) = addresses(sockets, IpVersion::V4);
    assert_eq!(
        (source.as_str(), target.as_str()),
        ("10.18.0.2", "198.19.0.1")
    );
    assert_eq!(port, Some(port::FramePortKind::Socket));
}

#[test]
fn with_both_directions_loaded_counts_are_sums() {
    let mut test = test();
    test.traffic.duplex = true;
    let mut bench = StationBench::new(Script {
        capacity: 30_000,
        ..Script::default()
    });
    let record = run(&mut bench, &cell(test), &Interrupt::new()).unwrap();
    let frames = measured(record.outcome).frames().cloned().unwrap();
    let trial = &frames.trials[0];
    assert_eq!(
        // Each direction has 1000 frames, and the device carries 30 000 frames/s for 20 ms.
        (trial.load, trial.sent, trial.received),
        (50_000, 2000, 1200)
    );
    assert_eq!(frames.latency[0].histogram.len(), 1);
    assert_eq!(frames.latency[0].frames, 1200);
    // A sender and a receiver for each direction.
    assert_eq!(record.commands.len(), 4);
    let world = bench.world.lock().unwrap();
    let places: Vec<NodeId> = world.started[..4].iter().map(|(node, ..)| *node).collect();
    assert!(places[..2].contains(&NodeId::A) && places[..2].contains(&NodeId::B));
}

#[test]
fn a_device_that_sends_frames_back_carries_none_of_the_other_direction() {
    let mut test = test();
    test.traffic.duplex = true;
    let script = Script {
        reflects: true,
        ..Script::default()
    };
    // Each way sends what the other one expects, but for its tag.
    let Outcome::Invalid { measured, .. } = outcome(script, test) else {
        panic!("what nobody counted as received did arrive")
    };
    let trial = &measured.frames().cloned().unwrap().trials[0];
    assert_eq!((trial.sent, trial.received, trial.lost()), (2000, 0, 2000));
}

#[test]
fn the_dut_comes_up_in_the_direction_of_the_traffic_and_is_watched_where_its_kernel_is() {
    for (direction, watched) in [
        (Direction::Encrypt, NodeId::Gw1),
        (Direction::Decrypt, NodeId::Gw2),
        (Direction::Both, NodeId::Gw1),
    ] {
        let mut test = test();
        test.traffic.direction = direction;
        let mut bench = StationBench::new(Script::default());
        measured(
            run(&mut bench, &cell(test), &Interrupt::new())
                .unwrap()
                .outcome,
        );
        let world = bench.world.lock().unwrap();
        assert_eq!(world.directions, [direction]);
        assert_eq!(world.watches, [watched]);
    }
}

#[test]
fn a_receiver_that_misses_frames_is_stopped_when_the_drain_is_over() {
    let mut bench = StationBench::new(Script {
        capacity: 25_000,
        ..Script::default()
    });
    let record = run(&mut bench, &cell(test()), &Interrupt::new()).unwrap();
    let trial = &measured(record.outcome).frames().cloned().unwrap().trials[0];
    assert_eq!((trial.sent, trial.lost()), (1000, 500));
}

#[test]
fn a_sender_that_is_far_too_slow_is_stopped_and_has_not_offered_its_load() {
    let reasons = reasons(Script {
        slow_sender: true,
        ..Script::default()
    });
    assert!(reasons.len() == 1, "{reasons:?}");
    assert!(
        reasons[0].contains("500 of 1000 frames sent"),
        "{reasons:?}"
    );
}

#[test]
fn frames_that_no_report_has_speak_against_the_trial() {
    let unseen = Script {
        unseen: 1000,
        ..Script::default()
    };
    let reasons = reasons(unseen);
    let [ends, links] = &reasons[..] else {
        panic!("{reasons:?}")
    };
    // Found against the analyser's report, and against the frames that were sent.
    assert!(ends.starts_with("interfaces-agree: "), "{ends}");
    assert!(
        ends.contains("b/b0 received 51000, the analyser 50000"),
        "{ends}"
    );
    assert!(links.starts_with("links-carried-the-load: "), "{links}");
}

#[test]
fn frames_of_any_trial_that_pass_the_link_unseen_speak_against_the_trial() {
    for number in [1, 2] {
        let reasons = reasons(Script {
            past_the_link_in: Some(number),
            ..Script::default()
        });
        let [amount, watched, links] = &reasons[..] else {
            panic!("{reasons:?}")
        };
        let trial = format!("trial {number} (50000 frames/s): ");
        assert!(amount.starts_with("cipher-link-amount: ") && amount.contains(&trial));
        assert!(watched.starts_with("trials-watched: ") && watched.contains(&trial));
        assert!(watched.contains("the filter saw 0 frames of "), "{watched}");
        assert!(links.starts_with("links-carried-the-load: ") && links.contains(&trial));
    }
}

#[test]
fn loss_in_a_trial_with_a_full_queue_of_the_machine_is_not_booked_as_the_devices() {
    let script = |capacity, two_machines| Script {
        capacity,
        backlog_drops: 7,
        two_machines,
        ..Script::default()
    };
    for two_machines in [false, true] {
        let reasons = reasons(script(25_000, two_machines));
        assert!(
            reasons.len() == 1 && reasons[0].starts_with("losses-attributed: "),
            "{reasons:?}"
        );
        assert!(
            reasons[0].contains("of 500 lost frames up to 7 may be the tester's own loss"),
            "{reasons:?}"
        );
    }
    // Nothing was lost.
    let mut bench = StationBench::new(script(100_000, false));
    measured(
        run(&mut bench, &cell(test()), &Interrupt::new())
            .unwrap()
            .outcome,
    );
}

#[test]
fn without_an_encryptor_the_stations_addresses_must_be_seen() {
    let cipher_link = CipherLink {
        frames: 100,
        other_frames: 100,
        ..CipherLink::default()
    };
    let reasons = reasons(Script {
        cipher_link,
        ..Script::default()
    });
    assert!(
        reasons.len() == 1 && reasons[0].starts_with("clear-text-visible"),
        "{reasons:?}"
    );
}

#[test]
fn a_dut_without_a_place_for_frames_is_a_failure_that_says_so() {
    let reason = failure(
        Script {
            has_path: false,
            ..Script::default()
        },
        test(),
    );
    assert!(
        reason.contains("no interfaces where frames enter"),
        "{reason}"
    );
}

#[test]
fn a_program_that_fails_is_quoted() {
    let says = |words, code| {
        failure(
            Script {
                says: Some((words, code)),
                ..Script::default()
            },
            test(),
        )
    };
    let reason = says("", 3);
    assert!(
        reason.contains("`frames` did not report; it exited with 3"),
        "{reason}"
    );
    assert!(reason.contains("what went wrong"), "{reason}");
    let reason = says("{\"port\": 7}", 0);
    assert!(
        reason.contains("the report of `frames` cannot be read"),
        "{reason}"
    );
    let reason = failure(
        Script {
            no_receiver: true,
            ..Script::default()
        },
        test(),
    );
    assert!(reason.contains("was not ready"), "{reason}");
}

#[test]
fn a_lab_that_does_not_carry_the_ip_version_is_a_failure_before_a_dut_comes_up() {
    let mut bench = StationBench::new(Script {
        carries_ipv6: false,
        ..Script::default()
    });
    let mut test = test();
    measured(
        run(&mut bench, &cell(test.clone()), &Interrupt::new())
            .unwrap()
            .outcome,
    );
    test.traffic.ip = IpVersion::V6;
    let record = run(&mut bench, &cell(test), &Interrupt::new()).unwrap();
    let Outcome::Failed { reason } = record.outcome else {
        panic!("no frame could pass")
    };
    assert_eq!(
        reason,
        "an MTU of 1000 B is too small for IPv6: raise the MTU"
    );
    // Only the first of the two.
    assert_eq!(bench.world.lock().unwrap().directions.len(), 1);
}

#[test]
fn sockets_and_ipv6_are_refused_with_what_to_write() {
    let mut test = test();
    test.traffic.ip = IpVersion::V6;
    test.traffic.ports.rx = Some(PortKind::Socket);
    let reason = failure(Script::default(), test);
    assert!(reason.contains("`ip: 4`"), "{reason}");
}

/// An hour.
fn long() -> FrameTest {
    FrameTest {
        procedure: Procedure::Load(Load {
            frames_per_s: Some(50_000),
            duration_ns: 3_600_000 * MS,
        }),
        ..test()
    }
}

#[test]
fn a_dut_that_dies_ends_a_long_trial_soon() {
    let since = Instant::now();
    let reason = failure(
        Script {
            dut_dead: true,
            ..Script::default()
        },
        long(),
    );
    assert!(
        reason.contains("died (SIGKILL)") && reason.contains("gw1: ended before its time"),
        "{reason}"
    );
    assert!(since.elapsed() < Duration::from_secs(10));
}

#[test]
fn an_interrupt_ends_a_long_trial_within_a_second() {
    let interrupt = Interrupt::new();
    let setter = interrupt.clone();
    let mut bench = StationBench::new(Script::default());
    let world = std::sync::Arc::clone(&bench.world);
    let setter = std::thread::spawn(move || {
        // The interrupt comes while a sender and a receiver are running.
        while world.lock().unwrap().started.len() < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        setter.set();
        Instant::now()
    });
    let result = run(&mut bench, &cell(long()), &interrupt);
    assert!(matches!(result, Err(LabError::Interrupted)), "{result:?}");
    assert!(setter.join().unwrap().elapsed() < Duration::from_secs(1));
}

#[test]
fn more_cores_than_there_are_is_a_failure_that_says_how_many() {
    let mut cell = cell(test());
    cell.stations.as_mut().unwrap().cores = 3;
    let record = run(
        &mut StationBench::new(Script::default()),
        &cell,
        &Interrupt::new(),
    )
    .unwrap();
    let reason = format!("{:?}", record.outcome);
    assert!(
        reason.starts_with("Failed") && reason.contains("this machine has 2"),
        "{reason}"
    );
}
