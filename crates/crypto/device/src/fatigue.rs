//! The fatigue trial: every thread does every operation again and again, and each result is
//! verified.
//!
//! 1. Inputs are made once, by the CPU, with what must come of them; all threads share them.
//! 2. A life of the device begins (`life`): each thread has a session and its jobs, and all begin
//!    together.
//! 3. A thread does one operation after the other. What comes back is right, wrong or a failure;
//!    some inputs are invalid on purpose, and refused or passed. About every second the device is
//!    asked whether it is still there.
//! 4. At the first thing that goes wrong the time is noted: that was the time without failure.
//!    Where the trial is to go on, all threads leave, the device is closed and opened anew, and the
//!    next life begins where the threads were.
//!
//! A device that does not come back ends the trial, with what was counted. What it does not do:
//! wait for an operation that never returns. Whoever started the process sees that nothing is told
//! any more.

mod life;
mod tally;

use std::time::Duration;

use crate::operation::device::Fatigue as Test;
use crate::orders::Orders;
use crate::report::Fatigue;
use crate::threads::check_threads;
use crate::{Case, Device, DeviceError, Keys, Operation, Session};
use life::{End, Trial};
use tally::Tallies;

/// Bytes of valid inputs, in turn: the block sizes that cards are reported with.
const VALID_BYTES: [usize; 5] = [16, 64, 256, 1024, 8192];
const INVALID_BYTES: [usize; 2] = [64, 1024];
/// Of inputs of public keys.
const MESSAGE_BYTES: [usize; 2] = [32, 48];
/// Waits before each try to open a device again that failed.
const REOPENING: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(400),
    Duration::from_millis(800),
    Duration::from_millis(1600),
];

/// What a device is tried against.
#[derive(Clone, Copy)]
pub(crate) struct Against<'a> {
    /// Makes inputs and judges results.
    pub(crate) cpu: &'a dyn Device,
    pub(crate) keys: &'a Keys,
    pub(crate) orders: &'a Orders,
}

/// Inputs of one operation.
struct Inputs {
    operation: Operation,
    valid: Vec<Case>,
    /// Empty where every input is valid.
    invalid: Vec<Case>,
}

/// Does the trial. `open` opens the device again; `ready` is called when everything waits, and
/// returns whether to begin; `say` is told how far it is about every second, and once at the end.
///
/// # Errors
/// [`DeviceError`] where the trial cannot begin: the device has none of the operations, or takes
/// fewer threads. After all was said, [`DeviceError::PinRefused`] where the device could not be
/// opened again for that.
pub(crate) fn run(
    device: Box<dyn Device>,
    open: &dyn Fn() -> Result<Box<dyn Device>, DeviceError>,
    against: Against<'_>,
    test: &Test,
    ready: impl FnOnce() -> bool,
    say: &mut dyn FnMut(Fatigue),
) -> Result<(), DeviceError> {
    let operations: Vec<Operation> = test
        .operations
        .iter()
        .map(|name| Operation::parse(name))
        .collect::<Result<_, _>>()?;
    check_threads(test.threads)?;
    let tallies = Tallies::new(test.threads);
    let inputs = inputs(&*device, against, &operations, &tallies)?;
    tallies.set_round(inputs.len());
    let trial = Trial {
        test,
        inputs: &inputs,
        against,
        tallies: &tallies,
    };

    let mut end = trial.live(&*device, ready, say)?;
    drop(device);
    while end == End::Failed {
        // Lives may be shorter than the time between two words.
        if tallies.due_in().is_zero() {
            say(tallies.tick());
        }
        end = match come_back(&trial, open, say) {
            Ok(end) => end,
            Err(refused) => {
                say(tallies.tick());
                return Err(refused);
            }
        };
    }
    if end != End::NeverBegan {
        say(tallies.tick());
    }
    Ok(())
}

/// Opens the device again and lets it live once more. An error is a PIN that is refused, which is
/// tried no second time.
fn come_back(
    trial: &Trial<'_>,
    open: &dyn Fn() -> Result<Box<dyn Device>, DeviceError>,
    say: &mut dyn FnMut(Fatigue),
) -> Result<End, DeviceError> {
    for wait in REOPENING {
        if !trial.against.orders.pause(wait) || trial.is_over() {
            break;
        }
        match open().and_then(|device| trial.live(&*device, || true, say)) {
            Ok(end) => return Ok(end),
            Err(error) => {
                let text = format!("the device cannot be opened again: {error}");
                trial.tallies.tell(text);
                if matches!(error, DeviceError::PinRefused(_)) {
                    return Err(error);
                }
            }
        }
    }
    Ok(End::Over)
}

/// Inputs for those operations that the device has and the CPU can verify.
fn inputs(
    device: &dyn Device,
    Against { cpu, keys, .. }: Against<'_>,
    operations: &[Operation],
    tallies: &Tallies,
) -> Result<Vec<Inputs>, DeviceError> {
    let (device, cpu) = (device.session()?, cpu.session()?);
    let mut all = Vec::new();
    let mut lacking = None;
    for &operation in operations {
        match device.job(operation, keys).map(drop) {
            Ok(()) => {}
            Err(error @ DeviceError::NotOffered(_)) => {
                lacking.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error),
        }
        match inputs_of(operation, keys, &*cpu) {
            Ok(inputs) => all.push(inputs),
            Err(error) => {
                let text = format!("{operation} is left out, as the CPU cannot verify it: {error}");
                tallies.tell(text.clone());
                lacking.get_or_insert(DeviceError::NotOffered(text));
            }
        }
    }
    match lacking {
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
