//! Kuznyechik (GOST R 34.12-2015, RFC 7801).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
mod tables;
#[cfg(test)]
mod tests;

use crate::kernel::Set;
use crate::{BlockCipher, KEY_BYTES, Kernel};
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Rounds with a substitution; one more key is added after them.
const ROUNDS: usize = 9;

/// A block, in the order of RFC 7801's strings: the byte that it numbers 15 comes first.
type Block = [u8; 16];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Encrypt,
    Decrypt,
}

/// K_1 to K_10 of RFC 7801 §4.3.
#[derive(Zeroize, ZeroizeOnDrop)]
struct RoundKeys([Block; ROUNDS + 1]);

/// Kuznyechik under one key: blocks of 16 bytes.
pub struct Kuznyechik {
    kernel: Kernel,
    keys: RoundKeys,
    /// The same in AVX-512's representation for few blocks; zeros for other kernels.
    #[cfg(target_arch = "x86_64")]
    mapped: RoundKeys,
}

impl Kuznyechik {
    fn crypt(&self, direction: Direction, blocks: &mut [u8]) {
        let (blocks, rest) = blocks.as_chunks_mut::<16>();
        assert!(rest.is_empty(), "whole blocks of 16 bytes");
        match self.kernel.set() {
            Set::Portable => portable::crypt(direction, &self.keys, blocks),
            // SAFETY: a kernel of this set exists only if AVX2 does.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::crypt(direction, &self.keys, blocks) },
            // SAFETY: a kernel of this set exists only if AVX-512 (F, BW, VBMI) and GFNI do.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::crypt(direction, &self.keys, &self.mapped, blocks) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("no such kernel on this machine"),
        }
    }
}

impl BlockCipher for Kuznyechik {
    const BLOCK_BYTES: usize = 16;
    const NAME: &'static str = "kuznyechik";

    fn new(key: &[u8; KEY_BYTES], kernel: Kernel) -> Self {
        let keys = RoundKeys::new(key, kernel);
        Self {
            kernel,
            #[cfg(target_arch = "x86_64")]
            mapped: match kernel.set() {
                Set::Avx512 => avx512::mapped(&keys),
                Set::Portable | Set::Avx2 => RoundKeys([[0; 16]; ROUNDS + 1]),
            },
            keys,
        }
    }

    fn kernel(&self) -> Kernel {
        self.kernel
    }

    fn encrypt_blocks(&self, blocks: &mut [u8]) {
        self.crypt(Direction::Encrypt, blocks);
    }

    fn decrypt_blocks(&self, blocks: &mut [u8]) {
        self.crypt(Direction::Decrypt, blocks);
    }
}

impl fmt::Debug for Kuznyechik {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kuznyechik")
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}

impl RoundKeys {
    /// The key schedule: a Feistel network of 32 steps. Its halves are taken as two keys before the
    /// network and after every eight steps.
    fn new(key: &[u8; KEY_BYTES], kernel: Kernel) -> Self {
        let (halves, _) = key.as_chunks::<16>();
        // The first byte is the lowest, as `substitute_and_mix` takes a block.
        let mut pair = [halves[0], halves[1]].map(u128::from_le_bytes);
        let mut keys = Self([[0; 16]; ROUNDS + 1]);
        for i in 0..=32_u8 {
            if i > 0 {
                // C_i of RFC 7801 §4.3.
                let constant = tables::mixed_number(i);
                let next = substitute_and_mix(pair[0] ^ constant, kernel) ^ pair[1];
                pair = [next, pair[0]];
            }
            if i % 8 == 0 {
                let at = usize::from(i / 4);
                keys.0[at] = pair[0].to_le_bytes();
                keys.0[at + 1] = pair[1].to_le_bytes();
            }
        }
        pair.zeroize();
        keys
    }
}

/// S, then L, of one block.
fn substitute_and_mix(block: u128, kernel: Kernel) -> u128 {
    match kernel.set() {
        // SAFETY: a kernel of this set exists only if AVX2 does.
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => unsafe { avx2::substitute_and_mix(block) },
        // SAFETY: a kernel of this set exists only if AVX-512 (F, BW, VBMI) and GFNI do.
        #[cfg(target_arch = "x86_64")]
        Set::Avx512 => unsafe { avx512::substitute_and_mix(block) },
        _ => portable::substitute_and_mix(block),
    }
}
