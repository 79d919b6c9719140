//! Safe types around OpenSSL's libcrypto. With `pkcs11/raw`, this is the only `unsafe` code of this
//! crate.
//!
//! [`raw`] loads libcrypto at run time and declares its functions. A [`Library`] is a provider or
//! an engine; to make one loads libcrypto, so every other function here is called with it loaded.
//! Values made from a library borrow it, since dropping it unloads its code. Values that are not
//! `Sync` belong to one thread.
//!
//! Lengths are checked here: no function below reads or writes out of bounds, for any arguments.

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
use crate::device::overlong;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;

/// Returns libcrypto's errors as one of the operation `what`. Empties its queue of errors.
#[cold]
fn failed(what: &str) -> DeviceError {
    DeviceError::Failed(match reasons() {
        Some(reason) => format!("{what} failed: {reason}"),
        None => format!("{what} failed, and libcrypto gives no reason"),
    })
}

/// Returns the result of libcrypto's operation `what`, which succeeded if `done`.
#[inline]
fn check(done: bool, what: &str) -> Result<(), DeviceError> {
    if done { Ok(()) } else { Err(failed(what)) }
}

/// Returns libcrypto's errors in this thread as text: the first, which is the cause, and the last,
/// which names the operation. Empties its queue.
fn reasons() -> Option<String> {
    let first = next_error()?;
    let last = std::iter::from_fn(next_error).last();
    Some(match last {
        Some(last) if last != first => format!("{first}; then {last}"),
        _ => first,
    })
}

/// What to do about a module that libcrypto does not load or start, for this reason.
fn remedy(why: &str) -> &'static str {
    let is_any = |words: &[&str]| words.iter().any(|words| why.contains(words));
    if is_any(&["undefined symbol", "' not found"]) {
        "it was built for other libraries: install its build for this version of OpenSSL, and what it is linked with \
         (`ldd -r MODULE` lists what is missing)"
    } else if is_any(&["wrong ELF class", "invalid ELF header", "file too short"]) {
        "the file is no module for this machine: install its build for this architecture"
    } else if is_any(&["init failed", "initialization failed", "init fail"]) {
        "the module is there and its device does not answer: check the card, its driver and its configuration"
    } else {
        "check its name and the path of its module"
    }
}

/// Takes the oldest error from libcrypto's queue, with its data, such as the missing symbol of a
/// module or a card's report.
fn next_error() -> Option<String> {
    const BYTES_MAX: usize = 512;
    let mut data: *const c_char = std::ptr::null();
    let mut flags = 0;
    // SAFETY: the call stores a pointer to a text that lives until the next error, and flags;
    // queues are per thread.
    let code = unsafe {
        raw::ERR_get_error_all(
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            &raw mut data,
            &raw mut flags,
        )
    };
    if code == 0 {
        return None;
    }
    let mut data_text = String::new();
    if flags & raw::ERR_TXT_STRING != 0 && !data.is_null() {
        // SAFETY: a NUL-terminated text, by its flag.
        let bytes = unsafe { CStr::from_ptr(data) }.to_bytes();
        let beginning = String::from_utf8_lossy(&bytes[..bytes.len().min(BYTES_MAX)]);
        data_text = guard::visible(beginning.trim()).into_owned();
    }
    let mut text = [0_u8; 256];
    // SAFETY: at most `text.len()` bytes are written, with a zero at their end.
    unsafe { raw::ERR_error_string_n(code, text.as_mut_ptr().cast::<c_char>(), text.len()) };
    let text = CStr::from_bytes_until_nul(&text).ok()?;
    let text = text.to_string_lossy();
    Some(if data_text.is_empty() {
        text.into_owned()
    } else {
        format!("{text} ({data_text})")
    })
}

/// Returns the error for an algorithm that the provider or engine lacks. Empties libcrypto's queue
/// of errors.
fn not_offered(library: &Library, what: &str) -> DeviceError {
    forget_errors();
    DeviceError::NotOffered(format!("{} has no {what}", library.name()))
}

/// Returns the error for an unsupported key or use of it, with libcrypto's reason. Empties its
/// queue of errors.
fn not_offered_because(what: &str) -> DeviceError {
    let why = reasons().unwrap_or_default();
    DeviceError::NotOffered(format!("{what}: {why}"))
}

/// Discards expected errors, so that they are not reported as the reason of a later one.
fn forget_errors() {
    // SAFETY: no arguments; queues are per thread.
    unsafe { raw::ERR_clear_error() };
}

/// Keeps a module in memory until the process ends. `module` is its path; if `None`, it is `name`
/// in libcrypto's directory `folder`.
///
/// Modules leave dangling pointers behind: the GOST provider and engine do, to names of algorithms.
/// After unloading, the next look-up of a name would read freed memory.
///
/// libcrypto is loaded.
fn pin(name: &str, module: Option<&Path>, folder: c_int) {
    let path = if let Some(module) = module {
        module.to_owned()
    } else {
        // SAFETY: the argument is a number; the result is null or a static string.
        let Some(folder) = (unsafe { text(raw::OPENSSL_info(folder)) }) else {
            return;
        };
        Path::new(&folder).join(format!("{name}.so"))
    };
    if !path.exists() {
        return;
    }
    // Some modules do not name libcrypto among the libraries that they need.
    raw::publish();
    if let Ok(path) = c_string(&path.to_string_lossy()) {
        // SAFETY: a C string. The module's initialisation runs for libcrypto as well, which loads
        // it next and reports a failure better.
        unsafe {
            libc::dlopen(
                path.as_ptr(),
                libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE,
            )
        };
    }
}

/// Returns a text of libcrypto; `None` for a null pointer.
///
/// # Safety
/// The pointer is null, or a NUL-terminated string that lives until this returns.
unsafe fn text(string: *const c_char) -> Option<String> {
    if string.is_null() {
        return None;
    }
    // SAFETY: not null, and the caller guarantees the rest.
    let text = unsafe { CStr::from_ptr(string) };
    Some(text.to_string_lossy().into_owned())
}

/// Converts a name to a C string.
fn c_string(text: &str) -> Result<CString, DeviceError> {
    CString::new(text)
        .map_err(|_| DeviceError::Unusable(format!("the name {text:?} contains a zero byte")))
}

/// Converts a length to a C int.
#[inline]
fn c_length(length: usize) -> Result<i32, DeviceError> {
    i32::try_from(length).map_err(|_| too_much(length))
}

#[cold]
fn too_much(length: usize) -> DeviceError {
    DeviceError::Failed(format!("{length} B exceed the limit of one call"))
}

/// Lets libcrypto append up to `room` bytes to `output`, without zeroing them first. Returns
/// whether it succeeded.
///
/// # Errors
/// [`DeviceError::Wrong`] if it reported more bytes than there was room for.
///
/// # Safety
/// If `write` returns 1, it has initialised the reported number of bytes at its pointer, or of the
/// room if that is less.
#[inline]
unsafe fn append(
    output: &mut Vec<u8>,
    room: usize,
    write: impl FnOnce(*mut u8, &mut c_int) -> c_int,
) -> Result<bool, DeviceError> {
    output.reserve(room);
    let (before, mut made) = (output.len(), 0);
    if write(output.spare_capacity_mut().as_mut_ptr().cast(), &mut made) != 1 {
        return Ok(false);
    }
    let made = usize::try_from(made).unwrap_or(usize::MAX);
    if made > room {
        return Err(overlong(made, room));
    }
    // SAFETY: this many bytes were initialised behind the existing ones, within the reserved room.
    unsafe { output.set_len(before + made) };
    Ok(true)
}

/// Cuts a result to the length that libcrypto reported. `output` has the length of the buffer.
///
/// # Errors
/// [`DeviceError::Wrong`] if that is longer than the buffer.
fn cut(output: &mut Vec<u8>, announced: usize) -> Result<(), DeviceError> {
    let room = output.len();
    if announced > room {
        output.clear();
        return Err(overlong(announced, room));
    }
    output.truncate(announced);
    Ok(())
}
