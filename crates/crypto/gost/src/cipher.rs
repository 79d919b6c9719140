//! The interface between modes and ciphers.

use crate::{KEY_BYTES, Kernel};

/// A keyed block cipher over independent blocks; throughput grows with the blocks per call.
///
/// Threads may share a key. It is wiped when dropped.
pub trait BlockCipher: Send + Sync + Sized {
    /// Length of a block: 8 or 16.
    const BLOCK_BYTES: usize;
    /// Name in tables.
    const NAME: &'static str;

    /// Expands `key` into round keys for `kernel`.
    fn new(key: &[u8; KEY_BYTES], kernel: Kernel) -> Self;

    /// The kernel in use.
    fn kernel(&self) -> Kernel;

    /// Encrypts whole blocks in place.
    ///
    /// # Panics
    /// If the length is no multiple of [`Self::BLOCK_BYTES`].
    fn encrypt_blocks(&self, blocks: &mut [u8]);

    /// Decrypts whole blocks in place.
    ///
    /// # Panics
    /// If the length is no multiple of [`Self::BLOCK_BYTES`].
    fn decrypt_blocks(&self, blocks: &mut [u8]);
}
