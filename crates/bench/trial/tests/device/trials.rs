//! What is made of what workers say.

use crate::lazy;
use crate::worker::{CHATTERS, DIES, REAL};
use campaign::{HostFacts, LabFile, from_text};
use journal::record::{
    DeviceResult, FatigueSegment, KatOutcome, Measured, Outcome, Proof, SpeedTrial,
};
use lab::programs::search_path;
use plan::{Cell, DeviceTest, Measurement, Plan};
use testbed::{Interrupt, LabError};
use trial::{Checkpoint, Measurer, OnDevices, Trial, TrialEvent, links};

pub(crate) fn plan(text: &str) -> Plan {
    let text = format!("campaign: test\n{text}\n");
    let campaign = from_text("test", &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let lab = LabFile::built_in_named("device").expect("it is built in");
    let host = HostFacts { cores: 2 };
    campaign
        .plan(&lab, &host)
        .unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

pub(crate) fn worker(kind: &str) -> OnDevices {
    let program = std::env::current_exe().expect("a program");
    OnDevices::new(vec![program.into(), kind.into()], search_path())
}

/// Measures one cell, which earlier starts may have begun.
fn measure(
    kind: &str,
    plan: &Plan,
    cell: &Cell,
    checkpoints: &[Checkpoint],
    sink: &mut dyn FnMut(TrialEvent<'_>),
    interrupt: &Interrupt,
) -> Result<Outcome, LabError> {
    let trial = Trial {
        checkpoints,
        ..Trial::of(cell, 1, links(plan, cell))
    };
    let record = worker(kind).measure(&trial, sink, interrupt)?;
    assert_eq!(record.cell, cell.id);
    Ok(record.outcome)
}

/// What comes of the only cell of a campaign.
fn outcome(kind: &str, text: &str) -> Outcome {
    let plan = plan(text);
    assert_eq!(plan.cells.len(), 1);
    measure(
        kind,
        &plan,
        &plan.cells[0],
        &[],
        &mut |_| (),
        &Interrupt::new(),
    )
    .expect("no interrupt")
}

pub(crate) fn measured(outcome: Outcome) -> Measured {
    match outcome {
        Outcome::Measured(measured) => *measured,
        other => panic!("{other:?}"),
    }
}

fn result(kind: &str, text: &str) -> DeviceResult {
    measured(outcome(kind, text))
        .device()
        .cloned()
        .expect("a result")
}

fn speed(result: &DeviceResult) -> &SpeedTrial {
    result.speed().unwrap_or_else(|| panic!("{result:?}"))
}

pub(crate) fn only_segment(result: &DeviceResult) -> &FatigueSegment {
    assert_eq!(result.fatigue().len(), 1);
    &result.fatigue()[0]
}

pub(crate) fn our_own_engines_pass_the_functional_trial() {
    let result = result(
        REAL,
        "devices: [engine]\ntrials: [kat: { algorithms: [sha-256, aes-128-cbc] }]",
    );
    assert_eq!(result.devices.len(), 1);
    assert!(!result.devices[0].facts.name.is_empty());
    for algorithm in ["sha-256", "aes-128-cbc"] {
        let rows = result.kat().iter().filter(|row| row.algorithm == algorithm);
        let passed = rows.filter(|row| row.outcome == KatOutcome::Pass && row.tried > 0);
        assert!(passed.count() > 1, "{result:?}");
    }
    assert!(!result.is_bad(), "{result:?}");
}

pub(crate) fn a_device_that_dies_is_blamed_and_the_others_are_tried() {
    let result = result(
        DIES,
        "devices: [engine]\ntrials: [kat: { algorithms: [md5, sha-1, sha-256] }]",
    );
    let rows: Vec<_> = result
        .kat()
        .iter()
        .map(|row| (&*row.algorithm, &*row.case, row.outcome == KatOutcome::Pass))
        .collect();
    let expected = ["md5", "sha-1", "sha-256"]
        .into_iter()
        .flat_map(|name| [(name, "vectors", true), (name, "the rest", false)]);
    assert_eq!(rows, expected.collect::<Vec<_>>());
    let KatOutcome::Error(how) = &result.kat()[1].outcome else {
        panic!("{:?}", result.kat()[1]);
    };
    assert!(how.contains("signal 6") && how.contains("on fire"), "{how}");
    assert!(result.is_bad());
}

pub(crate) fn a_model_counts_what_it_does() {
    let result = result(
        REAL,
        "devices: [model: { rate: 1 Gbit/s, latency: 100 us, parallel: 2 }]\n\
         trials: [speed: { operation: sha-256, size: 64 B, concurrency: 4, duration: 200 ms }]",
    );
    let trial = speed(&result);
    assert_eq!(trial.proof, Some(Proof::Counted), "{trial:?}");
    assert!(
        trial
            .reference
            .is_some_and(|reference| reference.operations > 0)
    );
    let [device] = &*trial.devices else {
        panic!("{trial:?}");
    };
    assert_eq!((device.processes, device.threads), (1, 4));
    assert_eq!(device.bytes, device.operations * 64);
    // Each of four waits 100 us for every operation.
    let most = 4 * trial.span_ns / 100_000;
    assert!((1..=most).contains(&device.operations), "{trial:?}");
    assert_eq!(device.slices.iter().sum::<u64>(), device.operations);
}

pub(crate) fn a_counter_that_does_not_move_is_no_offload() {
    let result = result(
        CHATTERS,
        "devices: [engine: { offload: true }]\n\
         trials: [speed: { operation: sha-256, size: 64 B, duration: 20 ms }]",
    );
    // What it printed besides is no line and did no harm.
    assert_eq!(speed(&result).devices[0].operations, 1_000);
    assert_eq!(speed(&result).proof, Some(Proof::EqualsCpu));
}

pub(crate) fn processes_work_at_once() {
    let result = result(
        REAL,
        "devices: [engine]\n\
         trials: [speed: { operation: sha-256, size: 64 B, concurrency: 3, workers: processes, duration: 500 ms }]",
    );
    let trial = speed(&result);
    assert_eq!(
        (trial.devices[0].processes, trial.devices[0].threads),
        (3, 3)
    );
    assert!(trial.together_ns <= trial.span_ns);
    assert!(trial.devices[0].operations_min > 0);
    // Without `offload: true` the device claims nothing that must be proven.
    assert_eq!((trial.reference, trial.proof), (None, None));
}

pub(crate) fn two_devices_share_those_that_ask() {
    let result = result(
        REAL,
        "devices: [model: { rate: 1 Gbit/s, latency: 1 ms, count: 2 }]\n\
         trials: [speed: { operation: sha-256, size: 64 B, concurrency: 5, duration: 200 ms }]",
    );
    let trial = speed(&result);
    let threads: Vec<_> = trial.devices.iter().map(|device| device.threads).collect();
    assert_eq!(threads, [3, 2]);
    assert_eq!(result.devices.len(), 2);
}

pub(crate) fn what_is_not_offered_is_no_failure() {
    let result = result(
        REAL,
        "devices: [openssl]\n\
         trials: [speed: { operation: gost28147-cnt encrypt, size: 64 B, duration: 20 ms }]",
    );
    assert!(result.not_offered().is_some(), "{result:?}");
    assert_eq!(result.speed(), None);
}

pub(crate) fn a_device_that_cannot_be_opened_fails_with_what_it_says() {
    let devices =
        "devices: [pkcs11: { module: /nonexistent/module.so, pin_file: /nonexistent/pin }]";
    for trial in [
        "kat: { algorithms: sha-256 }",
        "speed: { operation: sha-256, size: 64 B, duration: 20 ms }",
        "fatigue: { operations: sha-256, threads: 1, loops: 1 }",
    ] {
        let outcome = outcome(REAL, &format!("{devices}\ntrials: [{trial}]"));
        let Outcome::Failed { reason } = outcome else {
            panic!("{trial}: {outcome:?}");
        };
        assert!(reason.contains("/nonexistent/"), "{reason}");
    }
}

pub(crate) fn wrong_results_make_no_figure() {
    let outcome = outcome(
        REAL,
        "devices: [model: { rate: 1 Gbit/s, errors: 100 %, fault: wrong }]\n\
         trials: [speed: { operation: sha-256, size: 64 B, duration: 100 ms }]",
    );
    let Outcome::Invalid { reasons, .. } = &outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        reasons
            .iter()
            .any(|reason| reason.starts_with("results-right")),
        "{reasons:?}"
    );
}

pub(crate) fn one_wrong_result_in_a_thousand_makes_no_figure() {
    let outcome = outcome(
        REAL,
        "devices: [model: { rate: 1 Tbit/s, latency: 10 us, parallel: 8, errors: 0.1 %, fault: wrong }]\n\
         trials: [speed: { operation: sha-256, size: 64 B, concurrency: 8, duration: 500 ms }]",
    );
    let Outcome::Invalid { reasons, .. } = &outcome else {
        panic!("{outcome:?}");
    };
    assert!(
        reasons
            .iter()
            .any(|reason| reason.starts_with("results-right") && reason.contains("probability of")),
        "{reasons:?}"
    );
}

pub(crate) fn a_token_that_verifies_nothing_makes_no_figure() {
    let Some(token) = lazy::Token::make() else {
        return;
    };
    let outcome = token.verifies("LAZY", REAL);
    assert!(lazy::is_found(&outcome), "{outcome:?}");
    let outcome = token.verifies(lazy::NONE, REAL);
    assert!(matches!(outcome, Outcome::Measured(_)), "{outcome:?}");
}

pub(crate) fn a_device_that_stops_is_restarted_and_its_lives_are_recorded() {
    let result = result(
        REAL,
        "devices: [model: { rate: 1 Gbit/s, latency: 50 us, errors: 0.5 %, fault: stops }]\n\
         trials: [fatigue: { operations: sha-256, threads: 2, duration: 1 s }]",
    );
    let [device] = &*only_segment(&result).devices else {
        panic!("{result:?}");
    };
    assert!(
        device.counts.right > 0 && device.counts.restarts > 0 && device.counts.failed > 0,
        "{device:?}"
    );
    assert_eq!(
        (
            device.counts.wrong,
            device.counts.passed_invalid,
            device.crashes
        ),
        (0, 0, 0),
        "{device:?}"
    );
    assert!(device.lives.iter().any(|life| life.failed));
    assert!(device.lives.is_sorted_by_key(|life| life.began_ns));
    assert!(!device.reasons.is_empty());
    assert!(result.is_bad());
}

pub(crate) fn a_device_whose_process_dies_is_started_again_and_given_up_at_last() {
    let result = result(
        DIES,
        "devices: [engine]\ntrials: [fatigue: { operations: sha-256, threads: 1, duration: 60 s }]",
    );
    let device = &only_segment(&result).devices[0];
    // It is given up long before the minute is over.
    assert!(device.crashes > 1, "{device:?}");
    // It is not started again after the last crash.
    assert_eq!(device.counts.restarts, device.crashes - 1);
    assert_eq!(device.lives.len() as u64, device.crashes);
    assert!(device.lives.iter().all(|life| life.failed));
    assert!(device.reasons[0].contains("on fire"), "{device:?}");
    assert!(
        device
            .reasons
            .last()
            .is_some_and(|last| last.contains("given up"))
    );
}

pub(crate) fn a_device_that_is_not_to_be_restarted_is_left() {
    let result = result(
        DIES,
        "devices: [engine]\n\
         trials: [fatigue: { operations: sha-256, threads: 1, duration: 60 s, restart: false }]",
    );
    let device = &only_segment(&result).devices[0];
    assert_eq!(
        (device.crashes, device.counts.restarts, device.lives.len()),
        (1, 0, 1)
    );
}

pub(crate) fn loops_end_a_fatigue_trial() {
    let result = result(
        REAL,
        "devices: [engine: { count: 2 }]\n\
         trials: [fatigue: { operations: [sha-256, aes-128-cbc encrypt], threads: 3, loops: 50, invalid_every: 0 }]",
    );
    let segment = only_segment(&result);
    assert_eq!(segment.devices.len(), 2);
    for device in &segment.devices {
        assert_eq!(
            (device.counts.right, device.threads),
            // Threads, operations, and loops.
            (3 * 2 * 50, 3),
            "{device:?}"
        );
        assert!(device.is_sound());
        assert!(matches!(&*device.lives, [life] if !life.failed));
    }
    assert!(!result.is_bad());
}

pub(crate) fn an_interrupted_fatigue_trial_is_recorded_and_goes_on() {
    let mut plan = plan(
        "devices: [engine]\ntrials: [fatigue: { operations: sha-256, threads: 2, duration: 3 s }]",
    );
    if let Measurement::Device(DeviceTest::Fatigue(fatigue)) = &mut plan.cells[0].measurement {
        // A campaign has no snapshots this often.
        fatigue.snapshot_ns = 200_000_000;
    }
    let cell = &plan.cells[0];
    let interrupt = Interrupt::new();
    let mut kept = Vec::new();
    let mut sink = |event: TrialEvent<'_>| {
        if let TrialEvent::Checkpoint(checkpoint) = event {
            kept.push(checkpoint.clone());
            // It works: now it is to stop.
            interrupt.set();
        }
    };
    let ended = measure(REAL, &plan, cell, &[], &mut sink, &interrupt);
    assert!(matches!(ended, Err(LabError::Interrupted)), "{ended:?}");
    let last = kept.pop().expect("a snapshot at the end");
    let last = last.fatigue().expect("of a fatigue trial").clone();
    let first_ns = last.segment.elapsed_ns();
    assert!(first_ns > 0 && first_ns < 3_000_000_000, "{first_ns}");
    assert!(last.segment.devices[0].counts.right > 0);

    let ended = measure(
        REAL,
        &plan,
        cell,
        &[last.into()],
        &mut |_| (),
        &Interrupt::new(),
    );
    let result = measured(ended.expect("no interrupt"))
        .device()
        .cloned()
        .expect("a result");
    let [first, second] = result.fatigue() else {
        panic!("{result:?}");
    };
    assert_eq!((first.start, second.start), (1, 2));
    assert_eq!(first.elapsed_ns(), first_ns);
    // Nothing is done twice.
    let whole = first_ns + second.elapsed_ns();
    assert!(
        (2_900_000_000..4_500_000_000).contains(&whole),
        "{whole} ns"
    );
}
