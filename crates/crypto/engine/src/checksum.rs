//! The Internet checksum's partial sum (RFC 1071), vectorised.
//!
//! It is here and not in `wire`, since only this crate may use SIMD; `wire` takes the function as a
//! value. Every variant adds 32-bit words in native byte order into 64 bits and leaves folding to
//! the caller. Sums of two variants may differ before they are folded to 16 bits.

use std::sync::OnceLock;
use wire::checksum::{Sum, portable};

/// Adds `bytes` to the partial sum `start` by the fastest variant. See [`wire::checksum`] for its
/// use.
///
/// `start` must be a partial sum of less than 16 GiB, as every sum over packets is: the carry out
/// of 64 bits is lost.
#[inline]
#[must_use]
pub fn sum(bytes: &[u8], start: u64) -> u64 {
    fastest()(bytes, start)
}

/// Returns the fastest variant on this CPU, selected once: AVX-512, AVX2 or portable.
#[must_use]
pub fn fastest() -> Sum {
    static FASTEST: OnceLock<Sum> = OnceLock::new();
    *FASTEST.get_or_init(|| variants()[0].1)
}

/// Returns the variants that this CPU can run, fastest first, with their names.
fn variants() -> Vec<(&'static str, Sum)> {
    let mut variants: Vec<(&'static str, Sum)> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        // The masked load of single bytes needs `bw` too.
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
            // SAFETY: the CPU has the features that the function is compiled for.
            variants.push(("avx512", |bytes, start| unsafe {
                x86::sum_avx512(bytes, start)
            }));
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has the feature that the function is compiled for.
            variants.push(("avx2", |bytes, start| unsafe {
                x86::sum_avx2(bytes, start)
            }));
        }
    }
    variants.push(("portable", portable));
    variants
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use wire::checksum::portable;

    /// 64 bytes per step; a masked load handles the rest, so that short headers need no loop.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn sum_avx512(bytes: &[u8], start: u64) -> u64 {
        // 32-bit halves in 64-bit sums: 2^32 additions cannot overflow, so no carry is handled in
        // the loop.
        let low_half = _mm512_set1_epi64(0xffff_ffff);
        let mut low = _mm512_setzero_si512();
        let mut high = _mm512_setzero_si512();
        let (blocks, tail) = bytes.as_chunks::<64>();
        for block in blocks {
            // SAFETY: 64 bytes are readable at `block`; the load needs no alignment.
            let words = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
            low = _mm512_add_epi64(low, _mm512_and_si512(words, low_half));
            high = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(words));
        }
        if !tail.is_empty() {
            // 1 to 63 bytes: a shift by 64 would be an error.
            let mask = u64::MAX >> (64 - tail.len());
            // SAFETY: the mask covers `tail` exactly, and masked-out bytes are not accessed.
            let words = unsafe { _mm512_maskz_loadu_epi8(mask, tail.as_ptr().cast()) };
            low = _mm512_add_epi64(low, _mm512_and_si512(words, low_half));
            high = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(words));
        }
        start + _mm512_reduce_add_epi64(_mm512_add_epi64(low, high)).cast_unsigned()
    }

    /// 32 bytes per step; the portable variant handles the rest.
    #[target_feature(enable = "avx2")]
    pub(super) fn sum_avx2(bytes: &[u8], start: u64) -> u64 {
        // Halves in wide sums, as in `sum_avx512`.
        let low_half = _mm256_set1_epi64x(0xffff_ffff);
        let mut low = _mm256_setzero_si256();
        let mut high = _mm256_setzero_si256();
        let (blocks, tail) = bytes.as_chunks::<32>();
        for block in blocks {
            // SAFETY: 32 bytes are readable at `block`; the load needs no alignment.
            let words = unsafe { _mm256_loadu_si256(block.as_ptr().cast()) };
            low = _mm256_add_epi64(low, _mm256_and_si256(words, low_half));
            high = _mm256_add_epi64(high, _mm256_srli_epi64::<32>(words));
        }
        let both = _mm256_add_epi64(low, high);
        let halves = _mm_add_epi64(
            _mm256_castsi256_si128(both),
            _mm256_extracti128_si256::<1>(both),
        );
        let sum = _mm_extract_epi64::<0>(halves) + _mm_extract_epi64::<1>(halves);
        portable(tail, start + sum.cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::checksum::fold;

    /// RFC 1071 §4.1 word by word, as an unfolded sum of big-endian words.
    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in bytes.chunks(2) {
            sum += u32::from(u16::from_be_bytes([
                pair[0],
                pair.get(1).copied().unwrap_or(0),
            ]));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn folded(sum: u64) -> u16 {
        u16::from_be_bytes(fold(sum).to_ne_bytes())
    }

    #[test]
    fn the_fastest_twin_is_the_first_that_the_cpu_can_run() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(fastest()(&bytes, 3), variants()[0].1(&bytes, 3));
        assert_eq!(sum(&bytes, 3), fastest()(&bytes, 3));
        assert_eq!(variants().last().unwrap().0, "portable");
    }

    #[test]
    fn every_twin_agrees_with_the_rfc_at_every_short_length_and_offset() {
        let bytes: Vec<u8> = (0..400u32)
            .map(|i| (i.wrapping_mul(167) ^ 0xa5) as u8)
            .collect();
        for (name, variant) in variants() {
            for length in 0..=300 {
                for offset in [0, 1, 2, 3, 7, 13, 31, 64] {
                    let part = &bytes[offset..offset + length];
                    assert_eq!(
                        folded(variant(part, 0)),
                        naive(part),
                        "{name} {length} at {offset}"
                    );
                }
            }
        }
    }

    #[test]
    fn no_twin_loses_a_carry_of_a_whole_super_packet_of_ones() {
        let ones = vec![0xff; 65_535];
        for (name, variant) in variants() {
            assert_eq!(folded(variant(&ones, 0)), naive(&ones), "{name}");
        }
    }

    proptest! {
        #[test]
        fn every_twin_agrees_with_the_rfc_on_random_bytes(
            bytes in prop::collection::vec(any::<u8>(), 0..3000),
            offset in 0usize..64,
            split in 0usize..1500,
        ) {
            let part = bytes.get(offset..).unwrap_or_default();
            // All parts but the last must have even length.
            let (first, second) = part.split_at((split * 2).min(part.len() & !1));
            for (_, variant) in variants() {
                prop_assert_eq!(folded(variant(part, 0)), naive(part));
                prop_assert_eq!(folded(variant(second, variant(first, 0))), naive(part));
            }
        }
    }
}
