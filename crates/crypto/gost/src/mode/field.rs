//! Sums of products in GF(2^64) and GF(2^128), for MGM's authentication (RFC 9058 §4.1).
//!
//! A block is a polynomial over GF(2); the highest bit of its first byte is the coefficient of the
//! highest power. The fields follow RFC 9058 §4: modulo x^64 + x^4 + x^3 + x + 1 and modulo x^128 +
//! x^7 + x^2 + x + 1.

#[cfg(target_arch = "x86_64")]
mod pclmul;
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vpclmul;

use crate::Kernel;
use crate::kernel::Set;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The sum of factor ⊗ block over the blocks of one message, in the field of the cipher's block
/// size.
///
/// Products are added up unreduced and reduced once, by [`Sum::finish`]. Only lengths affect its
/// time.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Sum {
    #[zeroize(skip)]
    kernel: Kernel,
    #[zeroize(skip)]
    block_bytes: usize,
    product: Product,
}

/// A polynomial of degree less than 256, the lowest powers in the first word.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Zeroize)]
struct Product([u64; 4]);

impl Sum {
    /// The empty sum for blocks of 8 or 16 bytes.
    ///
    /// # Panics
    /// If `block_bytes` is neither.
    #[inline]
    pub(crate) fn new(kernel: Kernel, block_bytes: usize) -> Self {
        assert!(matches!(block_bytes, 8 | 16), "fields are of 8 or 16 bytes");
        Self {
            kernel,
            block_bytes,
            product: Product::default(),
        }
    }

    /// Adds factor ⊗ block for each block of `data`. A last block that is not whole counts as if
    /// zeros followed, which is how MGM pads.
    ///
    /// # Panics
    /// If `factors` is not one block for each block of `data`.
    #[inline]
    pub(crate) fn accumulate(&mut self, factors: &[u8], data: &[u8]) {
        assert_eq!(
            factors.len(),
            data.len().next_multiple_of(self.block_bytes),
            "one factor a block"
        );
        let add = match (self.kernel.set(), self.block_bytes) {
            (Set::Portable, 8) => portable::products_64(factors, data),
            (Set::Portable, _) => portable::products_128(factors, data),
            // SAFETY: a kernel of this set exists only if AVX2 and PCLMULQDQ do.
            #[cfg(target_arch = "x86_64")]
            (Set::Avx2, 8) => unsafe { pclmul::products_64(factors, data) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            (Set::Avx2, _) => unsafe { pclmul::products_128(factors, data) },
            // SAFETY: a kernel of this set exists only if AVX-512 (F, BW, VL) and VPCLMULQDQ do.
            #[cfg(target_arch = "x86_64")]
            (Set::Avx512, 8) => unsafe { vpclmul::products_64(factors, data) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            (Set::Avx512, _) => unsafe { vpclmul::products_128(factors, data) },
            #[cfg(not(target_arch = "x86_64"))]
            _ => unreachable!("no such kernel on this machine"),
        };
        // Sums in GF(2) have no carries, so unreduced products can be added in any order.
        for (word, add) in self.product.0.iter_mut().zip(add.0) {
            *word ^= add;
        }
    }

    /// Writes the reduced sum to `block`.
    ///
    /// # Panics
    /// If `block` is not one block.
    #[inline]
    pub(crate) fn finish(self, block: &mut [u8]) {
        assert_eq!(block.len(), self.block_bytes, "one block");
        if self.block_bytes == 8 {
            block.copy_from_slice(&self.product.modulo_64().to_be_bytes());
        } else {
            block.copy_from_slice(&self.product.modulo_128().to_be_bytes());
        }
    }
}

impl Product {
    /// low + middle x^64 + high x^128.
    #[inline]
    fn from_parts(low: u128, middle: u128, high: u128) -> Self {
        let low = low ^ middle << 64;
        let high = high ^ middle >> 64;
        Self([low, low >> 64, high, high >> 64].map(|word| word as u64))
    }

    /// Modulo x^64 + x^4 + x^3 + x + 1; only the lower half is used.
    #[inline]
    fn modulo_64(&self) -> u64 {
        let [low, high, ..] = self.0;
        // x^64 is x^4 + x^3 + x + 1.
        let fold = |high: u64| {
            let high = u128::from(high);
            high ^ high << 1 ^ high << 3 ^ high << 4
        };
        // Folding once reaches 4 bits above; folding these bits stays below.
        let once = fold(high);
        low ^ once as u64 ^ fold((once >> 64) as u64) as u64
    }

    /// Modulo x^128 + x^7 + x^2 + x + 1.
    #[inline]
    fn modulo_128(&self) -> u128 {
        let [a, b, c, d] = self.0.map(u128::from);
        let (low, high) = (a | b << 64, c | d << 64);
        // Folding the upper half reaches 7 bits above; they are folded too.
        let above = high >> 127 ^ high >> 126 ^ high >> 121;
        let high = high ^ above;
        low ^ high ^ high << 1 ^ high << 2 ^ high << 7
    }
}
