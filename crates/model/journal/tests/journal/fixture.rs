//! A small plan and records that fit it.

use impair::{Distribution, Impairment, Jitter, Loss, Queue, Rate, Reorder};
use journal::Record;
use journal::record::*;
use plan::{
    Adapter, Bound, Capture, CapturePoint, Cell, Claim, ClaimUnit, Coordinate, Dut, Encryptor,
    Expectation, Expectations, Keep, LabPlan, Measurement, Order, Plan, Published, PublishedUnit,
    RateBasis, RateDirection, RateKind, RateLayer, ReadingKind, Stations, StoredFigure, StoredRun,
    Tool, TransferDirection,
};
use wire::Suite;

/// Two cells, direct and cipherbench, three repeats.
pub(crate) fn header() -> Header {
    Header {
        format: FORMAT_VERSION,
        started_unix_ns: 1_795_174_200_000_000_000,
        command: vec!["cipherbench".into(), "run".into()],
        program: "0.1.0 (a1b2c3d4)".into(),
        environment: Environment {
            cpus: 2,
            kernel: "Linux 6.18".into(),
            ..Environment::default()
        },
        plan: Plan {
            name: "quick".into(),
            title: "A quick look".into(),
            lab: LabPlan::named("quick"),
            repeats: 3,
            order: Order::Random { seed: Some(7) },
            cells: vec![
                cell(0, "direct", Adapter::Direct),
                cell(
                    1,
                    "cipherbench",
                    Adapter::Cipherbench(Encryptor::new(Suite::Aes256Gcm)),
                ),
            ],
            claims: vec![Claim {
                dut: "cipherbench".into(),
                trial: "tcp".into(),
                bound: Bound::AtLeast,
                value: 10_000_000_000,
                unit: ClaimUnit::PayloadBps,
                goal: None,
                load_percent: None,
                percentile: None,
                source: "data sheet X, 2025".into(),
                conditions: String::new(),
                cells: vec![cell_id(1)],
            }],
            published: vec![Published {
                source: "a report, 2018".into(),
                system: "host one".into(),
                what: "TCP, MTU 1500".into(),
                value: 282_000_000,
                unit: PublishedUnit::BitsPerS,
                counts: Some(RateBasis {
                    kind: RateKind::Goodput,
                    layer: RateLayer::Payload,
                    direction: RateDirection::OneWay,
                }),
                at: None,
                cells: vec![cell_id(0), cell_id(1)],
            }],
            expect: Expectations::default(),
            reports: Vec::new(),
            capture: None,
        },
    }
}

/// Id of the cell with that number.
pub(crate) fn cell_id(number: usize) -> String {
    format!("tcp/mtu=1500/cores=1/dut-{number}")
}

fn cell(number: usize, dut: &str, adapter: Adapter) -> Cell {
    Cell {
        id: cell_id(number),
        group: "tcp/mtu=1500/cores=1".into(),
        coordinates: Coordinate::all_in("tcp/mtu=1500/cores=1"),
        dut: Dut::new(dut, adapter),
        stations: Some(Stations {
            mtu: 1500,
            cores: 1,
            offloads: true,
            overlay: plan::Overlay::None,
            dscp: None,
        }),
        measurement: Measurement::Tcp {
            tool: Tool::default(),
            direction: TransferDirection::AToB,
            congestion: None,
            streams: 4,
            window_bytes: None,
            duration_ns: 2_000_000_000,
            warmup_ns: 0,
        },
        impair: None,
        tune: false,
        estimate_ns: 3_000_000_000,
        calibration: false,
    }
}

/// A trial that failed, with `reason` as its text.
pub(crate) fn failed(cell: usize, repeat: u32, reason: &str) -> Record {
    trial(
        cell,
        repeat,
        Outcome::Failed {
            reason: reason.into(),
        },
    )
}

/// A trial that was measured.
pub(crate) fn measured(cell: usize, repeat: u32) -> Record {
    trial(cell, repeat, Outcome::Measured(Box::default()))
}

pub(crate) fn trial(cell: usize, repeat: u32, outcome: Outcome) -> Record {
    Record::Trial(Box::new(TrialRecord {
        cell: cell_id(cell),
        repeat,
        started_unix_ns: 1,
        duration_ns: 2,
        clock_step_ns: 0,
        commands: vec![vec!["iperf3".into(), "-c".into(), "10.3.0.2".into()]],
        outcome,
    }))
}

/// What a campaign captures.
pub(crate) fn capture() -> Capture {
    Capture {
        at: vec![CapturePoint::Cipher],
        keep: Keep::Sampled { one_in: 2 },
        bytes_max: 1,
        snap_bytes: 1,
        secrets: true,
        evidence: true,
    }
}

/// A capture with every key.
pub(crate) fn captured() -> Captured {
    let length = LengthCount {
        upto_bytes: 79,
        frames: 1,
    };
    Captured {
        at: CapturePoint::Cipher,
        interface: "gw1/w0".into(),
        file: Some("captures/x.pcapng".into()),
        secrets: Some("captures/x.esp_sa".into()),
        problem: Some("x".into()),
        contents: CaptureContents {
            protocols: vec![ProtocolCount {
                path: "eth".into(),
                frames: 1,
                bytes: 60,
            }],
            lengths: vec![length],
            commonest: vec![length],
            ..CaptureContents::default()
        },
    }
}

/// Readings at an interval with every key.
pub(crate) fn monitored() -> Monitored {
    Monitored {
        windows: vec![TrafficWindow::default()],
        devices: vec![MonitoredDevice {
            series: vec![Series {
                name: "cpu".into(),
                kind: ReadingKind::Cpu,
                unit: "%".into(),
                point_ns: 1,
                points: vec![SeriesPoint::default()],
                gaps: vec![SeriesGap::default()],
                missed: 1,
                loads: vec![LoadReading::default()],
            }],
            ..MonitoredDevice::default()
        }],
    }
}

/// Trials by tools, with every key.
pub(crate) fn tool_tests() -> [Measurement; 2] {
    [
        Measurement::Udp {
            tool: Tool::default(),
            direction: TransferDirection::Duplex,
            datagram_bytes: Some(64),
            rate_bps: Some(1),
            streams: 1,
            duration_ns: 1,
            warmup_ns: 0,
        },
        Measurement::Ping {
            count: 1,
            interval_ns: 1,
            payload_bytes: 56,
            loaded: true,
            route: true,
            load_dscp: Vec::new(),
        },
    ]
}

/// A profile with every key.
pub(crate) fn impaired() -> impair::Profile {
    let direction = |loss, queue| Impairment {
        delay_ns: 1,
        jitter: Some(Jitter {
            time_ns: 1,
            distribution: Distribution::Pareto,
        }),
        loss: Some(loss),
        reorder: Some(Reorder { ppm: 1, by_ns: 1 }),
        duplicate_ppm: 1,
        corrupt_ppm: 1,
        rate: Some(Rate { bps: 1, queue }),
    };
    let bursts = Loss::Bursts {
        to_bad_ppm: 1,
        to_good_ppm: 1,
        bad_ppm: 1,
        good_ppm: 1,
    };
    impair::Profile {
        a_to_b: direction(Loss::Random { ppm: 1 }, Queue::TimeNs(1)),
        b_to_a: direction(bursts, Queue::Bytes(1)),
        ..impair::Profile::none()
    }
}

/// A loss on the cipher link.
pub(crate) fn lost() -> LostAt {
    let count = |packets| PathCount {
        at: "x".into(),
        packets,
    };
    LostAt {
        places: vec![PathPlace::CipherLink],
        before: count(1),
        behind: count(0),
        dropped: 0,
    }
}

/// A limit relative to a stored run.
pub(crate) fn expect() -> Expectations {
    let figure = StoredFigure {
        cell: "x".into(),
        quantity: "latency_p50_ns".into(),
        load_percent: Some(50),
        round_trip: Some(true),
        values: vec![1],
        upper: vec![1],
        is_open: true,
    };
    let stored = StoredRun {
        folder: "x".into(),
        started_unix_ns: 1,
        program: "x".into(),
        machine: "x".into(),
        figures: vec![figure],
        // Its keys are ids, not words of the format.
        without: [("cell".to_owned(), "x".to_owned())].into(),
    };
    Expectations {
        limits: vec![Expectation {
            limit: "x".into(),
            stored: Some(stored),
        }],
        until_decided_ns: Some(1),
        ..Expectations::default()
    }
}

/// A round of further repeats.
pub(crate) fn added() -> Record {
    Record::Added(Added {
        at_unix_ns: 1,
        repeats: 4,
        cells: vec!["x".into()],
    })
}

pub(crate) fn segment() -> SoakSegment {
    SoakSegment {
        points: vec![SoakPoint {
            device: Some(DevicePoint::default()),
            ..SoakPoint::default()
        }],
        probes: vec![SoakProbe::default()],
        ..SoakSegment::default()
    }
}
