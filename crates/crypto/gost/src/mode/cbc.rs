//! CBC (GOST R 34.13-2015 §5.4).

use super::Message;
use super::batch::{
    BLOCK_BYTES_MAX, Chain, SCRATCH_BYTES, Scratch, side_by_side, through, xor, xor_block,
};
use crate::BlockCipher;
use std::iter::once;

/// The longest IV, in blocks. The standard sets no bound; its examples have two and three.
pub const IV_BLOCKS_MAX: usize = 4;
const IV_BYTES_MAX: usize = IV_BLOCKS_MAX * BLOCK_BYTES_MAX;

/// CBC. The IV is one block, as everywhere else, or several: then each block is mixed with the
/// ciphertext that many blocks before it. Texts are whole blocks; padding is up to the caller. It
/// authenticates nothing.
pub struct Cbc<C> {
    cipher: C,
    scratch: Box<Scratch<SCRATCH_BYTES>>,
}

impl<C: BlockCipher> Cbc<C> {
    /// The mode under a keyed cipher.
    #[must_use]
    pub fn new(cipher: C) -> Self {
        let scratch = Scratch::new();
        Self { cipher, scratch }
    }

    /// Encrypts a text. A block at a time, which leaves most of a core idle: see
    /// [`Self::encrypt_all`].
    ///
    /// # Panics
    /// If the text is not whole blocks, or the IV not one to [`IV_BLOCKS_MAX`] blocks.
    pub fn encrypt(&mut self, iv: &[u8], text: &mut [u8]) {
        self.encrypt_all(once(Message { iv, text }));
    }

    /// Decrypts a text.
    ///
    /// # Panics
    /// As [`Self::encrypt`].
    pub fn decrypt(&mut self, iv: &[u8], text: &mut [u8]) {
        self.decrypt_all(once(Message { iv, text }));
    }

    /// Encrypts texts interleaved: 64 take little longer than one.
    ///
    /// # Panics
    /// As [`Self::encrypt`].
    pub fn encrypt_all<'a, V: AsRef<[u8]>>(
        &mut self,
        messages: impl IntoIterator<Item = Message<'a, V>>,
    ) {
        let chains = messages.into_iter().map(|Message { iv, text }| {
            assert_whole::<C>(iv.as_ref(), text);
            Encryption { iv, text, at: 0 }
        });
        side_by_side::<C>(&mut self.scratch, chains, |blocks| {
            self.cipher.encrypt_blocks(blocks);
        });
    }

    /// Decrypts texts.
    ///
    /// # Panics
    /// As [`Self::encrypt`].
    pub fn decrypt_all<'a, V: AsRef<[u8]>>(
        &mut self,
        messages: impl IntoIterator<Item = Message<'a, V>>,
    ) {
        let texts = messages.into_iter().map(|Message { iv, text }| {
            assert_whole::<C>(iv.as_ref(), text);
            (Before::new(iv.as_ref()), text)
        });
        through(
            C::BLOCK_BYTES,
            &mut self.scratch,
            texts,
            |before, piece, blocks| {
                blocks.copy_from_slice(piece);
                // Noted now: by the time of `drain`, plaintext has replaced the ciphertext before
                // it.
                let noted = *before;
                before.pass(piece);
                noted
            },
            |blocks| self.cipher.decrypt_blocks(blocks),
            |before, blocks, piece| {
                // The piece still holds the ciphertext, which must be mixed in.
                let early = before.bytes.min(piece.len());
                xor(&mut blocks[..early], &before.ciphertext);
                xor(&mut blocks[early..], piece);
                piece.copy_from_slice(blocks);
            },
        );
    }
}

fn assert_whole<C: BlockCipher>(iv: &[u8], text: &[u8]) {
    let (block, name) = (C::BLOCK_BYTES, C::NAME);
    let bytes = text.len();
    assert!(
        bytes.is_multiple_of(block),
        "{bytes} B are whole blocks of {name}"
    );
    let bytes = iv.len();
    assert!(
        bytes.is_multiple_of(block) && (1..=IV_BLOCKS_MAX).contains(&(bytes / block)),
        "an IV of {bytes} B is 1 to {IV_BLOCKS_MAX} blocks of {name}"
    );
}

/// A text that is being encrypted.
struct Encryption<'a, V> {
    iv: V,
    text: &'a mut [u8],
    /// Bytes of the text already passed to the cipher.
    at: usize,
}

impl<V: AsRef<[u8]>> Chain for Encryption<'_, V> {
    #[inline]
    fn turn<const N: usize>(&mut self, block: &mut [u8; N]) -> bool {
        let at = self.at;
        if let Some(done) = at.checked_sub(N) {
            self.text[done..at].copy_from_slice(block);
        }
        if at == self.text.len() {
            return false;
        }
        block.copy_from_slice(&self.text[at..at + N]);
        // The IV in the first turns, then the ciphertext as many blocks before.
        let iv = self.iv.as_ref();
        match at.checked_sub(iv.len()) {
            None => xor_block(block, &iv[at..]),
            Some(before) => xor_block(block, &self.text[before..]),
        }
        self.at += N;
        true
    }
}

/// The ciphertext before a piece, of the IV's length; at first, the IV.
#[derive(Clone, Copy)]
struct Before {
    ciphertext: [u8; IV_BYTES_MAX],
    bytes: usize,
}

impl Before {
    fn new(iv: &[u8]) -> Self {
        let mut ciphertext = [0; IV_BYTES_MAX];
        ciphertext[..iv.len()].copy_from_slice(iv);
        let bytes = iv.len();
        Self { ciphertext, bytes }
    }

    /// Advances past a piece.
    fn pass(&mut self, piece: &[u8]) {
        if let Some(skipped) = piece.len().checked_sub(self.bytes) {
            self.ciphertext[..self.bytes].copy_from_slice(&piece[skipped..]);
        } else {
            // A piece shorter than the IV: what is left of the ciphertext before it moves up.
            self.ciphertext.copy_within(piece.len()..self.bytes, 0);
            self.ciphertext[self.bytes - piece.len()..self.bytes].copy_from_slice(piece);
        }
    }
}
