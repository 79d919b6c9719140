//! Loading the library, its job managers, and its keying material.

use super::ffi;
use crate::SequenceNumbers;
use std::ffi::{CStr, c_char};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::thread::available_parallelism;
use wire::{Cipher, Hmac, SALT_BYTES};

/// Loads the library once per process. Returns its version, or why it is unavailable.
pub(super) fn load() -> Result<String, String> {
    static LOADED: OnceLock<Result<String, String>> = OnceLock::new();
    // A failure is remembered too: the reason does not change while the process runs.
    LOADED.get_or_init(load_now).clone()
}

fn load_now() -> Result<String, String> {
    let threads = available_parallelism().map_or(1, usize::from);
    let mut version = ptr::null();
    // SAFETY: called once per process, by the `OnceLock` of `load`, before any other function of
    // the shim: keys are made only after a probe has succeeded. `version` is valid for the write.
    let why = unsafe { ffi::cb_imb_load(threads, &mut version) };
    if why.is_null() {
        Ok(format!("ipsec-mb {}", text(version)))
    } else {
        Err(text(why))
    }
}

/// Returns a constant string of the shim; empty if it is null.
fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the shim returns only NUL-terminated constants of itself and the
    // library.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}

/// A job manager. It takes 400 kB, so there is one per thread and not per key.
struct Manager(NonNull<ffi::Manager>);

thread_local! {
    static MANAGER: Manager = Manager::new();
}

impl Manager {
    fn new() -> Self {
        let mut why = ptr::null();
        // SAFETY: the library is loaded, since a key exists; `why` is valid for the write.
        let manager = unsafe { ffi::cb_imb_manager_new(&mut why) };
        let Some(manager) = NonNull::new(manager) else {
            // Loading has made one in the same way, so only memory can be missing.
            panic!("ipsec-mb cannot serve another thread: {}", text(why));
        };
        Self(manager)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // SAFETY: made by `cb_imb_manager_new` and not used again; no job is in progress, since
        // each is complete when its call returns.
        unsafe { ffi::cb_imb_manager_free(self.0.as_ptr()) }
    }
}

/// Runs `job` with the calling thread's manager, which is valid until it returns and not used
/// elsewhere.
#[inline]
pub(super) fn with_manager<T>(job: impl FnOnce(*mut ffi::Manager) -> T) -> T {
    MANAGER.with(|manager| job(manager.0.as_ptr()))
}

/// Expanded keying material in the library's format; the shim wipes it on drop.
pub(super) struct Keys(NonNull<ffi::Sa>);

// SAFETY: its memory is accessed through this value only and belongs to no manager: each thread
// uses it with its own manager.
unsafe impl Send for Keys {}

impl Keys {
    /// Makes keying material for AES-GCM with a key of 16 or 32 bytes.
    pub(super) fn gcm(key: &[u8], salt: [u8; SALT_BYTES], numbers: SequenceNumbers) -> Self {
        assert!(matches!(key.len(), 16 | 32), "key length of AES-GCM");
        Self::made(with_manager(|manager| {
            // SAFETY: the manager belongs to this thread; `key` has a length that the shim accepts,
            // `salt` has 4 bytes.
            unsafe {
                ffi::cb_imb_gcm_new(
                    manager,
                    key.as_ptr(),
                    key.len(),
                    salt.as_ptr(),
                    numbers.are_extended(),
                )
            }
        }))
    }

    /// Makes keying material for ChaCha20-Poly1305.
    pub(super) fn chacha(key: &[u8], salt: [u8; SALT_BYTES], numbers: SequenceNumbers) -> Self {
        assert_eq!(key.len(), 32, "key length of ChaCha20-Poly1305");
        // SAFETY: `key` and `salt` are valid for the 32 and 4 bytes that are read.
        Self::made(unsafe {
            ffi::cb_imb_chacha_new(key.as_ptr(), salt.as_ptr(), numbers.are_extended())
        })
    }

    /// Makes keying material for a cipher with an HMAC.
    pub(super) fn encrypt_then_mac(
        cipher: Cipher,
        hmac: Hmac,
        cipher_key: &[u8],
        hmac_key: &[u8],
        numbers: SequenceNumbers,
    ) -> Self {
        // The numbering of the shim.
        const { assert!(Cipher::Null as u32 == 0 && Cipher::DesCbc as u32 == 1) };
        const { assert!(Cipher::TripleDesCbc as u32 == 2 && Cipher::Aes128Cbc as u32 == 3) };
        const { assert!(Cipher::Aes256Cbc as u32 == 4) };
        const { assert!(Hmac::Md5 as u32 == 0 && Hmac::Sha1 as u32 == 1) };
        const { assert!(Hmac::Sha256 as u32 == 2 && Hmac::Sha512 as u32 == 3) };
        assert_eq!(cipher_key.len(), cipher.key_bytes(), "cipher key length");
        assert_eq!(hmac_key.len(), hmac.key_bytes(), "HMAC key length");
        Self::made(with_manager(|manager| {
            // SAFETY: the manager belongs to this thread; the numbers are the shim's, as asserted,
            // and the keys have the corresponding lengths.
            unsafe {
                ffi::cb_imb_encrypt_then_mac_new(
                    manager,
                    cipher as u32,
                    hmac as u32,
                    cipher_key.as_ptr(),
                    hmac_key.as_ptr(),
                    numbers.are_extended(),
                )
            }
        }))
    }

    fn made(sa: *mut ffi::Sa) -> Self {
        Self(NonNull::new(sa).expect("memory for a key"))
    }

    /// Returns the pointer for calls of the shim, valid while `self` is borrowed.
    #[inline]
    pub(super) fn as_ptr(&mut self) -> *mut ffi::Sa {
        self.0.as_ptr()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // SAFETY: made by the shim and not used again.
        unsafe { ffi::cb_imb_sa_free(self.0.as_ptr()) }
    }
}
