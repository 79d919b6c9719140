//! AVX-512: words, sixteen in a vector; the blocks' even words in one vector, their odd words in
//! another.

use std::arch::x86_64::*;

use super::sbox::Tables;

/// Blocks in one pair of vectors.
const GROUP: usize = 16;

/// Pairs that are computed side by side: a round of one takes nine dependent operations, most of
/// them on one of two ports.
const GROUPS: usize = 4;

/// The round key of each word, the selectors of nibbles, and the S-boxes.
struct Round {
    nibbles: __m512i,
    /// The number of a byte within its word, times 16: the start of its S-box in a table.
    positions: __m512i,
    even: __m512i,
    odd: __m512i,
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) fn run<const BIG_ENDIAN: bool>(words: &[u32], tables: &Tables, blocks: &mut [[u8; 8]]) {
    let (even, odd) = tables.nibbles.split_at(4);
    let round = Round {
        nibbles: _mm512_set1_epi8(0x0f),
        positions: _mm512_set1_epi32(0x3020_1000),
        even: table(even),
        odd: table(odd),
    };
    let (whole, rest) = blocks.as_chunks_mut::<{ GROUPS * GROUP }>();
    for group in whole {
        groups::<BIG_ENDIAN, true, GROUPS>(words, &round, group);
    }
    // Constant numbers of groups, so that their vectors stay in registers.
    match rest.len().div_ceil(GROUP) {
        0 => {}
        1 => groups::<BIG_ENDIAN, false, 1>(words, &round, rest),
        2 => groups::<BIG_ENDIAN, false, 2>(words, &round, rest),
        3 => groups::<BIG_ENDIAN, false, 3>(words, &round, rest),
        _ => groups::<BIG_ENDIAN, false, GROUPS>(words, &round, rest),
    }
}

#[target_feature(enable = "avx512f")]
fn table(boxes: &[[u8; 16]]) -> __m512i {
    let bytes = boxes.as_flattened();
    assert_eq!(bytes.len(), 64, "four S-boxes");
    // SAFETY: 64 bytes are readable and need no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

/// Up to 16 × `N` blocks, exactly that many if `WHOLE`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
#[inline]
fn groups<const BIG_ENDIAN: bool, const WHOLE: bool, const N: usize>(
    words: &[u32],
    round: &Round,
    blocks: &mut [[u8; 8]],
) {
    let bytes = blocks.as_flattened_mut();
    assert!(bytes.len() <= N * 128 && (!WHOLE || bytes.len() == N * 128));
    let (start, length) = (bytes.as_mut_ptr(), bytes.len());
    // Mask of the existing ones among the 64 bytes from `at` on.
    let present = |at: usize| match length.saturating_sub(at) {
        _ if WHOLE => u64::MAX,
        0 => 0,
        count @ 1..64 => (1 << count) - 1,
        _ => u64::MAX,
    };
    // SAFETY: the mask limits the load to existing bytes.
    let load = |at: usize| unsafe {
        let from = start.wrapping_add(at);
        let vector = if WHOLE {
            _mm512_loadu_si512(from.cast())
        } else {
            _mm512_maskz_loadu_epi8(present(at), from.cast())
        };
        if BIG_ENDIAN { reverse(vector) } else { vector }
    };

    let mut low = [_mm512_setzero_si512(); N];
    let mut high = [_mm512_setzero_si512(); N];
    for at in 0..N {
        let (first, second) = (load(128 * at), load(128 * at + 64));
        // Even words are the low halves of blocks, odd words the high ones.
        low[at] = pick::<0b10_00_10_00>(first, second);
        high[at] = pick::<0b11_01_11_01>(first, second);
    }
    let (pairs, _) = words.as_chunks::<2>();
    for [first, second] in pairs {
        let key = _mm512_set1_epi32(*first as i32);
        for at in 0..N {
            high[at] = round.apply(high[at], low[at], key);
        }
        let key = _mm512_set1_epi32(*second as i32);
        for at in 0..N {
            low[at] = round.apply(low[at], high[at], key);
        }
    }
    for at in 0..N {
        // The halves are not swapped after the last round (RFC 8891 §4.4), and here it was done in
        // place: `high` is the low half.
        let halves = [
            _mm512_unpacklo_epi32(high[at], low[at]),
            _mm512_unpackhi_epi32(high[at], low[at]),
        ];
        for (half, vector) in halves.into_iter().enumerate() {
            let place = 128 * at + 64 * half;
            let vector = if BIG_ENDIAN { reverse(vector) } else { vector };
            // SAFETY: the mask limits the store to existing bytes.
            unsafe {
                let to = start.wrapping_add(place);
                if WHOLE {
                    _mm512_storeu_si512(to.cast(), vector);
                } else {
                    _mm512_mask_storeu_epi8(to.cast(), present(place), vector);
                }
            }
        }
    }
}

impl Round {
    /// to ^ g(from + key), rotated.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    #[inline]
    fn apply(&self, to: __m512i, from: __m512i, key: __m512i) -> __m512i {
        /// (a & b) | c
        const AND_OR: i32 = 0xea;
        let sum = _mm512_add_epi32(from, key);
        let upper = _mm512_srli_epi32::<4>(sum);
        let even = _mm512_ternarylogic_epi32::<AND_OR>(sum, self.nibbles, self.positions);
        let odd = _mm512_ternarylogic_epi32::<AND_OR>(upper, self.nibbles, self.positions);
        // `vpermb` takes six bits of an index: four of the nibble, and two that select the S-box of
        // its place.
        let even = _mm512_permutexvar_epi8(even, self.even);
        let odd = _mm512_permutexvar_epi8(odd, self.odd);
        let out = _mm512_or_si512(even, odd);
        _mm512_xor_si512(to, _mm512_rol_epi32::<11>(out))
    }
}

/// Two words of each 128 bits of `first`, then two of `second`.
#[target_feature(enable = "avx512f")]
#[inline]
fn pick<const WORDS: i32>(first: __m512i, second: __m512i) -> __m512i {
    let (first, second) = (_mm512_castsi512_ps(first), _mm512_castsi512_ps(second));
    _mm512_castps_si512(_mm512_shuffle_ps::<WORDS>(first, second))
}

/// Turns the bytes of every block around.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn reverse(vector: __m512i) -> __m512i {
    let order = _mm512_set4_epi32(0x0809_0a0b, 0x0c0d_0e0f, 0x0001_0203, 0x0405_0607);
    _mm512_shuffle_epi8(vector, order)
}
