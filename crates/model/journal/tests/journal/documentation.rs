//! `docs/journal.md` names every key that a journal can hold.

use crate::fixture::{
    added, capture, captured, expect, header, impaired, lost, monitored, segment, tool_tests, trial,
};
use journal::record::*;
use journal::{FILE_NAME, Record, Writer};
use plan::{
    Adapter, BackToBack, BaseLoad, Criteria, Desync, Device, DeviceFault, DeviceKind, DeviceModel,
    DeviceTest, Devices, Direction, Disturbed, DriftBounds, Event, Fatigue, FrameTest, Goal,
    IpVersion, Kat, LatencyPath, LatencyTest, Load, LossCurve, Measurement, Mrr, Ports, Procedure,
    Profile, Recovery, ServiceStep, ServiceTest, Soak, ThroughputSearch, Traffic, Workers,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use wire::mix::{Contents, FrameMix, TestFrames};

/// Maps whose keys are names of things, not of fields.
const MAPS: [&str; 8] = [
    "sysctls",
    "tools",
    "engines",
    "interfaces",
    "drivers",
    "offloads",
    "dut_counters",
    "dut_facts",
];

/// Keys whose values are words of the format.
const KINDS: [&str; 7] = [
    "kind",
    "record",
    "procedure",
    "profile",
    "direction",
    "bound",
    "unit",
];

/// Readings with every key.
fn readings() -> TrialReadings {
    TrialReadings {
        cipher: Some(LinkTraffic::default()),
        watch: Some(CipherWatch {
            interrupted: true,
            ..CipherWatch::default()
        }),
        dut: Some(DutWork {
            lost_between_packets: Some(1),
            taken_in_bytes: Some(1),
            put_out_bytes: Some(1),
            unaccounted_packets: 0,
        }),
        dut_packets: [("gateway/counter".to_owned(), 1)].into(),
        links: [("node/interface".to_owned(), EndTraffic::default())].into(),
        machine: MachineTime {
            steal_ns: 0,
            foreign_ns: Some(1),
            pressure_ns: Some(1),
        },
        machine_b: Some(MachineTime::default()),
        clocks: Some(ClockAgreement::default()),
        ..TrialReadings::default()
    }
}

/// One record of every kind, with every key.
fn records() -> Vec<Record> {
    let mut header = header();
    let measurements = tool_tests().into_iter().chain(frame_tests());
    for measurement in measurements.chain(device_tests()) {
        let mut cell = header.plan.cells[0].clone();
        cell.measurement = measurement;
        header.plan.cells.push(cell);
    }
    header.plan.capture = Some(capture());
    header.plan.expect = expect();
    header.plan.cells[0].impair = Some(impaired());
    let mut cell = header.plan.cells[0].clone();
    cell.dut.adapter = devices();
    header.plan.cells.push(cell);
    let parameters = ToolParameters {
        streams: Some(1),
        ..ToolParameters::default()
    };
    let evidence = Evidence {
        checks: vec![Check::new("x", Explanation::default(), "x")],
        cipher_link: CipherLink {
            contents: Some(SealedContents::default()),
            dscp: [("ef".to_owned(), 1)].into(),
            ..CipherLink::default()
        },
        received_dscp: [("ef".to_owned(), 1)].into(),
        watch: Some(CipherWatch::default()),
        interfaces: [("x".to_owned(), InterfaceCounters::default())].into(),
        drivers: [("x".to_owned(), [("packets".to_owned(), 1)].into())].into(),
        settings: Some(PathSettings {
            changes: vec![SettingChange::default()],
            neighbour_frames: [("a".to_owned(), 1)].into(),
            ..PathSettings::default()
        }),
        impaired: Some(Impaired::default()),
        lost_at: vec![lost()],
        taken_by: vec![TakenBy::default()],
        ..Evidence::default()
    };
    let measured = |figures: Figures| Measured {
        figures,
        evidence: evidence.clone(),
        cpu: Cpu {
            idle_ns: Some(1),
            counted: Some(CpuCounts::default()),
            ..Cpu::default()
        },
        monitored: monitored(),
        captures: vec![captured()],
    };
    let transfer = Transfer {
        datagrams: Some(Datagrams {
            drain: Some(Drain::default()),
            ..Datagrams::default()
        }),
        intervals: vec![Interval {
            start_ns: 0,
            end_ns: 1,
            bytes: 2,
        }],
        ..Transfer::default()
    };
    let mut figures = vec![
        Figures::Transfer(transfer),
        Figures::Latency(Latency::default()),
    ];
    figures.extend(frames().map(|found| Figures::Frames(Box::new(found))));
    figures.extend(device().map(|found| Figures::Device(Box::new(found))));
    let attempt = TuneAttempt {
        parameters: parameters.clone(),
        payload_bps: 1,
        lost_ppm: None,
        error: None,
    };
    let (at_unix_ns, program) = (1, String::new());
    let environment = header.environment.clone();
    let trials = figures.into_iter().map(|figures| {
        let outcome = Outcome::Measured(Box::new(measured(figures)));
        let mut record = trial(0, 1, outcome);
        if let Record::Trial(trial) = &mut record {
            trial.clock_step_ns = 1;
        }
        record
    });
    let others = [
        Record::Header(Box::new(header)),
        Record::Resumed(Box::new(Resumed {
            at_unix_ns,
            program,
            environment,
        })),
        added(),
        Record::Tuned(Tuned {
            cell: "x".into(),
            best: parameters,
            attempts: vec![attempt],
        }),
        Record::Soaked(Box::new(SoakProgress {
            cell: "x".into(),
            repeat: 1,
            load: 1,
            throughput: Some(SearchRecord::default()),
            trial: FrameTrial::default(),
            segment: segment(),
        })),
        Record::Fatigued(Box::new(FatigueProgress {
            cell: "x".into(),
            repeat: 1,
            devices: vec![DeviceFacts::default()],
            segment: fatigue(),
        })),
        trial(
            0,
            2,
            Outcome::Invalid {
                reasons: vec![],
                measured: Box::new(measured(Figures::None)),
            },
        ),
        trial(
            0,
            3,
            Outcome::Failed {
                reason: String::new(),
            },
        ),
        Record::End(End { at_unix_ns }),
    ];
    others.into_iter().chain(trials).collect()
}

/// A frame test by every procedure.
fn frame_tests() -> impl Iterator<Item = Measurement> {
    let goal = Goal {
        name: "ndr".into(),
        criteria: Criteria {
            loss_ratio_ppm: 0,
            exceed_ratio_ppm: 0,
            initial_trial_ns: 1,
            final_trial_ns: 1,
            duration_sum_ns: 1,
            width_ppm: 1,
        },
    };
    let search = ThroughputSearch {
        profile: Profile::Fast,
        goals: vec![goal],
        max_load: None,
        min_load: 1,
        drain_ns: 1,
        timeout_ns: 1,
    };
    let procedures = [
        Procedure::Load(Load {
            frames_per_s: None,
            duration_ns: 1,
        }),
        Procedure::Throughput(search.clone()),
        Procedure::LossCurve(LossCurve {
            max_load: None,
            step_percent: 10,
            trial_ns: 1,
            drain_ns: 1,
        }),
        Procedure::BackToBack(BackToBack {
            burst_ns_max: 1,
            bursts: 1,
            drain_ns: 1,
        }),
        Procedure::Service(ServiceTest {
            cir: 1,
            eir: 1,
            loss_ppm: 0,
            delay_ns: Some(1),
            variation_ns: Some(1),
            policing: true,
            step_ns: 1,
            drain_ns: 1,
        }),
        Procedure::Mrr(Mrr {
            max_load: None,
            trials: 1,
            trial_ns: 1,
            drain_ns: 1,
        }),
        Procedure::Latency(LatencyTest {
            search: search.clone(),
            percents: vec![50],
            trial_ns: 1,
            trials: 2,
            path: LatencyPath::RoundTrip,
        }),
        Procedure::Recovery(Recovery {
            search: search.clone(),
            overload_percent: 110,
            relief_percent: 50,
            overload_ns: 1,
            relief_ns: 1,
        }),
        disturbed(Event::Rekey {
            every_ns: 1,
            duration_ns: 2,
            throughput: true,
        }),
        disturbed(Event::Desync {
            cause: Desync::WrongKeys,
            times: 1,
            watch_ns: 1,
        }),
        Procedure::Soak(Soak {
            load: BaseLoad::Share {
                percent: 90,
                search,
            },
            duration_ns: 1,
            point_ns: 1,
            segment_ns: 1,
            probe_ns: Some(1),
            loss_ppm: 0,
            drift: DriftBounds {
                rate_ppm: 1,
                latency_ppm: 1,
                memory_ppm: 1,
                cpu_ppm: Some(1),
                capacity_ppm: Some(1),
            },
        }),
    ];
    procedures.into_iter().map(|procedure| {
        let traffic = Traffic {
            frames: TestFrames {
                mix: FrameMix::fixed(64),
                flows: 1,
                tunnels: 1,
                contents: Contents::Random,
            },
            ip: IpVersion::V4,
            direction: Direction::Both,
            duplex: false,
            ports: Ports::default(),
        };
        Measurement::Frames(FrameTest { traffic, procedure })
    })
}

fn disturbed(event: Event) -> Procedure {
    let load = BaseLoad::Given { frames_per_s: 1 };
    Procedure::Disturbed(Disturbed { load, event })
}

/// Results of frame tests, with the findings of every procedure.
fn frames() -> impl Iterator<Item = FrameResult> {
    let disturbed = DisturbedTrials {
        disturbances: vec![Disturbance {
            events: vec![DutEvent {
                slowest_ns: Some(1),
                reset: Some(ResetRecord::default()),
                ..DutEvent::default()
            }],
            dut_counters: [("x".to_owned(), 1)].into(),
            ..Disturbance::default()
        }],
        rekeyed_throughput: Some(SearchRecord::default()),
    };
    let found = [
        ProcedureRecord::Bursts(vec![BurstTrial::default()]),
        ProcedureRecord::Recovery(RecoveryTrial::default()),
        ProcedureRecord::Disturbed(disturbed),
        ProcedureRecord::Soak(vec![segment()]),
        ProcedureRecord::Service(vec![ServiceTrial {
            step: ServiceStep::Cir(25),
            trial: 0,
            latency: LatencyTrial::default(),
        }]),
    ];
    found.into_iter().map(|found| FrameResult {
        trials: vec![FrameTrial {
            reserve: Some(Reserve::default()),
            directions: vec![FrameTrial::default()],
            readings: Some(Box::new(readings())),
            ..FrameTrial::default()
        }],
        throughput: Some(SearchRecord {
            goals: vec![GoalBounds::default()],
            ..SearchRecord::default()
        }),
        latency: vec![LatencyTrial {
            histogram: vec![LatencyBucket::default()],
            directions: vec![vec![LatencyBucket::default()]],
            variation: vec![DelayVariation {
                ipdv: Some(Ipdv::default()),
                ..DelayVariation::default()
            }],
            round_trip: Some(Reflection::default()),
            ..LatencyTrial::default()
        }],
        found,
        ..FrameResult::default()
    })
}

/// A device of every kind.
fn devices() -> Adapter {
    let model = DeviceModel {
        latency_ns: 1,
        rate_bps: 1,
        operation_ns: 1,
        parallel: 1,
        queue: 1,
        errors_ppm: 1,
        fault: DeviceFault::Stops,
    };
    let kinds = [
        DeviceKind::Engine { kernel: None },
        DeviceKind::OpenSsl {
            provider: None,
            engine: None,
            module: None,
        },
        DeviceKind::Pkcs11 {
            module: "x".into(),
            slot: None,
            token: None,
            pin_file: "x".into(),
        },
        DeviceKind::SoftHsm,
        DeviceKind::Model(model),
    ];
    let members = kinds.map(|kind| Device {
        name: "x".into(),
        kind,
    });
    Adapter::Device(Devices {
        members: members.into(),
        offloads: true,
    })
}

/// Every trial of crypto devices.
fn device_tests() -> impl Iterator<Item = Measurement> {
    let tests = [
        DeviceTest::Kat(Kat {
            algorithms: vec!["md5".into()],
        }),
        DeviceTest::Speed(plan::DeviceSpeed {
            operation: "md5".into(),
            bytes: Some(1),
            concurrency: 1,
            workers: Workers::Threads,
            depth: 1,
            duration_ns: 1,
            slices: 1,
        }),
        DeviceTest::Fatigue(Fatigue {
            operations: vec!["md5".into()],
            threads: 1,
            loops: None,
            duration_ns: None,
            invalid_every: 1,
            restart: true,
            snapshot_ns: 1,
        }),
    ];
    tests.into_iter().map(Measurement::Device)
}

/// Results of devices, with the findings of every kind of trial.
fn device() -> impl Iterator<Item = DeviceResult> {
    let wrong = KatOutcome::Wrong {
        input: "x".into(),
        first_differing: Some(1),
        detail: "x".into(),
    };
    let outcomes = [
        wrong,
        KatOutcome::Error("x".into()),
        KatOutcome::NotOffered("x".into()),
        KatOutcome::NonePublished,
    ];
    let rows = outcomes.map(|outcome| KatRow {
        device: 0,
        algorithm: "md5".into(),
        case: "x".into(),
        tried: 1,
        outcome,
    });
    let speed = SpeedTrial {
        devices: vec![DeviceSpeed {
            device_operations: Some(1),
            checked_measured: Some(1),
            power_ppm: Some(1),
            invalid: Some(1),
            accepted: Some(1),
            acceptance_power_ppm: Some(1),
            ..DeviceSpeed::default()
        }],
        reference: Some(CpuReference::default()),
        proof: Some(Proof::EqualsCpu),
        ..SpeedTrial::default()
    };
    let found = [
        DeviceRecord::NotOffered("x".into()),
        DeviceRecord::Kat(rows.into()),
        DeviceRecord::Speed(speed),
        DeviceRecord::Fatigue(vec![fatigue()]),
    ];
    found.into_iter().map(|found| DeviceResult {
        devices: vec![DeviceFacts::default()],
        found,
    })
}

fn fatigue() -> FatigueSegment {
    FatigueSegment {
        devices: vec![DeviceFatigue {
            rounds: Some(1),
            lives: vec![Life {
                began_ns: 0,
                ended_ns: 1,
                failed: true,
            }],
            points: vec![FatiguePoint {
                at_ns: 0,
                right: 1,
                bad: 0,
            }],
            ..DeviceFatigue::default()
        }],
        ..FatigueSegment::default()
    }
}

/// Keys of objects, and the names of kinds.
fn collect(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, words)),
        Value::Object(fields) => {
            for (key, value) in fields {
                words.insert(key.clone());
                match value {
                    Value::String(kind) if KINDS.contains(&key.as_str()) => {
                        words.insert(kind.clone());
                    }
                    Value::Object(named) if MAPS.contains(&key.as_str()) => {
                        named.values().for_each(|value| collect(value, words));
                    }
                    other => collect(other, words),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn every_key_and_kind_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/journal.md");
    let text = fs::read_to_string(path).unwrap();
    let mut words = BTreeSet::new();
    for record in records() {
        collect(&serde_json::to_value(record).unwrap(), &mut words);
    }
    assert!(words.len() > 230, "only {} keys were found", words.len());
    let missing: Vec<_> = words
        .iter()
        .filter(|word| !text.contains(&format!("`{word}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/journal.md does not name {missing:?}"
    );
}

#[test]
fn the_documentation_names_the_version() {
    let text = include_str!("../../../../../docs/journal.md");
    assert!(text.contains(&format!("The header's `format` is {FORMAT_VERSION}.")));
}

/// The documented way to check a journal by hand agrees with the reader.
#[test]
fn the_documented_check_by_hand_works() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED the_documented_check_by_hand_works: there is no python3");
        return;
    }
    let text = include_str!("../../../../../docs/journal.md");
    let begin = text.find("python3 - journal.jsonl").unwrap();
    let script = &text[begin..begin + text[begin..].find("```").unwrap()];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let mut writer = Writer::create(dir.path(), &header()).unwrap();
    writer.append(&crate::fixture::failed(0, 1, "é")).unwrap();
    writer.append(&crate::fixture::measured(1, 1)).unwrap();
    let check = || {
        let mut shell = Command::new("sh");
        let output = shell
            .args(["-c", script])
            .current_dir(dir.path())
            .output()
            .unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.success(), text)
    };
    assert_eq!(check(), (true, "all 3 lines fit\n".into()));
    let good = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        good.replace(
            "\"repeat\":1,\"started_unix_ns\":1,",
            "\"repeat\":1,\"started_unix_ns\":2,",
        ),
    )
    .unwrap();
    assert_eq!(check(), (false, "line 2 does not fit\n".into()));
    fs::write(&path, good.replace("\"}\n", "\" }\n")).unwrap();
    assert_eq!(
        check(),
        (false, "line 1 does not end in a checksum\n".into())
    );
}
