//! The fatigue trial: every thread repeats every operation, and each result is verified.
//!
//! 1. The CPU makes inputs with their expected results once; all threads share them.
//! 2. A life of the device begins (module `life`): each thread opens a session and prepares its
//!    jobs, and all begin together.
//! 3. A thread runs one operation after the other. The outcome is a right result, a wrong one or a
//!    failure; some inputs are invalid on purpose, and are refused or accepted. About every second
//!    the presence of the device is checked.
//! 4. The time of the first failure is recorded: it is the time without failure. If the trial
//!    restarts devices, all threads return, the device is closed and reopened, and the next life
//!    continues at each thread's step.
//!
//! A device that cannot be reopened ends the trial with the counts so far. The trial does not
//! detect an operation that never returns: the parent process notices that progress reports stop,
//! or show no progress.

mod life;
mod tally;

use std::time::Duration;

use crate::orders::Orders;
use crate::threads::check_threads;
use crate::{Case, Device, DeviceError, Keys, Session};
use catalog::Operation;
use catalog::device::Fatigue as Test;
use catalog::worker::Fatigue;
use life::{End, Trial};
use tally::Tallies;

/// Bytes of valid inputs, in turn: the block sizes in reports on cards.
const VALID_BYTES: [usize; 5] = [16, 64, 256, 1024, 8192];
const INVALID_BYTES: [usize; 2] = [64, 1024];
/// Bytes of inputs for public-key operations.
const MESSAGE_BYTES: [usize; 2] = [32, 48];
/// Waits before the attempts to reopen a failed device.
const REOPENING: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1600),
];

/// The reference for results, keys and orders of a trial.
#[derive(Clone, Copy)]
pub(crate) struct Against<'a> {
    /// Makes inputs and verifies results.
    pub(crate) cpu: &'a dyn Device,
    pub(crate) keys: &'a Keys,
    pub(crate) orders: &'a Orders,
}

/// Inputs of one operation.
struct Inputs {
    operation: Operation,
    valid: Vec<Case>,
    /// Empty if every input is valid.
    invalid: Vec<Case>,
}

/// Runs the trial. `open` reopens the device; `ready` is called when all threads wait, and returns
/// whether to begin; `report` receives progress, at first after 10 ms and in the end about every
/// second, and once at the end, before the device is closed.
///
/// # Errors
/// [`DeviceError`] if the trial cannot begin: the device offers none of the operations, or supports
/// fewer threads. After the last report, [`DeviceError::PinRefused`] if reopening the device failed
/// for that reason.
pub(crate) fn run(
    device: Box<dyn Device>,
    open: &dyn Fn() -> Result<Box<dyn Device>, DeviceError>,
    against: Against<'_>,
    test: &Test,
    ready: impl FnOnce() -> bool,
    report: &mut dyn FnMut(Fatigue),
) -> Result<(), DeviceError> {
    let operations: Vec<Operation> = test
        .operations
        .iter()
        .map(|name| Operation::parse(name))
        .collect::<Result<_, _>>()?;
    check_threads(test.threads)?;
    let tallies = Tallies::new(test.threads);
    let inputs = inputs(&*device, against, &operations, &tallies)?;
    // Operations that the device lacks are not part of a round, so that a round means the same for
    // each thread.
    tallies.set_round(inputs.len());
    let trial = Trial {
        test,
        inputs: &inputs,
        against,
        tallies: &tallies,
    };

    let mut end = trial.live(&*device, ready, report)?;
    close(device, end, &tallies, report);
    // The device is closed by now: a process can initialise a module of PKCS#11 only once.
    while end == End::Failed {
        end = reopen(&trial, open, report)?;
    }
    Ok(())
}

/// Closes the device after its life. The counts are reported first: a driver may crash while it
/// closes, and the counts would be lost.
fn close(device: Box<dyn Device>, end: End, tallies: &Tallies, report: &mut dyn FnMut(Fatigue)) {
    // Lives may be shorter than the interval of progress reports.
    if end == End::Over || (end == End::Failed && tallies.due_in().is_zero()) {
        report(tallies.tick());
    }
    drop(device);
}

/// Reopens the device and runs its next life. An error is a rejected PIN, which is not tried a
/// second time.
fn reopen(
    trial: &Trial<'_>,
    open: &dyn Fn() -> Result<Box<dyn Device>, DeviceError>,
    report: &mut dyn FnMut(Fatigue),
) -> Result<End, DeviceError> {
    for wait in REOPENING {
        if !trial.against.orders.pause(wait) || trial.is_over() {
            break;
        }
        let lived = open().and_then(|device| {
            let end = trial.live(&*device, || true, report)?;
            close(device, end, trial.tallies, report);
            Ok(end)
        });
        match lived {
            Ok(end) => return Ok(end),
            Err(error) => {
                let text = format!("the device cannot be reopened: {error}");
                trial.tallies.note_reason(text);
                if matches!(error, DeviceError::PinRefused(_)) {
                    report(trial.tallies.tick());
                    return Err(error);
                }
            }
        }
    }
    report(trial.tallies.tick());
    Ok(End::Over)
}

/// Makes inputs for the operations that the device offers and the CPU can verify.
fn inputs(
    device: &dyn Device,
    Against { cpu, keys, .. }: Against<'_>,
    operations: &[Operation],
    tallies: &Tallies,
) -> Result<Vec<Inputs>, DeviceError> {
    let (device, cpu) = (device.session()?, cpu.session()?);
    let mut all = Vec::new();
    let mut missing = None;
    for &operation in operations {
        // Prepared and dropped here, to see only whether it is offered: each thread prepares its
        // jobs itself.
        match device.job(operation, keys).map(drop) {
            Ok(()) => {}
            Err(error @ DeviceError::NotOffered(_)) => {
                missing.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error),
        }
        match inputs_of(operation, keys, &*cpu) {
            Ok(inputs) => all.push(inputs),
            Err(error) => {
                let text = format!("{operation} is left out, as the CPU cannot verify it: {error}");
                tallies.note_reason(text.clone());
                missing.get_or_insert(DeviceError::NotOffered(text));
            }
        }
    }
    match missing {
        Some(error) if all.is_empty() => Err(error),
        None if all.is_empty() => Err(DeviceError::Unusable("no operation is named".to_owned())),
        _ => Ok(all),
    }
}

fn inputs_of(operation: Operation, keys: &Keys, cpu: &dyn Session) -> Result<Inputs, DeviceError> {
    let sized = operation.takes_size();
    let sizes = |sized_bytes| {
        if sized {
            sized_bytes
        } else {
            &MESSAGE_BYTES[..]
        }
    };
    let valid = (keys.seed..).zip(sizes(&VALID_BYTES));
    let invalid = (keys.seed..).zip(sizes(&INVALID_BYTES));
    Ok(Inputs {
        operation,
        valid: valid
            .map(|(variant, &bytes)| Case::valid(operation, bytes, variant, keys, cpu))
            .collect::<Result<_, _>>()?,
        invalid: invalid
            .filter_map(|(variant, &bytes)| {
                Case::invalid(operation, bytes, variant, keys, cpu).transpose()
            })
            .collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests;
