//! Blocks that are counted up, in one half of them.

use super::batch::BLOCK_BYTES_MAX;

/// A block of which one half, read with its first byte the highest, is counted up modulo 2^(half of the block's bits). The other
/// half stays.
///
/// Counted is the right half in CTR (GOST R 34.13-2015 §5.2, where the left half is the IV, and messages end before the right
/// one is used up) and for the keystream of MGM (`incr_r` of RFC 9058 §3), the left half for the factors of MGM (`incr_l`).
pub(super) struct Counter<const LEFT: bool> {
    /// The next block, with zeros behind it if it is a short one.
    next: [u8; BLOCK_BYTES_MAX],
    block_bytes: usize,
}

impl<const LEFT: bool> Counter<LEFT> {
    /// A counter whose first block is `first`.
    pub(super) fn new(first: &[u8]) -> Self {
        let mut next = [0; BLOCK_BYTES_MAX];
        next[..first.len()].copy_from_slice(first);
        Self {
            next,
            block_bytes: first.len(),
        }
    }

    /// Writes as many blocks as there is room for.
    pub(super) fn write(&mut self, blocks: &mut [u8]) {
        debug_assert!(blocks.len().is_multiple_of(self.block_bytes));
        // In runs over which nothing but the last byte of the half changes: there the whole block may be added to as if it were
        // one number of the machine's own, and compilers make vectors of that.
        let mut rest = blocks;
        while !rest.is_empty() {
            let until_carry = 256 - usize::from(self.next[self.counted().end - 1]);
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

    #[inline]
    fn write_run_of_8(&self, run: &mut [u8]) {
        let (first, _) = self.next.split_first_chunk().expect("of 16 bytes");
        let first = u64::from_le_bytes(*first);
        let last_byte = if LEFT { 24 } else { 56 };
        for (block, number) in run.as_chunks_mut().0.iter_mut().zip(0u64..) {
            *block = (first + (number << last_byte)).to_le_bytes();
        }
    }

    #[inline]
    fn write_run_of_16(&self, run: &mut [u8]) {
        let [left, right] = self.next.as_chunks().0 else {
            unreachable!("16 bytes are two times 8")
        };
        let (left, right) = (u64::from_le_bytes(*left), u64::from_le_bytes(*right));
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

    /// Where the half that is counted lies.
    #[inline]
    fn counted(&self) -> std::ops::Range<usize> {
        let half = self.block_bytes / 2;
        if LEFT { 0..half } else { half..2 * half }
    }

    #[inline]
    fn advance(&mut self, blocks: usize) {
        let counted = self.counted();
        match <&mut [u8; 8]>::try_from(&mut self.next[counted.clone()]) {
            Ok(half) => {
                *half = u64::from_be_bytes(*half)
                    .wrapping_add(blocks as u64)
                    .to_be_bytes()
            }
            Err(_) => {
                let half = &mut self.next[counted];
                let half = <&mut [u8; 4]>::try_from(half).expect("half a block of 8 bytes");
                // A run is at most 256 blocks long.
                *half = u32::from_be_bytes(*half)
                    .wrapping_add(blocks as u32)
                    .to_be_bytes();
            }
        }
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
        fn counts_like_the_slow_one(
            first in any::<[u8; 16]>(),
            // Halves that are about to run over, too.
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
