//! PKCS#11 tokens (OASIS PKCS #11 v3.2), by the crate `cryptoki`; and SoftHSM2 as the token for
//! those who have none.
//!
//! 1. [`open`] loads the module, finds the token, logs in with the PIN that a file has, and asks
//!    for its mechanisms.
//! 2. A job has its key in the token: imported as an object of the session that the device keeps,
//!    so that nothing is left on the token, shared by all jobs that want the same one, and
//!    destroyed with the last of them.
//! 3. An operation is one single-part call: `C_EncryptInit` and `C_Encrypt`. Before the latter the
//!    binding asks for the length of the output, as most programs do. The shared secret of ML-KEM
//!    is a key in the token: it is read and destroyed.
//!
//! What it does not do: generate keys, which it could not tell the CPU to compare with; MD5, whose
//! mechanism the binding does not know. A token that takes no imported keys offers digests only.

mod key;
mod mechanism;
mod softhsm;
mod token;

pub use softhsm::SoftHsm;
pub(crate) use token::open;

use cryptoki::error::{Error, RvError};

use crate::DeviceError;

/// What a call came back with: `C_Login returned PinIncorrect`.
fn told(error: &Error) -> String {
    match error {
        Error::Pkcs11(code, function) => format!("C_{function:?} returned {code:?}"),
        other => other.to_string(),
    }
}

fn failed(error: &Error) -> DeviceError {
    DeviceError::Failed(told(error))
}

fn code(error: &Error) -> Option<&RvError> {
    match error {
        Error::Pkcs11(code, _) => Some(code),
        _ => None,
    }
}

fn unusable(text: String) -> DeviceError {
    DeviceError::Unusable(text)
}
