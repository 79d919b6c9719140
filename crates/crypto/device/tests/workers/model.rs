//! Trials on modelled coprocessors must measure the model's parameters.

use catalog::device::{DeviceFault, DeviceKind, DeviceModel, DeviceTest};
use catalog::worker::{Fatigue, Line, Speed};

use crate::worker::{Worker, endless, kat, loops, speed};

pub(crate) const ALL: &[(&str, fn())] = &[
    (
        "parallel_units_determine_the_rate",
        parallel_units_determine_the_rate,
    ),
    (
        "a_deep_queue_fills_the_units_from_one_thread",
        a_deep_queue_fills_the_units_from_one_thread,
    ),
    (
        "a_short_queue_limits_the_rate",
        a_short_queue_limits_the_rate,
    ),
    (
        "bytes_set_the_pace_of_ciphers_and_not_of_signatures",
        bytes_determine_the_rate,
    ),
    (
        "wrong_bytes_are_found_and_the_device_restarted",
        wrong_bytes_are_found,
    ),
    (
        "failures_without_restarts_are_counted",
        failures_without_restarts_are_counted,
    ),
    (
        "a_device_that_stops_is_reopened",
        a_device_that_stops_is_reopened,
    ),
    (
        "a_device_that_stops_for_good_goes_on_failing",
        a_stopped_device_fails_every_operation,
    ),
    (
        "wrong_results_are_found_in_a_speed_trial",
        wrong_results_are_found_in_a_speed_trial,
    ),
    (
        "an_invalid_input_that_fails_is_not_refused",
        an_invalid_input_that_fails_is_not_refused,
    ),
    (
        "an_impossible_model_is_refused",
        an_impossible_model_is_refused,
    ),
];

/// 1000 operations per second and unit, without errors.
const MODEL: DeviceModel = DeviceModel {
    latency_ns: 500_000,
    rate_bps: 1_000_000_000_000,
    operation_ns: 1_000_000,
    parallel: 4,
    queue: 64,
    errors_ppm: 0,
    fault: DeviceFault::Fails,
};

fn device(model: DeviceModel) -> DeviceKind {
    DeviceKind::Model(model)
}

/// Maximum number of attempts at a trial without a delay by the machine.
const TRIES: usize = 20;

/// Asserts that a trial's operations per second are more than `above` and at most `right`, and that
/// the device counts the same number.
///
/// A busy machine wakes threads late, possibly between two readings of counters: such a trial is
/// repeated. The tests in `model/schedule.rs` check the model's own clock to the last operation.
#[track_caller]
fn is_paced(model: &DeviceModel, work: &DeviceTest, above: f64, right: f64) {
    let trial = || {
        let speed = Worker::start(device(model.clone()), work.clone()).speed();
        assert_eq!((speed.failed, speed.wrong), (0, 0), "{speed:?}");
        speed
    };
    let is_right = |speed: &Speed| {
        let pace = speed.operations as f64 * 1e9 / speed.elapsed_ns as f64;
        let counted = speed.device_operations.expect("a model counts");
        above < pace
            && pace <= beyond(right)
            // Threads were in an operation at either reading.
            && counted.abs_diff(speed.operations) <= 200
            // The device does the work, not the CPU.
            && speed.cpu_ns < speed.elapsed_ns
    };
    let mut delayed = Vec::new();
    while delayed.len() < TRIES {
        let speed = trial();
        if is_right(&speed) {
            return;
        }
        delayed.push(speed);
    }
    panic!("none is between {above} and {right} operations a second: {delayed:?}");
}

/// A rate clearly above `pace`.
fn beyond(pace: f64) -> f64 {
    1.03 * pace
}

fn parallel_units_determine_the_rate() {
    let crowd = speed("sha-256", 64, 16, 400);
    is_paced(&MODEL, &crowd, beyond(1000.0), 4000.0);
    let single = DeviceModel {
        parallel: 1,
        ..MODEL
    };
    is_paced(&single, &crowd, beyond(667.0), 1000.0);
    // A thread that waits for each operation has the latency as well.
    is_paced(&MODEL, &speed("sha-256", 64, 1, 400), 0.0, 667.0);
}

fn a_deep_queue_fills_the_units_from_one_thread() {
    let mut work = speed("sha-256", 64, 1, 400);
    if let DeviceTest::Speed(test) = &mut work {
        test.depth = 16;
    }
    is_paced(&MODEL, &work, beyond(667.0), 4000.0);
}

fn a_short_queue_limits_the_rate() {
    // Two operations are in the device, each for 1.5 ms: the other units are idle.
    let short = DeviceModel { queue: 2, ..MODEL };
    is_paced(&short, &speed("sha-256", 64, 16, 400), 0.0, 1333.0);
}

fn bytes_determine_the_rate() {
    // 1000 B are a millisecond.
    let slow = DeviceModel {
        rate_bps: 8_000_000,
        operation_ns: 100_000,
        parallel: 1,
        ..MODEL
    };
    let cipher = speed("aes-128-ctr encrypt", 1000, 8, 400);
    is_paced(&slow, &cipher, 0.0, 909.0);
    let signature = speed("rsa-2048-pkcs1 sign", 1000, 16, 400);
    is_paced(&slow, &signature, beyond(909.0), 10_000.0);
}

/// A fatigue trial on a model, until `enough`.
fn run_fatigue(model: DeviceModel, work: DeviceTest, enough: impl Fn(&Fatigue) -> bool) -> Fatigue {
    let mut worker = Worker::start(device(model), work).go();
    loop {
        match worker.line() {
            Some(Line::Fatigue(fatigue)) if enough(&fatigue) => break,
            Some(Line::Fatigue(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    worker.send("stop");
    worker.fatigue()
}

const QUICK: DeviceModel = DeviceModel {
    latency_ns: 10_000,
    operation_ns: 10_000,
    parallel: 8,
    errors_ppm: 5_000,
    ..MODEL
};

fn wrong_bytes_are_found() {
    let model = DeviceModel {
        fault: DeviceFault::Wrong,
        ..QUICK
    };
    let work = endless(
        &["sha-256", "aes-128-gcm decrypt", "ed25519 verify"],
        4,
        true,
    );
    let fatigue = run_fatigue(model, work, |fatigue| fatigue.counts.restarts >= 2);
    assert!(
        fatigue.counts.wrong + fatigue.counts.passed_invalid >= fatigue.counts.restarts,
        "{fatigue:?}"
    );
    assert_eq!(fatigue.counts.failed, 0, "{fatigue:?}");
    let lives = fatigue.failures_ns.len() as u64;
    assert!(
        lives == fatigue.counts.restarts || lives == fatigue.counts.restarts + 1,
        "{fatigue:?}"
    );
    assert_eq!(fatigue.restarts_ns.len() as u64, fatigue.counts.restarts);
    // Failures and restarts alternate.
    let turns = fatigue.failures_ns.iter().zip(&fatigue.restarts_ns);
    assert!(
        turns.clone().all(|(failed, again)| failed <= again),
        "{fatigue:?}"
    );
    assert!(
        fatigue.counts.right > 0 && !fatigue.reasons.is_empty(),
        "{fatigue:?}"
    );
}

fn failures_without_restarts_are_counted() {
    let work = endless(&["sha-256"], 4, false);
    let fatigue = run_fatigue(QUICK, work, |fatigue| fatigue.counts.failed >= 3);
    assert_eq!(
        (fatigue.counts.restarts, fatigue.failures_ns.len()),
        (0, 1),
        "{fatigue:?}"
    );
    assert!(
        !fatigue.reasons.is_empty() && fatigue.reasons.len() <= 20,
        "{fatigue:?}"
    );
    assert!(fatigue.counts.right > fatigue.counts.failed, "{fatigue:?}");
    assert_eq!(fatigue.counts.wrong, 0, "{fatigue:?}");
}

fn a_device_that_stops_is_reopened() {
    let model = DeviceModel {
        fault: DeviceFault::Stops,
        ..QUICK
    };
    let fatigue = run_fatigue(model, endless(&["sha-256"], 4, true), |fatigue| {
        fatigue.counts.restarts >= 2
    });
    assert!(
        fatigue.counts.failed >= fatigue.counts.restarts,
        "{fatigue:?}"
    );
    assert!(fatigue.counts.right > 0, "{fatigue:?}");
    assert!(
        fatigue
            .reasons
            .iter()
            .any(|reason| reason.contains("stopped")),
        "{fatigue:?}"
    );
}

fn a_stopped_device_fails_every_operation() {
    let model = DeviceModel {
        fault: DeviceFault::Stops,
        errors_ppm: 1_000_000,
        ..QUICK
    };
    let fatigue = Worker::start(device(model), loops(&["sha-256"], 4, 10))
        .go()
        .fatigue();
    assert_eq!(
        (fatigue.counts.right, fatigue.counts.failed),
        (0, 40),
        "{fatigue:?}"
    );
    assert_eq!(fatigue.failures_ns.len(), 1, "{fatigue:?}");
}

fn wrong_results_are_found_in_a_speed_trial() {
    let model = DeviceModel {
        fault: DeviceFault::Wrong,
        errors_ppm: 500_000,
        ..QUICK
    };
    let speed = Worker::start(device(model), speed("sha-256", 64, 2, 50)).speed();
    assert!(
        speed.checked > 0 && speed.wrong > 0 && speed.wrong < speed.checked,
        "{speed:?}"
    );
}

fn an_invalid_input_that_fails_is_not_refused() {
    for fault in [DeviceFault::Fails, DeviceFault::Stops] {
        let model = DeviceModel {
            fault,
            errors_ppm: 1_000_000,
            ..QUICK
        };
        let mut work = loops(&["aes-128-gcm decrypt"], 4, 10);
        if let DeviceTest::Fatigue(test) = &mut work {
            test.invalid_every = 2;
        }
        let fatigue = Worker::start(device(model), work).go().fatigue();
        assert_eq!(
            (fatigue.counts.refused, fatigue.counts.failed),
            (0, 40),
            "{fatigue:?}"
        );
        assert_eq!(fatigue.rounds, Some(10), "{fatigue:?}");
    }
}

fn an_impossible_model_is_refused() {
    let refusal = Worker::start(
        device(DeviceModel {
            rate_bps: 0,
            ..MODEL
        }),
        kat(&["sha-256"]),
    )
    .refusal();
    assert_eq!(
        refusal,
        "the modelled device cannot work: its rate is 0; set the bit/s of one unit"
    );
}
