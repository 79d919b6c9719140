//! What a device can be asked for.

use crate::{Count, Facts, Keys, Operation, UnknownName};

/// Why a device did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// It has no such operation, or not in this form. Not a failure.
    #[error("not offered: {0}")]
    NotOffered(String),
    /// It cannot be used at all: no such module, token, provider; a wrong PIN. What to do stands in
    /// the text.
    #[error("{0}")]
    Unusable(String),
    /// It does not take the PIN. Nobody is to try the same again: a token locks itself after a few
    /// wrong ones.
    #[error("{0}")]
    PinRefused(String),
    /// It failed at this operation. It may work again, if need be after a restart.
    #[error("{0}")]
    Failed(String),
}

impl From<UnknownName> for DeviceError {
    fn from(error: UnknownName) -> Self {
        Self::Unusable(error.to_string())
    }
}

/// A device that is open. Shared by the threads of a process.
pub trait Device: Send + Sync {
    /// What is known of it.
    fn facts(&self) -> Facts;

    /// What one thread works with.
    ///
    /// # Errors
    /// [`DeviceError`], as when it has no session left.
    fn session(&self) -> Result<Box<dyn Session + '_>, DeviceError>;

    /// Operations that the device itself says it did; `None` where it does not count.
    fn operations_done(&self) -> Option<u64> {
        None
    }

    /// Whether it is still there. Asked now and then besides the operations: a token whose keys lie
    /// in its library's memory may go on computing after it was pulled.
    ///
    /// # Errors
    /// [`DeviceError::Failed`] when it is gone.
    fn present(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// CPU time that this process spent on what hardware would do in the place of a model, in
    /// nanoseconds. It is taken off the CPU time of operations.
    fn stand_in_ns(&self) -> u64 {
        0
    }
}

/// One thread's way to a device. Stays on its thread.
pub trait Session {
    /// Makes ready for an operation with the key that belongs to it ([`Keys`]): imported,
    /// scheduled. A session may have several jobs, which its thread does one after the other.
    ///
    /// # Errors
    /// [`DeviceError::NotOffered`] where the device has no such operation.
    fn job(&self, operation: Operation, keys: &Keys) -> Result<Box<dyn Job + '_>, DeviceError>;
}

/// One operation made ready. What is timed is [`Self::run`], and nothing else.
pub trait Job {
    /// Does it once. `input` is plaintext, ciphertext, message or signature with message, as
    /// [`Operation`] says; `output` is overwritten with the result (for verifying and opening:
    /// nothing if the input is not authentic).
    ///
    /// Returns whether the input was authentic; `true` where there is nothing to verify.
    ///
    /// # Errors
    /// [`DeviceError::Failed`].
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError>;

    /// Does it `times` times, and tells `count` of each. Returns whether the last one came to a
    /// result, which is then in `output`.
    ///
    /// Not for jobs to write: it stands here so that it is compiled for each of them, and no call
    /// by pointer stands between two operations.
    fn repeat(
        &mut self,
        times: u64,
        input: &[u8],
        output: &mut Vec<u8>,
        count: &mut Count<'_>,
    ) -> bool {
        let mut came = false;
        for _ in 0..times {
            came = matches!(self.run(input, output), Ok(true));
            count.add(came);
        }
        came
    }

    /// The way to have several operations in the device at once, where it takes that.
    fn queue(&mut self) -> Option<&mut dyn Queue> {
        None
    }
}

/// A job's operations that are in the device. They come back in the order in which they went in.
pub trait Queue {
    /// Hands an operation to the device; waits only where the device's own queue is full.
    ///
    /// # Errors
    /// [`DeviceError::Failed`]: it was not taken.
    fn submit(&mut self, input: &[u8]) -> Result<(), DeviceError>;

    /// Waits for the oldest operation that was handed over, with result and errors of [`Job::run`].
    /// An error where none was.
    ///
    /// # Errors
    /// [`DeviceError::Failed`].
    fn complete(&mut self, output: &mut Vec<u8>) -> Result<bool, DeviceError>;
}

/// A key of a vector or of a trial that a library does not take.
pub(crate) fn refused(what: impl std::fmt::Display) -> DeviceError {
    DeviceError::NotOffered(format!("the key is refused: {what}"))
}

/// A library that gave up.
pub(crate) fn gave_up(_: aws_lc_rs::error::Unspecified) -> DeviceError {
    DeviceError::Failed("AWS-LC gave up, and does not say why".to_owned())
}
