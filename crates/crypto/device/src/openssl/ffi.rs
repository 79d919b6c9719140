//! OpenSSL's libcrypto behind safe types: the only foreign code of this crate.
//!
//! Declarations are those of `openssl-sys`; what it has not stands in [`raw`]. A [`Library`] is a
//! provider or an engine, and whatever is made of it borrows it, as its code is unloaded with it.
//! Values that are not `Sync` belong to one thread.
//!
//! Lengths are checked here: no function below reads or writes past what it is given, whatever its
//! caller does.

#![allow(unsafe_code, reason = "libcrypto is C")]

mod cipher;
mod engine;
mod key;
mod library;
mod raw;
mod symmetric;

pub(super) use cipher::{CipherContext, Iv};
pub(super) use key::{Key, KeyContext, KeyUse, RsaPadding, SignContext};
pub(super) use library::{Library, version};
pub(super) use symmetric::{DigestContext, MacContext};

use crate::DeviceError;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;

/// What libcrypto last said, as an error of the operation `what`. Empties its queue of errors.
#[cold]
fn failed(what: &str) -> DeviceError {
    DeviceError::Failed(match last_error() {
        Some(reason) => format!("{what} failed: {reason}"),
        None => format!("{what} failed, and libcrypto does not say why"),
    })
}

/// The result of an operation `what` of libcrypto that succeeded if `done`.
#[inline]
fn check(done: bool, what: &str) -> Result<(), DeviceError> {
    if done { Ok(()) } else { Err(failed(what)) }
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

/// That the provider or engine has no such thing. Empties libcrypto's queue of errors.
fn not_offered(library: &Library, what: &str) -> DeviceError {
    forget_errors();
    DeviceError::NotOffered(format!("{} has no {what}", library.name()))
}

/// The error for what the device does not do, with libcrypto's reason. Empties its queue of errors.
fn not_offered_because(what: &str) -> DeviceError {
    let why = last_error().unwrap_or_default();
    DeviceError::NotOffered(format!("{what}: {why}"))
}

/// Forgets errors that were expected, so that they are not told as the reason of the next.
fn forget_errors() {
    // SAFETY: takes nothing; the queue is the thread's own.
    unsafe { openssl_sys::ERR_clear_error() };
}

/// Keeps a module in memory until the process ends. `module`: its path; otherwise it is `name` in
/// the folder that libcrypto tells for `folder`.
///
/// Modules leave behind what points into them: the GOST provider and engine do, with names of
/// algorithms. Once they were unloaded the next look-up of a name would read what is not there.
fn pin(name: &str, module: Option<&Path>, folder: c_int) {
    let path = if let Some(module) = module {
        module.to_owned()
    } else {
        // SAFETY: takes a number; what comes is null or a string that lives for ever.
        let folder = unsafe { raw::OPENSSL_info(folder) };
        if folder.is_null() {
            return;
        }
        // SAFETY: not null, and ends with a zero.
        let folder = unsafe { CStr::from_ptr(folder) }
            .to_string_lossy()
            .into_owned();
        Path::new(&folder).join(format!("{name}.so"))
    };
    if let Ok(path) = c_string(&path.to_string_lossy()) {
        // SAFETY: a string. What the module does when it is loaded it does for libcrypto as well,
        // which loads it next; that it cannot be loaded libcrypto tells better.
        unsafe {
            libc::dlopen(
                path.as_ptr(),
                libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE,
            )
        };
    }
}

/// A name for C.
fn c_string(text: &str) -> Result<CString, DeviceError> {
    CString::new(text)
        .map_err(|_| DeviceError::Unusable(format!("the name {text:?} has a zero byte in it")))
}

/// A length for C.
#[inline]
fn c_length(length: usize) -> Result<i32, DeviceError> {
    i32::try_from(length).map_err(|_| too_much(length))
}

#[cold]
fn too_much(length: usize) -> DeviceError {
    DeviceError::Failed(format!("{length} B are more than one call takes"))
}

/// Has libcrypto write behind what `output` holds, up to `room` bytes, which are not zeroed before.
/// Returns whether it did.
///
/// # Safety
/// Where `write` returns 1, it has written as many bytes as it says, from where it was told.
#[inline]
unsafe fn append(
    output: &mut Vec<u8>,
    room: usize,
    write: impl FnOnce(*mut u8, &mut c_int) -> c_int,
) -> bool {
    output.reserve(room);
    let (before, mut made) = (output.len(), 0);
    let done = write(output.spare_capacity_mut().as_mut_ptr().cast(), &mut made) == 1;
    let made = usize::try_from(made).unwrap_or(usize::MAX);
    if !done || made > room {
        return false;
    }
    // SAFETY: so many bytes were written behind those that were there, and there is room for them.
    unsafe { output.set_len(before + made) };
    true
}
