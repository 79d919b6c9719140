//! OpenSSL's libcrypto behind safe types: the only foreign code of this crate.
//!
//! Declarations are those of `openssl-sys`; what it has not stands in [`raw`]. A [`Library`] is a provider or an engine, and
//! whatever is made of it borrows it, as its code is unloaded with it. Values that are not `Sync` belong to one thread.
//!
//! Lengths are checked here: no function below reads or writes past what it is given, whatever its caller does.

#![allow(unsafe_code, reason = "libcrypto is C")]

mod engine;
mod key;
mod library;
mod raw;
mod symmetric;

pub(super) use key::{Key, KeyContext, KeyUse, RsaPadding, SignContext};
pub(super) use library::{Library, version};
pub(super) use symmetric::{CipherContext, DigestContext, MacContext};

use crate::DeviceError;
use std::ffi::{CStr, CString, c_char};

/// What libcrypto last said, as an error of the operation `what`. Empties its queue of errors.
fn failed(what: &str) -> DeviceError {
    DeviceError::Failed(match last_error() {
        Some(reason) => format!("{what} failed: {reason}"),
        None => format!("{what} failed, and libcrypto does not say why"),
    })
}

/// The last error of this thread in libcrypto's words. Empties its queue.
fn last_error() -> Option<String> {
    let mut last = 0;
    loop {
        // SAFETY: takes nothing; the queue is the thread's own.
        let code = unsafe { openssl_sys::ERR_get_error() };
        if code == 0 {
            break;
        }
        last = code;
    }
    if last == 0 {
        return None;
    }
    let mut text = [0_u8; 256];
    // SAFETY: at most `text.len()` bytes are written, with a zero at their end.
    unsafe { raw::ERR_error_string_n(last, text.as_mut_ptr().cast::<c_char>(), text.len()) };
    let text = CStr::from_bytes_until_nul(&text).ok()?;
    Some(text.to_string_lossy().into_owned())
}

/// Forgets errors that were expected, so that they are not told as the reason of the next.
fn forget_errors() {
    // SAFETY: takes nothing; the queue is the thread's own.
    unsafe { openssl_sys::ERR_clear_error() };
}

/// A name for C.
fn c_string(text: &str) -> Result<CString, DeviceError> {
    CString::new(text)
        .map_err(|_| DeviceError::Unusable(format!("the name {text:?} has a zero byte in it")))
}

/// A length for C.
fn c_int(length: usize) -> Result<i32, DeviceError> {
    i32::try_from(length)
        .map_err(|_| DeviceError::Failed(format!("{length} B are more than one call takes")))
}
