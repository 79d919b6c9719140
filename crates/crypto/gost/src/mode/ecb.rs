//! ECB: each block by itself (GOST R 34.13-2015 §5.1).

use super::batch::{SCRATCH_BYTES, STRIDE_BYTES, Scratch, through};
use crate::BlockCipher;

/// ECB. It shows which blocks of a text are equal, and authenticates nothing: for measurements, and
/// as a building block.
pub struct Ecb<C> {
    cipher: C,
    scratch: Box<Scratch<SCRATCH_BYTES>>,
}

impl<C: BlockCipher> Ecb<C> {
    /// The mode under a keyed cipher.
    #[must_use]
    pub fn new(cipher: C) -> Self {
        let scratch = Scratch::new();
        Self { cipher, scratch }
    }

    /// Encrypts a text.
    ///
    /// # Panics
    /// If it is not whole blocks.
    pub fn encrypt(&mut self, text: &mut [u8]) {
        self.cipher.encrypt_blocks(text);
    }

    /// Decrypts a text.
    ///
    /// # Panics
    /// If it is not whole blocks.
    pub fn decrypt(&mut self, text: &mut [u8]) {
        self.cipher.decrypt_blocks(text);
    }

    /// Encrypts texts.
    ///
    /// # Panics
    /// If one is not whole blocks.
    pub fn encrypt_all<'a>(&mut self, texts: impl IntoIterator<Item = &'a mut [u8]>) {
        // Borrowed apart from the scratch, which changes meanwhile.
        let cipher = &self.cipher;
        all::<C>(&mut self.scratch, texts, |blocks| {
            cipher.encrypt_blocks(blocks)
        });
    }

    /// Decrypts texts.
    ///
    /// # Panics
    /// If one is not whole blocks.
    pub fn decrypt_all<'a>(&mut self, texts: impl IntoIterator<Item = &'a mut [u8]>) {
        let cipher = &self.cipher;
        all::<C>(&mut self.scratch, texts, |blocks| {
            cipher.decrypt_blocks(blocks)
        });
    }
}

/// Processes texts: parts that fill the cipher alone in place; the remainders of all texts
/// together.
fn all<'a, C: BlockCipher>(
    scratch: &mut Scratch<SCRATCH_BYTES>,
    texts: impl IntoIterator<Item = &'a mut [u8]>,
    cipher: impl Fn(&mut [u8]),
) {
    let rests = texts.into_iter().map(|text| {
        let bytes = text.len();
        assert!(
            bytes.is_multiple_of(C::BLOCK_BYTES),
            "{bytes} B are whole blocks of {}",
            C::NAME
        );
        // These keep the kernel busy by themselves, so they need no copy in the scratch.
        let (full, rest) = text.split_at_mut(bytes - bytes % STRIDE_BYTES);
        cipher(full);
        ((), rest)
    });
    through(
        C::BLOCK_BYTES,
        scratch,
        rests,
        |(), piece, blocks| blocks.copy_from_slice(piece),
        &cipher,
        |(), blocks, piece| piece.copy_from_slice(blocks),
    );
}
