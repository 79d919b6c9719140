//! Small journals of frame tests.

use crate::fixture::{SECOND_NS, journal, measured, record};
use journal::Journal;
use journal::record::*;
use plan::*;
use stats::{CellResult, Limit, Results, WarningKind};
use wire::Suite;
use wire::mix::{Contents, FrameMix, TestFrames};

pub(crate) fn search() -> ThroughputSearch {
    ThroughputSearch {
        profile: Profile::Fast,
        goals: vec![Goal {
            name: "ndr".into(),
            criteria: Criteria {
                loss_ratio_ppm: 0,
                exceed_ratio_ppm: 500_000,
                initial_trial_ns: SECOND_NS,
                final_trial_ns: SECOND_NS,
                duration_sum_ns: SECOND_NS,
                width_ppm: 5_000,
            },
        }],
        max_load: None,
        min_load: 1_000,
        drain_ns: 0,
        timeout_ns: 60 * SECOND_NS,
    }
}

pub(crate) fn cell(dut: &str, size: u16, procedure: Procedure) -> Cell {
    let adapter = match dut {
        "straight" => Adapter::STRAIGHT,
        "router" => Adapter::Router { nat: false },
        engine => Adapter::Cipherbench(Encryptor {
            engine: engine.parse().unwrap(),
            ..Encryptor::new(Suite::Aes256Gcm)
        }),
    };
    let group = format!("{}/frame={size}/direction=both", procedure.kind().name());
    Cell {
        id: format!("{group}/{dut}"),
        calibration: dut == "straight",
        coordinates: Coordinate::all_in(&group),
        group,
        dut: Dut::new(dut, adapter),
        stations: Some(Stations {
            mtu: 1500,
            cores: 1,
            offloads: false,
            overlay: Overlay::None,
            dscp: None,
        }),
        measurement: Measurement::Frames(FrameTest {
            traffic: Traffic {
                frames: TestFrames {
                    mix: FrameMix::fixed(size),
                    flows: 1,
                    tunnels: 1,
                    contents: Contents::Fixed,
                },
                ip: IpVersion::V4,
                direction: Direction::Both,
                duplex: false,
                ports: Ports::default(),
            },
            procedure,
        }),
        impair: None,
        tune: false,
        estimate_ns: 0,
    }
}

/// A trial at that load with the given number of received frames.
pub(crate) fn trial(load: u64, received: u64) -> FrameTrial {
    FrameTrial {
        load,
        duration_ns: SECOND_NS,
        elapsed_ns: SECOND_NS,
        intended: load,
        sent: load,
        received,
        ..FrameTrial::default()
    }
}

/// A search that ended between those bounds.
pub(crate) fn found(lower: Option<u64>, upper: Option<u64>) -> FrameResult {
    let at = |load: Option<u64>, lost: u64| load.map(|load| trial(load, load - lost));
    FrameResult {
        trials: at(lower, 0)
            .into_iter()
            .chain(at(upper, 7))
            .chain([trial(1_000, 1_000)])
            .collect(),
        throughput: Some(SearchRecord {
            max_load: 1_500_000,
            max_load_by: "line-rate".into(),
            goals: vec![GoalBounds {
                goal: "ndr".into(),
                lower,
                upper,
                conditional_throughput: lower.unwrap_or(0) as f64,
                lower_trials: 1,
                upper_trials: 1,
                outcome: None,
            }],
            end: SearchEnd::Reached,
            took_ns: 3 * SECOND_NS,
        }),
        evidence_trial: Some(0),
        ..FrameResult::default()
    }
}

pub(crate) fn add(journal: &mut Journal, cell: &Cell, repeat: u32, frames: FrameResult) {
    let outcome = measured(Measured {
        figures: Figures::Frames(Box::new(frames)),
        cpu: Cpu {
            wall_ns: 1,
            ..Cpu::default()
        },
        ..Measured::default()
    });
    record(journal, &cell.id, repeat, outcome);
}

/// Lower and upper bound of a repeat.
pub(crate) type Bounds = (Option<u64>, Option<u64>);

/// A run of those cells, each repeat with the bounds of its row.
pub(crate) fn searched(cells: &[(Cell, &[Bounds])]) -> Journal {
    let repeats = cells[0].1.len() as u32;
    let all = cells.iter().map(|(cell, _)| cell.clone()).collect();
    let mut run = journal(all, repeats, 8);
    for (cell, bounds) in cells {
        for (repeat, (lower, upper)) in (1..).zip(*bounds) {
            add(&mut run, cell, repeat, found(*lower, *upper));
        }
    }
    run
}

/// Floats that are the same but for rounding.
#[track_caller]
pub(crate) fn assert_close(found: f64, wanted: f64) {
    assert!(
        (found - wanted).abs() <= 1e-9 * wanted.abs(),
        "{found} is not {wanted}"
    );
}

pub(crate) fn limit(cell: &CellResult) -> Limit {
    cell.verdict().unwrap().limit
}

pub(crate) fn kinds(results: &Results) -> Vec<WarningKind> {
    results
        .warnings
        .iter()
        .map(|warning| warning.kind)
        .collect()
}

pub(crate) fn throughput(dut: &str, size: u16) -> Cell {
    cell(dut, size, Procedure::Throughput(search()))
}

pub(crate) const RIG: [Bounds; 3] = [(Some(1_400_000), Some(1_410_000)); 3];
