//! The library itself, its job managers, and what of an SA it keeps.

use super::ffi;
use std::ffi::{CStr, c_char};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::thread::available_parallelism;
use wire::{Cipher, Hmac, SALT_BYTES};

/// Loads the library, once in a process: its version, or why it cannot be used.
pub(super) fn load() -> Result<String, String> {
    static LOADED: OnceLock<Result<String, String>> = OnceLock::new();
    LOADED.get_or_init(load_now).clone()
}

fn load_now() -> Result<String, String> {
    let threads = available_parallelism().map_or(1, usize::from);
    let mut version = ptr::null();
    // SAFETY: called once in a process, by the `OnceLock` of `load`, before any other function of
    // the shim: keys are made only after a probe has succeeded. `version` is valid for the write.
    let why = unsafe { ffi::cb_imb_load(threads, &mut version) };
    if why.is_null() {
        Ok(format!("ipsec-mb {}", text(version)))
    } else {
        Err(text(why))
    }
}

/// A string of the shim, which are all constants; empty when there is none.
fn text(string: *const c_char) -> String {
    if string.is_null() {
        return String::new();
    }
    // SAFETY: not null, and the shim hands out only NUL-terminated constants of itself and the
    // library.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}

/// Job managers. They have 400 kB, so there is one for each thread and not for each key.
struct Manager(NonNull<ffi::Manager>);

thread_local! {
    static MANAGER: Manager = Manager::new();
}

impl Manager {
    fn new() -> Self {
        let mut why = ptr::null();
        // SAFETY: the library is loaded, as there is a key to use it with; `why` is valid for the
        // write.
        let manager = unsafe { ffi::cb_imb_manager_new(&mut why) };
        let Some(manager) = NonNull::new(manager) else {
            // Loading has made one, the same way: only memory can be lacking.
            panic!("ipsec-mb cannot serve another thread: {}", text(why));
        };
        Self(manager)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // SAFETY: made by `cb_imb_manager_new` and not used again; no job is under way, as each is
        // complete when its call returns.
        unsafe { ffi::cb_imb_manager_free(self.0.as_ptr()) }
    }
}

/// Runs `job` with the calling thread's manager, which is valid until it returns and used by nobody
/// else.
#[inline]
pub(super) fn with_manager<T>(job: impl FnOnce(*mut ffi::Manager) -> T) -> T {
    MANAGER.with(|manager| job(manager.0.as_ptr()))
}

/// Keying material as the library wants it, expanded; wiped by the shim when dropped.
pub(super) struct Keys(NonNull<ffi::Sa>);

// SAFETY: what it points to is reached through this value only, and belongs to no manager: a thread
// that has it uses it with a manager of its own.
unsafe impl Send for Keys {}

impl Keys {
    /// AES-GCM with a key of 16 or 32 bytes.
    pub(super) fn gcm(key: &[u8], salt: [u8; SALT_BYTES]) -> Self {
        assert!(matches!(key.len(), 16 | 32), "key length of AES-GCM");
        Self::made(with_manager(|manager| {
            // SAFETY: the manager is this thread's; `key` has a length that the shim takes, `salt`
            // its 4 bytes.
            unsafe { ffi::cb_imb_gcm_new(manager, key.as_ptr(), key.len(), salt.as_ptr()) }
        }))
    }

    /// ChaCha20-Poly1305.
    pub(super) fn chacha(key: &[u8], salt: [u8; SALT_BYTES]) -> Self {
        assert_eq!(key.len(), 32, "key length of ChaCha20-Poly1305");
        // SAFETY: `key` and `salt` are valid for the 32 and 4 bytes that are read.
        Self::made(unsafe { ffi::cb_imb_chacha_new(key.as_ptr(), salt.as_ptr()) })
    }

    /// A cipher with an HMAC.
    pub(super) fn encrypt_then_mac(
        cipher: Cipher,
        hmac: Hmac,
        cipher_key: &[u8],
        hmac_key: &[u8],
    ) -> Self {
        // The order in which the shim numbers them.
        const { assert!(Cipher::Null as u32 == 0 && Cipher::DesCbc as u32 == 1) };
        const { assert!(Cipher::TripleDesCbc as u32 == 2 && Cipher::Aes128Cbc as u32 == 3) };
        const { assert!(Cipher::Aes256Cbc as u32 == 4) };
        const { assert!(Hmac::Md5 as u32 == 0 && Hmac::Sha1 as u32 == 1) };
        const { assert!(Hmac::Sha256 as u32 == 2 && Hmac::Sha512 as u32 == 3) };
        assert_eq!(cipher_key.len(), cipher.key_bytes(), "cipher key length");
        assert_eq!(hmac_key.len(), hmac.key_bytes(), "HMAC key length");
        Self::made(with_manager(|manager| {
            // SAFETY: the manager is this thread's; the numbers are the shim's, as asserted, and
            // the keys have the lengths that go with them.
            unsafe {
                ffi::cb_imb_encrypt_then_mac_new(
                    manager,
                    cipher as u32,
                    hmac as u32,
                    cipher_key.as_ptr(),
                    hmac_key.as_ptr(),
                )
            }
        }))
    }

    fn made(sa: *mut ffi::Sa) -> Self {
        Self(NonNull::new(sa).expect("memory for a key"))
    }

    /// For calls of the shim, which borrow it as long as `self` is borrowed.
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
