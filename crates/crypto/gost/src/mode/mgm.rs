//! MGM, the AEAD (RFC 9058).
//!
//! 32 messages at a time:
//!
//! 1. Both nonces of each, 0‖ICN and 1‖ICN, are encrypted: they are the first counters of its
//!    keystream and its factors.
//! 2. Message after message, counters for its factors and for its keystream fill the scratch; when
//!    it is full they are encrypted. The text is mixed with the keystream, and ciphertext,
//!    additional data and lengths are multiplied with their factors and added up.
//! 3. The sums are encrypted: these are the tags.
//!
//! A message is opened in the same pass: if its tag is wrong, its text is wiped before the call
//! returns.

use super::batch::{BLOCK_BYTES_MAX, SCRATCH_BYTES, Scratch, xor};
use super::counter::{Count as _, Counter};
use super::field::Sum;
use crate::BlockCipher;
use arrayvec::ArrayVec;
use ctutils::CtEq;
use std::iter::once;

/// Messages processed together.
const TOGETHER: usize = 32;
/// Parts of messages in one scratch.
const PARTS: usize = 64;

/// Up to this many bytes, a message's authenticated data is first copied into one buffer.
const STAGED_BYTES: usize = 256;

/// A text with its nonce, additional data and tag.
#[derive(Debug)]
pub struct AeadMessage<'a, V, A> {
    /// The nonce (ICN): a block with its highest bit zero.
    pub nonce: V,
    /// Additional data: authenticated and not encrypted.
    pub aad: A,
    /// The text, changed in place.
    pub text: &'a mut [u8],
    /// The buffer for the tag or its first bytes: written by sealing, compared by opening.
    pub tag: &'a mut [u8],
}

/// MGM. Reusing a nonce under a key reveals texts and allows forged tags.
pub struct Mgm<C> {
    cipher: C,
    scratch: Box<Scratch<SCRATCH_BYTES>>,
    /// First counters of keystreams, each replaced by its message's sum at the end; then the first
    /// counters of factors.
    starts: Box<Scratch<{ 2 * TOGETHER * BLOCK_BYTES_MAX }>>,
}

impl<C: BlockCipher> Mgm<C> {
    /// Length of the nonce.
    pub const NONCE_BYTES: usize = C::BLOCK_BYTES;
    /// Length of the whole tag.
    pub const TAG_BYTES: usize = C::BLOCK_BYTES;
    /// Length of the shortest tag that the standard allows.
    pub const TAG_BYTES_MIN: usize = 4;

    /// The mode under a keyed cipher.
    #[must_use]
    pub fn new(cipher: C) -> Self {
        Self {
            cipher,
            scratch: Scratch::new(),
            starts: Scratch::new(),
        }
    }

    /// Replaces the cipher by one with another key; keeps the scratch.
    pub fn rekey(&mut self, cipher: C) {
        self.cipher = cipher;
    }

    /// Encrypts a text and writes its tag.
    ///
    /// # Panics
    /// If the nonce is not one block with a highest bit of zero, the tag is shorter than
    /// [`Self::TAG_BYTES_MIN`] or longer than a block, text and additional data are both empty, or
    /// longer together than half a block can count in bits (with Magma: 512 MiB less a byte).
    pub fn seal(&mut self, nonce: &[u8], aad: &[u8], text: &mut [u8], tag: &mut [u8]) {
        self.seal_all(once(AeadMessage {
            nonce,
            aad,
            text,
            tag,
        }));
    }

    /// Decrypts a text and returns true if its tag is right; otherwise zeros the text and returns
    /// false.
    ///
    /// # Panics
    /// As [`Self::seal`].
    #[must_use]
    pub fn open(&mut self, nonce: &[u8], aad: &[u8], text: &mut [u8], tag: &[u8]) -> bool {
        let mut authentic = [false];
        // A message has a mutable tag, for sealing. The copy leaves this one to the caller.
        let mut claimed = [0; BLOCK_BYTES_MAX];
        let claimed = &mut claimed[..tag.len()];
        claimed.copy_from_slice(tag);
        let message = AeadMessage {
            nonce,
            aad,
            text,
            tag: claimed,
        };
        self.open_all(once(message), &mut authentic);
        authentic[0]
    }

    /// Encrypts texts and writes their tags.
    ///
    /// # Panics
    /// As [`Self::seal`].
    pub fn seal_all<'a, V: AsRef<[u8]>, A: AsRef<[u8]>>(
        &mut self,
        messages: impl IntoIterator<Item = AeadMessage<'a, V, A>>,
    ) {
        let mut messages = messages.into_iter().fuse();
        loop {
            let mut together: ArrayVec<_, TOGETHER> = messages.by_ref().take(TOGETHER).collect();
            if together.is_empty() {
                return;
            }
            let tags = self.run(Direction::Seal, &mut together);
            for (message, tag) in together.iter_mut().zip(tags.chunks_exact(C::BLOCK_BYTES)) {
                message.tag.copy_from_slice(&tag[..message.tag.len()]);
            }
        }
    }

    /// Decrypts texts and reports for each whether it is authentic; zeros unauthentic texts.
    ///
    /// # Panics
    /// If there is not one answer a message, and as [`Self::seal`].
    pub fn open_all<'a, V: AsRef<[u8]>, A: AsRef<[u8]>>(
        &mut self,
        messages: impl IntoIterator<Item = AeadMessage<'a, V, A>>,
        authentic: &mut [bool],
    ) {
        let mut messages = messages.into_iter().fuse();
        let mut answers = authentic.iter_mut();
        loop {
            let mut together: ArrayVec<_, TOGETHER> = messages.by_ref().take(TOGETHER).collect();
            if together.is_empty() {
                break;
            }
            let tags = self.run(Direction::Open, &mut together);
            for (message, tag) in together.iter_mut().zip(tags.chunks_exact(C::BLOCK_BYTES)) {
                let answer = answers.next().expect("one answer a message");
                *answer = tag[..message.tag.len()].ct_eq(&*message.tag).into();
                if !*answer {
                    // A caller that ignores the answer has no forged plaintext.
                    message.text.fill(0);
                }
            }
        }
        assert!(answers.next().is_none(), "one answer a message");
    }

    /// Encrypts or decrypts up to [`TOGETHER`] texts, and returns the tags of their ciphertexts,
    /// whole.
    fn run<V: AsRef<[u8]>, A: AsRef<[u8]>>(
        &mut self,
        way: Direction,
        messages: &mut [AeadMessage<'_, V, A>],
    ) -> &[u8] {
        let starts_bytes = messages.len() * C::BLOCK_BYTES;
        let (keystreams, behind) = self.starts.0.split_at_mut(starts_bytes);
        let factors = &mut behind[..starts_bytes];
        let starts = keystreams
            .chunks_exact_mut(C::BLOCK_BYTES)
            .zip(factors.chunks_exact_mut(C::BLOCK_BYTES));
        for (message, (keystream, factor)) in messages.iter().zip(starts) {
            let nonce = message.nonce.as_ref();
            check::<C>(nonce, message.aad.as_ref(), message.text, message.tag);
            keystream.copy_from_slice(nonce);
            factor.copy_from_slice(nonce);
            // 1‖ICN: the first bit keeps the two sequences of counters apart (RFC 9058 §4.1).
            factor[0] |= 0x80;
        }
        self.cipher
            // Both nonces of all messages in one call.
            .encrypt_blocks(&mut self.starts.0[..2 * starts_bytes]);

        let (keystreams, factors) = self.starts.0.split_at_mut(starts_bytes);
        let sums = keystreams;
        let mut parts = Parts {
            cipher: &self.cipher,
            way,
            blocks: &mut self.scratch.0,
            used: 0,
            parts: ArrayVec::new(),
            sum: Sum::new(self.cipher.kernel(), C::BLOCK_BYTES),
            sums,
        };
        let numbered = messages.iter_mut().enumerate();
        for ((number, message), factor) in numbered.zip(factors.chunks_exact(C::BLOCK_BYTES)) {
            parts.push(number, message.aad.as_ref(), message.text, factor);
        }
        parts.flush();
        let tags = &mut self.starts.0[..starts_bytes];
        self.cipher.encrypt_blocks(tags);
        tags
    }
}

fn check<C: BlockCipher>(nonce: &[u8], aad: &[u8], text: &[u8], tag: &[u8]) {
    assert_eq!(nonce.len(), C::BLOCK_BYTES, "a nonce of one block");
    assert_eq!(nonce[0] & 0x80, 0, "a nonce whose highest bit is zero");
    let (bytes, least) = (tag.len(), Mgm::<C>::TAG_BYTES_MIN);
    assert!(
        (least..=C::BLOCK_BYTES).contains(&bytes),
        "a tag of {bytes} B is {least} to {} B",
        C::BLOCK_BYTES
    );
    let bytes = [aad, text].map(<[u8]>::len);
    assert!(
        are_lengths_allowed(C::BLOCK_BYTES, bytes),
        "{} B of additional data and {} B of text: MGM takes 1 B, and less than 2^{} bits, of both together",
        bytes[0],
        bytes[1],
        4 * C::BLOCK_BYTES
    );
}

/// Whether additional data and text may have these lengths: together more than nothing, and fewer
/// bits than half a block can count (RFC 9058 §4.1). If both were empty the tag would not depend on
/// the nonce: a captured tag would be valid for every nonce.
///
/// So a text never has more blocks than there are counters.
const fn are_lengths_allowed(block_bytes: usize, bytes: [usize; 2]) -> bool {
    let bits = 8 * (bytes[0] as u128 + bytes[1] as u128);
    0 < bits && bits < 1 << (4 * block_bytes)
}

/// Whether the ciphertext is the input or the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Seal,
    Open,
}

/// The part of one message that fits the scratch, which holds the factors of additional data, text
/// and lengths, then the text's keystream.
struct Part<'a> {
    message: usize,
    aad: &'a [u8],
    text: &'a mut [u8],
    /// The block of lengths, if the message ends here.
    lengths: Option<[u8; BLOCK_BYTES_MAX]>,
}

/// Parts of messages, and the scratch that they fill.
struct Parts<'a, 's, C> {
    cipher: &'s C,
    way: Direction,
    blocks: &'s mut [u8; SCRATCH_BYTES],
    used: usize,
    parts: ArrayVec<Part<'a>, PARTS>,
    /// The sum of the message that the next part belongs to.
    sum: Sum,
    /// First counters of keystreams; sums, once a message has ended.
    sums: &'s mut [u8],
}

impl<'a, C: BlockCipher> Parts<'a, '_, C> {
    /// Adds a message.
    fn push(&mut self, message: usize, mut aad: &'a [u8], mut text: &'a mut [u8], factor: &[u8]) {
        let mut factors = Counter::<true>::new(factor);
        let own = &self.sums[message * C::BLOCK_BYTES..][..C::BLOCK_BYTES];
        let mut keystream = Counter::<false>::new(own);
        let lengths = lengths(C::BLOCK_BYTES, aad.len(), text.len());
        loop {
            // Room in blocks: a block of additional data needs a factor, one of text keystream too.
            let mut room = (SCRATCH_BYTES - self.used) / C::BLOCK_BYTES;
            let (aad_here, aad_left) = aad.split_at(aad.len().min(room * C::BLOCK_BYTES));
            let aad_blocks = aad_here.len().div_ceil(C::BLOCK_BYTES);
            room -= aad_blocks;
            let bytes = text.len().min(room / 2 * C::BLOCK_BYTES);
            let (text_here, text_left) = text.split_at_mut(bytes);
            let text_blocks = bytes.div_ceil(C::BLOCK_BYTES);
            room -= 2 * text_blocks;
            // The lengths need a factor too. If it has no room, they are a part by themselves.
            let ends = aad_left.is_empty() && text_left.is_empty() && room > 0;

            let factor_blocks = aad_blocks + text_blocks + usize::from(ends);
            let blocks = &mut self.blocks[self.used..];
            let (here, behind) = blocks.split_at_mut(factor_blocks * C::BLOCK_BYTES);
            factors.write(here);
            keystream.write(&mut behind[..text_blocks * C::BLOCK_BYTES]);
            self.used += (factor_blocks + text_blocks) * C::BLOCK_BYTES;
            self.parts.push(Part {
                message,
                aad: aad_here,
                text: text_here,
                lengths: ends.then_some(lengths),
            });
            // A message that has not ended has filled the scratch, but for a block.
            if !ends || self.parts.is_full() {
                self.flush();
            }
            if ends {
                return;
            }
            (aad, text) = (aad_left, text_left);
        }
    }

    /// Processes the scratch.
    fn flush(&mut self) {
        self.cipher.encrypt_blocks(&mut self.blocks[..self.used]);
        let mut rest = &self.blocks[..self.used];
        let mut take = |bytes: usize| {
            let (blocks, behind) = rest.split_at(bytes.next_multiple_of(C::BLOCK_BYTES));
            rest = behind;
            blocks
        };
        let mut staged = [0; STAGED_BYTES];
        for part in self.parts.drain(..) {
            let own_bytes = [part.aad.len(), part.text.len()];
            let [aad_bytes, text_bytes] =
                own_bytes.map(|bytes| bytes.next_multiple_of(C::BLOCK_BYTES));
            let ends = part.lengths.map_or(0, |_| C::BLOCK_BYTES);
            let factors = take(aad_bytes + text_bytes + ends);
            let keystream = take(text_bytes);
            // The sum is over the ciphertext: sealing encrypts before it, opening decrypts after
            // it.
            if self.way == Direction::Seal {
                xor(part.text, keystream);
            }
            if let Some(staged) = staged.get_mut(..factors.len()) {
                // Three separate sums would cost more than one over all. None of it is secret.
                let (aad, behind) = staged.split_at_mut(aad_bytes);
                let (text, lengths) = behind.split_at_mut(text_bytes);
                fill_padded(aad, part.aad);
                fill_padded(text, part.text);
                if let Some(own) = &part.lengths {
                    lengths.copy_from_slice(&own[..C::BLOCK_BYTES]);
                }
                self.sum.accumulate(factors, staged);
            } else {
                let (aad, behind) = factors.split_at(aad_bytes);
                let (text, lengths) = behind.split_at(text_bytes);
                self.sum.accumulate(aad, part.aad);
                self.sum.accumulate(text, part.text);
                if let Some(own) = &part.lengths {
                    self.sum.accumulate(lengths, &own[..C::BLOCK_BYTES]);
                }
            }
            if self.way == Direction::Open {
                xor(part.text, keystream);
            }
            if part.lengths.is_some() {
                let next = Sum::new(self.cipher.kernel(), C::BLOCK_BYTES);
                // In the place of the first counter of its keystream, which is no longer needed.
                let own = &mut self.sums[part.message * C::BLOCK_BYTES..][..C::BLOCK_BYTES];
                std::mem::replace(&mut self.sum, next).finish(own);
            }
        }
        self.used = 0;
    }
}

/// Copies `bytes` to the front of `to`, and zeroes the rest.
#[inline]
fn fill_padded(to: &mut [u8], bytes: &[u8]) {
    let (own, padding) = to.split_at_mut(bytes.len());
    own.copy_from_slice(bytes);
    padding.fill(0);
}

/// Lengths of additional data and text in bits, each in half a block.
fn lengths(block_bytes: usize, aad_bytes: usize, text_bytes: usize) -> [u8; BLOCK_BYTES_MAX] {
    let mut block = [0; BLOCK_BYTES_MAX];
    let half = block_bytes / 2;
    for (half, bytes) in block.chunks_exact_mut(half).zip([aad_bytes, text_bytes]) {
        let bits = (8 * bytes as u64).to_be_bytes();
        half.copy_from_slice(&bits[8 - half.len()..]);
    }
    block
}

#[cfg(test)]
mod tests {
    use super::are_lengths_allowed;

    #[test]
    fn lengths_are_limited_as_in_rfc_9058() {
        const MIB_512: usize = 1 << 29;
        let magma = |aad, text| are_lengths_allowed(8, [aad, text]);
        assert!(!magma(0, 0));
        assert!(magma(1, 0) && magma(0, 1));
        // The sum counts: fewer than 2^32 bits.
        assert!(magma(MIB_512 - 1, 0) && magma(0, MIB_512 - 1));
        assert!(magma(MIB_512 / 2, MIB_512 / 2 - 1));
        assert!(!magma(MIB_512 / 2, MIB_512 / 2));
        assert!(!magma(MIB_512, 0) && !magma(0, MIB_512));
        assert!(!magma(MIB_512 - 1, 1) && !magma(usize::MAX, usize::MAX));
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn long_blocks_allow_longer_texts() {
        let kuznyechik = |aad, text| are_lengths_allowed(16, [aad, text]);
        assert!(!kuznyechik(0, 0));
        assert!(kuznyechik(1 << 29, 1 << 29));
        assert!(kuznyechik((1 << 60) - 1, 1 << 60));
        assert!(!kuznyechik(1 << 60, 1 << 60));
        assert!(!kuznyechik(usize::MAX, usize::MAX));
    }
}
