//! Speed of crypto devices: from records to figures, with known truths.

use crate::fixture::{SECOND_NS, journal, measured, record};
use journal::Journal;
use journal::record::DeviceSpeed as SpeedRecord;
use journal::record::*;
use plan::{DeviceSpeed as SpeedTest, *};
use stats::{Course, DeviceAxis, DeviceSeries, Results, Status, Warning, WarningKind};

fn engine(name: &str) -> Device {
    Device {
        name: name.into(),
        kind: DeviceKind::Engine { kernel: None },
    }
}

fn card(name: &str) -> Device {
    Device {
        name: name.into(),
        kind: DeviceKind::Model(DeviceModel {
            latency_ns: 1000,
            rate_bps: 1_000_000_000,
            operation_ns: 100,
            parallel: 8,
            queue: 64,
            errors_ppm: 0,
            fault: DeviceFault::Fails,
        }),
    }
}

/// The CPU, a card, or two cards, by name.
fn devices(dut: &str) -> Devices {
    let members = match dut {
        "cpu" => vec![engine("cpu")],
        "cards" => vec![card("cards 1"), card("cards 2")],
        name => vec![card(name)],
    };
    Devices {
        offloads: dut != "cpu",
        members,
    }
}

pub(crate) fn cell(group: &str, dut: &str, test: DeviceTest) -> Cell {
    Cell {
        id: format!("{group}/{dut}"),
        group: group.into(),
        coordinates: Coordinate::all_in(group),
        dut: Dut::new(dut, Adapter::Device(devices(dut))),
        stations: None,
        measurement: Measurement::Device(test),
        impair: None,
        tune: false,
        estimate_ns: 0,
        calibration: false,
    }
}

fn speed(operation: &str, bytes: Option<u32>, concurrency: u32, dut: &str) -> Cell {
    let group = format!("speed/{operation}/{bytes:?}/{concurrency}");
    let test = DeviceTest::Speed(SpeedTest {
        operation: operation.into(),
        bytes,
        concurrency,
        workers: Workers::Threads,
        depth: 1,
        duration_ns: SECOND_NS,
        slices: 4,
    });
    cell(&group, dut, test)
}

/// A second in which each device completed this many operations.
fn did(operations: &[u64], bytes: u64) -> SpeedTrial {
    let device = |(device, &operations): (usize, &u64)| SpeedRecord {
        device,
        processes: 1,
        threads: 1,
        operations,
        bytes: operations * bytes,
        cpu_ns: 1000 * operations,
        slices: vec![operations / 4; 4],
        checked: 10,
        latency_ns_p50: 1000,
        latency_ns_p99: 2000,
        latency_ns_max: 3000,
        operations_min: operations,
        operations_max: operations,
        ..SpeedRecord::default()
    };
    SpeedTrial {
        span_ns: SECOND_NS,
        together_ns: SECOND_NS,
        devices: operations.iter().enumerate().map(device).collect(),
        reference: None,
        proof: None,
    }
}

pub(crate) fn device_result(found: DeviceResult) -> Outcome {
    measured(Measured {
        figures: Figures::Device(Box::new(found)),
        ..Measured::default()
    })
}

fn add_speed(run: &mut Journal, cell: &Cell, repeat: u32, speed: SpeedTrial) {
    let found = DeviceResult {
        found: DeviceRecord::Speed(speed),
        ..DeviceResult::default()
    };
    record(run, &cell.id, repeat, device_result(found));
}

/// A run of RSA over concurrency: the CPU does 1000 operations a second at any concurrency, a card
/// 33 for each up to 80, two cards twice that from 160 on.
fn rsa() -> Results {
    let numbers = [1, 5, 10, 20, 40, 70, 110, 160, 200, 500];
    let mut cells = Vec::new();
    for n in numbers {
        cells.extend(["cpu", "card", "cards"].map(|dut| speed("rsa-2048 sign", None, n, dut)));
    }
    let mut run = journal(cells.clone(), 3, 2);
    for repeat in 1..=3 {
        for (index, one) in cells.iter().enumerate() {
            let n = u64::from(numbers[index / 3]);
            let noise = u64::from(repeat);
            let trial = match one.dut.name.as_str() {
                "cpu" => did(&[1000 + noise], 0),
                "card" => did(&[33 * n.min(80) + noise], 0),
                _ => did(&[33 * n.div_ceil(2).min(80), 33 * (n / 2).min(80)], 0),
            };
            add_speed(&mut run, one, repeat, trial);
        }
    }
    Results::of(&run)
}

fn only(series: &[DeviceSeries]) -> &DeviceSeries {
    assert_eq!(series.len(), 1, "{series:#?}");
    &series[0]
}

pub(crate) fn kinds(results: &Results) -> Vec<WarningKind> {
    let about = |warning: &Warning| warning.kind;
    results.warnings.iter().map(about).collect()
}

#[test]
fn the_crossover_saturation_and_second_card_of_a_source_report_are_found_and_named() {
    let results = rsa();
    let series = only(&results.device_series);
    assert_eq!(
        (series.axis, series.operation.as_str()),
        (DeviceAxis::AtOnce, "rsa-2048 sign")
    );
    assert_eq!(series.curves.len(), 3);
    let card = series.curve("card").unwrap();
    assert_eq!((card.saturates_at_n, card.falls_from_n), (Some(110), None));
    assert!(
        card.verdict.contains("stops scaling at 110"),
        "{}",
        card.verdict
    );
    let cpu = series.curve("cpu").unwrap();
    assert_eq!((cpu.saturates_at_n, cpu.is_cpu), (Some(1), true));
    assert_eq!((card.is_model, cpu.is_model), (true, false));
    let [beside, beside_two] = series.comparisons.as_slice() else {
        panic!("{:?}", series.comparisons)
    };
    assert_eq!((beside.dut.as_str(), beside.cpu.as_str()), ("card", "cpu"));
    assert_eq!(beside.crossover.course, Course::FasterFrom);
    assert_eq!(beside.crossover.faster_from, Some(40));
    assert!((beside.crossover.crosses_at.unwrap() - 30.3).abs() < 0.2);
    let verdict = "faster than cpu from about 30 in parallel on: slower at 20, faster at 40 and more; 2.64 times at 500 in parallel";
    assert_eq!(beside.verdict, verdict);
    assert_eq!(beside_two.dut, "cards");
    let gain = &series.gains[0];
    assert_eq!((gain.devices, gain.of_devices, gain.gains), (2, 1, true));
    assert!((gain.peak_ratio - 2.0).abs() < 0.01, "{gain:?}");
    assert!(
        gain.verdict
            .starts_with("2 devices beside 1: 2.00 times the peak of card"),
        "{}",
        gain.verdict
    );
    assert_eq!(series.gains.len(), 1);
}

#[test]
fn a_second_card_without_gain_is_reported() {
    let mut cells = Vec::new();
    for n in [1, 10, 100] {
        cells.extend(["card", "cards"].map(|dut| speed("rsa-1024 sign", None, n, dut)));
    }
    let mut run = journal(cells.clone(), 1, 2);
    for one in &cells {
        let own = if one.dut.name == "card" {
            vec![900]
        } else {
            vec![450, 455]
        };
        add_speed(&mut run, one, 1, did(&own, 0));
    }
    let results = Results::of(&run);
    let gain = &only(&results.device_series).gains[0];
    assert!(!gain.gains);
    assert!(
        gain.verdict.contains("no certain gain over card"),
        "{}",
        gain.verdict
    );
}

#[test]
fn a_card_that_equals_the_cpu_at_every_size_is_flagged() {
    let sizes = [16, 64, 256, 1024, 8192];
    let mut cells = Vec::new();
    for bytes in sizes {
        cells.extend(["cpu", "card"].map(|dut| speed("sha-256", Some(bytes), 1, dut)));
    }
    let counted = |proof: Option<Proof>| {
        let mut run = journal(cells.clone(), 3, 2);
        for repeat in 1..=3 {
            for (index, one) in cells.iter().enumerate() {
                let bytes = u64::from(sizes[index / 2]);
                let mut trial = did(&[1_000_000 / (bytes + 50) + u64::from(repeat)], bytes);
                trial.proof = proof.filter(|_| one.dut.name == "card");
                add_speed(&mut run, one, repeat, trial);
            }
        }
        Results::of(&run)
    };
    let results = counted(Some(Proof::CpuFell));
    let series = only(&results.device_series);
    assert_eq!(series.axis, DeviceAxis::Bytes);
    // A curve over sizes has no saturation point.
    assert_eq!(series.curve("cpu").unwrap().saturates_at_n, None);
    let found = &series.comparisons[0];
    assert_eq!(
        (found.crossover.course, found.equals_cpu),
        (Course::Same, true)
    );
    assert!(found.verdict.contains("as if the CPU did the work"));
    let warning = |results: &Results| {
        let found = results.warnings.iter();
        let mut found = found.filter(|warning| warning.kind == WarningKind::CardEqualsCpu);
        found.next().map_or(0, |warning| warning.cells.len())
    };
    assert_eq!(warning(&results), 5);
    // A card that counted its operations did them, at any speed of the CPU.
    assert_eq!(warning(&counted(Some(Proof::Counted))), 0);
    assert_eq!(warning(&counted(Some(Proof::EqualsCpu))), 5);
}

#[test]
fn processes_that_hardly_worked_in_parallel_are_not_compared() {
    let numbers = [1, 10, 100];
    let mut cells = Vec::new();
    for n in numbers {
        cells.extend(["cpu", "card"].map(|dut| speed("rsa-1024 sign", None, n, dut)));
    }
    let of = |together_percent: u64| {
        let mut run = journal(cells.clone(), 3, 2);
        for repeat in 1..=3 {
            for (index, one) in cells.iter().enumerate() {
                let (n, is_card) = (numbers[index / 2], one.dut.name == "card");
                let mut trial = did(&[if is_card { 30 * u64::from(n) } else { 500 }], 0);
                if n == 100 && is_card {
                    trial.together_ns = trial.span_ns * together_percent / 100;
                }
                add_speed(&mut run, one, repeat, trial);
            }
        }
        Results::of(&run)
    };
    let together = of(95);
    let found = only(&together.device_series);
    assert_eq!(found.comparisons[0].crossover.faster_from, Some(100));
    assert_eq!(found.curve("card").unwrap().saturates_at_n, None);
    let apart = of(60);
    let found = only(&apart.device_series);
    assert_eq!(found.comparisons[0].crossover.course, Course::Slower);
    let points = &found.comparisons[0].crossover.points;
    assert_eq!(points.last().map(|point| point.n), Some(10));
    let card = found.curve("card").unwrap();
    // Its figure is reported, but not compared.
    assert!(card.points[2].figure.is_some() && !card.points[2].is_compared);
    assert_eq!(card.peak_n, Some(10));
    assert!(kinds(&apart).contains(&WarningKind::NotTogether));
}

#[test]
fn the_cost_of_a_speed_and_the_working_hardware_are_reported() {
    let one = speed("aes-128-cbc encrypt", Some(1024), 2, "cards");
    let mut run = journal(vec![one.clone()], 2, 2);
    for (repeat, proof) in [(1, Proof::CpuFell), (2, Proof::Unknown)] {
        let mut trial = did(&[3000, 1000], 1024);
        trial.span_ns = 2 * SECOND_NS;
        trial.proof = Some(proof);
        trial.reference = Some(CpuReference {
            operations: 100,
            cpu_ns: 400_000,
            elapsed_ns: 400_000,
        });
        trial.devices[1].device_operations = Some(900);
        add_speed(&mut run, &one, repeat, trial);
    }
    let results = Results::of(&run);
    let found = results.cells[0].device().unwrap();
    let speed = found.speed().unwrap();
    let close = |found: f64, wanted: f64| (found - wanted).abs() < 1e-6 * wanted.max(1.0);
    assert!(close(speed.operations_per_s.mean, 2000.0));
    assert!(close(
        speed.bytes_per_s.as_ref().unwrap().mean,
        2000.0 * 1024.0
    ));
    assert!(close(speed.cpu_ns_per_operation.mean, 1000.0));
    assert!(close(speed.cpu_ratio.unwrap(), 0.25));
    assert!(close(speed.together_ratio, 0.5));
    assert!(close(speed.cpu_cores.mean, 0.002));
    // The worst repeat counts.
    assert_eq!(speed.proof, Some(Proof::Unknown));
    assert!(close(speed.members[0].operations_per_s.mean, 1500.0));
    assert_eq!(speed.members[0].counted_ratio, None);
    assert!(close(speed.members[1].counted_ratio.unwrap(), 0.9));
    let warned = kinds(&results);
    assert!(warned.contains(&WarningKind::WorkNotShown));
    assert!(warned.contains(&WarningKind::NotTogether));
    assert!(!warned.contains(&WarningKind::NoBaseline));
    assert!(!warned.contains(&WarningKind::SharedCores));
}

#[test]
fn wrong_and_failed_and_unchecked_results_cause_warnings() {
    let cells: Vec<Cell> = [1, 2, 3]
        .map(|n| speed("sha-1", Some(64), n, "card"))
        .to_vec();
    let mut run = journal(cells.clone(), 1, 2);
    let with = |change: fn(&mut SpeedRecord)| {
        let mut trial = did(&[1000], 64);
        change(&mut trial.devices[0]);
        trial
    };
    add_speed(&mut run, &cells[0], 1, with(|one| one.wrong = 2));
    add_speed(&mut run, &cells[1], 1, with(|one| one.failed = 7));
    let uneven = with(|one| {
        one.checked = 0;
        one.slices = vec![100, 100, 100, 700];
    });
    add_speed(&mut run, &cells[2], 1, uneven);
    let results = Results::of(&run);
    for (kind, cell) in [
        (WarningKind::WrongResults, 0),
        (WarningKind::FailedOperations, 1),
        (WarningKind::UncheckedResults, 2),
        (WarningKind::UnsteadySpeed, 2),
    ] {
        let found = results.warnings.iter().find(|one| one.kind == kind);
        assert_eq!(found.unwrap().cells, [cells[cell].id.clone()], "{kind:?}");
    }
}

#[test]
fn accepted_invalid_inputs_and_too_few_of_them_cause_warnings() {
    let cells: Vec<Cell> = [1, 2, 3, 4]
        .map(|n| speed("ecdsa-p256 verify", None, n, "card"))
        .to_vec();
    let mut run = journal(cells.clone(), 1, 2);
    let with = |invalid, accepted, power: Option<u32>| {
        let mut trial = did(&[1000], 0);
        let device = &mut trial.devices[0];
        device.checked = 1000;
        device.power_ppm = Some(1_000_000);
        device.invalid = invalid;
        device.accepted = accepted;
        device.acceptance_power_ppm = power;
        trial
    };
    let sure = Some(999_000);
    add_speed(&mut run, &cells[0], 1, with(Some(5000), Some(5000), sure));
    add_speed(
        &mut run,
        &cells[1],
        1,
        with(Some(100), Some(0), Some(95_000)),
    );
    add_speed(&mut run, &cells[2], 1, with(Some(7000), Some(0), sure));
    // An older journal: all inputs were valid.
    add_speed(&mut run, &cells[3], 1, with(None, None, None));
    let results = Results::of(&run);
    let warned = |kind| {
        let found = results.warnings.iter().find(|one| one.kind == kind);
        found.map(|one| one.cells.clone()).unwrap_or_default()
    };
    assert_eq!(warned(WarningKind::WrongResults), [cells[0].id.clone()]);
    assert_eq!(
        warned(WarningKind::FewCheckedResults),
        [cells[1].id.clone()]
    );
    let found = |cell: usize| results.cells[cell].device().unwrap().speed().unwrap();
    assert_eq!(
        (found(0).wrong, found(0).invalid_accepted),
        (5000, Some(5000))
    );
    assert_eq!(found(1).found_one_in_1000, Some(0.095));
    assert_eq!(found(2).found_one_in_1000, Some(0.999));
    assert_eq!(found(3).found_one_in_1000, None);
}

#[test]
fn an_operation_that_a_device_does_not_offer_is_no_failure() {
    let one = speed("ed25519 sign", None, 1, "card");
    let mut run = journal(vec![one.clone()], 1, 2);
    let found = DeviceResult {
        found: DeviceRecord::NotOffered("no such mechanism".into()),
        ..DeviceResult::default()
    };
    record(&mut run, &one.id, 1, device_result(found));
    let results = Results::of(&run);
    assert_eq!(results.cells[0].status, Status::Measured);
    let found = results.cells[0].device().unwrap();
    assert_eq!(found.not_offered.as_deref(), Some("no such mechanism"));
    assert!(found.speed().is_none());
}

#[test]
fn published_figures_stand_beside_each_cell_that_measures_the_same() {
    let one = speed("sha-256", Some(64), 1, "card");
    let mut run = journal(vec![one.clone()], 1, 2);
    run.header.plan.published = vec![Published {
        source: "a report, 2018".into(),
        system: "card in host one".into(),
        what: "sha-256, 64 B".into(),
        value: 89_208_000,
        unit: PublishedUnit::BytesPerS,
        counts: None,
        at: None,
        cells: vec![one.id.clone()],
    }];
    add_speed(&mut run, &one, 1, did(&[2_787_750], 64));
    let results = Results::of(&run);
    let [found] = results.published.as_slice() else {
        panic!("{:?}", results.published)
    };
    assert_eq!(
        (found.dut.as_str(), found.unit.as_str()),
        ("card", "bytes_per_s")
    );
    assert!((found.ratio.unwrap() - 2.0).abs() < 1e-9);
}
