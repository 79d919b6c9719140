//! The traits of a device: device, session, job and queue.

use crate::{Count, Inputs, Keys};
use catalog::device::Facts;
use catalog::{Operation, UnknownName};

/// An error of a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// It does not offer the operation, or not with these parameters. Not a failure.
    #[error("not offered: {0}")]
    NotOffered(String),
    /// It cannot be used at all: its module, token or provider is missing, or the spec is wrong.
    /// The text says what to do.
    #[error("{0}")]
    Unusable(String),
    /// It rejects the PIN. The same PIN must not be tried again: a token locks itself after a few
    /// wrong ones.
    #[error("{0}")]
    PinRefused(String),
    /// Its result is wrong, regardless of the bytes: it announced more of them than its buffer
    /// holds.
    #[error("{0}")]
    Wrong(String),
    /// It failed at this operation. It may work again, possibly only after a restart.
    #[error("{0}")]
    Failed(String),
}

impl From<UnknownName> for DeviceError {
    fn from(error: UnknownName) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// An open device, shared by the threads of a process.
pub trait Device: Send + Sync {
    /// Returns its name, version and other metadata.
    fn facts(&self) -> Facts;

    /// Opens a session for the calling thread.
    ///
    /// # Errors
    /// [`DeviceError`], for example when it has no session left.
    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError>;

    /// Returns the number of operations by the device's counter; `None` if it has none.
    fn operations_done(&self) -> Option<u64> {
        None
    }

    /// Checks that the device is still present. Called periodically besides the operations: a token
    /// with keys in its library's memory may go on computing after it was unplugged.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when it is gone.
    fn present(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Returns the CPU time that this process spent to model hardware, in nanoseconds. It is
    /// subtracted from the CPU time of operations.
    fn stand_in_ns(&self) -> u64 {
        0
    }
}

/// One thread's session with a device. Stays on its thread.
pub trait Session {
    /// Prepares an operation with its key from [`Keys`]: imports the key and computes its schedule.
    /// A session may have several jobs, which its thread runs one after the other.
    ///
    /// # Errors
    /// [`DeviceError::NotOffered`] if the device does not offer the operation.
    fn job(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Job + '_>, DeviceError>;
}

/// A prepared operation. Only [`Self::run`] is timed.
pub trait Job {
    /// Runs it once. `input` is plaintext, ciphertext, message or signature with message, as
    /// [`Operation`] specifies; `output` is overwritten with the result (for verifying and opening:
    /// empty if the input is not authentic).
    ///
    /// Returns whether the input was authentic; `true` if the operation verifies nothing.
    ///
    /// # Errors
    /// [`DeviceError::Failed`].
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError>;

    /// Runs it `times` times, each with the next of the inputs, and adds each run to `count`.
    ///
    /// Implementations should not override it: the default is compiled for each job type, so that
    /// no indirect call separates two operations.
    fn repeat(
        &mut self,
        times: u64,
        inputs: &mut Inputs<'_>,
        output: &mut Vec<u8>,
        count: &mut Count<'_>,
    ) {
        for _ in 0..times {
            let (_, input) = inputs.next();
            count.add(matches!(self.run(input, output), Ok(true)));
        }
    }

    /// Returns the queue for several operations in flight, if the device supports that.
    fn queue(&mut self) -> Option<&mut dyn Queue> {
        None
    }
}

/// A job's operations in flight. Results are returned in submission order.
pub trait Queue {
    /// Submits an operation; waits only while the device's queue is full.
    ///
    /// # Errors
    /// [`DeviceError::Failed`]: the device rejected it.
    fn submit(&mut self, input: &[u8]) -> Result<(), DeviceError>;

    /// Waits for the oldest operation in flight, with the result and errors of [`Job::run`]. An
    /// error if no operation is in flight.
    ///
    /// # Errors
    /// [`DeviceError::Failed`].
    fn complete(&mut self, output: &mut Vec<u8>) -> Result<bool, DeviceError>;
}

/// The error for a result announced with more bytes than its buffer holds.
#[cold]
pub(crate) fn overlong(announced: usize, room: usize) -> DeviceError {
    DeviceError::Wrong(format!(
        "it announced a result of {announced} B in a buffer of {room} B"
    ))
}

/// The error for a key of a vector or a trial that a library rejects.
pub(crate) fn refused(what: impl std::fmt::Display) -> DeviceError {
    DeviceError::NotOffered(format!("the key is refused: {what}"))
}

/// The error of an operation in AWS-LC.
pub(crate) fn aws_lc_failed(_: aws_lc_rs::error::Unspecified) -> DeviceError {
    DeviceError::Failed("AWS-LC reports an error without a reason".to_owned())
}
