//! Small journals, made cell by cell.

use journal::record::*;
use journal::{Journal, Record};
use plan::{
    Adapter, Cell, Coordinate, Dut, Encryptor, LabPlan, Measurement, Plan, Stations, Tool,
    TransferDirection,
};
use wire::Suite;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// A run of those cells on a machine with that many cores, at its end.
pub(crate) fn journal(cells: Vec<Cell>, repeats: u32, cpus: u32) -> Journal {
    let lab = LabPlan::named("test");
    let mut journal = Journal::new(Header {
        format: FORMAT_VERSION,
        started_unix_ns: 0,
        command: vec![],
        program: "0.1.0".into(),
        environment: Environment {
            cpus,
            ..Environment::default()
        },
        plan: Plan {
            name: "test".into(),
            title: String::new(),
            lab,
            repeats,
            cells,
            order: plan::Order::File,
            claims: Vec::new(),
            published: Vec::new(),
            capture: None,
            expect: plan::Expectations::default(),
            reports: Vec::new(),
        },
    });
    journal.end = Some(End { at_unix_ns: 1 });
    journal
}

/// A cell of the group `tcp`, `udp/…` or `ping`, without offloads.
fn cell(group: &str, dut: &str, measurement: Measurement) -> Cell {
    let adapter = match dut {
        "direct" => Adapter::Direct,
        _ => Adapter::Cipherbench(Encryptor::new(Suite::Aes256Gcm)),
    };
    Cell {
        id: format!("{group}/{dut}"),
        group: group.into(),
        coordinates: Coordinate::all_in(group),
        dut: Dut::new(dut, adapter),
        stations: Some(Stations {
            mtu: 1500,
            cores: 1,
            offloads: false,
            overlay: plan::Overlay::None,
            dscp: None,
        }),
        measurement,
        impair: None,
        tune: false,
        estimate_ns: 0,
        calibration: false,
    }
}

pub(crate) fn tcp(dut: &str) -> Cell {
    let measurement = Measurement::Tcp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        congestion: None,
        streams: 4,
        window_bytes: None,
        duration_ns: 2 * SECOND_NS,
        warmup_ns: 0,
    };
    cell("tcp", dut, measurement)
}

pub(crate) fn udp(datagram_bytes: u32, rate_bps: Option<u64>) -> Cell {
    let measurement = Measurement::Udp {
        tool: Tool::default(),
        direction: TransferDirection::AToB,
        datagram_bytes: Some(datagram_bytes),
        rate_bps,
        streams: 1,
        duration_ns: 2 * SECOND_NS,
        warmup_ns: 0,
    };
    cell(&format!("udp/{datagram_bytes}"), "direct", measurement)
}

pub(crate) fn ping(dut: &str) -> Cell {
    cell(
        "ping",
        dut,
        Measurement::Ping {
            count: 4,
            interval_ns: 1_000_000,
            payload_bytes: 56,
            loaded: false,
            route: false,
            load_dscp: Vec::new(),
        },
    )
}

/// Records a trial of the cell with that id.
pub(crate) fn record(journal: &mut Journal, cell: &str, repeat: u32, outcome: Outcome) {
    let end = journal.end.clone();
    let trial = TrialRecord {
        cell: cell.into(),
        repeat,
        started_unix_ns: 0,
        duration_ns: 0,
        clock_step_ns: 0,
        commands: vec![],
        outcome,
    };
    journal.accept(Record::Trial(Box::new(trial))).unwrap();
    journal.end = end;
}

pub(crate) fn measured(measured: Measured) -> Outcome {
    Outcome::Measured(Box::new(measured))
}

/// Two seconds in which that many megabytes were received, with one busy core of which the DUT had
/// half.
pub(crate) fn transfer(megabytes: u64) -> Measured {
    Measured {
        figures: Figures::Transfer(Transfer {
            duration_ns: 2 * SECOND_NS,
            sent_bytes: megabytes * 1_000_000,
            received_bytes: megabytes * 1_000_000,
            ..Transfer::default()
        }),
        cpu: Cpu {
            wall_ns: 4 * SECOND_NS,
            stations_ns: SECOND_NS,
            station_a_ns: SECOND_NS,
            dut_ns: Some(2 * SECOND_NS),
            kernel_ns: SECOND_NS,
            busy_ns: 4 * SECOND_NS,
            ..Cpu::default()
        },
        ..Measured::default()
    }
}

/// Two seconds of datagrams.
pub(crate) fn datagrams(bytes: u64, sent: u64, lost: u64) -> Measured {
    let mut measured = transfer(0);
    measured.figures = Figures::Transfer(Transfer {
        duration_ns: 2 * SECOND_NS,
        sent_bytes: sent * bytes,
        received_bytes: (sent - lost) * bytes,
        datagrams: Some(Datagrams {
            sent,
            lost,
            ..Datagrams::default()
        }),
        ..Transfer::default()
    });
    measured
}

/// Round trips in microseconds, and requests that were lost.
pub(crate) fn round_trips(lost: u64, times_us: &[u64]) -> Measured {
    let received = times_us.len() as u64;
    let round_trips_ns = times_us.iter().map(|time| time * 1_000).collect();
    Measured {
        figures: Figures::Latency(Latency {
            sent: received + lost,
            received,
            round_trips_ns,
            ..Latency::default()
        }),
        cpu: Cpu {
            wall_ns: 1,
            ..Cpu::default()
        },
        ..Measured::default()
    }
}
