//! PKCS#11 tokens (OASIS PKCS #11 v3.2), through the crate `cryptoki`, and SoftHSM2 as a token in
//! software.
//!
//! 1. [`open`] loads the module, finds the token, logs in with the PIN in a file, and reads its
//!    list of mechanisms.
//! 2. A job has its key in the token: imported as a session object, so that nothing is left on the
//!    token, shared by all jobs with the same key, and destroyed with the last of them.
//! 3. An operation is one single-part call: `C_EncryptInit` and `C_Encrypt`. Before the latter the
//!    binding queries the length of the output, as most programs do. The shared secret of ML-KEM is
//!    a key in the token, which is read and destroyed.
//!
//! Not supported: generated keys, which the CPU could not use for comparison; MD5, because the
//! binding lacks its mechanism. A token that does not accept imported keys offers digests only.

mod key;
mod mechanism;
mod raw;
mod softhsm;
mod token;

pub use softhsm::SoftHsm;
pub(crate) use token::open;

use cryptoki::error::{Error, RvError};

use crate::DeviceError;
use std::fmt::Display;

/// Describes the error of a call: `C_Login returned PinIncorrect`.
fn describe(error: &Error) -> String {
    match error {
        Error::Pkcs11(code, function) => format!("C_{function:?} returned {code:?}"),
        other => other.to_string(),
    }
}

fn failed(error: &Error) -> DeviceError {
    DeviceError::Failed(describe(error))
}

fn code(error: &Error) -> Option<&RvError> {
    match error {
        Error::Pkcs11(code, _) => Some(code),
        _ => None,
    }
}

fn unusable(text: impl Into<String>) -> DeviceError {
    DeviceError::Unusable(text.into())
}

/// Converts the error of a call that the device cannot do without; `what` failed.
fn unusable_since(what: impl Display) -> impl Fn(Error) -> DeviceError {
    move |error| unusable(format!("{what}: {}", describe(&error)))
}
