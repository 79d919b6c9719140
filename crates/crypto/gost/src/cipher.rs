//! What modes ask of a cipher.

use crate::{KEY_BYTES, Kernel};

/// A keyed block cipher that does independent blocks, the more at once the better.
///
/// The same key may be used by many threads. It is wiped when dropped.
pub trait BlockCipher: Send + Sync + Sized {
    /// Length of a block: 8 or 16.
    const BLOCK_BYTES: usize;
    /// As tables print it.
    const NAME: &'static str;

    /// Makes the round keys for `key`, to be used by `kernel`.
    fn new(key: &[u8; KEY_BYTES], kernel: Kernel) -> Self;

    /// The kernel in use.
    fn kernel(&self) -> Kernel;

    /// Encrypts whole blocks where they lie.
    ///
    /// # Panics
    /// If the length is no multiple of [`Self::BLOCK_BYTES`].
    fn encrypt_blocks(&self, blocks: &mut [u8]);

    /// Decrypts whole blocks where they lie.
    ///
    /// # Panics
    /// If the length is no multiple of [`Self::BLOCK_BYTES`].
    fn decrypt_blocks(&self, blocks: &mut [u8]);
}
