//! CTR: the text is mixed with encrypted counters (GOST R 34.13-2015 §5.2).

use super::Message;
use super::batch::{BLOCK_BYTES_MAX, SCRATCH_BYTES, Scratch, through, xor};
use super::counter::Counter;
use crate::BlockCipher;
use std::iter::once;

/// CTR with an IV of half a block, and keystream that is used to the last byte. Encryption and decryption are the same. An IV
/// used twice under a key gives the texts away; it authenticates nothing.
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
    /// If the IV is not [`Self::IV_BYTES`] long, or the text has more blocks than there are counters (a text of Magma: 32 GiB).
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
        through(
            C::BLOCK_BYTES,
            &mut self.scratch,
            texts,
            |counter, _, blocks| counter.write(blocks),
            |blocks| self.cipher.encrypt_blocks(blocks),
            |(), blocks, piece| xor(piece, blocks),
        );
    }
}

/// The IV, and a zero to count from.
pub(super) fn first_counter<C: BlockCipher>(iv: &[u8], text_bytes: usize) -> Counter<false> {
    let half = C::BLOCK_BYTES / 2;
    assert_eq!(iv.len(), half, "an IV of half a block");
    assert_countable::<C>(text_bytes);
    let mut first = [0; BLOCK_BYTES_MAX];
    first[..half].copy_from_slice(iv);
    Counter::new(&first[..C::BLOCK_BYTES])
}

/// Half a block must be able to count the text's blocks.
pub(super) fn assert_countable<C: BlockCipher>(text_bytes: usize) {
    let blocks = text_bytes.div_ceil(C::BLOCK_BYTES) as u128;
    assert!(
        blocks <= 1 << (4 * C::BLOCK_BYTES),
        "a text of {text_bytes} B has more blocks than {} can count",
        C::NAME
    );
}
