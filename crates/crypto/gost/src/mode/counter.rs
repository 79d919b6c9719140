//! Counter blocks, counted up in one half.

use zeroize::{Zeroize, ZeroizeOnDrop};

/// The input of keystream: counter blocks.
pub(super) trait Count {
    /// Fills `blocks` with the next counter blocks.
    fn write(&mut self, blocks: &mut [u8]);
}

/// A block with one half that is counted: a big-endian number, incremented modulo 2^(half of the
/// block's bits). The other half is constant.
///
/// The counted half is the right one in CTR (GOST R 34.13-2015 §5.2: the left half is the IV, and
/// messages end before the right one is used up) and for the keystream of MGM (`incr_r` of RFC 9058
/// §3), the left half for the factors of MGM (`incr_l`).
///
/// In MGM it is an encrypted nonce: wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Counter<const LEFT: bool> {
    /// The next block in words, each with its first byte the lowest. The second is zero if the
    /// block is a short one.
    next: [u64; 2],
    #[zeroize(skip)]
    block_bytes: usize,
}

impl<const LEFT: bool> Counter<LEFT> {
    /// A counter with `first` as its first block.
    pub(super) fn new(first: &[u8]) -> Self {
        let word = |at: usize| {
            let word = first.get(at..).and_then(<[u8]>::first_chunk);
            word.map_or(0, |word| u64::from_le_bytes(*word))
        };
        Self {
            next: [word(0), word(8)],
            block_bytes: first.len(),
        }
    }

    /// The last byte of the half that is counted: its word, and its first bit there.
    #[inline]
    const fn last_byte(&self) -> (usize, u32) {
        match (self.block_bytes, LEFT) {
            (8, true) => (0, 24),
            (8, false) => (0, 56),
            (_, true) => (0, 56),
            (_, false) => (1, 56),
        }
    }

    #[inline]
    fn write_run_of_8(&self, run: &mut [u8]) {
        let (_, last_byte) = self.last_byte();
        for (block, number) in run.as_chunks_mut().0.iter_mut().zip(0u64..) {
            // No carry into the next byte: the run ends before one.
            *block = (self.next[0] + (number << last_byte)).to_le_bytes();
        }
    }

    #[inline]
    fn write_run_of_16(&self, run: &mut [u8]) {
        let [left, right] = self.next;
        let (halves, _) = run.as_chunks_mut::<8>();
        for (block, number) in halves.as_chunks_mut::<2>().0.iter_mut().zip(0u64..) {
            let number = number << 56;
            let (left, right) = if LEFT {
                (left + number, right)
            } else {
                (left, right + number)
            };
            *block = [left.to_le_bytes(), right.to_le_bytes()];
        }
    }

    #[inline]
    fn advance(&mut self, blocks: usize) {
        let (word, last_byte) = self.last_byte();
        let word = &mut self.next[word];
        if self.block_bytes == 16 {
            // The counted half is a big-endian number, the word a little-endian one.
            *word = word.swap_bytes().wrapping_add(blocks as u64).swap_bytes();
            return;
        }
        let first_byte = last_byte - 24;
        let half = (*word >> first_byte) as u32;
        // A run is at most 256 blocks long.
        let counted = half.swap_bytes().wrapping_add(blocks as u32).swap_bytes();
        // Replaces the half, and keeps the other one.
        *word ^= u64::from(half ^ counted) << first_byte;
    }
}

impl<const LEFT: bool> Count for Counter<LEFT> {
    #[inline]
    fn write(&mut self, blocks: &mut [u8]) {
        debug_assert!(blocks.len().is_multiple_of(self.block_bytes));
        // In runs over which only the last byte of the half changes: the whole block can be
        // incremented as one native number, which compilers vectorize.
        let mut rest = blocks;
        while !rest.is_empty() {
            let (word, last_byte) = self.last_byte();
            let until_carry = 256 - (self.next[word] >> last_byte & 0xff) as usize;
            let blocks = (rest.len() / self.block_bytes).min(until_carry);
            let (run, behind) = rest.split_at_mut(blocks * self.block_bytes);
            match self.block_bytes {
                8 => self.write_run_of_8(run),
                _ => self.write_run_of_16(run),
            }
            self.advance(blocks);
            rest = behind;
        }
    }
}

impl<T: Count> Count for &mut T {
    #[inline]
    fn write(&mut self, blocks: &mut [u8]) {
        (**self).write(blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts byte by byte.
    fn slowly(block: &mut [u8], left: bool) {
        let half = block.len() / 2;
        let half = if left {
            &mut block[..half]
        } else {
            &mut block[half..]
        };
        for byte in half.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return;
            }
        }
    }

    fn check<const LEFT: bool>(first: &[u8], writes: &[usize]) {
        let mut counter = Counter::<LEFT>::new(first);
        let mut expected = first.to_vec();
        for blocks in writes {
            let mut written = vec![0xa5; blocks * first.len()];
            counter.write(&mut written);
            for block in written.chunks(first.len()) {
                assert_eq!(block, expected);
                slowly(&mut expected, LEFT);
            }
        }
    }

    proptest! {
        #[test]
        fn counts_like_the_slow_counter(
            first in any::<[u8; 16]>(),
            // Also halves that are about to overflow.
            ones in 0usize..=16,
            long in any::<bool>(),
            writes in prop::collection::vec(0usize..600, 1..4),
        ) {
            let mut first = first;
            let bytes = if long { 16 } else { 8 };
            let ones = ones.min(bytes);
            first[bytes - ones..bytes].fill(0xff);
            first[(bytes / 2).saturating_sub(ones)..bytes / 2].fill(0xff);
            check::<true>(&first[..bytes], &writes);
            check::<false>(&first[..bytes], &writes);
        }
    }
}
