//! MGM with keys of a tree (RFC 9227 §4).
//!
//! ```text
//! IV:     |leaf 5|number 3|
//! nonce:  |0|number 3|salt 4 or 12|
//! AAD:    |SPI 4|sequence number 8|
//! ```
//!
//! The suites without encryption authenticate the whole packet as additional data (`integrity`).
//!
//! The sender selects when to switch to the next leaf (`esp`). The receiver keeps the keys of two
//! leaves, since packets may be reordered around the switch. The leaf in an IV is not authenticated
//! before the packet is opened:
//!
//! - A leaf and its branch replace others only after a packet under it was authentic: forgeries
//!   evict no key.
//! - Of leaves that are neither known nor next, few are derived for one batch
//!   ([`UNKNOWN_LEAVES_MAX`]). Packets of the others are refused without being opened. This bounds
//!   the cost of many forgeries; with few, the limit is not reached and nothing is refused.

use super::integrity;
use super::nonce::Nonce;
use super::packets::{Parts, parts};
use super::tree::{Branch, Leaf, Tree};
use crate::transform::{EngineFailed, Packet, Transform};
use ::gost::mode::{AeadMessage, Mgm};
use ::gost::{BlockCipher, KEY_BYTES, Kernel};
use wire::overhead::ESP_HEADER_BYTES;
use wire::{Gost, Suite};
use zeroize::Zeroizing;

/// Maximum number of leaves derived while opening a batch, besides those that are known and the
/// next. A genuine peer's packets need one after a gap of more than a leaf, and two if some are
/// late as well.
const UNKNOWN_LEAVES_MAX: usize = 4;

/// One SA.
pub(super) struct InMgm<C> {
    suite: Suite,
    kernel: Kernel,
    tree: Tree,
    /// A nonce without a packet's number.
    nonce: Zeroizing<Nonce>,
    /// The last authenticated leaf, the one before, and a place for an unauthenticated one.
    leaves: [(Option<Leaf>, Mgm<C>); 3],
    /// The branch of the last leaf, if the tree does not have it.
    branch: Option<Branch>,
}

impl<C: BlockCipher> InMgm<C> {
    pub(super) fn new(suite: Gost, key: &[u8; KEY_BYTES], salt: &[u8], kernel: Kernel) -> Self {
        assert_eq!(4 + salt.len(), C::BLOCK_BYTES, "a nonce is a block");
        let mut tree = Tree::new(key);
        let (first, branch) = tree.leaf(0);
        // The first branch is the one that both sides begin with.
        branch.into_iter().for_each(|branch| tree.keep(branch));
        // Keyed on first use.
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

    /// Returns the place of a leaf's key.
    fn place_of(&self, leaf: Leaf) -> Option<usize> {
        self.leaves.iter().position(|known| known.0 == Some(leaf))
    }

    /// Derives the key of a leaf into the last place. Returns the place.
    fn derive(&mut self, leaf: Leaf) -> usize {
        let (key, branch) = self.tree.leaf(leaf);
        // Rekeyed in its place, which keeps the scratch memory.
        let [.., last] = &mut self.leaves;
        last.1.rekey(C::new(&key, self.kernel));
        last.0 = Some(leaf);
        self.branch = branch;
        self.leaves.len() - 1
    }

    /// Returns the place of the key of a leaf in an unauthenticated packet, if it is known or may
    /// be derived.
    fn place_for_unauthenticated(
        &mut self,
        leaf: Leaf,
        unknown_leaves: &mut usize,
    ) -> Option<usize> {
        if let Some(place) = self.place_of(leaf) {
            return Some(place);
        }
        // Without the last place, whose leaf need not be authentic.
        let newest = self.leaves[..2].iter().filter_map(|known| known.0).max();
        if newest.is_none_or(|newest| newest + 1 != leaf) {
            // The next leaf is always derived: the sender may have switched.
            *unknown_leaves = unknown_leaves.checked_sub(1)?;
        }
        Some(self.derive(leaf))
    }

    /// Keeps the key in the last place, and its branch, after an authentic packet under it.
    fn keep(&mut self, place: usize) {
        if place + 1 == self.leaves.len() {
            // The new leaf becomes the first, the former first the second. The former second is
            // evicted.
            self.leaves.rotate_right(1);
            // The evicted key is not used again.
            self.leaves[2].0 = None;
            if let Some(branch) = self.branch.take() {
                self.tree.keep(branch);
            }
        }
    }

    /// Returns the number of packets at the front that are under one leaf.
    fn run(buffer: &[u8], packets: &[Packet]) -> (Leaf, usize) {
        let leaf = |packet: &Packet| leaf_of(&buffer[packet.at..]);
        let first = leaf(&packets[0]);
        // Only a run: packets of one key that others separate are opened apart, in order.
        let same = packets.iter().take_while(|packet| leaf(packet) == first);
        (first, same.count())
    }
}

/// Returns the leaf of a packet, the first 5 bytes of its IV.
///
/// # Panics
/// If the packet is shorter.
#[inline]
pub(super) fn leaf_of(packet: &[u8]) -> Leaf {
    let iv = packet[ESP_HEADER_BYTES..].first_chunk();
    u64::from_be_bytes(*iv.expect("a packet begins with header and IV")) >> 24
}

/// An encrypted packet as input of MGM.
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

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        // Positions are checked before any packet is changed.
        parts(self.suite, buffer, packets).for_each(drop);
        let (suite, nonce) = (self.suite, *self.nonce);
        let mut rest = packets;
        while !rest.is_empty() {
            let (leaf, count) = Self::run(buffer, rest);
            let (run, behind) = rest.split_at(count);
            let place = self.place_of(leaf);
            // The sender selects its leaves itself, so no limit is needed.
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
        assert_eq!(packets.len(), authentic.len(), "one verdict per packet");
        parts(self.suite, buffer, packets).for_each(drop);
        let (suite, nonce) = (self.suite, *self.nonce);
        let mut unknown_leaves = UNKNOWN_LEAVES_MAX;
        let (mut rest, mut unanswered) = (packets, authentic);
        while !rest.is_empty() {
            let (leaf, count) = Self::run(buffer, rest);
            let (run, behind) = rest.split_at(count);
            let (answers, later) = unanswered.split_at_mut(count);
            (rest, unanswered) = (behind, later);
            let Some(place) = self.place_for_unauthenticated(leaf, &mut unknown_leaves) else {
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
            // Only now: a forger can name any leaf.
            if answers.contains(&true) {
                self.keep(place);
            }
        }
        Ok(())
    }
}
