//! Modes specific to GOST 28147-89 (RFC 5830): its counter mode, and its MAC over 16 rounds.

use super::Message;
use super::batch::{Chain, SCRATCH_BYTES, Scratch, mix_with_keystream, side_by_side};
use super::counter::Count;
use super::omac::{Joined, MacMessage, is_what_begins};
use crate::BlockCipher;
use crate::magma::Gost89;
use arrayvec::ArrayVec;
use std::iter::once;

/// Length of a block.
const BLOCK_BYTES: usize = Gost89::BLOCK_BYTES;
/// Number of messages with IVs encrypted together.
const TOGETHER: usize = 64;

/// The counter mode (RFC 5830 §6). Encryption and decryption are the same. Reusing an IV under a
/// key reveals the texts; it authenticates nothing. The key stays: CryptoPro's key meshing after
/// each KiB (RFC 4357 §2.3.2) is not done.
pub struct Cnt {
    cipher: Gost89,
    scratch: Box<Scratch<SCRATCH_BYTES>>,
    starts: Box<Scratch<{ TOGETHER * BLOCK_BYTES }>>,
}

impl Cnt {
    /// Length of the IV.
    pub const IV_BYTES: usize = BLOCK_BYTES;

    /// The mode under a keyed cipher.
    #[must_use]
    pub fn new(cipher: Gost89) -> Self {
        Self {
            cipher,
            scratch: Scratch::new(),
            starts: Scratch::new(),
        }
    }

    /// Encrypts or decrypts a text of any length.
    ///
    /// # Panics
    /// If the IV is not [`Self::IV_BYTES`] long.
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
        let mut messages = messages.into_iter().fuse();
        loop {
            let together: ArrayVec<_, TOGETHER> = messages.by_ref().take(TOGETHER).collect();
            if together.is_empty() {
                return;
            }
            let starts = &mut self.starts.0[..together.len() * BLOCK_BYTES];
            let (blocks, _) = starts.as_chunks_mut::<BLOCK_BYTES>();
            for (Message { iv, .. }, block) in together.iter().zip(blocks) {
                let iv = iv.as_ref().try_into();
                *block = iv.expect("an IV of one block");
            }
            // The count begins with the encrypted IV (RFC 5830 §6).
            self.cipher.encrypt_blocks(starts);
            let (blocks, _) = starts.as_chunks::<BLOCK_BYTES>();
            let texts = together.into_iter().zip(blocks);
            let texts = texts.map(|(Message { text, .. }, start)| (Counters::new(start), text));
            mix_with_keystream(&self.cipher, &mut self.scratch, texts);
        }
    }
}

/// The two counted numbers, with separate strides (RFC 5830 §6.1): N3 modulo 2^32, N4 modulo 2^32 -
/// 1.
struct Counters {
    n3: u32,
    n4: u32,
}

impl Counters {
    fn new(start: &[u8; BLOCK_BYTES]) -> Self {
        let start = u64::from_le_bytes(*start);
        Self {
            n3: start as u32,
            n4: (start >> 32) as u32,
        }
    }
}

impl Count for Counters {
    fn write(&mut self, blocks: &mut [u8]) {
        for block in blocks.as_chunks_mut().0 {
            // The constants C2 and C1 of RFC 5830 §6.1. A carry that is added at the other end
            // makes the second sum one modulo 2^32 - 1.
            self.n3 = self.n3.wrapping_add(0x0101_0101);
            let (sum, carry) = self.n4.overflowing_add(0x0101_0104);
            self.n4 = sum + u32::from(carry);
            *block = (u64::from(self.n4) << 32 | u64::from(self.n3)).to_le_bytes();
        }
    }
}

/// The MAC of GOST 28147-89 (imito, RFC 5830 §8), usually truncated to the first 4 bytes. The last
/// block is padded with zeros, so messages that may differ only in trailing zeros need their
/// lengths authenticated too.
///
/// It is defined from two blocks on. A message of one is followed by a block of zeros, as OpenSSL's
/// engine does it, and the empty one has the MAC zero.
pub struct Imito {
    cipher: Gost89,
    scratch: Box<Scratch<SCRATCH_BYTES>>,
}

impl Imito {
    /// The longest MAC.
    pub const MAC_BYTES: usize = BLOCK_BYTES;

    /// The mode under a keyed cipher.
    #[must_use]
    pub fn new(cipher: Gost89) -> Self {
        let scratch = Scratch::new();
        Self { cipher, scratch }
    }

    /// Writes the first bytes of the MAC of `text` to `mac`.
    ///
    /// # Panics
    /// If `mac` is empty or longer than a block.
    pub fn mac(&mut self, text: &[u8], mac: &mut [u8]) {
        let tail = [];
        self.mac_all(once(MacMessage { text, tail, mac }));
    }

    /// Whether the MAC of `text` begins with `mac`.
    ///
    /// # Panics
    /// As [`Self::mac`].
    #[must_use]
    pub fn verify(&mut self, text: &[u8], mac: &[u8]) -> bool {
        is_what_begins(mac, |own| self.mac(text, own))
    }

    /// Writes the MACs of interleaved messages: 64 take little longer than one.
    ///
    /// # Panics
    /// As [`Self::mac`].
    pub fn mac_all<'a, T: AsRef<[u8]>>(
        &mut self,
        messages: impl IntoIterator<Item = MacMessage<'a, T>>,
    ) {
        let chains = messages.into_iter().map(|message| {
            let MacMessage { text, tail, mac } = message;
            let bytes = mac.len();
            assert!(
                (1..=BLOCK_BYTES).contains(&bytes),
                "a MAC of {bytes} B is 1 to {BLOCK_BYTES} B"
            );
            let message = Joined::new(text, tail);
            let left = match message.left().div_ceil(BLOCK_BYTES) {
                1 => 2,
                blocks => blocks,
            };
            Authentication { message, left, mac }
        });
        side_by_side::<Gost89>(&mut self.scratch, chains, |blocks| {
            self.cipher.half_rounds(blocks);
        });
    }
}

/// A message that is being authenticated.
struct Authentication<'a, T> {
    message: Joined<'a, T>,
    /// Blocks still to mix in.
    left: usize,
    mac: &'a mut [u8],
}

impl<T: AsRef<[u8]>> Chain for Authentication<'_, T> {
    #[inline]
    fn turn<const N: usize>(&mut self, block: &mut [u8; N]) -> bool {
        if self.left == 0 {
            // Nothing follows the rounds of the last block.
            self.mac.copy_from_slice(&block[..self.mac.len()]);
            return false;
        }
        self.message.mix(block);
        self.left -= 1;
        true
    }
}
