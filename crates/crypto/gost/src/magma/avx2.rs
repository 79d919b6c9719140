//! AVX2: planes of bytes. Vector p has byte p of each of 32 blocks, so that one `vpshufb` is 32
//! look-ups in one S-box, and a rotation by a byte is a matter of names. The addition is expensive:
//! its carries go from plane to plane.
//!
//! Bytes in planes and bytes of the round keys have their highest bit flipped: only signed
//! comparisons exist, and the sign of a signed saturating sum shows a carry.
//!
//! Up to 8 blocks are processed as words, which is faster for few.

use std::arch::x86_64::*;

use super::sbox::Tables;
use zeroize::Zeroize;

/// Blocks in planes.
const PLANES: usize = 32;

/// Blocks as words.
const WORDS: usize = 8;

/// The bytes of one half of each block, the lowest first.
type Half = [__m256i; 4];

/// For each byte of a half: its low nibble's S-box, and the parts of its high nibble's that go to
/// the next byte and to the one after.
type Lookups = [[__m256i; 3]; 4];

#[target_feature(enable = "avx2")]
pub(super) fn run<const BIG_ENDIAN: bool>(
    keys: &[u32],
    key_planes: &[[u32; 4]],
    tables: &Tables,
    blocks: &mut [[u8; 8]],
) {
    let (whole, rest) = blocks.as_chunks_mut::<PLANES>();
    let mut lookups = [[_mm256_setzero_si256(); 3]; 4];
    if !whole.is_empty() || rest.len() > WORDS {
        for (lookups, tables) in lookups.iter_mut().zip(&tables.planes) {
            *lookups = [both(&tables[0]), both(&tables[1]), both(&tables[2])];
        }
    }
    for group in whole {
        planes::<BIG_ENDIAN>(key_planes, &lookups, group);
    }
    if rest.is_empty() {
        return;
    }
    // Missing blocks are computed too, since a vector costs the same however full it is.
    let mut padded = [[0; 8]; PLANES];
    padded[..rest.len()].copy_from_slice(rest);
    if rest.len() > WORDS {
        planes::<BIG_ENDIAN>(key_planes, &lookups, &mut padded);
    } else if let Some(few) = padded.first_chunk_mut() {
        words::<BIG_ENDIAN>(keys, tables, few);
    }
    rest.copy_from_slice(&padded[..rest.len()]);
    padded.zeroize();
}

#[target_feature(enable = "avx2")]
fn planes<const BIG_ENDIAN: bool>(
    keys: &[[u32; 4]],
    lookups: &Lookups,
    blocks: &mut [[u8; 8]; PLANES],
) {
    let start = blocks.as_mut_ptr().cast::<__m256i>();
    let mut bytes = [_mm256_set1_epi8(i8::MIN); 8];
    // SAFETY: 32 blocks of 8 bytes are 8 vectors.
    unsafe {
        for (at, vector) in bytes.iter_mut().enumerate() {
            *vector = _mm256_xor_si256(*vector, _mm256_loadu_si256(start.add(at)));
        }
    }
    for _ in 0..4 {
        bytes = interleave(bytes);
    }
    // Planes change places, instead of bytes in words.
    if BIG_ENDIAN {
        bytes.reverse();
    }
    let [a, b, c, d, e, f, g, h] = bytes;
    let (mut low, mut high) = ([a, b, c, d], [e, f, g, h]);

    let (pairs, _) = keys.as_chunks::<2>();
    for [first, second] in pairs {
        round(&mut high, &low, first, lookups);
        round(&mut low, &high, second, lookups);
    }

    // The halves are not swapped after the last round (RFC 8891 §4.4), and here it was done in
    // place: `high` is the low half.
    let ([a, b, c, d], [e, f, g, h]) = (high, low);
    let mut bytes = [a, b, c, d, e, f, g, h];
    if BIG_ENDIAN {
        bytes.reverse();
    }
    for _ in 0..3 {
        bytes = interleave(bytes);
    }
    let flip = _mm256_set1_epi8(i8::MIN);
    // SAFETY: as above.
    unsafe {
        for (at, vector) in bytes.iter().enumerate() {
            _mm256_storeu_si256(start.add(at), _mm256_xor_si256(*vector, flip));
        }
    }
}

/// to ^= g(from + key), rotated.
#[target_feature(enable = "avx2")]
#[inline]
fn round(to: &mut Half, from: &Half, key: &[u32; 4], lookups: &Lookups) {
    let nibbles = _mm256_set1_epi8(0x0f);
    let minus_one = _mm256_set1_epi8(-1);
    // -1 for each carry from the byte below.
    let mut carry = _mm256_setzero_si256();
    for p in 0..4 {
        let word = _mm256_set1_epi32(key[p] as i32);
        // Both are 128 too low, so the sum is 256 too low, which is right without its ninth bit. It
        // carries if it is not negative. If it saturates, one more does not change its sign.
        let sum = _mm256_sub_epi8(_mm256_add_epi8(from[p], word), carry);
        let bounded = _mm256_subs_epi8(_mm256_adds_epi8(from[p], word), carry);
        carry = _mm256_cmpgt_epi8(bounded, minus_one);

        let even = _mm256_and_si256(sum, nibbles);
        // Bytes cannot be shifted alone; the mask removes the bits of the neighbour.
        let odd = _mm256_and_si256(_mm256_srli_epi16::<4>(sum), nibbles);
        let [low, next, beyond] = &lookups[p];
        let byte = _mm256_xor_si256(
            _mm256_shuffle_epi8(*low, even),
            _mm256_shuffle_epi8(*next, odd),
        );
        to[(p + 1) % 4] = _mm256_xor_si256(to[(p + 1) % 4], byte);
        let byte = _mm256_shuffle_epi8(*beyond, odd);
        to[(p + 2) % 4] = _mm256_xor_si256(to[(p + 2) % 4], byte);
    }
}

/// A perfect shuffle within each half of the vectors: a byte's number, vector and place, is rotated
/// by a bit. After four of them, the place in a block has become the vector; three more lead back.
#[target_feature(enable = "avx2")]
#[inline]
fn interleave(v: [__m256i; 8]) -> [__m256i; 8] {
    [
        _mm256_unpacklo_epi8(v[0], v[4]),
        _mm256_unpackhi_epi8(v[0], v[4]),
        _mm256_unpacklo_epi8(v[1], v[5]),
        _mm256_unpackhi_epi8(v[1], v[5]),
        _mm256_unpacklo_epi8(v[2], v[6]),
        _mm256_unpackhi_epi8(v[2], v[6]),
        _mm256_unpacklo_epi8(v[3], v[7]),
        _mm256_unpackhi_epi8(v[3], v[7]),
    ]
}

/// Both halves of a vector the same.
#[target_feature(enable = "avx2")]
#[inline]
fn both(bytes: &[u8; 16]) -> __m256i {
    // SAFETY: 16 bytes are readable and need no alignment.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

/// 8 blocks, the even words of them in one vector and the odd ones in another. A byte is looked up
/// in all tables; all but the one for its place get an index with the highest bit set, and give 0.
#[target_feature(enable = "avx2")]
fn words<const BIG_ENDIAN: bool>(keys: &[u32], tables: &Tables, blocks: &mut [[u8; 8]; WORDS]) {
    let at = blocks.as_mut_ptr().cast::<__m256i>();
    let turn = |vector| {
        if BIG_ENDIAN { reverse(vector) } else { vector }
    };
    // SAFETY: 8 blocks of 8 bytes are 2 vectors.
    let (first, second) = unsafe { (_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))) };
    let (first, second) = (turn(first), turn(second));
    // Even words are the low halves of blocks, odd words the high ones.
    let mut low = pick::<0b10_00_10_00>(first, second);
    let mut high = pick::<0b11_01_11_01>(first, second);

    let mut lookups = [_mm256_setzero_si256(); 8];
    for (lookup, values) in lookups.iter_mut().zip(&tables.nibbles) {
        *lookup = both(values);
    }
    let mut elsewhere = [_mm256_setzero_si256(); 4];
    for (place, mask) in elsewhere.iter_mut().enumerate() {
        // An index with the highest bit set gives 0 in a shuffle.
        let others = 0x8080_8080_u32 ^ 0x80 << (8 * place);
        *mask = _mm256_set1_epi32(others as i32);
    }
    let (pairs, _) = keys.as_chunks::<2>();
    for [a, b] in pairs {
        high = word_round(high, low, *a, &lookups, &elsewhere);
        low = word_round(low, high, *b, &lookups, &elsewhere);
    }
    // SAFETY: as above.
    unsafe {
        _mm256_storeu_si256(at, turn(_mm256_unpacklo_epi32(high, low)));
        _mm256_storeu_si256(at.add(1), turn(_mm256_unpackhi_epi32(high, low)));
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn word_round(
    to: __m256i,
    from: __m256i,
    key: u32,
    lookups: &[__m256i; 8],
    elsewhere: &[__m256i; 4],
) -> __m256i {
    let nibbles = _mm256_set1_epi8(0x0f);
    let sum = _mm256_add_epi32(from, _mm256_set1_epi32(key as i32));
    let even = _mm256_and_si256(sum, nibbles);
    let odd = _mm256_and_si256(_mm256_srli_epi32::<4>(sum), nibbles);
    let of = |p: usize| {
        _mm256_or_si256(
            _mm256_shuffle_epi8(lookups[p], _mm256_or_si256(even, elsewhere[p])),
            _mm256_shuffle_epi8(lookups[4 + p], _mm256_or_si256(odd, elsewhere[p])),
        )
    };
    let out = _mm256_or_si256(_mm256_or_si256(of(0), of(1)), _mm256_or_si256(of(2), of(3)));
    let rotated = _mm256_or_si256(_mm256_slli_epi32::<11>(out), _mm256_srli_epi32::<21>(out));
    _mm256_xor_si256(to, rotated)
}

/// Two words of each 128 bits of `first`, then two of `second`.
#[target_feature(enable = "avx2")]
#[inline]
fn pick<const WORDS: i32>(first: __m256i, second: __m256i) -> __m256i {
    let (first, second) = (_mm256_castsi256_ps(first), _mm256_castsi256_ps(second));
    _mm256_castps_si256(_mm256_shuffle_ps::<WORDS>(first, second))
}

/// Turns the bytes of every block around.
#[target_feature(enable = "avx2")]
#[inline]
fn reverse(vector: __m256i) -> __m256i {
    let order = _mm256_set_epi64x(
        0x0809_0a0b_0c0d_0e0f,
        0x0001_0203_0405_0607,
        0x0809_0a0b_0c0d_0e0f,
        0x0001_0203_0405_0607,
    );
    _mm256_shuffle_epi8(vector, order)
}
