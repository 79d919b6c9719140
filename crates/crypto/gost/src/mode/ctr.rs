//! CTR: the text is mixed with encrypted counters (GOST R 34.13-2015 §5.2).

use super::Message;
use super::batch::{BLOCK_BYTES_MAX, SCRATCH_BYTES, Scratch, mix_with_keystream};
use super::counter::Counter;
use crate::BlockCipher;
use std::iter::once;

/// CTR with an IV of half a block, and keystream that is used to the last byte. Encryption and
/// decryption are the same. Reusing an IV under a key reveals the texts; it authenticates nothing.
pub struct Ctr<C> {
    cipher: C,
    scratch: Box<Scratch<SCRATCH_BYTES>>,
}

impl<C: BlockCipher> Ctr<C> {
    /// Length of the IV.
    pub const IV_BYTES: usize = C::BLOCK_BYTES / 2;

    /// The mode under a keyed cipher.
    #[must_use]
    pub fn new(cipher: C) -> Self {
        let scratch = Scratch::new();
        Self { cipher, scratch }
    }

    /// Encrypts or decrypts a text of any length.
    ///
    /// # Panics
    /// If the IV is not [`Self::IV_BYTES`] long, or the text has more blocks than there are
    /// counters (a text of Magma: 32 GiB).
    pub fn apply(&mut self, iv: &[u8], text: &mut [u8]) {
        self.apply_all(once(Message { iv, text }));
    }

    /// Encrypts or decrypts texts.
    ///
    /// # Panics
    /// As [`Self::apply`].
    pub fn apply_all<'a, V: AsRef<[u8]>>(
        &mut self,
        messages: impl IntoIterator<Item = Message<'a, V>>,
    ) {
        let texts = messages
            .into_iter()
            .map(|Message { iv, text }| (first_counter::<C>(iv.as_ref(), text.len()), text));
        mix_with_keystream(&self.cipher, &mut self.scratch, texts);
    }
}

/// The IV, and a zero to count from.
pub(super) fn first_counter<C: BlockCipher>(iv: &[u8], text_bytes: usize) -> Counter<false> {
    let half = C::BLOCK_BYTES / 2;
    assert_eq!(iv.len(), half, "an IV of half a block");
    assert!(
        is_countable(C::BLOCK_BYTES, text_bytes),
        "a text of {text_bytes} B has more blocks than {} can count",
        C::NAME
    );
    // The right half counts from 0.
    let mut first = [0; BLOCK_BYTES_MAX];
    first[..half].copy_from_slice(iv);
    Counter::new(&first[..C::BLOCK_BYTES])
}

/// Whether half a block can count the text's blocks.
const fn is_countable(block_bytes: usize, text_bytes: usize) -> bool {
    let blocks = text_bytes.div_ceil(block_bytes) as u128;
    // 4 bits for each byte of the block are half of its bits. In 128 bits, as those of a long block
    // do not fit 64.
    blocks <= 1 << (4 * block_bytes)
}

#[cfg(test)]
mod tests {
    use super::is_countable;

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn the_number_of_blocks_is_limited_by_the_counter() {
        const GIB_32: usize = 32 << 30;
        assert!(is_countable(8, 0) && is_countable(8, 1));
        assert!(is_countable(8, GIB_32 - 8) && is_countable(8, GIB_32 - 7));
        assert!(is_countable(8, GIB_32));
        assert!(!is_countable(8, GIB_32 + 1) && !is_countable(8, usize::MAX));
        // No memory is so large.
        assert!(is_countable(16, usize::MAX));
    }
}
