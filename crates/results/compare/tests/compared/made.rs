//! Made-up runs of known truth: TCP cells whose repeats scatter by a known amount.

use journal::record::*;
use journal::{Journal, Record};
use plan::{
    Adapter, Axis, Cell, Coordinate, Dut, Encryptor, LabPlan, Measurement, Order, Plan, Stations,
    Tool, TransferDirection, Value,
};
use wire::Suite;

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// What is simulated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Truth {
    pub(crate) cells: usize,
    pub(crate) repeats: u32,
    /// Standard deviation of the logarithm of a repeat.
    pub(crate) scatter: f64,
    /// Throughput of the last cell by that of the others.
    pub(crate) last: f64,
}

/// Reproducible noise (SplitMix64, Steele, Lea and Flood 2014; Box and Muller).
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

/// A run of this truth, which begins at that second.
pub(crate) fn run(truth: Truth, second: u64, noise: &mut Noise) -> Journal {
    let names = (0..truth.cells).map(|place| cell(&format!("tcp/streams={}", place + 1), "x"));
    let mut journal = journal(names.collect(), truth.repeats, second);
    for repeat in 1..=truth.repeats {
        for place in 0..truth.cells {
            let level = if place + 1 == truth.cells {
                truth.last
            } else {
                1.0
            };
            let bytes = 1e9 * level * (truth.scatter * noise.normal()).exp();
            let id = journal.header.plan.cells[place].id.clone();
            let made = trial(&journal, &id, repeat, measured(bytes as u64));
            journal.trials.push(made);
        }
    }
    journal
}

/// A complete run of these cells without trials.
pub(crate) fn journal(cells: Vec<Cell>, repeats: u32, second: u64) -> Journal {
    let lab = LabPlan::named("test");
    let started_unix_ns = second * SECOND_NS;
    let mut journal = Journal::new(Header {
        format: FORMAT_VERSION,
        started_unix_ns,
        command: vec![],
        program: "0.1.0".into(),
        environment: Environment::default(),
        plan: Plan {
            name: "test".into(),
            title: String::new(),
            lab,
            repeats,
            cells,
            order: Order::File,
            claims: Vec::new(),
            published: Vec::new(),
            expect: plan::Expectations::default(),
            reports: Vec::new(),
            capture: None,
        },
    });
    journal.end = Some(End {
        at_unix_ns: started_unix_ns + 1,
    });
    journal
}

/// A TCP cell with the MTU and the streams that its group names, or 1500 B and 4.
pub(crate) fn cell(group: &str, dut: &str) -> Cell {
    let coordinates = Coordinate::all_in(group);
    let number = |axis, usual| {
        let at = coordinates.iter().find(|at| at.axis == axis);
        match at.map(|at| &at.value) {
            Some(Value::Number(number)) => *number,
            _ => usual,
        }
    };
    let (mtu, streams) = (number(Axis::Mtu, 1500), number(Axis::Streams, 4));
    Cell {
        id: format!("{group}/{dut}"),
        group: group.into(),
        coordinates,
        dut: Dut::new(dut, Adapter::Cipherbench(Encryptor::new(Suite::Aes256Gcm))),
        stations: Some(Stations {
            mtu: mtu as u16,
            cores: 1,
            offloads: false,
            overlay: plan::Overlay::None,
            dscp: None,
        }),
        measurement: Measurement::Tcp {
            tool: Tool::default(),
            direction: TransferDirection::AToB,
            congestion: None,
            streams: streams as u16,
            window_bytes: None,
            duration_ns: 2 * SECOND_NS,
            warmup_ns: 0,
        },
        impair: None,
        tune: false,
        estimate_ns: 0,
        calibration: false,
    }
}

/// Two seconds in which that many bytes were received. Without CPU time: the throughput is the only
/// quantity.
pub(crate) fn measured(bytes: u64) -> Outcome {
    Outcome::Measured(Box::new(Measured {
        figures: Figures::Transfer(Transfer {
            duration_ns: 2 * SECOND_NS,
            sent_bytes: bytes,
            received_bytes: bytes,
            ..Transfer::default()
        }),
        ..Measured::default()
    }))
}

pub(crate) fn record(journal: &mut Journal, cell: &str, repeat: u32, outcome: Outcome) {
    let end = journal.end.clone();
    let trial = trial(journal, cell, repeat, outcome);
    journal.accept(Record::Trial(Box::new(trial))).unwrap();
    journal.end = end;
}

fn trial(journal: &Journal, cell: &str, repeat: u32, outcome: Outcome) -> TrialRecord {
    TrialRecord {
        cell: cell.into(),
        repeat,
        started_unix_ns: journal.header.started_unix_ns,
        duration_ns: 0,
        clock_step_ns: 0,
        commands: vec![],
        outcome,
    }
}
