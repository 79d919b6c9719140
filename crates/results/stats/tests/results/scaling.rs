//! Series of whole journals.

use crate::fixture::*;
use crate::frame_fixture::{self, kinds};
use journal::Journal;
use journal::record::{Measured, Outcome};
use plan::{Adapter, Cell, Coordinate, Load, Measurement, Procedure, Tool, TransferDirection};
use stats::{Results, ScalingAxis, WarningKind};

/// TCP of the device with this many workers.
fn with_workers(workers: u16) -> Cell {
    let mut cell = tcp("cipherbench");
    cell.dut.name = format!("cipherbench w{workers}");
    cell.id = format!("tcp/cipherbench-w{workers}");
    let Adapter::Cipherbench(encryptor) = &mut cell.dut.adapter else {
        panic!("another adapter")
    };
    encryptor.workers = workers;
    cell
}

/// TCP with this many cores per station, as one of `cores` or one of `cores` and `streams`.
fn with_cores(cores: u16, streams: &str) -> Cell {
    let mut cell = tcp("direct");
    cell.group = format!("tcp/mtu=1500/cores={cores}{streams}");
    cell.coordinates = Coordinate::all_in(&cell.group);
    cell.id = format!("{}/direct", cell.group);
    cell.stations.as_mut().unwrap().cores = cores;
    cell
}

/// A run of those cells, each with its megabytes in two seconds, in both repeats.
fn run(cells: &[(Cell, u64)], cpus: u32) -> Journal {
    let mut run = journal(
        cells.iter().map(|(cell, _)| cell.clone()).collect(),
        2,
        cpus,
    );
    for repeat in [1, 2] {
        for (cell, megabytes) in cells {
            record(&mut run, &cell.id, repeat, measured(transfer(*megabytes)));
        }
    }
    run
}

#[test]
fn devices_that_differ_in_workers_make_a_series_in_rising_order() {
    let cells = [4, 1, 2].map(|workers| (with_workers(workers), 100 * u64::from(workers)));
    let results = Results::of(&run(&cells, 32));
    let [found] = results.scalings.as_slice() else {
        panic!("{:?}", results.scalings)
    };
    assert_eq!(
        (found.axis, found.dut.as_str()),
        (ScalingAxis::Workers, "cipherbench")
    );
    assert_eq!(found.series, "tcp");
    let numbers: Vec<u32> = found.points.iter().map(|point| point.n).collect();
    assert_eq!(numbers, [1, 2, 4]);
    assert_eq!(found.stop_n, None);
    assert!(found.points.iter().all(|point| point.limited_by.is_none()));
    assert!(!kinds(&results).contains(&WarningKind::SilentCap));
}

#[test]
fn another_suite_is_another_series() {
    let mut other = with_workers(2);
    other.id.push_str("-chacha");
    other.dut.name.push_str(" chacha");
    let Adapter::Cipherbench(encryptor) = &mut other.dut.adapter else {
        panic!("another adapter")
    };
    encryptor.suite = wire::Suite::ChaCha20Poly1305;
    let cells = [(with_workers(1), 100), (other, 200)];
    assert_eq!(Results::of(&run(&cells, 32)).scalings, []);
}

#[test]
fn stations_with_more_cores_make_a_series_for_each_setting_of_the_rest() {
    let cells = [
        (with_cores(1, "/streams=auto"), 100),
        (with_cores(2, "/streams=auto"), 200),
        (with_cores(1, "/streams=8"), 100),
        (with_cores(2, "/streams=8"), 150),
    ];
    let results = Results::of(&run(&cells, 32));
    let of_cores = results
        .scalings
        .iter()
        .filter(|found| found.axis == ScalingAxis::Cores);
    let series: Vec<_> = of_cores.map(|found| found.series.as_str()).collect();
    assert_eq!(
        series,
        ["tcp/mtu=1500/streams=auto", "tcp/mtu=1500/streams=8"]
    );
}

#[test]
fn a_configured_load_and_round_trips_do_not_scale() {
    let mut cells = [1, 2].map(|cores| with_cores(cores, ""));
    for cell in &mut cells {
        cell.measurement = Measurement::Udp {
            tool: Tool::default(),
            direction: TransferDirection::AToB,
            datagram_bytes: Some(512),
            rate_bps: Some(1_000_000),
            streams: 1,
            duration_ns: 2 * SECOND_NS,
            warmup_ns: 0,
        };
    }
    assert_eq!(
        Results::of(&run(&cells.map(|cell| (cell, 100)), 32)).scalings,
        []
    );
    let load = Procedure::Load(Load {
        frames_per_s: Some(1000),
        duration_ns: SECOND_NS,
    });
    let frames = [1, 2].map(|cores| {
        let mut cell = frame_fixture::cell("auto", 64, load.clone());
        cell.group = format!("load/frame=64/cores={cores}");
        cell.coordinates = Coordinate::all_in(&cell.group);
        cell.id = format!("{}/auto", cell.group);
        cell.stations.as_mut().unwrap().cores = cores;
        cell
    });
    let mut run = journal(frames.to_vec(), 1, 32);
    for cell in &frames {
        let trial = frame_fixture::trial(1000, 1000);
        let found = journal::record::FrameResult {
            trials: vec![trial],
            ..Default::default()
        };
        frame_fixture::add(&mut run, cell, 1, found);
    }
    assert_eq!(Results::of(&run).scalings, []);
}

#[test]
fn a_device_that_stops_scaling_while_cores_are_idle_is_named_in_a_warning() {
    let cells = [(1, 100), (2, 200), (4, 202), (8, 201)];
    let cells = cells.map(|(workers, megabytes)| (with_workers(workers), megabytes));
    // One core of 32 is busy; stations and workers need 18 at most.
    let results = Results::of(&run(&cells, 32));
    assert_eq!(results.scalings[0].verdict, "stops scaling at 2 workers");
    let warning = results
        .warnings
        .iter()
        .find(|warning| warning.kind == WarningKind::SilentCap)
        .unwrap();
    assert!(
        warning.text.contains("flat from 2 workers on"),
        "{}",
        warning.text
    );
    assert!(
        warning.text.contains("at 8 of them 31.0 cores"),
        "{}",
        warning.text
    );
    assert_eq!(warning.cells.len(), 3);
    // On a machine that is too small for them, the cause is unknown.
    let small = Results::of(&run(&cells, 4));
    assert!(!kinds(&small).contains(&WarningKind::SilentCap));
    let found = &small.scalings[0];
    assert!(
        found
            .verdict
            .contains("machine-limited at 2: stations and device share cores"),
        "{}",
        found.verdict
    );
    // 2 stations with a core each, and two gateways with `n` workers each, on four cores.
    let limits: Vec<Option<&str>> = found
        .points
        .iter()
        .map(|point| point.limited_by.as_deref())
        .collect();
    assert_eq!(
        limits,
        [None, Some("machine"), Some("machine"), Some("machine")]
    );
}

#[test]
fn a_device_that_reports_another_number_of_workers_causes_a_warning() {
    let with_lanes = |lanes: &str| {
        let mut found = Measured::clone(&transfer(100));
        found.evidence.dut_facts = [("gw1/lanes".to_owned(), lanes.to_owned())].into();
        found
    };
    let warned = |outcome: Outcome| {
        let mut run = journal(vec![with_workers(8)], 1, 32);
        record(&mut run, "tcp/cipherbench-w8", 1, outcome);
        let warnings = Results::of(&run).warnings;
        let found = warnings
            .into_iter()
            .find(|warning| warning.kind == WarningKind::OtherWorkers);
        found.map(|warning| warning.text)
    };
    assert_eq!(warned(measured(with_lanes("8"))), None);
    let wanted = "`cipherbench w8` was configured with 8 workers and reports 4 (`gw1/lanes`).";
    assert_eq!(warned(measured(with_lanes("4"))).as_deref(), Some(wanted));
    // The check that finds it makes the trial invalid.
    let invalid = Outcome::Invalid {
        reasons: vec!["asked for 8 lanes".into()],
        measured: Box::new(with_lanes("4")),
    };
    assert_eq!(warned(invalid).as_deref(), Some(wanted));
}
