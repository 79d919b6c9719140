//! Engine `ipsec-mb`: Intel's multi-buffer library, through `shim/ipsec_mb.c`.
//!
//! AES-GCM by the library's direct functions, ChaCha20-Poly1305 by its jobs; the shim says why.

use crate::selection::Engine;
use crate::{Aead, NONCE_BYTES, TAG_BYTES, TagMismatch};
use std::ffi::{CStr, c_char};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use wire::Suite;
use zeroize::Zeroizing;

pub(crate) struct IpsecMb;

impl Engine for IpsecMb {
    fn name(&self) -> &'static str {
        "ipsec-mb"
    }

    fn probe(&self) -> Result<String, String> {
        static LOADED: OnceLock<Result<String, String>> = OnceLock::new();
        LOADED.get_or_init(load).clone()
    }

    fn aead(&self, suite: Suite, key: &[u8]) -> Box<dyn Aead> {
        match suite {
            Suite::Aes128Gcm | Suite::Aes256Gcm => Box::new(GcmKey::new(suite, key)),
            Suite::ChaCha20Poly1305 => Box::new(ChaChaKey::new(key)),
            Suite::EncryptThenMac(..) => unreachable!("{suite} is not served"),
        }
    }
}

/// Loads the library: its version, or why it cannot be used.
fn load() -> Result<String, String> {
    let mut version = ptr::null();
    // SAFETY: called once in a process, by the `OnceLock` above, before any other function of the shim:
    // keys are made only after a probe has succeeded. `version` is valid for the write.
    let why = unsafe { ffi::cb_imb_load(&mut version) };
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
    // SAFETY: not null, and the shim hands out only NUL-terminated constants of itself and the library.
    unsafe { CStr::from_ptr(string) }
        .to_string_lossy()
        .into_owned()
}

/// Checks the one length that the shim trusts its caller with.
fn assert_room(src: &[u8], dst: &[u8]) {
    assert_eq!(
        dst.len(),
        src.len() + TAG_BYTES,
        "room for the ciphertext and the tag"
    );
}

/// Length of the text in `buf`, which has room for the tag behind it.
fn room(buf: &[u8]) -> usize {
    buf.len().checked_sub(TAG_BYTES).expect("room for the tag")
}

/// An expanded AES-GCM key; wiped by the shim when dropped.
struct GcmKey {
    suite: Suite,
    key: NonNull<ffi::GcmKey>,
}

// SAFETY: the key is reached through this value only, and the direct functions keep no state elsewhere
// but an error code of the process, which they store and nothing here reads.
unsafe impl Send for GcmKey {}

impl GcmKey {
    fn new(suite: Suite, key: &[u8]) -> Self {
        assert_eq!(key.len(), suite.key_bytes(), "key length of {suite}");
        // SAFETY: the library is loaded, as the engine was selected; `key` has 16 or 32 bytes.
        let key = unsafe { ffi::cb_imb_gcm_key_new(key.as_ptr(), key.len()) };
        Self {
            suite,
            key: NonNull::new(key).expect("memory for an AES-GCM key"),
        }
    }
}

impl Drop for GcmKey {
    fn drop(&mut self) {
        // SAFETY: made by `cb_imb_gcm_key_new` and not used again.
        unsafe { ffi::cb_imb_gcm_key_free(self.key.as_ptr()) }
    }
}

impl Aead for GcmKey {
    fn suite(&self) -> Suite {
        self.suite
    }

    fn seal(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], src: &[u8], dst: &mut [u8]) {
        assert_room(src, dst);
        // SAFETY: the key is ours alone by `&mut self`; the pointers are valid for their lengths, `dst` for
        // `src.len()` and a tag as just asserted; `dst` is unique, so it overlaps nothing.
        unsafe {
            ffi::cb_imb_gcm_seal(
                self.key.as_ptr(),
                nonce.as_ptr(),
                aad.as_ptr(),
                aad.len(),
                src.as_ptr(),
                src.len(),
                dst.as_mut_ptr(),
            );
        }
    }

    fn seal_in_place(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], buf: &mut [u8]) {
        let len = room(buf);
        let text = buf.as_mut_ptr();
        // SAFETY: the key is ours alone by `&mut self`; `text` is valid for `len` bytes and a tag, and the library
        // works in place.
        unsafe {
            ffi::cb_imb_gcm_seal(
                self.key.as_ptr(),
                nonce.as_ptr(),
                aad.as_ptr(),
                aad.len(),
                text,
                len,
                text,
            );
        }
    }

    fn open(
        &mut self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        buf: &mut [u8],
    ) -> Result<(), TagMismatch> {
        open(buf, |buf, len| {
            // SAFETY: the key is ours alone by `&mut self`; `buf` is valid for `len` bytes and a tag.
            unsafe {
                ffi::cb_imb_gcm_open(
                    self.key.as_ptr(),
                    nonce.as_ptr(),
                    aad.as_ptr(),
                    aad.len(),
                    buf.as_mut_ptr(),
                    len,
                )
            }
        })
    }
}

/// Runs `open_in_place` on a buffer that is long enough for a tag, and wipes it when it says 0.
#[inline]
fn open(
    buf: &mut [u8],
    open_in_place: impl FnOnce(&mut [u8], usize) -> i32,
) -> Result<(), TagMismatch> {
    let matches = match buf.len().checked_sub(TAG_BYTES) {
        Some(len) => open_in_place(buf, len) != 0,
        None => false,
    };
    if matches {
        Ok(())
    } else {
        buf.fill(0);
        Err(TagMismatch)
    }
}

/// A ChaCha20-Poly1305 key; the library wants nothing precomputed.
struct ChaChaKey {
    key: Zeroizing<[u8; 32]>,
}

impl ChaChaKey {
    fn new(key: &[u8]) -> Self {
        let mut own = Zeroizing::new([0; 32]);
        own.copy_from_slice(key);
        Self { key: own }
    }
}

impl Aead for ChaChaKey {
    fn suite(&self) -> Suite {
        Suite::ChaCha20Poly1305
    }

    fn seal(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], src: &[u8], dst: &mut [u8]) {
        assert_room(src, dst);
        let done = Manager::with(|manager| {
            // SAFETY: the manager is this thread's; the pointers are valid for their lengths, `dst` for
            // `src.len()` and a tag as just asserted; `dst` is unique, so it overlaps nothing.
            unsafe {
                ffi::cb_imb_chacha_seal(
                    manager,
                    self.key.as_ptr(),
                    nonce.as_ptr(),
                    aad.as_ptr(),
                    aad.len(),
                    src.as_ptr(),
                    src.len(),
                    dst.as_mut_ptr(),
                )
            }
        });
        assert!(
            done != 0,
            "ipsec-mb finishes a ChaCha20-Poly1305 job when it is submitted"
        );
    }

    fn seal_in_place(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], buf: &mut [u8]) {
        let len = room(buf);
        let text = buf.as_mut_ptr();
        let done = Manager::with(|manager| {
            // SAFETY: the manager is this thread's; `text` is valid for `len` bytes and a tag, and the library
            // works in place.
            unsafe {
                ffi::cb_imb_chacha_seal(
                    manager,
                    self.key.as_ptr(),
                    nonce.as_ptr(),
                    aad.as_ptr(),
                    aad.len(),
                    text,
                    len,
                    text,
                )
            }
        });
        assert!(
            done != 0,
            "ipsec-mb finishes a ChaCha20-Poly1305 job when it is submitted"
        );
    }

    fn open(
        &mut self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        buf: &mut [u8],
    ) -> Result<(), TagMismatch> {
        open(buf, |buf, len| {
            Manager::with(|manager| {
                // SAFETY: the manager is this thread's; `buf` is valid for `len` bytes and a tag.
                unsafe {
                    ffi::cb_imb_chacha_open(
                        manager,
                        self.key.as_ptr(),
                        nonce.as_ptr(),
                        aad.as_ptr(),
                        aad.len(),
                        buf.as_mut_ptr(),
                        len,
                    )
                }
            })
        })
    }
}

/// A job manager. It has 200 kB, so there is one for each thread and not for each key.
struct Manager(NonNull<ffi::ImbMgr>);

thread_local! {
    static MANAGER: Manager = Manager::new();
}

impl Manager {
    fn new() -> Self {
        let mut why = ptr::null();
        // SAFETY: the library is loaded, as there is a key; `why` is valid for the write.
        let manager = unsafe { ffi::cb_imb_manager_new(&mut why) };
        let Some(manager) = NonNull::new(manager) else {
            // The process already has one manager, made the same way: only memory can be lacking.
            panic!("ipsec-mb cannot serve another thread: {}", text(why));
        };
        Self(manager)
    }

    /// Runs `job` with the calling thread's manager.
    #[inline]
    fn with<T>(job: impl FnOnce(*mut ffi::ImbMgr) -> T) -> T {
        MANAGER.with(|manager| job(manager.0.as_ptr()))
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // SAFETY: made by `cb_imb_manager_new` and not used again; no job is under way, as each is complete
        // when its call returns.
        unsafe { ffi::cb_imb_manager_free(self.0.as_ptr()) }
    }
}

/// What `shim/ipsec_mb.c` offers; what is expected of a caller is written there.
mod ffi {
    use std::ffi::c_char;

    /// `struct cb_gcm_key`, known by address only.
    #[repr(C)]
    pub(super) struct GcmKey {
        _opaque: [u8; 0],
    }

    /// `IMB_MGR`, known by address only.
    #[repr(C)]
    pub(super) struct ImbMgr {
        _opaque: [u8; 0],
    }

    unsafe extern "C" {
        pub(super) fn cb_imb_load(version: *mut *const c_char) -> *const c_char;
        pub(super) fn cb_imb_manager_new(why: *mut *const c_char) -> *mut ImbMgr;
        pub(super) fn cb_imb_manager_free(manager: *mut ImbMgr);
        pub(super) fn cb_imb_gcm_key_new(key: *const u8, key_bytes: usize) -> *mut GcmKey;
        pub(super) fn cb_imb_gcm_key_free(key: *mut GcmKey);
        pub(super) fn cb_imb_gcm_seal(
            key: *mut GcmKey,
            nonce: *const u8,
            aad: *const u8,
            aad_len: usize,
            src: *const u8,
            len: usize,
            dst: *mut u8,
        );
        pub(super) fn cb_imb_gcm_open(
            key: *mut GcmKey,
            nonce: *const u8,
            aad: *const u8,
            aad_len: usize,
            buf: *mut u8,
            len: usize,
        ) -> i32;
        pub(super) fn cb_imb_chacha_seal(
            manager: *mut ImbMgr,
            key: *const u8,
            nonce: *const u8,
            aad: *const u8,
            aad_len: usize,
            src: *const u8,
            len: usize,
            dst: *mut u8,
        ) -> i32;
        pub(super) fn cb_imb_chacha_open(
            manager: *mut ImbMgr,
            key: *const u8,
            nonce: *const u8,
            aad: *const u8,
            aad_len: usize,
            buf: *mut u8,
            len: usize,
        ) -> i32;
    }
}
