//! What was read of boxes and machines while traffic flowed, and the energy that it took.

use crate::fixture::{SECOND_NS, journal, measured, ping, record, round_trips, tcp, transfer};
use crate::frame_fixture::{assert_close, cell, found, search};
use journal::record::*;
use plan::{Cell, Measurement, Procedure, ReadingKind};
use stats::{CellResult, Results, TrialEnergy, monitored_in};

fn load(load: Option<u64>, mean_milli: i64, max_milli: i64, readings: u64) -> LoadReading {
    LoadReading {
        load,
        mean_milli,
        max_milli,
        readings,
    }
}

fn device(name: &str, kind: ReadingKind, loads: Vec<LoadReading>) -> MonitoredDevice {
    MonitoredDevice {
        name: name.to_owned(),
        is_machine: name == "machine",
        interval_ns: SECOND_NS,
        cpu_ns: 5,
        series: vec![Series {
            name: kind.name().to_owned(),
            kind,
            unit: "W".to_owned(),
            point_ns: SECOND_NS,
            points: Vec::new(),
            gaps: Vec::new(),
            missed: 0,
            loads,
        }],
    }
}

fn read(windows: &[(Option<u64>, u64)], devices: Vec<MonitoredDevice>) -> Monitored {
    let windows = windows.iter().map(|&(load, seconds)| TrafficWindow {
        load,
        start_ns: SECOND_NS,
        end_ns: (1 + seconds) * SECOND_NS,
    });
    Monitored {
        windows: windows.collect(),
        devices,
    }
}

fn result(cell: Cell, trials: Vec<Measured>) -> CellResult {
    let mut run = journal(vec![cell.clone()], trials.len() as u32, 4);
    for (repeat, trial) in (1..).zip(trials) {
        record(&mut run, &cell.id, repeat, measured(trial));
    }
    Results::of(&run).cells.remove(0)
}

/// 1000 MB in two seconds are 4 Gbit/s; the boxes take 60 W, the machine 100 W.
#[test]
fn energy_per_traffic_is_power_by_goodput_of_all_boxes_together() {
    let with_power = |watts: i64| Measured {
        monitored: read(
            &[(None, 2)],
            vec![
                device(
                    "gw1",
                    ReadingKind::Power,
                    vec![load(None, watts * 1000, 45_000, 2)],
                ),
                device(
                    "gw2",
                    ReadingKind::Power,
                    vec![load(None, 20_000, 21_000, 2)],
                ),
                device(
                    "machine",
                    ReadingKind::Power,
                    vec![load(None, 100_000, 100_000, 8)],
                ),
            ],
        ),
        ..transfer(1000)
    };
    let found = result(tcp("direct"), vec![with_power(40), with_power(42)]);
    let [boxes, machine] = &found.energy[..] else {
        panic!("{:#?}", found.energy);
    };
    assert_eq!(
        (&boxes.devices[..], boxes.is_machine),
        (&["gw1".into(), "gw2".into()][..], false)
    );
    assert_close(boxes.power_w.mean, 61.0);
    assert_close(boxes.energy_j.mean, 122.0);
    assert_close(boxes.carried_bps.as_ref().unwrap().mean, 4e9);
    assert_eq!(boxes.layer.as_deref(), Some("payload"));
    assert_close(boxes.joules_per_gbit.as_ref().unwrap().mean, 15.25);
    assert_eq!(
        (&*machine.devices[0], machine.is_machine),
        ("machine", true)
    );
    assert_close(machine.joules_per_gbit.as_ref().unwrap().mean, 25.0);
    let first = &found.monitored[0];
    assert_close(first.mean.as_ref().unwrap().mean, 41.0);
    assert_eq!(
        (first.max, first.readings, first.tester_cpu_ns),
        (Some(45.0), 4, 10)
    );
}

/// Only readings under the load of the evidence count, and rates are of whole frames.
#[test]
fn a_frame_tests_energy_is_at_the_load_of_its_figure() {
    let frames = found(Some(1_000_000), Some(1_010_000));
    let loads = vec![
        load(Some(1_010_000), 90_000, 95_000, 1),
        load(Some(1_000_000), 30_000, 31_000, 3),
    ];
    let trial = Measured {
        figures: Figures::Frames(Box::new(frames)),
        cpu: Cpu {
            wall_ns: 1,
            ..Cpu::default()
        },
        monitored: read(
            &[
                (Some(1_010_000), 9),
                (Some(1_000_000), 1),
                (Some(1_000_000), 2),
            ],
            vec![device("gw1", ReadingKind::Power, loads)],
        ),
        ..Measured::default()
    };
    let cell = cell("auto", 500, Procedure::Throughput(search()));
    assert_eq!(monitored_in(&trial, "gw1", "power"), Some((30.0, 31.0)));
    assert_eq!(monitored_in(&trial, "gw2", "power"), None);
    let energy = TrialEnergy::of(&cell, &trial, false).unwrap();
    assert_close(energy.energy_j, 90.0);
    let found = result(cell, vec![trial]);
    let [boxes] = &found.energy[..] else {
        panic!("{:#?}", found.energy);
    };
    assert_eq!(boxes.layer.as_deref(), Some("l2"));
    // 10^6 frames of 500 B are 4 Gbit/s.
    assert_close(boxes.joules_per_gbit.as_ref().unwrap().mean, 7.5);
    let loads: Vec<_> = found.monitored[0].loads.iter().collect();
    let brief: Vec<_> = loads
        .iter()
        .map(|load| (load.frames_per_s, load.readings))
        .collect();
    assert_eq!(brief, [(Some(1_000_000), 3), (Some(1_010_000), 1)]);
}

/// A sum without one of its parts would be too little.
#[test]
fn without_a_reading_of_every_box_there_is_no_energy() {
    let mut silent = device("gw2", ReadingKind::Power, Vec::new());
    silent.series[0].missed = 3;
    silent.series[0].gaps = vec![SeriesGap {
        at_ns: 0,
        readings: 3,
        reason: "it does not answer".to_owned(),
    }];
    let trial = Measured {
        monitored: read(
            &[(None, 2)],
            vec![
                device(
                    "gw1",
                    ReadingKind::Power,
                    vec![load(None, 40_000, 41_000, 2)],
                ),
                silent,
            ],
        ),
        ..transfer(1000)
    };
    let found = result(tcp("direct"), vec![trial]);
    assert!(found.energy.is_empty());
    let silent = &found.monitored[1];
    assert_eq!(
        (silent.mean.is_none(), silent.max, silent.missed),
        (true, None, 3)
    );
    assert_eq!(silent.missed_because.as_deref(), Some("it does not answer"));
}

#[test]
fn a_ping_has_power_and_no_energy_per_traffic() {
    let trial = Measured {
        monitored: read(
            &[(None, 2)],
            vec![device(
                "gw1",
                ReadingKind::Power,
                vec![load(None, 40_000, 41_000, 2)],
            )],
        ),
        ..round_trips(0, &[100, 110, 120, 130])
    };
    let cell = ping("direct");
    assert!(matches!(cell.measurement, Measurement::Ping { .. }));
    let found = result(cell, vec![trial]);
    let [boxes] = &found.energy[..] else {
        panic!("{:#?}", found.energy);
    };
    assert!(boxes.joules_per_gbit.is_none() && boxes.layer.is_none());
    assert_close(boxes.power_w.mean, 40.0);
}
