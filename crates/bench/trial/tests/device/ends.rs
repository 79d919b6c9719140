//! How trials end that do not go well, and what they leave.

use crate::trials::{measured, only_segment, plan, worker};
use crate::worker::{HANGS, REAL, REFUSED, TRIES};
use journal::record::{DeviceResult, KatOutcome, Outcome};
use lab::programs::search_path;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use testbed::{Interrupt, LabError};
use trial::{Measurer, OnDevices, Trial, links};

/// All cells of a campaign, once.
fn outcomes(on: &mut OnDevices, text: &str) -> Vec<Outcome> {
    let plan = plan(text);
    let measure = |cell| {
        let trial = Trial::of(cell, 1, links(&plan, cell));
        let record = on.measure(&trial, &mut |_| (), &Interrupt::new());
        record.expect("no interrupt").outcome
    };
    plan.cells.iter().map(measure).collect()
}

fn only_result(on: &mut OnDevices, text: &str) -> DeviceResult {
    let outcome = outcomes(on, text).pop().expect("a cell");
    measured(outcome).device().cloned().expect("a result")
}

pub(crate) fn a_device_without_progress_has_failed_at_its_last_operation() {
    let patience = Duration::from_millis(500);
    let result = only_result(
        &mut worker(HANGS).with_patience(patience),
        "devices: [engine]\n\
         trials: [fatigue: { operations: sha-256, threads: 1, duration: 1 h, restart: false }]",
    );
    let device = &only_segment(&result).devices[0];
    assert_eq!((device.crashes, device.counts.right), (1, 5), "{device:?}");
    let [life] = &*device.lives else {
        panic!("{device:?}");
    };
    // It did all its work before its first report.
    assert!(life.failed && u128::from(life.ran_ns()) < patience.as_nanos());
    assert!(device.elapsed_ns < patience.as_nanos() as u64, "{device:?}");
    assert!(device.reasons[0].contains("no progress"), "{device:?}");
}

/// The longest time without progress in tests of devices that hang.
const PATIENCE: Duration = Duration::from_millis(300);

fn device_with(fault: &str, errors: &str) -> String {
    format!(
        "devices: [model: {{ name: card, rate: 1 Gbit/s, latency: 100 us, errors: {errors}, fault: {fault} }}]"
    )
}

pub(crate) fn a_hanging_device_ends_a_fatigue_trial_in_time() {
    let begin = Instant::now();
    let result = only_result(
        &mut worker(REAL).with_patience(PATIENCE),
        &format!(
            "{}\ntrials: [fatigue: {{ operations: sha-256, threads: 2, duration: 5 s }}]",
            device_with("hangs", "1 %")
        ),
    );
    // By the rule, and killing processes on a busy machine.
    let bound = 2 * Duration::from_secs(5) + 4 * PATIENCE + Duration::from_secs(10);
    assert!(begin.elapsed() < bound, "{:?}", begin.elapsed());
    let device = &only_segment(&result).devices[0];
    assert!(device.counts.right > 0 && device.crashes > 0, "{device:?}");
    assert!(device.reasons[0].contains("no progress"), "{device:?}");
    let given_up = device
        .reasons
        .iter()
        .any(|reason| reason.starts_with("given up: of"));
    assert!(given_up, "{device:?}");
}

pub(crate) fn a_hanging_device_ends_a_speed_trial_and_a_functional_one() {
    let begin = Instant::now();
    let mut on = worker(REAL).with_patience(PATIENCE);
    let speed = format!(
        "{}\ntrials: [speed: {{ operation: sha-256, size: 64 B, duration: 200 ms }}]",
        device_with("hangs", "1 %")
    );
    let outcome = outcomes(&mut on, &speed).pop().expect("a cell");
    let Outcome::Failed { reason } = outcome else {
        panic!("{outcome:?}");
    };
    assert!(reason.contains("`card` hangs"), "{reason}");

    let kat = format!(
        "{}\ntrials: [kat: {{ algorithms: [md5, sha-1, sha-224, sha-256, sha-384] }}]",
        device_with("hangs", "100 %")
    );
    let result = only_result(&mut on, &kat);
    let left: Vec<&str> = result
        .kat()
        .iter()
        .filter(
            |row| matches!(&row.outcome, KatOutcome::Error(why) if why.contains("hung 3 times")),
        )
        .map(|row| &*row.algorithm)
        .collect();
    assert_eq!(left, ["sha-256", "sha-384"], "{result:?}");
    assert!(
        begin.elapsed() < Duration::from_secs(60),
        "{:?}",
        begin.elapsed()
    );
}

pub(crate) fn a_device_that_crashes_keeps_what_it_reported() {
    let crash = || {
        let result = only_result(
            &mut worker(REAL),
            &format!(
                "{}\ntrials: [fatigue: {{ operations: sha-256, threads: 1, duration: 1 h, restart: false }}]",
                device_with("crashes", "0.01 %")
            ),
        );
        let device = only_segment(&result).devices[0].clone();
        assert_eq!(
            (device.crashes, device.counts.restarts),
            (1, 0),
            "{device:?}"
        );
        device
    };
    // Most likely it crashes within its first second, and sometimes before its first report, which
    // comes after 10 ms unless the machine is busy.
    let mut devices = (0..11).map(|_| crash());
    let device = devices.find(|device| device.counts.right > 0);
    let device = device.expect("a report before the crash");
    assert!(
        device.unreported_ns > 0 && device.unreported_ns < device.elapsed_ns,
        "{device:?}"
    );
    let text = &device.reasons[0];
    assert!(
        text.contains("since its last report is not counted"),
        "{text}"
    );
}

pub(crate) fn a_pin_that_is_refused_is_not_tried_again() {
    let folder = testing::folder().expect("a folder");
    let module = folder.path().join("module");
    fs::write(&module, "").expect("room");
    let trials = [
        "speed: { operation: sha-256, size: [64 B, 1 KiB], concurrency: 8, workers: processes, duration: 20 ms }",
        "kat: { algorithms: sha-256 }",
        "fatigue: { operations: sha-256, threads: 1, loops: 1 }",
    ];
    for first in 0..trials.len() {
        let mut order = trials;
        // Each kind of trial meets the refusal first once.
        order.swap(0, first);
        fs::write(&module, "").expect("room");
        let text = format!(
            "devices: [pkcs11: {{ module: {}, token: card, pin_file: /nonexistent/pin, offload: false }}]\ntrials:\n  - {}",
            module.display(),
            order.join("\n  - ")
        );
        let outcomes = outcomes(&mut worker(REFUSED), &text);
        // Two sizes of the speed trial, and the two others.
        assert_eq!(outcomes.len(), 4);
        let skipped = outcomes.iter().filter(|outcome| match outcome {
            Outcome::Failed { reason } => {
                assert!(reason.contains("not that of the token"), "{reason}");
                reason.contains("skipped")
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(skipped.count(), 3);
        let tries = fs::read(&module).expect("it is there");
        assert_eq!(tries.len(), 1, "{}", trials[first]);
    }
}

pub(crate) fn the_last_reported_algorithm_is_blamed_for_a_workers_death() {
    let result = only_result(
        &mut worker(TRIES),
        "devices: [engine]\ntrials: [kat: { algorithms: [md5, sha-1, sha-256] }]",
    );
    let rows = result.kat().iter().map(|row| (&*row.algorithm, &*row.case));
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            ("md5", "vectors"),
            ("sha-1", "the rest"),
            ("sha-256", "vectors")
        ]
    );
    let KatOutcome::Error(how) = &result.kat()[1].outcome else {
        panic!("{result:?}");
    };
    assert!(how.contains("while it tried sha-1, empty"), "{how}");
}

/// Whether there is a SoftHSM2 here; else it is said that nothing was tested.
fn has_softhsm() -> bool {
    let tool = Command::new("softhsm2-util")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let has = tool.is_ok_and(|status| status.success());
    if !has {
        eprintln!("SKIPPED: softhsm2 is not installed, so that no token can be made");
    }
    has
}

/// The real worker, with a folder for temporary files of its own.
fn worker_in(folder: &Path) -> OnDevices {
    let program = std::env::current_exe().expect("a program");
    // The token's files are made there, so that all remains are found.
    let temporary = format!("TMPDIR={}", folder.display());
    let command = vec!["env".into(), temporary.into(), program.into(), REAL.into()];
    OnDevices::new(command, search_path())
}

fn left_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there").flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

pub(crate) fn a_token_of_softhsm_leaves_nothing() {
    if !has_softhsm() {
        return;
    }
    for trial in [
        "kat: { algorithms: sha-256 }",
        "speed: { operation: sha-256, size: 64 B, concurrency: 2, workers: processes, duration: 500 ms }",
        "fatigue: { operations: sha-256, threads: 2, loops: 10 }",
    ] {
        let folder = testing::folder().expect("a folder");
        let mut on = worker_in(folder.path());
        only_result(&mut on, &format!("devices: [softhsm]\ntrials: [{trial}]"));
        assert_eq!(left_in(folder.path()), [""; 0], "{trial}");
    }
}

pub(crate) fn a_broken_off_trial_with_softhsm_leaves_nothing() {
    if !has_softhsm() {
        return;
    }
    for trial in [
        "speed: { operation: sha-256, size: 64 B, duration: 1 h }",
        "fatigue: { operations: sha-256, threads: 2, duration: 1 h }",
    ] {
        let folder = testing::folder().expect("a folder");
        let mut on = worker_in(folder.path());
        let plan = plan(&format!("devices: [softhsm]\ntrials: [{trial}]"));
        let interrupt = Interrupt::new();
        let ended = thread::scope(|scope| {
            scope.spawn(|| {
                // As soon as there is a token, the only sign that it works.
                let until = Instant::now() + Duration::from_secs(60);
                while left_in(folder.path()).is_empty() && Instant::now() < until {
                    thread::sleep(Duration::from_millis(5));
                }
                interrupt.set();
            });
            let cell = &plan.cells[0];
            let trial = Trial::of(cell, 1, links(&plan, cell));
            on.measure(&trial, &mut |_| (), &interrupt)
        });
        assert!(matches!(ended, Err(LabError::Interrupted)), "{ended:?}");
        assert_eq!(left_in(folder.path()), [""; 0], "{trial}");
    }
}
