//! Collects the blocks of many messages for a cipher.

use super::counter::Count;
use crate::BlockCipher;
use arrayvec::ArrayVec;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Room for the blocks of one call of the cipher: many times any kernel's parallelism, and small
/// enough for the first-level cache next to the messages. A multiple of [`STRIDE_BYTES`].
pub(super) const SCRATCH_BYTES: usize = 4096;
/// The most bytes that any kernel processes in parallel: multiples of this leave no part of it
/// idle.
pub(super) const STRIDE_BYTES: usize = 1024;
/// Most pieces of messages in one scratch; then the cipher is called with the blocks collected so
/// far.
const PIECES: usize = 64;
/// Interleaved chains: the most blocks that a kernel processes in parallel.
pub(super) const CHAINS: usize = 64;
/// The longest block.
pub(super) const BLOCK_BYTES_MAX: usize = 16;

/// The buffer for collected blocks. Wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
#[repr(align(64))]
pub(super) struct Scratch<const N: usize>(pub(super) [u8; N]);

impl<const N: usize> Scratch<N> {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self([0; N]))
    }
}

/// Passes texts through the scratch, filling it with pieces of many texts:
///
/// 1. `fill` makes the blocks for a piece of a text: its counters, or the piece itself. It may
///    return a note.
/// 2. `cipher` processes all blocks in the scratch.
/// 3. `drain` gets the note, the piece's blocks and the piece, and changes the piece by the blocks.
///
/// All pieces of a text but its last are whole blocks. A text comes with the state of `fill`, which
/// lasts from one piece to the next.
pub(super) fn through<'a, S, N>(
    block_bytes: usize,
    scratch: &mut Scratch<SCRATCH_BYTES>,
    texts: impl Iterator<Item = (S, &'a mut [u8])>,
    mut fill: impl FnMut(&mut S, &[u8], &mut [u8]) -> N,
    mut cipher: impl FnMut(&mut [u8]),
    mut drain: impl FnMut(N, &mut [u8], &mut [u8]),
) {
    let blocks = &mut scratch.0;
    let mut pieces = ArrayVec::<(N, &mut [u8]), PIECES>::new();
    let mut used = 0;
    let mut flush = |blocks: &mut [u8], pieces: &mut ArrayVec<(N, &mut [u8]), PIECES>| {
        cipher(blocks);
        let mut rest = blocks;
        for (noted, piece) in pieces.drain(..) {
            // The last piece of a text may end within a block.
            let bytes = piece.len().next_multiple_of(block_bytes);
            let (own, behind) = std::mem::take(&mut rest).split_at_mut(bytes);
            drain(noted, own, piece);
            rest = behind;
        }
    };
    for (mut state, mut text) in texts {
        while !text.is_empty() {
            // A text may end anywhere, but is cut at whole blocks only: the room is whole blocks.
            let bytes = text.len().min(SCRATCH_BYTES - used);
            let (piece, rest) = text.split_at_mut(bytes);
            text = rest;
            let end = used + bytes.next_multiple_of(block_bytes);
            let noted = fill(&mut state, piece, &mut blocks[used..end]);
            pieces.push((noted, piece));
            used = end;
            if used == SCRATCH_BYTES || pieces.is_full() {
                flush(&mut blocks[..used], &mut pieces);
                used = 0;
            }
        }
    }
    if used > 0 {
        flush(&mut blocks[..used], &mut pieces);
    }
}

/// Mixes texts with keystream, the encrypted blocks of their counters.
pub(super) fn mix_with_keystream<'a, C: BlockCipher>(
    cipher: &C,
    scratch: &mut Scratch<SCRATCH_BYTES>,
    texts: impl Iterator<Item = (impl Count, &'a mut [u8])>,
) {
    let kernel = cipher.kernel();
    through(
        C::BLOCK_BYTES,
        scratch,
        texts,
        |counter, _, blocks| kernel.widened(blocks.len(), || counter.write(blocks)),
        |blocks| cipher.encrypt_blocks(blocks),
        |(), blocks, piece| kernel.widened(blocks.len(), || xor(piece, blocks)),
    );
}

/// A message with blocks that depend on one another.
pub(super) trait Chain {
    /// Receives the cipher's output for the last block, or zeros at first, and replaces it with the
    /// next input. Returns whether there is a next input.
    fn turn<const BLOCK_BYTES: usize>(&mut self, block: &mut [u8; BLOCK_BYTES]) -> bool;
}

/// Processes chains, up to [`CHAINS`] of them interleaved: `cipher` gets a block of each. When one
/// ends the next takes its place.
pub(super) fn side_by_side<C: BlockCipher>(
    scratch: &mut Scratch<SCRATCH_BYTES>,
    chains: impl Iterator<Item = impl Chain>,
    cipher: impl FnMut(&mut [u8]),
) {
    // Constant lengths: a turn is a few instructions, and would otherwise be several calls of
    // `memcpy`.
    match C::BLOCK_BYTES {
        8 => side_by_side_in::<8>(scratch, chains, cipher),
        _ => side_by_side_in::<16>(scratch, chains, cipher),
    }
}

fn side_by_side_in<const BLOCK_BYTES: usize>(
    scratch: &mut Scratch<SCRATCH_BYTES>,
    chains: impl Iterator<Item = impl Chain>,
    mut cipher: impl FnMut(&mut [u8]),
) {
    let (blocks, _) = scratch.0.as_chunks_mut::<BLOCK_BYTES>();
    let mut chains = chains.fuse();
    let mut live = ArrayVec::<_, CHAINS>::new();
    loop {
        while !live.is_full() {
            let Some(mut chain) = chains.next() else {
                break;
            };
            let block = &mut blocks[live.len()];
            *block = [0; BLOCK_BYTES];
            // A chain may have no block at all.
            if chain.turn(block) {
                live.push(chain);
            }
        }
        if live.is_empty() {
            return;
        }
        // The live chains have the first blocks, without gaps.
        cipher(blocks[..live.len()].as_flattened_mut());
        let mut at = 0;
        while at < live.len() {
            if live[at].turn(&mut blocks[at]) {
                at += 1;
            } else {
                // The last chain moves here with its block and gets its turn.
                live.swap_remove(at);
                blocks[at] = blocks[live.len()];
            }
        }
    }
}

/// `to ^= from`, as far as `to` goes.
///
/// # Panics
/// If `from` is shorter: the rest of the text would stay unencrypted.
#[inline]
pub(super) fn xor(to: &mut [u8], from: &[u8]) {
    let from = &from[..to.len()];
    to.iter_mut().zip(from).for_each(|(to, from)| *to ^= from);
}

/// `block ^= from`, as far as the block goes: [`xor`] for chains, which have a few instructions a
/// turn.
///
/// # Panics
/// If `from` is shorter.
#[inline]
pub(super) fn xor_block<const N: usize>(block: &mut [u8; N], from: &[u8]) {
    let from = from.first_chunk::<N>().expect("enough to mix in");
    let words = block.as_chunks_mut::<8>().0.iter_mut();
    for (to, from) in words.zip(from.as_chunks::<8>().0) {
        *to = (u64::from_ne_bytes(*to) ^ u64::from_ne_bytes(*from)).to_ne_bytes();
    }
}
