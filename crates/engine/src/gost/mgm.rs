//! MGM with keys of a tree (RFC 9227 §4).
//!
//! ```text
//! IV:     |leaf 5|number 3|
//! nonce:  |0|number 3|salt 4 or 12|
//! AAD:    |SPI 4|sequence number 8|
//! ```
//!
//! The sender chooses when to go on to the next leaf (`esp`). The receiver keeps the keys of two leaves, since packets come out
//! of order where one ends. What an IV names is not known to be authentic: a leaf replaces another only when a packet under it
//! was, so that forgeries cost a derivation but put no key away.

use super::packets::{Parts, alone, parts};
use super::tree::{Leaf, Tree};
use crate::transform::{EngineFailed, Packet, Transform, one_by_one};
use ::gost::mode::{AeadMessage, Mgm};
use ::gost::{BlockCipher, KEY_BYTES, Kernel};
use wire::overhead::ESP_HEADER_BYTES;
use wire::{Gost, Suite};
use zeroize::Zeroizing;

/// The longest block, which is the longest nonce.
const NONCE_BYTES_MAX: usize = 16;

/// One SA.
pub(super) struct InMgm<C> {
    suite: Suite,
    kernel: Kernel,
    tree: Tree,
    /// A nonce with no number yet.
    nonce: Zeroizing<Nonce>,
    /// The newest leaf that was good, the one before, and room for one that may be.
    leaves: [(Option<Leaf>, Mgm<C>); 3],
}

/// A nonce of as many bytes as a block has.
#[derive(Clone, Copy, zeroize::Zeroize)]
struct Nonce {
    bytes: [u8; NONCE_BYTES_MAX],
    length: usize,
}

impl AsRef<[u8]> for Nonce {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl<C: BlockCipher> InMgm<C> {
    pub(super) fn new(suite: Gost, key: &[u8; KEY_BYTES], salt: &[u8], kernel: Kernel) -> Self {
        let mut nonce = Zeroizing::new(Nonce {
            bytes: [0; NONCE_BYTES_MAX],
            length: C::BLOCK_BYTES,
        });
        nonce.bytes[4..C::BLOCK_BYTES].copy_from_slice(salt);
        let mut tree = Tree::new(key);
        let first = C::new(&tree.leaf(0), kernel);
        // Keyed when it is needed.
        let none = || (None, Mgm::new(C::new(&[0; KEY_BYTES], kernel)));
        Self {
            suite: Suite::Gost(suite),
            kernel,
            tree,
            nonce,
            leaves: [(Some(0), Mgm::new(first)), none(), none()],
        }
    }

    /// Where the key of a leaf is; it takes the last place if it was not there.
    fn place_of(&mut self, leaf: Leaf) -> usize {
        if let Some(at) = self.leaves.iter().position(|known| known.0 == Some(leaf)) {
            return at;
        }
        let [.., last] = &mut self.leaves;
        last.1.rekey(C::new(&self.tree.leaf(leaf), self.kernel));
        last.0 = Some(leaf);
        self.leaves.len() - 1
    }

    /// Keeps the key in the last place: packets under it are good.
    fn keep(&mut self, place: usize) {
        if place + 1 == self.leaves.len() {
            self.leaves.rotate_right(1);
            // What fell off the end is no one's.
            self.leaves[2].0 = None;
        }
    }

    /// So many of the packets in front are under one leaf.
    fn run(buffer: &[u8], packets: &[Packet]) -> (Leaf, usize) {
        let leaf = |packet: &Packet| leaf_of(&buffer[packet.at..]);
        let first = leaf(&packets[0]);
        let same = packets.iter().take_while(|packet| leaf(packet) == first);
        (first, same.count())
    }
}

/// The first 5 bytes of a packet's IV.
///
/// # Panics
/// If the packet ends before.
#[inline]
fn leaf_of(packet: &[u8]) -> Leaf {
    let iv = packet[ESP_HEADER_BYTES..].first_chunk();
    u64::from_be_bytes(*iv.expect("a packet begins with header and IV")) >> 24
}

/// What MGM sees of a packet.
#[inline]
fn message<'a>(parts: Parts<'a>, mut nonce: Nonce) -> AeadMessage<'a, Nonce, [u8; 12]> {
    let number = ESP_HEADER_BYTES + 5..ESP_HEADER_BYTES + 8;
    nonce.bytes[1..4].copy_from_slice(&parts.prefix[number]);
    AeadMessage {
        nonce,
        aad: parts.aad(),
        text: parts.text,
        tag: parts.icv,
    }
}

impl<C: BlockCipher> Transform for InMgm<C> {
    fn suite(&self) -> Suite {
        self.suite
    }

    fn seal_from(
        &mut self,
        sequence_high: u32,
        text: &[u8],
        packet: &mut [u8],
    ) -> Result<(), EngineFailed> {
        Parts::of(self.suite, packet, sequence_high)
            .text
            .copy_from_slice(text);
        let whole = alone(packet.len(), sequence_high);
        self.seal(packet, &[whole])
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        // A packet that is not where it must be is found before any is touched.
        one_by_one(buffer, packets).for_each(drop);
        let (suite, nonce) = (self.suite, *self.nonce);
        let mut rest = packets;
        while !rest.is_empty() {
            let (leaf, count) = Self::run(buffer, rest);
            let (run, behind) = rest.split_at(count);
            let place = self.place_of(leaf);
            let messages = parts(suite, buffer, run).map(|parts| message(parts, nonce));
            self.leaves[place].1.seal_all(messages);
            self.keep(place);
            rest = behind;
        }
        Ok(())
    }

    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        assert_eq!(packets.len(), authentic.len(), "one answer a packet");
        one_by_one(buffer, packets).for_each(drop);
        let (suite, nonce) = (self.suite, *self.nonce);
        let (mut rest, mut unanswered) = (packets, authentic);
        while !rest.is_empty() {
            let (leaf, count) = Self::run(buffer, rest);
            let (run, behind) = rest.split_at(count);
            let (answers, later) = unanswered.split_at_mut(count);
            let place = self.place_of(leaf);
            let messages = parts(suite, buffer, run).map(|parts| message(parts, nonce));
            self.leaves[place].1.open_all(messages, answers);
            if answers.contains(&true) {
                self.keep(place);
            }
            (rest, unanswered) = (behind, later);
        }
        Ok(())
    }
}
