//! What a device can be asked for.

use crate::Operation;
use serde::{Deserialize, Serialize};

/// Why a device did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// It has no such operation, or not in this form. Not a failure.
    #[error("not offered: {0}")]
    NotOffered(String),
    /// It cannot be used at all: no such module, token, provider; a wrong PIN. What to do stands in the text.
    #[error("{0}")]
    Unusable(String),
    /// It failed at this operation. It may work again, if need be after a restart.
    #[error("{0}")]
    Failed(String),
}

/// What is known of a device, for the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Library, provider, token: as it names itself.
    pub name: String,
    /// Its version, as it tells it.
    pub version: String,
    /// Anything else worth telling: path of the module, slot, kernels in use.
    pub more: Vec<(String, String)>,
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
}

/// One thread's way to a device. Stays on its thread.
pub trait Session {
    /// Makes ready for an operation with the key that belongs to it ([`crate::spec::Keys`]): imported, scheduled.
    ///
    /// # Errors
    /// [`DeviceError::NotOffered`] where the device has no such operation.
    fn job(
        &mut self,
        operation: Operation,
        keys: &crate::spec::Keys,
    ) -> Result<Box<dyn Job + '_>, DeviceError>;
}

/// One operation made ready. What is timed is [`Self::run`], and nothing else.
pub trait Job {
    /// Does it once. `input` is plaintext, ciphertext, message or signature with message, as [`Operation`] says; `output`
    /// is overwritten with the result (for verifying and opening: nothing if the input is not authentic).
    ///
    /// Returns whether the input was authentic; `true` where there is nothing to verify.
    ///
    /// # Errors
    /// [`DeviceError::Failed`].
    fn run(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<bool, DeviceError>;
}
