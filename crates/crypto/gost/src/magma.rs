//! Magma (GOST R 34.12-2015, RFC 8891) and GOST 28147-89 (RFC 5830).
//!
//! Both are the same cipher: 32 rounds on two halves of 32 bits, each an addition of a key word,
//! eight S-boxes of 4 bits and a rotation by 11. Magma fixes the S-boxes and reads a block and a
//! key as big-endian numbers; GOST 28147-89 leaves the S-boxes open ([`Sbox`]) and reads both as
//! little-endian.
//!
//! Kernels differ in how they look up S-boxes without an address that depends on a secret:
//!
//! - `portable`: 64 blocks as 64 slices of one bit each, every output bit a polynomial of four
//!   input bits; the remaining few blocks one after another, each S-box a 64-bit constant that is
//!   shifted.
//! - `avx2`: 32 blocks as eight planes of bytes, `vpshufb` in a plane being a look-up of 32
//!   nibbles; few blocks as words.
//! - `avx512`: 64 blocks as words, `vpermb` being a look-up of 64 nibbles in the four S-boxes of
//!   their positions.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
mod sbox;
#[cfg(test)]
mod tests;

pub use sbox::Sbox;

use sbox::Tables;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::kernel::Set;
use crate::{BlockCipher, KEY_BYTES, Kernel};

/// Length of a block in bytes.
const BLOCK_BYTES: usize = 8;

/// Number of rounds.
const ROUNDS: usize = 32;

/// Magma (GOST R 34.12-2015 §5, RFC 8891): blocks of 64 bits, keys of 256.
pub struct Magma(Core<true>);

/// GOST 28147-89 (RFC 5830) with selectable S-boxes.
pub struct Gost89(Core<false>);

impl Gost89 {
    /// Makes the round keys for `key`, to be used with those S-boxes by `kernel`.
    #[must_use]
    pub fn with_sbox(key: &[u8; KEY_BYTES], sbox: Sbox, kernel: Kernel) -> Self {
        let words = words(key, u32::from_le_bytes);
        Self(Core::new(words, sbox, kernel))
    }

    /// Takes whole blocks through the first 16 rounds in place, as its MAC does (RFC 5830 §8).
    ///
    /// # Panics
    /// If the length is no multiple of a block's.
    pub(crate) fn half_rounds(&self, blocks: &mut [u8]) {
        self.0.run(&self.0.encrypt, ROUNDS / 2, blocks);
        // `run` ends without a swap, as after the 32nd round; the 16th has one.
        for block in blocks.as_chunks_mut::<BLOCK_BYTES>().0 {
            block.rotate_left(BLOCK_BYTES / 2);
        }
    }
}

impl BlockCipher for Magma {
    const BLOCK_BYTES: usize = BLOCK_BYTES;
    const NAME: &'static str = "magma";

    fn new(key: &[u8; KEY_BYTES], kernel: Kernel) -> Self {
        Self(Core::new(
            words(key, u32::from_be_bytes),
            Sbox::Tc26Z,
            kernel,
        ))
    }

    fn kernel(&self) -> Kernel {
        self.0.kernel
    }

    fn encrypt_blocks(&self, blocks: &mut [u8]) {
        self.0.run(&self.0.encrypt, ROUNDS, blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [u8]) {
        self.0.run(&self.0.decrypt, ROUNDS, blocks);
    }
}

/// With [`Sbox::CryptoProA`], the default of RFC 4357 and of OpenSSL's engine.
impl BlockCipher for Gost89 {
    const BLOCK_BYTES: usize = BLOCK_BYTES;
    const NAME: &'static str = "gost89";

    fn new(key: &[u8; KEY_BYTES], kernel: Kernel) -> Self {
        Self::with_sbox(key, Sbox::CryptoProA, kernel)
    }

    fn kernel(&self) -> Kernel {
        self.0.kernel
    }

    fn encrypt_blocks(&self, blocks: &mut [u8]) {
        self.0.run(&self.0.encrypt, ROUNDS, blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [u8]) {
        self.0.run(&self.0.decrypt, ROUNDS, blocks);
    }
}

/// The key's eight words in the cipher's byte order.
fn words(key: &[u8; KEY_BYTES], word: fn([u8; 4]) -> u32) -> [u32; 8] {
    let (bytes, _) = key.as_chunks::<4>();
    std::array::from_fn(|at| word(bytes[at]))
}

/// The common part of both ciphers; `BIG_ENDIAN` is the byte order of a block.
struct Core<const BIG_ENDIAN: bool> {
    kernel: Kernel,
    tables: &'static Tables,
    encrypt: Rounds,
    decrypt: Rounds,
}

/// The round keys of one direction.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Rounds {
    words: [u32; ROUNDS],
    /// Each byte of each word, the lowest first, with its highest bit flipped, four times: the
    /// addends of AVX2's planes. Empty for other kernels.
    planes: [[u32; 4]; ROUNDS],
}

impl Rounds {
    fn new(words: [u32; ROUNDS], kernel: Kernel) -> Self {
        let plane = |byte: u8| u32::from_ne_bytes([byte ^ 0x80; 4]);
        Self {
            words,
            planes: match kernel.set() {
                Set::Avx2 => words.map(|word| word.to_le_bytes().map(plane)),
                Set::Portable | Set::Avx512 => [[0; 4]; ROUNDS],
            },
        }
    }
}

impl<const BIG_ENDIAN: bool> Core<BIG_ENDIAN> {
    /// The key words three times forwards and once backwards (RFC 8891 §4.3); decryption takes them
    /// from the end.
    fn new(mut words: [u32; 8], sbox: Sbox, kernel: Kernel) -> Self {
        let forwards = std::array::from_fn(|round| match round {
            0..24 => words[round % 8],
            _ => words[31 - round],
        });
        let mut backwards = forwards;
        // Decryption is encryption with the keys in reverse order: a round undoes itself.
        backwards.reverse();
        words.zeroize();
        Self {
            kernel,
            tables: sbox.tables(),
            encrypt: Rounds::new(forwards, kernel),
            decrypt: Rounds::new(backwards, kernel),
        }
    }

    /// The first rounds, an even number, without a swap of halves after the last.
    fn run(&self, keys: &Rounds, rounds: usize, blocks: &mut [u8]) {
        let (blocks, rest) = blocks.as_chunks_mut::<BLOCK_BYTES>();
        assert!(rest.is_empty(), "whole blocks of {BLOCK_BYTES} bytes");
        let (words, tables) = (&keys.words[..rounds], self.tables);
        match self.kernel.set() {
            // SAFETY: a `Kernel` of this set exists only if its instructions were detected.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe {
                avx2::run::<BIG_ENDIAN>(words, &keys.planes[..rounds], tables, blocks);
            },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::run::<BIG_ENDIAN>(words, tables, blocks) },
            _ => portable::run::<BIG_ENDIAN>(words, tables, blocks),
        }
    }
}
