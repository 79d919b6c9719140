//! AEADs with nonces and additional data of any form, one call a packet.

use super::ffi;
use super::manager::{Keys, with_manager};
use crate::{Aead, NONCE_BYTES, TAG_BYTES, TagMismatch};
use wire::{SALT_BYTES, Suite};

/// Nonces are given whole here.
const NO_SALT: [u8; SALT_BYTES] = [0; SALT_BYTES];

const UNFINISHED: &str = "ipsec-mb finishes a ChaCha20-Poly1305 job when it is submitted";

/// An AES-GCM key.
pub(super) struct GcmKey {
    suite: Suite,
    keys: Keys,
}

impl GcmKey {
    pub(super) fn new(suite: Suite, key: &[u8]) -> Self {
        assert_eq!(key.len(), suite.key_bytes(), "key length of {suite}");
        Self {
            suite,
            keys: Keys::gcm(key, NO_SALT),
        }
    }
}

impl Aead for GcmKey {
    fn suite(&self) -> Suite {
        self.suite
    }

    fn seal(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], src: &[u8], dst: &mut [u8]) {
        assert_room(src, dst);
        let keys = self.keys.as_ptr();
        with_manager(|manager| {
            // SAFETY: the manager is this thread's, and these are the keys of AES-GCM, ours alone by `&mut self`;
            // the pointers are valid for their lengths, `dst` for `src.len()` and a tag as just asserted; it is
            // unique, so it overlaps nothing.
            unsafe {
                ffi::cb_imb_gcm_seal(
                    manager,
                    keys,
                    nonce.as_ptr(),
                    aad.as_ptr(),
                    aad.len(),
                    src.as_ptr(),
                    src.len(),
                    dst.as_mut_ptr(),
                );
            }
        });
    }

    fn seal_in_place(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], buf: &mut [u8]) {
        let len = room(buf);
        let text = buf.as_mut_ptr();
        let keys = self.keys.as_ptr();
        with_manager(|manager| {
            // SAFETY: as in `seal`; `text` is valid for `len` bytes and a tag, and the library works in place.
            unsafe {
                ffi::cb_imb_gcm_seal(
                    manager,
                    keys,
                    nonce.as_ptr(),
                    aad.as_ptr(),
                    aad.len(),
                    text,
                    len,
                    text,
                );
            }
        });
    }

    fn open(
        &mut self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        buf: &mut [u8],
    ) -> Result<(), TagMismatch> {
        let keys = self.keys.as_ptr();
        open(buf, |buf, len| {
            with_manager(|manager| {
                // SAFETY: as in `seal`; `buf` is valid for `len` bytes and a tag.
                unsafe {
                    ffi::cb_imb_gcm_open(
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
        })
    }
}

/// A ChaCha20-Poly1305 key.
pub(super) struct ChaChaKey {
    keys: Keys,
}

impl ChaChaKey {
    pub(super) fn new(key: &[u8]) -> Self {
        Self {
            keys: Keys::chacha(key, NO_SALT),
        }
    }
}

impl Aead for ChaChaKey {
    fn suite(&self) -> Suite {
        Suite::ChaCha20Poly1305
    }

    fn seal(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], src: &[u8], dst: &mut [u8]) {
        assert_room(src, dst);
        let keys = self.keys.as_ptr();
        let done = with_manager(|manager| {
            // SAFETY: the manager is this thread's, and these are the keys of ChaCha20-Poly1305, ours alone by
            // `&mut self`; the pointers are valid for their lengths, `dst` for `src.len()` and a tag as just
            // asserted; it is unique, so it overlaps nothing.
            unsafe {
                ffi::cb_imb_chacha_seal(
                    manager,
                    keys,
                    nonce.as_ptr(),
                    aad.as_ptr(),
                    aad.len(),
                    src.as_ptr(),
                    src.len(),
                    dst.as_mut_ptr(),
                )
            }
        });
        assert!(done, "{UNFINISHED}");
    }

    fn seal_in_place(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], buf: &mut [u8]) {
        let len = room(buf);
        let text = buf.as_mut_ptr();
        let keys = self.keys.as_ptr();
        let done = with_manager(|manager| {
            // SAFETY: as in `seal`; `text` is valid for `len` bytes and a tag, and the library works in place.
            unsafe {
                ffi::cb_imb_chacha_seal(
                    manager,
                    keys,
                    nonce.as_ptr(),
                    aad.as_ptr(),
                    aad.len(),
                    text,
                    len,
                    text,
                )
            }
        });
        assert!(done, "{UNFINISHED}");
    }

    fn open(
        &mut self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        buf: &mut [u8],
    ) -> Result<(), TagMismatch> {
        let keys = self.keys.as_ptr();
        open(buf, |buf, len| {
            with_manager(|manager| {
                // SAFETY: as in `seal`; `buf` is valid for `len` bytes and a tag.
                unsafe {
                    ffi::cb_imb_chacha_open(
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
        })
    }
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

/// Runs `open_in_place` on a buffer that is long enough for a tag, and wipes it when it says no.
#[inline]
fn open(
    buf: &mut [u8],
    open_in_place: impl FnOnce(&mut [u8], usize) -> bool,
) -> Result<(), TagMismatch> {
    let matches = match buf.len().checked_sub(TAG_BYTES) {
        Some(len) => open_in_place(buf, len),
        None => false,
    };
    if matches {
        Ok(())
    } else {
        buf.fill(0);
        Err(TagMismatch)
    }
}
