//! AEADs with any nonce and additional data, one call per packet.

use super::ffi;
use super::manager::{Keys, with_manager};
use crate::{Aead, NONCE_BYTES, SequenceNumbers, TAG_BYTES, TagMismatch, verdict};
use wire::{SALT_BYTES, Suite};

/// Calls pass the whole nonce, so the salt is empty.
const NO_SALT: [u8; SALT_BYTES] = [0; SALT_BYTES];

const UNFINISHED: &str = "ipsec-mb finishes a single job when it is submitted";

/// An AEAD's key.
pub(super) struct AeadKey {
    suite: Suite,
    /// Keys of an AEAD.
    keys: Keys,
}

impl AeadKey {
    pub(super) fn new(suite: Suite, key: &[u8]) -> Self {
        assert_eq!(key.len(), suite.key_bytes(), "key length of {suite}");
        let keys = match suite {
            Suite::Aes128Gcm | Suite::Aes256Gcm => {
                Keys::gcm(key, NO_SALT, SequenceNumbers::Extended)
            }
            Suite::ChaCha20Poly1305 => Keys::chacha(key, NO_SALT, SequenceNumbers::Extended),
            Suite::EncryptThenMac(..) | Suite::Gost(_) => unreachable!("{suite} is no AEAD"),
        };
        Self { suite, keys }
    }

    /// Seals `len` bytes.
    ///
    /// # Safety
    /// `src` is valid for reads of `len` bytes, `dst` for writes of `len` bytes and a tag. They are
    /// identical or disjoint, and nothing else accesses the memory of `dst`.
    unsafe fn seal_raw(
        &mut self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        src: *const u8,
        len: usize,
        dst: *mut u8,
    ) {
        let keys = self.keys.as_ptr();
        let done = with_manager(|manager| {
            // SAFETY: the manager belongs to this thread, and the keys are an AEAD's, exclusively
            // borrowed by `&mut self`; `nonce` and `aad` are valid for their lengths, and the
            // caller guarantees the rest.
            unsafe {
                ffi::cb_imb_aead_seal(
                    manager,
                    keys,
                    nonce.as_ptr(),
                    aad.as_ptr(),
                    aad.len(),
                    src,
                    len,
                    dst,
                )
            }
        });
        assert!(done, "{UNFINISHED}");
    }
}

impl Aead for AeadKey {
    fn suite(&self) -> Suite {
        self.suite
    }

    fn seal(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], src: &[u8], dst: &mut [u8]) {
        // The shim writes the tag directly behind the text.
        let room = src.len() + TAG_BYTES;
        assert_eq!(dst.len(), room, "room for the ciphertext and the tag");
        // SAFETY: `dst` has room, as asserted above; it is borrowed exclusively, so it overlaps
        // nothing.
        unsafe { self.seal_raw(nonce, aad, src.as_ptr(), src.len(), dst.as_mut_ptr()) }
    }

    fn seal_in_place(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], buf: &mut [u8]) {
        let len = buf.len().checked_sub(TAG_BYTES).expect("room for the tag");
        // One pointer for both: a reference to the source would forbid the write through the other.
        let text = buf.as_mut_ptr();
        // SAFETY: `text` is valid for `len` bytes and a tag.
        unsafe { self.seal_raw(nonce, aad, text, len, text) }
    }

    fn open(
        &mut self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        buf: &mut [u8],
    ) -> Result<(), TagMismatch> {
        let keys = self.keys.as_ptr();
        let matches = buf.len().checked_sub(TAG_BYTES).is_some_and(|len| {
            with_manager(|manager| {
                // SAFETY: as in `seal_raw`; `buf` is valid for `len` bytes and a tag.
                unsafe {
                    ffi::cb_imb_aead_open(
                        manager,
                        keys,
                        nonce.as_ptr(),
                        aad.as_ptr(),
                        aad.len(),
                        buf.as_mut_ptr(),
                        len,
                    )
                }
            })
        });
        verdict(matches, buf)
    }
}
