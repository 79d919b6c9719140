//! Products by VPCLMULQDQ on 64 bytes per step.

use super::Product;
use std::arch::x86_64::*;

/// The sum of the unreduced products of 8-byte blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,pclmulqdq")]
pub(super) fn products_64(factors: &[u8], data: &[u8]) -> Product {
    // As in `pclmul`, in four lanes.
    let swap = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0809_0a0b_0c0d_0e0f, 0x0001_0203_0405_0607));
    let mut sums = [_mm512_setzero_si512(); 2];
    let mut add = |factor, block| {
        let factor = _mm512_shuffle_epi8(factor, swap);
        let block = _mm512_shuffle_epi8(block, swap);
        sums[0] = _mm512_xor_si512(sums[0], _mm512_clmulepi64_epi128::<0x00>(factor, block));
        sums[1] = _mm512_xor_si512(sums[1], _mm512_clmulepi64_epi128::<0x11>(factor, block));
    };
    let mut offset = 0;
    while offset < data.len() {
        add(load(factors, offset), load(data, offset));
        offset += 64;
    }
    Product::from_parts(number(_mm512_xor_si512(sums[0], sums[1])), 0, 0)
}

/// The sum of the unreduced products of 16-byte blocks.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,vpclmulqdq,pclmulqdq")]
pub(super) fn products_128(factors: &[u8], data: &[u8]) -> Product {
    let swap = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f));
    let mut sums = [_mm512_setzero_si512(); 4];
    let mut add = |factor, block| {
        let factor = _mm512_shuffle_epi8(factor, swap);
        let block = _mm512_shuffle_epi8(block, swap);
        sums[0] = _mm512_xor_si512(sums[0], _mm512_clmulepi64_epi128::<0x00>(factor, block));
        sums[1] = _mm512_xor_si512(sums[1], _mm512_clmulepi64_epi128::<0x01>(factor, block));
        sums[2] = _mm512_xor_si512(sums[2], _mm512_clmulepi64_epi128::<0x10>(factor, block));
        sums[3] = _mm512_xor_si512(sums[3], _mm512_clmulepi64_epi128::<0x11>(factor, block));
    };
    let mut offset = 0;
    while offset < data.len() {
        add(load(factors, offset), load(data, offset));
        offset += 64;
    }
    let middle = _mm512_xor_si512(sums[1], sums[2]);
    Product::from_parts(number(sums[0]), number(middle), number(sums[3]))
}

/// The 64 bytes at `offset`, with zeros for those past the end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load(bytes: &[u8], offset: usize) -> __m512i {
    let bytes = &bytes[offset..];
    // `bytes` is never empty here, and a shift by 64 would be refused. Zeros beyond the mask add
    // nothing to the sum.
    let mask = u64::MAX >> (64 - bytes.len().clamp(1, 64));
    // SAFETY: the mask covers no more than `bytes`, which is not empty, and masked-out bytes are
    // not accessed.
    unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) }
}

/// The sum of the four lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn number(x: __m512i) -> u128 {
    // All lanes have sums of the same powers.
    let halves = _mm256_xor_si256(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64::<1>(x));
    let x = _mm_xor_si128(
        _mm256_castsi256_si128(halves),
        _mm256_extracti128_si256::<1>(halves),
    );
    let high = _mm_extract_epi64::<1>(x).cast_unsigned();
    u128::from(high) << 64 | u128::from(_mm_cvtsi128_si64(x).cast_unsigned())
}
