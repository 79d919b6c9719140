//! Products by PCLMULQDQ.

use super::Product;
use std::arch::x86_64::*;

/// The sum of the unreduced products of 8-byte blocks.
#[target_feature(enable = "avx2,pclmulqdq")]
pub(super) fn products_64(factors: &[u8], data: &[u8]) -> Product {
    // The instruction has the lowest power in the lowest bit, MGM the highest power in the first
    // byte. So each block of 8 bytes is reversed, and each of two is multiplied (0x00, 0x11).
    let swap = _mm_set_epi64x(0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607);
    let mut sums = [_mm_setzero_si128(); 2];
    each_pair(factors, data, |factor, block| {
        let (factor, block) = (
            _mm_shuffle_epi8(factor, swap),
            _mm_shuffle_epi8(block, swap),
        );
        sums[0] = _mm_xor_si128(sums[0], _mm_clmulepi64_si128::<0x00>(factor, block));
        sums[1] = _mm_xor_si128(sums[1], _mm_clmulepi64_si128::<0x11>(factor, block));
    });
    Product::from_parts(number(_mm_xor_si128(sums[0], sums[1])), 0, 0)
}

/// The sum of the unreduced products of 16-byte blocks.
#[target_feature(enable = "avx2,pclmulqdq")]
pub(super) fn products_128(factors: &[u8], data: &[u8]) -> Product {
    // As above, with blocks of 16 bytes, and all four products of their halves.
    let swap = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
    let mut sums = [_mm_setzero_si128(); 4];
    each_pair(factors, data, |factor, block| {
        let (factor, block) = (
            _mm_shuffle_epi8(factor, swap),
            _mm_shuffle_epi8(block, swap),
        );
        sums[0] = _mm_xor_si128(sums[0], _mm_clmulepi64_si128::<0x00>(factor, block));
        sums[1] = _mm_xor_si128(sums[1], _mm_clmulepi64_si128::<0x01>(factor, block));
        sums[2] = _mm_xor_si128(sums[2], _mm_clmulepi64_si128::<0x10>(factor, block));
        sums[3] = _mm_xor_si128(sums[3], _mm_clmulepi64_si128::<0x11>(factor, block));
    });
    // Both products of a low and a high half are of the same powers.
    let middle = _mm_xor_si128(sums[1], sums[2]);
    Product::from_parts(number(sums[0]), number(middle), number(sums[3]))
}

/// Calls `add` for each 16 bytes; the last ones are padded with zeros.
#[inline]
#[target_feature(enable = "avx2,pclmulqdq")]
fn each_pair(factors: &[u8], data: &[u8], mut add: impl FnMut(__m128i, __m128i)) {
    let (pairs, rest) = data.as_chunks::<16>();
    let (whole, _) = factors.as_chunks::<16>();
    for (factor, block) in whole.iter().zip(pairs) {
        add(load(factor), load(block));
    }
    if !rest.is_empty() {
        // Zeros add nothing to the sum.
        let (mut factor, mut block) = ([0; 16], [0; 16]);
        let last = &factors[16 * pairs.len()..];
        factor[..last.len()].copy_from_slice(last);
        block[..rest.len()].copy_from_slice(rest);
        add(load(&factor), load(&block));
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are readable; the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn number(x: __m128i) -> u128 {
    let high = _mm_extract_epi64::<1>(x).cast_unsigned();
    u128::from(high) << 64 | u128::from(_mm_cvtsi128_si64(x).cast_unsigned())
}
