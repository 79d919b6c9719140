//! Functional and fatigue trials of crypto devices: from records to figures, with known truths.

use crate::devices::{cell, device_result, kinds};
use crate::fixture::{SECOND_NS, journal, record};
use journal::Record;
use journal::record::*;
use plan::{Cell, DeviceTest, Fatigue, Kat};
use stats::{KatVerdict, Results, Status, WarningKind};

const HOUR_NS: u64 = 3600 * SECOND_NS;

fn kat(repeats: Vec<Vec<KatRow>>) -> Results {
    let algorithms = ["sha-256", "aes-128-cbc", "rsa-2048-oaep", "ml-kem-768"];
    let test = DeviceTest::Kat(Kat {
        algorithms: algorithms.map(str::to_owned).to_vec(),
    });
    let one = cell("kat", "card", test);
    let mut run = journal(vec![one.clone()], repeats.len() as u32, 2);
    for (repeat, kat) in (1..).zip(repeats) {
        let found = DeviceResult {
            found: DeviceRecord::Kat(kat),
            ..DeviceResult::default()
        };
        record(&mut run, &one.id, repeat, device_result(found));
    }
    Results::of(&run)
}

fn row(algorithm: &str, case: &str, tried: u32, outcome: KatOutcome) -> KatRow {
    KatRow {
        device: 0,
        algorithm: algorithm.into(),
        case: case.into(),
        tried,
        outcome,
    }
}

fn all_right() -> Vec<KatRow> {
    let missing = KatOutcome::NotOffered("no such mechanism".into());
    vec![
        row("sha-256", "vectors", 65, KatOutcome::Pass),
        row("sha-256", "empty", 1, KatOutcome::Pass),
        row("aes-128-cbc", "vectors", 4, KatOutcome::Pass),
        row("rsa-2048-oaep", "sizes", 9, KatOutcome::Pass),
        row("ml-kem-768", "vectors", 0, missing),
    ]
}

#[test]
fn an_algorithm_passes_only_where_every_case_of_every_repeat_was_right() {
    let results = kat(vec![all_right(), all_right()]);
    let of = |results: &Results| -> stats::KatResult {
        let found = results.cells[0].device().unwrap();
        found.kat().cloned().unwrap()
    };
    let found = of(&results);
    assert_eq!((found.passed, found.failed, found.not_offered), (3, 0, 1));
    assert_eq!(
        (
            found.algorithms[0].tried,
            found.algorithms[0].family.as_str()
        ),
        (66, "Hash")
    );
    assert!(!kinds(&results).contains(&WarningKind::WrongResults));

    let mut second = all_right();
    second[2].outcome = KatOutcome::Wrong {
        input: "vector 3".into(),
        first_differing: Some(17),
        detail: "wanted 00…, came 01…".into(),
    };
    let results = kat(vec![all_right(), second]);
    let found = of(&results);
    assert_eq!((found.passed, found.failed), (2, 1));
    let aes = &found.algorithms[1];
    assert_eq!(aes.verdict, KatVerdict::Wrong);
    assert_eq!(
        (aes.cases[0].repeat, aes.cases[0].first_differing_byte),
        (2, Some(17))
    );
    assert!(kinds(&results).contains(&WarningKind::WrongResults));
}

#[test]
fn an_algorithm_that_was_not_tried_does_not_pass() {
    let mut silent = all_right();
    silent.retain(|row| row.algorithm != "sha-256");
    let mut nothing = all_right();
    nothing[3].tried = 0;
    let found = kat(vec![silent, nothing]);
    let found = found.cells[0].device().unwrap().kat().unwrap();
    let verdicts: Vec<KatVerdict> = found.algorithms.iter().map(|one| one.verdict).collect();
    let (pass, error) = (KatVerdict::Pass, KatVerdict::Error);
    assert_eq!(verdicts, [error, pass, error, KatVerdict::NotOffered]);
    // Without rows there is no result.
    let results = kat(vec![Vec::new()]);
    assert_eq!(results.cells[0].status, Status::Failed);
}

fn fatigue(dut: &str) -> Cell {
    let test = DeviceTest::Fatigue(Fatigue {
        operations: vec!["sha-256".into()],
        threads: 150,
        loops: None,
        duration_ns: Some(4 * HOUR_NS),
        invalid_every: 10,
        restart: true,
        snapshot_ns: SECOND_NS,
    });
    cell("fatigue", dut, test)
}

/// A segment of hours in which devices failed at those minutes, and were started again.
fn segment(start: u32, hours: u64, failures_min: &[&[u64]]) -> FatigueSegment {
    let device = |(device, failures): (usize, &&[u64])| {
        let mut began_ns = 0;
        let mut lives = Vec::new();
        for minute in *failures {
            let ended_ns = minute * 60 * SECOND_NS;
            lives.push(Life {
                began_ns,
                ended_ns,
                failed: true,
            });
            began_ns = ended_ns;
        }
        lives.push(Life {
            began_ns,
            ended_ns: hours * HOUR_NS,
            failed: false,
        });
        DeviceFatigue {
            device,
            threads: 150,
            elapsed_ns: hours * HOUR_NS,
            counts: FatigueCounts {
                right: 36_000 * hours,
                failed: failures.len() as u64,
                restarts: failures.len() as u64,
                refused: 3600 * hours,
                ..FatigueCounts::default()
            },
            lives,
            resident_bytes_max: 50 << 20,
            ..DeviceFatigue::default()
        }
    };
    FatigueSegment {
        start,
        started_unix_ns: 0,
        devices: failures_min.iter().enumerate().map(device).collect(),
    }
}

#[test]
fn times_without_failure_add_up_over_segments_and_end_at_the_first_failure() {
    let (one, two) = (fatigue("card"), fatigue("cards"));
    let mut run = journal(vec![one.clone(), two.clone()], 1, 2);
    let mut add = |cell: &Cell, fatigue: Vec<FatigueSegment>| {
        let found = DeviceResult {
            found: DeviceRecord::Fatigue(fatigue),
            ..DeviceResult::default()
        };
        record(&mut run, &cell.id, 1, device_result(found));
    };
    // Four hours in two parts, sound; and two cards, of which one fails 30 minutes into the second
    // part, twice.
    add(&one, vec![segment(1, 1, &[&[]]), segment(2, 3, &[&[]])]);
    add(
        &two,
        vec![segment(1, 1, &[&[], &[]]), segment(2, 3, &[&[], &[30, 90]])],
    );
    let results = Results::of(&run);
    let of = |cell: usize| {
        let found = results.cells[cell].device().unwrap();
        found.fatigue().unwrap()
    };
    let sound = &of(0).devices[0];
    assert_eq!((sound.has_failed, sound.starts), (false, 2));
    assert_eq!(sound.without_failure_ns, 4 * HOUR_NS);
    assert_eq!((of(0).survival.failures, of(0).lives.is_none()), (0, true));
    let bad = &of(1).devices[1];
    assert_eq!(
        (bad.has_failed, bad.counts.failed, bad.counts.restarts),
        (true, 2, 2)
    );
    assert_eq!(bad.without_failure_ns, HOUR_NS + HOUR_NS / 2);
    assert!((bad.operations_per_s - 11.0).abs() < 1e-9, "{bad:?}");
    assert_eq!(bad.longest_life_ns, 90 * 60 * SECOND_NS);
    let survival = &of(1).survival;
    assert_eq!((survival.lives, survival.failures), (2, 1));
    assert!((survival.at(2 * HOUR_NS).unwrap() - 0.5).abs() < 1e-9);
    // Each start: two of either card's, and two more of the one that failed.
    assert_eq!(of(1).lives.as_ref().unwrap().lives, 6);
    let [batch] = results.fatigue_batches.as_slice() else {
        panic!("{:?}", results.fatigue_batches)
    };
    assert_eq!((batch.survival.lives, batch.survival.failures), (3, 1));
    let classes: Vec<(u64, u32, u32)> = batch
        .classes
        .iter()
        .map(|class| (class.from_ns / HOUR_NS, class.devices, class.failed))
        .collect();
    assert_eq!(classes, [(1, 1, 1), (3, 2, 0)]);
    assert!(kinds(&results).contains(&WarningKind::DeviceFailed));
}

#[test]
fn a_failure_without_a_recorded_life_counts_too() {
    let one = fatigue("card");
    let mut run = journal(vec![one.clone()], 1, 2);
    let mut found = segment(1, 2, &[&[]]);
    found.devices[0].counts.wrong = 1;
    found.devices[0].points = vec![FatiguePoint {
        at_ns: HOUR_NS,
        right: 10,
        bad: 1,
    }];
    let result = DeviceResult {
        found: DeviceRecord::Fatigue(vec![found]),
        ..DeviceResult::default()
    };
    record(&mut run, &one.id, 1, device_result(result));
    let results = Results::of(&run);
    let found = results.cells[0].device().unwrap();
    let device = &found.fatigue().unwrap().devices[0];
    assert_eq!(
        (device.has_failed, device.without_failure_ns),
        (true, HOUR_NS)
    );
}

#[test]
fn lives_that_were_not_kept_count_in_the_time_between_failures() {
    let one = fatigue("card");
    let mut run = journal(vec![one.clone()], 1, 2);
    let mut found = segment(1, 2, &[&[30]]);
    found.devices[0].lives_left_out = 99;
    let result = DeviceResult {
        found: DeviceRecord::Fatigue(vec![found]),
        ..DeviceResult::default()
    };
    record(&mut run, &one.id, 1, device_result(result));
    let results = Results::of(&run);
    let found = results.cells[0].device().unwrap();
    let found = found.fatigue().unwrap();
    let device = &found.devices[0];
    assert_eq!((device.lives_kept, device.lives_left_out), (2, 99));
    // Two hours with a hundred failures.
    let between = found.lives.as_ref().unwrap().mean_between_failures_ns;
    assert!(
        (between.unwrap() - 72.0 * SECOND_NS as f64).abs() < 1.0,
        "{between:?}"
    );
}

#[test]
fn an_interrupted_fatigue_trial_reports_its_progress() {
    let one = fatigue("card");
    let mut run = journal(vec![one.clone()], 1, 2);
    let progress = FatigueProgress {
        cell: one.id.clone(),
        repeat: 1,
        devices: Vec::new(),
        segment: segment(1, 3, &[&[30]]),
    };
    let end = run.end.take();
    run.accept(Record::Fatigued(Box::new(progress))).unwrap();
    run.end = end;
    let results = Results::of(&run);
    let found = &results.cells[0];
    assert_eq!(found.status, Status::NotRun);
    let why = &found.reasons[0].text;
    assert!(
        why.contains("3 h under load, with 1 failure until then"),
        "{why}"
    );
}
