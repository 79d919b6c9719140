//! Frame tests through each DUT, with every check passing.

use crate::trials::{TestLab, cell, encrypting, kill_encryptor_below, plan};
use journal::record::{FrameResult, Measured, Outcome};
use plan::{
    Adapter, Cell, Criteria, Direction, Encryptor, FrameTest, Goal, IpVersion, Load, Measurement,
    PortKind, Ports, Procedure, Profile, Recovery, ThroughputSearch, Traffic,
};
use std::time::{Duration, Instant};
use testbed::{Interrupt, LabError, NodeId};
use testing::busy;
use trial::{Trial, links, measure};
use wire::Suite;
use wire::mix::{Contents, FrameMix, TestFrames};

const MS: u64 = 1_000_000;
/// So low that a machine which compiles at the same time carries it too.
const FRAMES_PER_S: u64 = 2000;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 11] = [
    ("frames_in_clear", frames_in_clear),
    ("frames_past_the_gateways", frames_past_the_gateways),
    ("frames_through_boxes", frames_through_boxes),
    (
        "frames_through_the_encryptor_in_each_direction",
        frames_through_the_encryptor_in_each_direction,
    ),
    ("frames_both_ways_at_once", frames_both_ways_at_once),
    ("frames_by_each_kind_of_port", frames_by_each_kind_of_port),
    (
        "a_load_that_no_generator_offers_is_cut_short",
        a_load_that_no_generator_offers_is_cut_short,
    ),
    (
        "a_search_on_a_slow_line_reaches_its_rate",
        a_search_on_a_slow_line_reaches_its_rate,
    ),
    (
        "recovery_when_nothing_is_lost_takes_no_time",
        recovery_when_nothing_is_lost_takes_no_time,
    ),
    (
        "a_dut_that_is_killed_under_frames",
        a_dut_that_is_killed_under_frames,
    ),
    (
        "an_interrupt_under_frames_ends_the_trial_within_a_second",
        an_interrupt_under_frames_ends_the_trial_within_a_second,
    ),
];

pub(crate) fn load(ms: u64) -> Procedure {
    Procedure::Load(Load {
        frames_per_s: Some(FRAMES_PER_S),
        duration_ns: ms * MS,
    })
}

/// Two hundred flows in a hundred tunnels, in one direction.
pub(crate) fn traffic(direction: Direction, mix: FrameMix, ip: IpVersion) -> Traffic {
    Traffic {
        frames: TestFrames {
            mix,
            flows: 200,
            tunnels: 100,
            contents: Contents::Fixed,
        },
        ip,
        direction,
        duplex: false,
        ports: Ports::default(),
    }
}

/// Eight flows in one tunnel, in frames of 64 B.
pub(crate) fn short(direction: Direction) -> Traffic {
    Traffic {
        frames: TestFrames {
            mix: FrameMix::fixed(64),
            flows: 8,
            tunnels: 1,
            contents: Contents::Fixed,
        },
        ..traffic(direction, FrameMix::fixed(64), IpVersion::V4)
    }
}

pub(crate) fn frames(adapter: Adapter, traffic: Traffic, procedure: Procedure) -> Cell {
    let measurement = Measurement::Frames(FrameTest { traffic, procedure });
    cell(adapter, 1, false, measurement)
}

/// All frames of both trials, that of the figure and that with the evidence, came once and intact.
pub(crate) fn assert_all_came(measured: &Measured, trial_ms: u64, ways: u64) -> &FrameResult {
    let result = measured.frames().unwrap();
    let [figure, evidence] = &result.trials[..] else {
        panic!("{:?}", result.trials)
    };
    assert_eq!(figure.intended, ways * FRAMES_PER_S * trial_ms / 1000);
    for trial in [figure, evidence] {
        // No check asks whether the trial with the evidence offered all that it meant to.
        if trial.sent < trial.intended && trial.took_too_long() {
            busy::too_busy(format!("a sender stalled: {trial:?}"));
        }
        assert_eq!(
            (trial.sent, trial.received),
            (trial.intended, trial.intended),
            "{trial:?}"
        );
        assert_eq!(
            (trial.duplicated, trial.reordered, trial.corrupted),
            (0, 0, 0)
        );
    }
    assert_eq!(result.evidence_trial, Some(1));
    let timed: u64 = result.latency.iter().map(|latency| latency.frames).sum();
    assert_eq!(timed, figure.received);
    assert!(result.sender.kind.is_some() && result.receiver.kind.is_some());
    result
}

pub(crate) fn passes(measured: &Measured, check: &str) -> bool {
    let mut checks = measured.evidence.checks.iter();
    checks.any(|found| found.name == check && found.passed)
}

/// Counters along the path report no loss, also beyond a station in a gateway's place.
pub(crate) fn assert_nothing_was_lost_on_the_way(measured: &Measured) {
    let mut checks = measured.evidence.checks.iter();
    let lossless = checks.find(|check| check.name == "links-lossless").unwrap();
    let tells = lossless.detail.contains("packets were lost");
    assert!(lossless.passed && !tells, "{}", lossless.detail);
}

fn frames_in_clear() {
    let mut lab = TestLab::build();
    let imix = || FrameMix::named("imix").unwrap();
    for (mix, ip) in [
        (FrameMix::fixed(64), IpVersion::V4),
        (imix(), IpVersion::V4),
        (FrameMix::fixed(1518), IpVersion::V6),
    ] {
        let measured = lab.measured(&frames(
            Adapter::Direct,
            traffic(Direction::Both, mix, ip),
            load(200),
        ));
        assert_all_came(&measured, 200, 1);
        assert!(passes(&measured, "clear-text-visible"));
        assert!(passes(&measured, "interfaces-agree"));
        assert!(measured.cpu.station_a_ns > 0, "{:?}", measured.cpu);
    }
}

fn frames_past_the_gateways() {
    let mut lab = TestLab::build();
    for direction in Direction::ALL {
        // The largest frames too: sealed, they are larger than the stations' own links carry.
        let mix = FrameMix::named("imix").unwrap();
        let traffic = traffic(direction, mix, IpVersion::V4);
        let measured = lab.measured(&frames(Adapter::STRAIGHT, traffic, load(200)));
        let result = assert_all_came(&measured, 200, 1);
        // In one direction only, each station does the DUT's part.
        let seals = direction != Direction::Both;
        assert_eq!(result.sender.engine.is_some(), seals);
        assert_eq!(result.receiver.engine.is_some(), seals);
        // There is no link between gateways to look at.
        assert_eq!(measured.evidence.watch, None);
    }
}

fn frames_through_boxes() {
    let mut lab = TestLab::build();
    for adapter in [
        Adapter::Router { nat: false },
        Adapter::Router { nat: true },
        Adapter::Bridge,
    ] {
        let measured = lab.measured(&frames(adapter, short(Direction::Both), load(200)));
        assert_all_came(&measured, 200, 1);
        assert!(passes(&measured, "clear-text-visible"));
    }
}

fn frames_through_the_encryptor_in_each_direction() {
    let mut lab = TestLab::build();
    let null = Adapter::Cipherbench(Encryptor {
        engine: "null".parse().unwrap(),
        ..Encryptor::new(Suite::Aes256Gcm)
    });
    for (adapter, is_null) in [(encrypting(), false), (null, true)] {
        for direction in Direction::ALL {
            let mix = FrameMix::named("imix").unwrap();
            let traffic = traffic(direction, mix, IpVersion::V4);
            let measured = lab.measured(&frames(adapter.clone(), traffic, load(200)));
            let result = assert_all_came(&measured, 200, 1);
            assert_eq!(
                result.sender.engine.is_some(),
                direction == Direction::Decrypt
            );
            assert_eq!(
                result.receiver.engine.is_some(),
                direction == Direction::Encrypt
            );
            let link = &measured.evidence.cipher_link;
            assert!(link.esp_frames > 0 && link.other_frames == 0, "{link:?}");
            assert_eq!(link.marker_frames > 0, is_null, "{link:?}");
            assert_nothing_was_lost_on_the_way(&measured);
            for check in ["no-clear-text", "no-foreign-frames", "dut-counters"] {
                assert!(passes(&measured, check), "{check}");
            }
            assert!(measured.cpu.dut_ns > Some(0), "{:?}", measured.cpu);
        }
    }
}

fn frames_both_ways_at_once() {
    let mut lab = TestLab::build();
    for adapter in [Adapter::Direct, encrypting()] {
        let duplex = Traffic {
            duplex: true,
            ..short(Direction::Both)
        };
        let measured = lab.measured(&frames(adapter, duplex, load(200)));
        let result = assert_all_came(&measured, 200, 2);
        for trial in &result.trials {
            let each = trial.directions.iter();
            let came: Vec<u64> = each.map(|own| own.received).collect();
            assert_eq!(came, [trial.received / 2; 2], "{trial:?}");
        }
    }
}

fn frames_by_each_kind_of_port() {
    let mut lab = TestLab::build();
    for kind in [PortKind::Xdp, PortKind::Packet, PortKind::Socket] {
        let traffic = Traffic {
            ports: Ports {
                tx: Some(kind),
                rx: Some(kind),
            },
            ..short(Direction::Both)
        };
        let measured = lab.measured(&frames(Adapter::Direct, traffic, load(200)));
        let result = assert_all_came(&measured, 200, 1);
        assert_eq!(
            (result.sender.kind, result.receiver.kind),
            (Some(kind), Some(kind))
        );
    }
}

fn a_load_that_no_generator_offers_is_cut_short() {
    let mut lab = TestLab::build();
    let procedure = Procedure::Load(Load {
        frames_per_s: Some(1_000_000_000),
        duration_ns: 200 * MS,
    });
    let since = Instant::now();
    let record = lab.record(&frames(
        Adapter::STRAIGHT,
        short(Direction::Both),
        procedure,
    ));
    // At a million frames/s it would have taken minutes.
    assert!(
        since.elapsed() < Duration::from_secs(30),
        "{:?}",
        since.elapsed()
    );
    let Outcome::Invalid { reasons, .. } = record.outcome else {
        panic!("{:#?}", record.outcome)
    };
    assert!(
        reasons
            .iter()
            .any(|reason| reason.starts_with("offered-as-intended")),
        "{reasons:?}"
    );
}

pub(crate) fn search(max_load: Option<u64>) -> ThroughputSearch {
    ThroughputSearch {
        profile: Profile::Fast,
        goals: vec![Goal {
            name: "ndr".to_owned(),
            criteria: Criteria {
                loss_ratio_ppm: 0,
                exceed_ratio_ppm: 500_000,
                initial_trial_ns: 50 * MS,
                final_trial_ns: 200 * MS,
                duration_sum_ns: 400 * MS,
                width_ppm: 50_000,
            },
        }],
        max_load,
        min_load: 100,
        drain_ns: 100 * MS,
        timeout_ns: 20_000 * MS,
    }
}

fn a_search_on_a_slow_line_reaches_its_rate() {
    let mut lab = TestLab::build();
    let procedure = Procedure::Throughput(search(None));
    let cell = frames(Adapter::Direct, short(Direction::Both), procedure);
    // A frame of 64 B takes 672 bits of the line.
    let mut links = links(&plan(&cell), &cell);
    links.rate_bps = Some(672 * FRAMES_PER_S);
    let measured = lab.measured_on(&cell, links);
    let found = measured.frames().unwrap().throughput.clone().unwrap();
    assert_eq!(
        (found.max_load, found.max_load_by.as_str()),
        (FRAMES_PER_S, "line-rate")
    );
    // What a busy machine holds up for a moment is lost in the shaper's queue, or not sent in time:
    // at times at every load.
    let Some(lower) = found.goals[0].lower else {
        let mut passed = measured.evidence.checks.iter().map(|check| &*check.name);
        assert!(!passed.any(|name| name == "machine-was-ours"), "{found:?}");
        busy::too_busy("no load was carried without loss".to_owned())
    };
    assert!(lower > FRAMES_PER_S / 4, "{found:?}");
}

fn recovery_when_nothing_is_lost_takes_no_time() {
    let mut lab = TestLab::build();
    let procedure = Procedure::Recovery(Recovery {
        search: search(Some(FRAMES_PER_S)),
        overload_percent: 110,
        relief_percent: 50,
        overload_ns: 200 * MS,
        relief_ns: 200 * MS,
    });
    let cell = frames(Adapter::Direct, short(Direction::Both), procedure);
    let result = lab.measured(&cell).frames().cloned().unwrap();
    let recovery = result.recovery().unwrap();
    let throughput = result.throughput.as_ref().unwrap().goals[0].lower.unwrap();
    assert_eq!(recovery.overload, throughput * 110 / 100);
    assert_eq!(recovery.relief, throughput / 2);
    assert_eq!((recovery.overload_lost, recovery.relief_lost), (0, 0));
    assert_eq!((recovery.recovery_ns, recovery.recovered), (0, true));
    // The two parts are one trial: that before the one with the evidence.
    let trial = &result.trials[result.evidence_trial.unwrap() - 1];
    let parts = [recovery.overload, recovery.relief].map(|load| load * 200 / 1000);
    assert_eq!(trial.intended, parts.iter().sum::<u64>());
}

fn a_dut_that_is_killed_under_frames() {
    let mut lab = TestLab::build();
    let gateway = lab.lab.station_pid(NodeId::Gw2);
    let killer = std::thread::spawn(move || kill_encryptor_below(gateway));
    let record = lab.record(&frames(encrypting(), short(Direction::Both), load(600_000)));
    killer.join().unwrap();
    let Outcome::Failed { reason } = record.outcome else {
        panic!("{:#?}", record.outcome)
    };
    assert!(reason.contains("SIGKILL"), "{reason}");
    // The lab is as good as new.
    lab.measured(&frames(encrypting(), short(Direction::Both), load(100)));
}

fn an_interrupt_under_frames_ends_the_trial_within_a_second() {
    let mut lab = TestLab::build();
    let cell = frames(Adapter::Direct, short(Direction::Both), load(60_000));
    let trial = Trial::of(&cell, 1, links(&plan(&cell), &cell));
    let interrupt: Interrupt = lab.interrupt.clone();
    let setter = std::thread::spawn(move || {
        // Whenever it comes, in a trial of a minute or before it.
        std::thread::sleep(Duration::from_millis(500));
        interrupt.set();
        Instant::now()
    });
    let result = measure(&mut lab.lab, &trial, &lab.interrupt);
    // From the interrupt and not from the trial's beginning.
    let took = setter.join().unwrap().elapsed();
    assert!(matches!(result, Err(LabError::Interrupted)), "{result:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
}
