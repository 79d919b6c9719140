//! By AVX-512 and GFNI: π from tables in registers, multiplication by GFNI instructions.
//!
//! Two layouts, as in the twins. In a wide batch of 64 blocks a vector has the same byte of each,
//! and L is the sixteen steps of its register. Few blocks keep their layout, four in a vector, and
//! L is the sum over all rotations of a block, each byte multiplied by its place's coefficient.
//! GFNI multiplies byte by byte in the field of AES only, but all fields of 256 elements are
//! isomorphic: few blocks are mapped there, with their keys and tables, and back.

use super::tables::{
    COEFFICIENTS, LINEAR, LINEAR_INVERSE, Matrix, PI, PI_INVERSE, apply, inverse_matrix, matrix_of,
    multiply, multiply_modulo,
};
use super::{Block, Direction, ROUNDS, RoundKeys};
use std::arch::x86_64::*;

/// Blocks of one wide batch.
const WIDE: usize = 64;

/// From this number of blocks on a wide batch costs no more than separate calls for few blocks.
const WORTH_A_WIDE_BATCH: usize = 36;

/// En- or decrypts blocks in place. `mapped` is the result of [`mapped`] for `keys`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) fn crypt(
    direction: Direction,
    keys: &RoundKeys,
    mapped: &RoundKeys,
    blocks: &mut [Block],
) {
    let mut rest = blocks;
    while !rest.is_empty() {
        let count = match rest.len() {
            WORTH_A_WIDE_BATCH.. => WIDE,
            13.. => 16,
            5.. => 8,
            _ => 4,
        };
        let (batch, after) = rest.split_at_mut(count.min(rest.len()));
        let bytes = batch.as_flattened_mut();
        match (count, direction) {
            (WIDE, Direction::Encrypt) => encrypt_wide(keys, bytes),
            (WIDE, Direction::Decrypt) => decrypt_wide(keys, bytes),
            (16, _) => crypt_few::<4>(direction, mapped, bytes),
            (8, _) => crypt_few::<2>(direction, mapped, bytes),
            _ => crypt_few::<1>(direction, mapped, bytes),
        }
        rest = after;
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn encrypt_wide(keys: &RoundKeys, blocks: &mut [u8]) {
    let mut state = turned(load(blocks));
    let sbox = Substitution::new(&PI);
    for round in 0..ROUNDS {
        for (x, key) in state.iter_mut().zip(keys.0[round]) {
            *x = sbox.substitute(_mm512_xor_si512(*x, broadcast(key)));
        }
        mix::<false>(&mut state);
    }
    add_key(&mut state, &keys.0[ROUNDS]);
    store(turned(state), blocks);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn decrypt_wide(keys: &RoundKeys, blocks: &mut [u8]) {
    let mut state = turned(load(blocks));
    let sbox = Substitution::new(&PI_INVERSE);
    add_key(&mut state, &keys.0[ROUNDS]);
    for round in (0..ROUNDS).rev() {
        mix::<true>(&mut state);
        for (x, key) in state.iter_mut().zip(keys.0[round]) {
            *x = _mm512_xor_si512(sbox.substitute(*x), broadcast(key));
        }
    }
    store(turned(state), blocks);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(byte: u8) -> __m512i {
    _mm512_set1_epi8(byte.cast_signed())
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add_key(state: &mut [__m512i; 16], key: &Block) {
    for (x, key) in state.iter_mut().zip(key) {
        *x = _mm512_xor_si512(*x, broadcast(*key));
    }
}

/// A permutation of bytes, in four registers.
#[derive(Clone, Copy)]
struct Substitution([__m512i; 4]);

impl Substitution {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(values: &[u8; 256]) -> Self {
        Self(load(values))
    }

    /// Each byte's value: one of four by its low six bits, chosen by the other two.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn substitute(&self, x: __m512i) -> __m512i {
        // A mask for each of the two bits that the look-ups ignore.
        let upper_quarter = _mm512_test_epi8_mask(x, _mm512_set1_epi8(0x40));
        let upper_half = _mm512_movepi8_mask(x);
        // `vpermb` ignores the upper two bits of an index.
        let low = _mm512_permutexvar_epi8(x, self.0[0]);
        let low = _mm512_mask_permutexvar_epi8(low, upper_quarter, x, self.0[1]);
        let high = _mm512_permutexvar_epi8(x, self.0[2]);
        let high = _mm512_mask_permutexvar_epi8(high, upper_quarter, x, self.0[3]);
        _mm512_mask_blend_epi8(upper_half, low, high)
    }
}

/// L, or its inverse, by sixteen steps (`tables::LINEAR`).
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn mix<const INVERSE: bool>(state: &mut [__m512i; 16]) {
    macro_rules! steps {
        ($($k:literal)*) => { $(step::<$k>(state);)* };
    }
    if INVERSE {
        steps!(15 14 13 12 11 10 9 8 7 6 5 4 3 2 1 0);
    } else {
        steps!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    }
}

/// Multiplication by each of the first eight coefficients.
const FACTORS: [Matrix; 8] = {
    let (mut matrices, mut i) = ([0; 8], 0);
    while i < 8 {
        let (mut images, mut bit) = ([0; 8], 0);
        while bit < 8 {
            images[bit] = multiply(COEFFICIENTS[i], 1 << bit);
            bit += 1;
        }
        matrices[i] = matrix_of(images);
        i += 1;
    }
    matrices
};

/// Step `K`. Bytes with the same coefficient are added before they are multiplied; the previous
/// step's byte is added last, to hide its latency.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn step<const K: usize>(state: &mut [__m512i; 16]) {
    let at = |j: usize| state[(16 + j - K) % 16];
    let pair = |j: usize| times(FACTORS[j], _mm512_xor_si512(at(j), at(14 - j)));
    let ones = sum_of_3(at(6), at(8), at(15));
    let sum = sum_of_3(ones, times(FACTORS[7], at(7)), pair(5));
    let other = sum_of_3(pair(4), pair(3), pair(2));
    let sum = sum_of_3(sum, other, pair(1));
    state[15 - K] = _mm512_xor_si512(sum, pair(0));
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sum_of_3(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    // The truth table of an exclusive or of three.
    _mm512_ternarylogic_epi64::<0x96>(a, b, c)
}

/// `matrix` · each byte. The instruction takes rows in the opposite order.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn times(matrix: Matrix, x: __m512i) -> __m512i {
    let rows = _mm512_set1_epi64(matrix.swap_bytes().cast_signed());
    _mm512_gf2p8affine_epi64_epi8::<0>(x, rows)
}

/// Exchanges rows and columns in each quarter: byte `j` of vector `i` for byte `i` of vector `j`.
///
/// The index of a byte has eight bits, four of the vector and four of the place in it. To
/// interleave vectors `i` and `i + 8` turns those bits by one; four times, and vector and place
/// have changed roles.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn turned(mut rows: [__m512i; 16]) -> [__m512i; 16] {
    for _ in 0..4 {
        let from = rows;
        for i in 0..8 {
            rows[2 * i] = _mm512_unpacklo_epi8(from[i], from[i + 8]);
            rows[2 * i + 1] = _mm512_unpackhi_epi8(from[i], from[i + 8]);
        }
    }
    rows
}

/// Which bytes of vector `i` are within `length`.
#[inline]
fn within(length: usize, i: usize) -> u64 {
    let bytes = length.saturating_sub(64 * i).min(64) as u32;
    // Without any byte the shift is by 64, which has no result.
    u64::MAX.checked_shr(64 - bytes).unwrap_or(0)
}

/// Up to 64 bytes a vector; zeros follow if there are fewer.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load<const VECTORS: usize>(bytes: &[u8]) -> [__m512i; VECTORS] {
    std::array::from_fn(|i| {
        let from = bytes.as_ptr().wrapping_add(64 * i);
        // SAFETY: the mask covers only bytes within `bytes`, and masked-out bytes are not accessed.
        unsafe { _mm512_maskz_loadu_epi8(within(bytes.len(), i), from.cast()) }
    })
}

/// Writes the vectors' first bytes until `bytes` is full.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store<const VECTORS: usize>(vectors: [__m512i; VECTORS], bytes: &mut [u8]) {
    for (i, vector) in vectors.into_iter().enumerate() {
        let to = bytes.as_mut_ptr().wrapping_add(64 * i);
        // SAFETY: the mask covers only bytes within `bytes`, and masked-out bytes are not accessed.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), within(bytes.len(), i), vector) };
    }
}

/// The map to the field of AES: x goes to a root of the modulus there.
const TO_AES: Matrix = {
    let mut root = 2;
    // Each of the eight roots gives an isomorphism; this takes the first.
    while power_sum(root) != 0 {
        root += 1;
    }
    let (mut images, mut power, mut bit) = ([0; 8], 1, 0);
    while bit < 8 {
        images[bit] = power;
        power = multiply_aes(power, root);
        bit += 1;
    }
    matrix_of(images)
};
const FROM_AES: Matrix = inverse_matrix(TO_AES);

/// x^8 + x^7 + x^6 + x + 1 at `x` of the field of AES.
const fn power_sum(x: u8) -> u8 {
    let (mut sum, mut power, mut i) = (1, 1, 1);
    while i <= 8 {
        power = multiply_aes(power, x);
        if matches!(i, 1 | 6 | 7 | 8) {
            sum ^= power;
        }
        i += 1;
    }
    sum
}

/// The product modulo x^8 + x^4 + x^3 + x + 1.
const fn multiply_aes(a: u8, b: u8) -> u8 {
    multiply_modulo(a, b, 0x1b)
}

/// Round keys for few blocks.
pub(super) fn mapped(keys: &RoundKeys) -> RoundKeys {
    RoundKeys(keys.0.map(|key| key.map(|byte| apply(TO_AES, byte))))
}

/// A permutation of bytes of the cipher as one of bytes in the field of AES.
const fn mapped_table(values: &[u8; 256]) -> [u8; 256] {
    let (mut table, mut x) = ([0; 256], 0);
    while x < 256 {
        table[apply(TO_AES, x as u8) as usize] = apply(TO_AES, values[x]);
        x += 1;
    }
    table
}
static MAPPED_PI: [u8; 256] = mapped_table(&PI);
static MAPPED_PI_INVERSE: [u8; 256] = mapped_table(&PI_INVERSE);

/// For each rotation of a block the coefficients of its bytes.
#[repr(C, align(64))]
struct Diagonals([[Block; 4]; 16]);
static DIAGONALS: Diagonals = Diagonals(diagonals(&LINEAR));
static DIAGONALS_INVERSE: Diagonals = Diagonals(diagonals(&LINEAR_INVERSE));

const fn diagonals(matrix: &[[u8; 16]; 16]) -> [[Block; 4]; 16] {
    let (mut diagonals, mut rotation) = ([[[0; 16]; 4]; 16], 0);
    while rotation < 16 {
        let (mut coefficients, mut row) = ([0; 16], 0);
        while row < 16 {
            coefficients[row] = apply(TO_AES, matrix[row][(row + rotation) % 16]);
            row += 1;
        }
        // The same for the four blocks of a vector.
        diagonals[rotation] = [coefficients; 4];
        rotation += 1;
    }
    diagonals
}

/// Up to four blocks a vector.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn crypt_few<const VECTORS: usize>(direction: Direction, mapped: &RoundKeys, blocks: &mut [u8]) {
    let rows = load::<VECTORS>(blocks).map(|row| times(TO_AES, row));
    let rows = match direction {
        Direction::Encrypt => encrypt_few(mapped, rows),
        Direction::Decrypt => decrypt_few(mapped, rows),
    };
    store(rows.map(|row| times(FROM_AES, row)), blocks);
}

/// S, then L, of one block, as `portable::substitute_and_mix`.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) fn substitute_and_mix(block: u128) -> u128 {
    let [row] = load::<1>(&block.to_le_bytes());
    let row = Substitution::new(&MAPPED_PI).substitute(times(TO_AES, row));
    let [mixed] = mix_rows(&DIAGONALS, [row]);
    let mut block = [0; 16];
    store([times(FROM_AES, mixed)], &mut block);
    u128::from_le_bytes(block)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn encrypt_few<const VECTORS: usize>(
    mapped: &RoundKeys,
    mut rows: [__m512i; VECTORS],
) -> [__m512i; VECTORS] {
    let sbox = Substitution::new(&MAPPED_PI);
    for key in &mapped.0[..ROUNDS] {
        let key = row_of(key);
        rows = mix_rows(
            &DIAGONALS,
            rows.map(|row| sbox.substitute(_mm512_xor_si512(row, key))),
        );
    }
    let key = row_of(&mapped.0[ROUNDS]);
    rows.map(|row| _mm512_xor_si512(row, key))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
fn decrypt_few<const VECTORS: usize>(
    mapped: &RoundKeys,
    rows: [__m512i; VECTORS],
) -> [__m512i; VECTORS] {
    let sbox = Substitution::new(&MAPPED_PI_INVERSE);
    let key = row_of(&mapped.0[ROUNDS]);
    let mut rows = rows.map(|row| _mm512_xor_si512(row, key));
    for key in mapped.0[..ROUNDS].iter().rev() {
        let key = row_of(key);
        let mixed = mix_rows(&DIAGONALS_INVERSE, rows);
        rows = mixed.map(|row| _mm512_xor_si512(sbox.substitute(row), key));
    }
    rows
}

#[inline]
#[target_feature(enable = "avx512f")]
fn row_of(key: &Block) -> __m512i {
    // SAFETY: 16 bytes are readable; the load needs no alignment.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(key.as_ptr().cast()) })
}

/// L, or its inverse, of each block.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
fn mix_rows<const VECTORS: usize>(
    diagonals: &Diagonals,
    rows: [__m512i; VECTORS],
) -> [__m512i; VECTORS] {
    let mut sums = [_mm512_setzero_si512(); VECTORS];
    macro_rules! add {
        ($($by:literal $and_by:literal),*) => {$(
            let first: [__m512i; 1] = load(diagonals.0[$by].as_flattened());
            let second: [__m512i; 1] = load(diagonals.0[$and_by].as_flattened());
            for (sum, row) in sums.iter_mut().zip(rows) {
                let rotated = _mm512_alignr_epi8::<$by>(row, row);
                let a = _mm512_gf2p8mul_epi8(rotated, first[0]);
                let rotated = _mm512_alignr_epi8::<$and_by>(row, row);
                let b = _mm512_gf2p8mul_epi8(rotated, second[0]);
                // Two products at a time, since one instruction adds both.
                *sum = sum_of_3(*sum, a, b);
            }
        )*};
    }
    add!(0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    // These hold, and can fail, on machines without AVX-512 too.

    #[test]
    fn products_are_mapped_to_products_in_the_field_of_aes() {
        for a in 0..=255 {
            for b in 0..=255 {
                let mapped = multiply_aes(apply(TO_AES, a), apply(TO_AES, b));
                assert_eq!(apply(TO_AES, multiply(a, b)), mapped, "{a:#x} · {b:#x}");
            }
            assert_eq!(apply(FROM_AES, apply(TO_AES, a)), a);
        }
    }

    #[test]
    fn masks_cover_exactly_the_existing_bytes() {
        assert_eq!(within(0, 0), 0);
        assert_eq!(within(16, 0), 0xffff);
        assert_eq!(within(64, 0), u64::MAX);
        assert_eq!(within(64, 1), 0);
        assert_eq!(within(65, 1), 1);
        assert_eq!(within(1024, 15), u64::MAX);
    }
}
