//! Refusals and failures are distinguished.

use super::*;
use crate::cpu;
use crate::faulty::{Faulty, How};

const OPERATIONS: [&str; 2] = ["aes-128-gcm decrypt", "ecdsa-p256 verify"];
const THREADS: u32 = 2;
const LOOPS: u64 = 20;

fn test(restart: bool) -> Test {
    Test {
        operations: OPERATIONS.map(str::to_owned).to_vec(),
        threads: THREADS,
        loops: Some(LOOPS),
        duration_ns: None,
        invalid_every: 4,
        restart,
        snapshot_ns: 0,
    }
}

fn run_trial(how: How) -> Fatigue {
    let reopen = || Err(DeviceError::Failed("it is not reopened".to_owned()));
    let (done, last) = run_trial_with_restarts(how, false, &reopen);
    done.expect("the device offers the operations");
    last.expect("a last report")
}

/// The same with a device that may be reopened. Returns the result and the last report.
fn run_trial_with_restarts(
    how: How,
    restart: bool,
    reopen: &dyn Fn() -> Result<Box<dyn Device>, DeviceError>,
) -> (Result<(), DeviceError>, Option<Fatigue>) {
    let test = test(restart);
    let (keys, orders) = (Keys::new(7), Orders::default());
    let cpu = cpu::open(None).expect("our own engines");
    let against = Against {
        cpu: &cpu,
        keys: &keys,
        orders: &orders,
    };
    let mut last = None;
    let mut report = |fatigue| last = Some(fatigue);
    let device = Box::new(Faulty::new(how));
    let done = run(device, reopen, against, &test, || true, &mut report);
    (done, last)
}

#[test]
fn a_pin_that_is_refused_is_tried_once() {
    let tries = std::cell::Cell::new(0);
    let reopen = || {
        tries.set(tries.get() + 1);
        Err(DeviceError::PinRefused("a wrong PIN".to_owned()))
    };
    let (done, last) = run_trial_with_restarts(How::FailsOnce, true, &reopen);
    assert!(matches!(done, Err(DeviceError::PinRefused(_))), "{done:?}");
    assert_eq!(tries.get(), 1);
    assert!(last.is_some_and(|last| last.counts.failed > 0));
}

/// A device that sets a flag when it is closed.
struct Closing(Faulty, std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Device for Closing {
    fn facts(&self) -> catalog::device::Facts {
        self.0.facts()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError> {
        self.0.session()
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.1.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// A driver may crash while it closes.
#[test]
fn the_last_report_comes_before_the_device_is_closed() {
    let closed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_closed = || closed.load(std::sync::atomic::Ordering::Relaxed);
    let mut before = None;
    let mut report = |fatigue: Fatigue| {
        if !is_closed() {
            before = Some(fatigue);
        }
    };
    let device = Closing(Faulty::new(How::RefusesByErrors), closed.clone());
    let (keys, orders) = (Keys::new(7), Orders::default());
    let cpu = cpu::open(None).expect("our own engines");
    let against = Against {
        cpu: &cpu,
        keys: &keys,
        orders: &orders,
    };
    let reopen = || Err(DeviceError::Failed("it is not reopened".to_owned()));
    let test = test(false);
    run(
        Box::new(device),
        &reopen,
        against,
        &test,
        || true,
        &mut report,
    )
    .expect("it works");
    assert!(is_closed());
    let before = before.expect("a report before it was closed");
    let all = u64::from(THREADS) * LOOPS * OPERATIONS.len() as u64;
    assert_eq!(
        before.counts.right + before.counts.refused,
        all,
        "{before:?}"
    );
}

#[test]
fn a_device_may_refuse_by_failing() {
    let fatigue = run_trial(How::RefusesByErrors);
    let all = u64::from(THREADS) * LOOPS * OPERATIONS.len() as u64;
    assert_eq!(
        fatigue.counts.right + fatigue.counts.refused,
        all,
        "{fatigue:?}"
    );
    assert!(fatigue.counts.refused > 0, "{fatigue:?}");
    assert_eq!(
        (fatigue.counts.failed, fatigue.counts.wrong),
        (0, 0),
        "{fatigue:?}"
    );
    assert_eq!(fatigue.rounds, Some(LOOPS), "{fatigue:?}");
}

#[test]
fn a_device_that_dies_of_an_invalid_input_has_failed() {
    let fatigue = run_trial(How::DiesOfInvalid);
    assert_eq!(fatigue.counts.refused, 0, "{fatigue:?}");
    assert!(
        fatigue.counts.failed > 0 && fatigue.counts.right > 0,
        "{fatigue:?}"
    );
    assert_eq!(fatigue.failures_ns.len(), 1, "{fatigue:?}");
}

#[test]
fn a_chance_failure_at_an_invalid_input_is_a_failure() {
    let fatigue = run_trial(How::FailsOnce);
    assert_eq!(fatigue.counts.failed, 1, "{fatigue:?}");
    assert!(fatigue.counts.refused > 0, "{fatigue:?}");
    assert!(
        fatigue.reasons[0].contains("does not fail every time"),
        "{fatigue:?}"
    );
}
