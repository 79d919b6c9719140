//! OMAC, the MAC of GOST R 34.13-2015 §5.6 (imito): the same as CMAC (NIST SP 800-38B).

use super::batch::{BLOCK_BYTES_MAX, Chain, SCRATCH_BYTES, Scratch, side_by_side, xor, xor_block};
use crate::BlockCipher;
use ctutils::CtEq;
use std::iter::once;
use zeroize::Zeroizing;

/// A message and its MAC, which may be truncated.
#[derive(Debug)]
pub struct MacMessage<'a, T> {
    /// The message.
    pub text: &'a [u8],
    /// Authenticated after the text but stored elsewhere, as the high half of a sequence number in
    /// ESP; or `[]`.
    pub tail: T,
    /// The buffer for the MAC or its first bytes: written by computing, compared by verifying.
    pub mac: &'a mut [u8],
}

/// OMAC. Messages of any length, the empty one among them.
pub struct Omac<C> {
    cipher: C,
    /// The subkeys for a last block that is whole, and for one that is not.
    subkeys: Zeroizing<[[u8; BLOCK_BYTES_MAX]; 2]>,
    scratch: Box<Scratch<SCRATCH_BYTES>>,
}

impl<C: BlockCipher> Omac<C> {
    /// Length of the whole MAC.
    pub const MAC_BYTES: usize = C::BLOCK_BYTES;

    /// The mode under a keyed cipher.
    #[must_use]
    pub fn new(cipher: C) -> Self {
        let mut subkeys = Zeroizing::new([[0; BLOCK_BYTES_MAX]; 2]);
        let [whole, padded] = &mut *subkeys;
        let (whole, padded) = (&mut whole[..C::BLOCK_BYTES], &mut padded[..C::BLOCK_BYTES]);
        // Of a block of zeros: the subkeys are its product with x and with x^2 (§5.6.1).
        cipher.encrypt_blocks(whole);
        double(whole);
        padded.copy_from_slice(whole);
        double(padded);
        Self {
            cipher,
            subkeys,
            scratch: Scratch::new(),
        }
    }

    /// Writes the first bytes of the MAC of `text` to `mac`. A block at a time, which leaves most
    /// of a core idle: see [`Self::mac_all`].
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
        self.run(messages.into_iter().map(|message| {
            let MacMessage { text, tail, mac } = message;
            (text, tail, Mac::Write(mac))
        }));
    }

    /// Reports for each message whether its MAC is right. In constant time, except for a message's
    /// address and length.
    ///
    /// # Panics
    /// If there is not one answer a message, and as [`Self::mac`].
    pub fn verify_all<'a, T: AsRef<[u8]>>(
        &mut self,
        messages: impl IntoIterator<Item = MacMessage<'a, T>>,
        authentic: &'a mut [bool],
    ) {
        let mut answers = authentic.iter_mut();
        self.run(messages.into_iter().map(|message| {
            let MacMessage { text, tail, mac } = message;
            let answer = answers.next().expect("one answer a message");
            (text, tail, Mac::Compare(mac, answer))
        }));
        assert!(answers.next().is_none(), "one answer a message");
    }

    fn run<'a, T: AsRef<[u8]>>(&mut self, messages: impl Iterator<Item = (&'a [u8], T, Mac<'a>)>) {
        let subkeys = &*self.subkeys;
        let chains = messages.map(|(text, tail, mac)| {
            let bytes = mac.bytes();
            assert!(
                (1..=C::BLOCK_BYTES).contains(&bytes),
                "a MAC of {bytes} B is 1 to {} B",
                C::BLOCK_BYTES
            );
            Authentication {
                message: Joined::new(text, tail),
                mac,
                subkeys,
                ended: false,
            }
        });
        side_by_side::<C>(&mut self.scratch, chains, |blocks| {
            self.cipher.encrypt_blocks(blocks);
        });
    }
}

/// Multiplies by x in the field of the standard (§5.6.1), in constant time.
fn double(block: &mut [u8]) {
    // The low terms of the field's polynomial.
    let polynomial = if block.len() == 8 { 0x1b } else { 0x87 };
    let mut carry = 0;
    for byte in block.iter_mut().rev() {
        let high = *byte >> 7;
        *byte = *byte << 1 | carry;
        carry = high;
    }
    if let Some(last) = block.last_mut() {
        // A mask and no branch: the carry is secret.
        *last ^= polynomial & carry.wrapping_neg();
    }
}

/// Whether the MAC begins with `mac`; `write` fills its buffer with the MAC's first bytes. In
/// constant time, except for the length.
pub(super) fn is_what_begins(mac: &[u8], write: impl FnOnce(&mut [u8])) -> bool {
    let mut own = Zeroizing::new([0; BLOCK_BYTES_MAX]);
    let own = &mut own[..mac.len()];
    write(own);
    (*own).ct_eq(mac).into()
}

/// The use of a MAC.
enum Mac<'a> {
    Write(&'a mut [u8]),
    Compare(&'a [u8], &'a mut bool),
}

impl Mac<'_> {
    fn bytes(&self) -> usize {
        match self {
            Self::Write(mac) => mac.len(),
            Self::Compare(mac, _) => mac.len(),
        }
    }

    fn settle(&mut self, own: &[u8]) {
        match self {
            Self::Write(mac) => mac.copy_from_slice(&own[..mac.len()]),
            Self::Compare(mac, authentic) => **authentic = own[..mac.len()].ct_eq(*mac).into(),
        }
    }
}

/// A message in its two parts, and the bytes already mixed in.
pub(super) struct Joined<'a, T> {
    text: &'a [u8],
    tail: T,
    at: usize,
}

impl<'a, T: AsRef<[u8]>> Joined<'a, T> {
    pub(super) const fn new(text: &'a [u8], tail: T) -> Self {
        Self { text, tail, at: 0 }
    }

    /// Bytes still to mix in.
    pub(super) fn left(&self) -> usize {
        self.text.len() + self.tail.as_ref().len() - self.at
    }

    /// Mixes the next bytes into `block`, up to its length or the message's end.
    #[inline]
    pub(super) fn mix<const N: usize>(&mut self, block: &mut [u8; N]) {
        let (at, end) = (self.at, self.at + N);
        if let Some(whole) = self.text.get(at..end) {
            xor_block(block, whole);
            self.at = end;
            return;
        }
        // The end of the text, and as much of the tail as fits behind it.
        let text = &self.text[at.min(self.text.len())..];
        let tail = &self.tail.as_ref()[at.saturating_sub(self.text.len())..];
        let (first, second) = block.split_at_mut(text.len());
        xor(first, text);
        let tail = &tail[..tail.len().min(second.len())];
        xor(&mut second[..tail.len()], tail);
        self.at += text.len() + tail.len();
    }
}

/// A message that is being authenticated.
struct Authentication<'a, T> {
    message: Joined<'a, T>,
    mac: Mac<'a>,
    subkeys: &'a [[u8; BLOCK_BYTES_MAX]; 2],
    ended: bool,
}

impl<T: AsRef<[u8]>> Chain for Authentication<'_, T> {
    #[inline]
    fn turn<const N: usize>(&mut self, block: &mut [u8; N]) -> bool {
        if self.ended {
            self.mac.settle(block);
            return false;
        }
        let left = self.message.left();
        self.message.mix(block);
        if left <= N {
            self.ended = true;
            // Two subkeys, so that a message with padding never has the MAC of another without.
            let [whole, padded] = self.subkeys;
            if let Some(padding) = block.get_mut(left) {
                *padding ^= 0x80;
                xor_block(block, padded);
            } else {
                xor_block(block, whole);
            }
        }
        true
    }
}
