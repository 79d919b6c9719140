//! MGM with keys of a tree (RFC 9227 §4).
//!
//! ```text
//! IV:     |leaf 5|number 3|
//! nonce:  |0|number 3|salt 4 or 12|
//! AAD:    |SPI 4|sequence number 8|
//! ```
//!
//! The suites without encryption have all of the packet as additional data (`integrity`).
//!
//! The sender chooses when to go on to the next leaf (`esp`). The receiver keeps the keys of two
//! leaves, since packets come out of order where one ends. What an IV names is not known to be
//! authentic:
//!
//! - A leaf and its branch replace others only when a packet under it was authentic: forgeries put
//!   no key away.
//! - Of leaves that are neither known nor next, few are derived for one batch ([`STRANGERS_MAX`]).
//!   Packets of the others are refused unseen. So forgeries cost little when they are many; when
//!   they are few, batches are short, and nothing is refused.

use super::integrity;
use super::packets::{Parts, copy_and_seal, parts};
use super::tree::{Branch, Leaf, Tree};
use crate::transform::{EngineFailed, Packet, Transform};
use ::gost::mode::{AeadMessage, Mgm};
use ::gost::{BlockCipher, KEY_BYTES, Kernel};
use wire::overhead::ESP_HEADER_BYTES;
use wire::{Gost, Suite};
use zeroize::Zeroizing;

/// The longest block, which is the longest nonce.
const NONCE_BYTES_MAX: usize = 16;

/// Leaves for whose keys a batch that is opened may ask, beside those that are known and the next.
/// A peer's own packets ask for one after a gap of more than a leaf, and for two when some are late
/// as well.
const STRANGERS_MAX: usize = 4;

/// One SA.
pub(super) struct InMgm<C> {
    suite: Suite,
    kernel: Kernel,
    tree: Tree,
    /// A nonce with no number yet.
    nonce: Zeroizing<Nonce>,
    /// The leaf that was last found good, the one before, and room for one that may be.
    leaves: [(Option<Leaf>, Mgm<C>); 3],
    /// The branch of the last of them, if the tree does not have it.
    branch: Option<Branch>,
}

/// A nonce of as many bytes as a block has.
#[derive(Clone, Copy, zeroize::Zeroize)]
pub(super) struct Nonce {
    bytes: [u8; NONCE_BYTES_MAX],
    length: usize,
}

impl AsRef<[u8]> for Nonce {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Nonce {
    /// The nonce of no packet yet.
    pub(super) fn new(salt: &[u8]) -> Self {
        let mut nonce = Self {
            bytes: [0; NONCE_BYTES_MAX],
            length: 4 + salt.len(),
        };
        nonce.bytes[4..4 + salt.len()].copy_from_slice(salt);
        nonce
    }

    /// The nonce of a packet, from the header of which on its bytes are told, with the last 3 of
    /// its IV as number.
    #[inline]
    pub(super) fn of_packet(mut self, packet: &[u8]) -> Self {
        let number = ESP_HEADER_BYTES + 5..ESP_HEADER_BYTES + 8;
        self.bytes[1..4].copy_from_slice(&packet[number]);
        self
    }
}

impl<C: BlockCipher> InMgm<C> {
    pub(super) fn new(suite: Gost, key: &[u8; KEY_BYTES], salt: &[u8], kernel: Kernel) -> Self {
        assert_eq!(4 + salt.len(), C::BLOCK_BYTES, "a nonce is a block");
        let mut tree = Tree::new(key);
        let (first, branch) = tree.leaf(0);
        branch.into_iter().for_each(|branch| tree.keep(branch));
        // Keyed when it is needed.
        let none = || (None, Mgm::new(C::new(&[0; KEY_BYTES], kernel)));
        Self {
            suite: Suite::Gost(suite),
            kernel,
            tree,
            nonce: Zeroizing::new(Nonce::new(salt)),
            leaves: [(Some(0), Mgm::new(C::new(&first, kernel))), none(), none()],
            branch: None,
        }
    }

    /// Where the key of a leaf is.
    fn place_of(&self, leaf: Leaf) -> Option<usize> {
        self.leaves.iter().position(|known| known.0 == Some(leaf))
    }

    /// Derives the key of a leaf, into the last place.
    fn derive(&mut self, leaf: Leaf) -> usize {
        let (key, branch) = self.tree.leaf(leaf);
        let [.., last] = &mut self.leaves;
        last.1.rekey(C::new(&key, self.kernel));
        last.0 = Some(leaf);
        self.branch = branch;
        self.leaves.len() - 1
    }

    /// Where the key of a leaf is that packets name which need not be authentic, if it is known or
    /// may be derived.
    fn place_for_strangers(&mut self, leaf: Leaf, strangers: &mut usize) -> Option<usize> {
        if let Some(place) = self.place_of(leaf) {
            return Some(place);
        }
        // The last place is left out: what is there need not be good.
        let newest = self.leaves[..2].iter().filter_map(|known| known.0).max();
        if newest.is_none_or(|newest| newest + 1 != leaf) {
            *strangers = strangers.checked_sub(1)?;
        }
        Some(self.derive(leaf))
    }

    /// Keeps the key in the last place, and its branch: packets under it are good.
    fn keep(&mut self, place: usize) {
        if place + 1 == self.leaves.len() {
            self.leaves.rotate_right(1);
            // What fell off the end is no one's.
            self.leaves[2].0 = None;
            if let Some(branch) = self.branch.take() {
                self.tree.keep(branch);
            }
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
pub(super) fn leaf_of(packet: &[u8]) -> Leaf {
    let iv = packet[ESP_HEADER_BYTES..].first_chunk();
    u64::from_be_bytes(*iv.expect("a packet begins with header and IV")) >> 24
}

/// What MGM sees of a packet that it encrypts.
#[inline]
fn message<'a>(parts: Parts<'a>, nonce: Nonce) -> AeadMessage<'a, Nonce, [u8; 12]> {
    AeadMessage {
        nonce: nonce.of_packet(parts.prefix),
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
        copy_and_seal(self, sequence_high, text, packet)
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        // A packet that is not where it must be is found before any is touched.
        parts(self.suite, buffer, packets).for_each(drop);
        let (suite, nonce) = (self.suite, *self.nonce);
        let mut rest = packets;
        while !rest.is_empty() {
            let (leaf, count) = Self::run(buffer, rest);
            let (run, behind) = rest.split_at(count);
            let place = self.place_of(leaf);
            let place = place.unwrap_or_else(|| self.derive(leaf));
            let mgm = &mut self.leaves[place].1;
            if suite.encrypts() {
                mgm.seal_all(parts(suite, buffer, run).map(|parts| message(parts, nonce)));
            } else {
                integrity::seal(mgm, suite, nonce, buffer, run);
            }
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
        parts(self.suite, buffer, packets).for_each(drop);
        let (suite, nonce) = (self.suite, *self.nonce);
        let mut strangers = STRANGERS_MAX;
        let (mut rest, mut unanswered) = (packets, authentic);
        while !rest.is_empty() {
            let (leaf, count) = Self::run(buffer, rest);
            let (run, behind) = rest.split_at(count);
            let (answers, later) = unanswered.split_at_mut(count);
            (rest, unanswered) = (behind, later);
            let Some(place) = self.place_for_strangers(leaf, &mut strangers) else {
                parts(suite, buffer, run).for_each(|parts| parts.text.fill(0));
                answers.fill(false);
                continue;
            };
            let mgm = &mut self.leaves[place].1;
            if suite.encrypts() {
                let messages = parts(suite, buffer, run).map(|parts| message(parts, nonce));
                mgm.open_all(messages, answers);
            } else {
                integrity::open(mgm, suite, nonce, buffer, run, answers);
            }
            if answers.contains(&true) {
                self.keep(place);
            }
        }
        Ok(())
    }
}
