//! CTR-ACPKM: CTR with a new key for each section of a message (RFC 8645 §6.2.2, R
//! 1323565.1.017-2018).

use super::Message;
use super::batch::{SCRATCH_BYTES, Scratch, mix_with_keystream};
use super::counter::Counter;
use super::ctr::first_counter;
use crate::{BlockCipher, KEY_BYTES, Kernel};
use arrayvec::ArrayVec;
use std::iter::once;
use zeroize::Zeroizing;

/// Number of messages processed together, section by section.
const TOGETHER: usize = 32;
/// Maximum number of cached ciphers, one per section: a key schedule costs as much as many blocks.
const KEPT: usize = 16;

/// CTR-ACPKM. Each message begins under the first key. Sections are whole blocks; the receiver must
/// know their length.
pub struct CtrAcpkm<C> {
    /// The ciphers of the first sections, up to the longest message so far.
    ciphers: Vec<C>,
    section_bytes: usize,
    scratch: Box<Scratch<SCRATCH_BYTES>>,
}

impl<C: BlockCipher> CtrAcpkm<C> {
    /// Length of the IV.
    pub const IV_BYTES: usize = C::BLOCK_BYTES / 2;

    /// The mode under a key, which changes after each `section_bytes`.
    ///
    /// # Panics
    /// If a section is not one block or several.
    #[must_use]
    pub fn new(key: &[u8; KEY_BYTES], kernel: Kernel, section_bytes: usize) -> Self {
        assert!(
            section_bytes > 0 && section_bytes.is_multiple_of(C::BLOCK_BYTES),
            "a section of {section_bytes} B is whole blocks of {}",
            C::NAME
        );
        // Full capacity, so that nothing is allocated later.
        let mut ciphers = Vec::with_capacity(KEPT);
        ciphers.push(C::new(key, kernel));
        Self {
            ciphers,
            section_bytes,
            scratch: Scratch::new(),
        }
    }

    /// Encrypts or decrypts a text of any length.
    ///
    /// # Panics
    /// As [`super::Ctr::apply`].
    pub fn apply(&mut self, iv: &[u8], text: &mut [u8]) {
        self.apply_all(once(Message { iv, text }));
    }

    /// Encrypts or decrypts texts: the first section of 32 of them, then their second.
    ///
    /// # Panics
    /// As [`super::Ctr::apply`].
    pub fn apply_all<'a, V: AsRef<[u8]>>(
        &mut self,
        messages: impl IntoIterator<Item = Message<'a, V>>,
    ) {
        let mut texts = messages
            .into_iter()
            .map(|Message { iv, text }| (first_counter::<C>(iv.as_ref(), text.len()), text))
            .fuse();
        loop {
            let mut together: ArrayVec<_, TOGETHER> = texts.by_ref().take(TOGETHER).collect();
            if together.is_empty() {
                return;
            }
            self.apply_together(&mut together);
        }
    }

    fn apply_together(&mut self, texts: &mut [(Counter<false>, &mut [u8])]) {
        let longest = texts.iter().map(|(_, text)| text.len()).max().unwrap_or(0);
        // The cipher of a section beyond the cached ones.
        let mut late: Option<C> = None;
        // Section by section: all texts share the key of a section, which is expensive to expand.
        for section in 0..longest.div_ceil(self.section_bytes) {
            if section >= self.ciphers.len() {
                // Only in order: a key is derived with the one before it.
                let before = late.as_ref().or(self.ciphers.last());
                let cipher = next(before.expect("the first is there from the start"));
                if section < KEPT {
                    self.ciphers.push(cipher);
                } else {
                    late = Some(cipher);
                }
            }
            let cipher = self.ciphers.get(section).or(late.as_ref());
            let cipher = cipher.expect("made just now, if it was not there");
            let pieces = texts.iter_mut().map(|(counter, text)| {
                let bytes = text.len().min(self.section_bytes);
                (
                    counter,
                    text.split_off_mut(..bytes).expect("within the text"),
                )
            });
            mix_with_keystream(cipher, &mut self.scratch, pieces);
        }
    }
}

/// The cipher of the section after `cipher`'s: its key is the encryption of the bytes 80, 81 … 9f
/// (RFC 8645 §6.2.1).
fn next<C: BlockCipher>(cipher: &C) -> C {
    let mut key = Zeroizing::new(std::array::from_fn(|at| 0x80 + at as u8));
    cipher.encrypt_blocks(&mut *key);
    C::new(&key, cipher.kernel())
}
