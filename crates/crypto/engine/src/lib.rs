//! Crypto engines behind one interface, each proven by known answers before first use.
//!
//! A [`Transform`] is the keying material of one SA, prepared for one engine.
//! [`Selection::transform`] makes it; it processes batches of ESP packets and belongs to one
//! thread. Most of them use an [`Aead`], which accepts any nonce and additional data: known answers
//! test both.
//!
//! The only crate with SIMD and foreign-function `unsafe`.

mod aws_lc;
pub mod checksum;
mod encrypt_then_mac;
mod engine;
mod gost;
#[cfg(ipsec_mb)]
mod ipsec_mb;
#[cfg(not(ipsec_mb))]
#[path = "ipsec_mb_absent.rs"]
mod ipsec_mb;
mod known_answers;
mod null;
mod rustcrypto;
mod selection;
mod transform;
pub mod vectors;

pub use catalog::{CpuChoice, NULL};
pub use known_answers::Failure;
pub use selection::{EngineError, EngineInfo, PassedOver, Selection, engines, select, select_all};
pub use transform::{EngineFailed, Packet, SequenceNumbers, Transform};

use wire::Suite;

/// Length of every [`Aead`]'s tag.
pub const TAG_BYTES: usize = 16;
/// Length of every [`Aead`]'s nonce: 4 bytes of salt, 8 of IV.
pub const NONCE_BYTES: usize = 12;

/// The tag did not match: the output must not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the integrity check value does not match")]
pub struct TagMismatch;

/// The result of opening `buf`, which is zeroed unless it is authentic: a caller may forget the
/// verdict.
fn verdict(authentic: bool, buf: &mut [u8]) -> Result<(), TagMismatch> {
    if authentic {
        return Ok(());
    }
    // The whole buffer: an engine may have decrypted before it compared.
    buf.fill(0);
    Err(TagMismatch)
}

/// One AEAD key on one engine.
pub trait Aead: Send {
    /// Returns the suite of the key.
    fn suite(&self) -> Suite;

    /// Seals `src` into `dst`, which must be exactly [`TAG_BYTES`] longer: ciphertext, then tag.
    ///
    /// # Panics
    /// If the lengths do not fit.
    fn seal(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], src: &[u8], dst: &mut [u8]);

    /// Seals `buf` in place: all but its last [`TAG_BYTES`] is plaintext, and the rest is room for
    /// the tag.
    ///
    /// # Panics
    /// If `buf` is shorter than a tag.
    fn seal_in_place(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], buf: &mut [u8]);

    /// Opens `buf` (ciphertext, then tag) in place; the plaintext is all but its last
    /// [`TAG_BYTES`].
    ///
    /// # Errors
    /// [`TagMismatch`] if it is not authentic or is shorter than a tag; the content of `buf` is
    /// then undefined.
    fn open(
        &mut self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        buf: &mut [u8],
    ) -> Result<(), TagMismatch>;
}
