//! By AVX2: π and multiplication from tables of 16 bytes that stay in registers.
//!
//! Two layouts, as in the portable twin. In a wide batch of 32 blocks a vector has the same byte of
//! each, and L is the sixteen steps of its register. Few blocks keep their layout, two in a vector,
//! and L is the sum over all rotations of a block, each byte multiplied by its place's coefficient.

mod sbox;

use super::tables::{COEFFICIENTS, LINEAR, LINEAR_INVERSE, multiply};
use super::{Block, Direction, ROUNDS, RoundKeys};
use sbox::{Forward, Inverse, Nibbles, Table, halves};
use std::arch::x86_64::*;
use zeroize::Zeroize;

/// Blocks of one wide batch.
const WIDE: usize = 32;

/// From this number of blocks on a wide batch costs no more than separate calls for few blocks.
const WORTH_A_WIDE_BATCH: usize = 7;

/// En- or decrypts blocks in place.
#[target_feature(enable = "avx2")]
pub(super) fn crypt(direction: Direction, keys: &RoundKeys, blocks: &mut [Block]) {
    let mut rest = blocks;
    while !rest.is_empty() {
        let count = match rest.len() {
            // Also a batch that is not full: the missing blocks are zeros.
            WORTH_A_WIDE_BATCH.. => WIDE,
            _ => 2,
        };
        let (batch, after) = rest.split_at_mut(count.min(rest.len()));
        match (count, direction) {
            (WIDE, Direction::Encrypt) => encrypt_wide(keys, batch),
            (WIDE, Direction::Decrypt) => decrypt_wide(keys, batch),
            _ => crypt_few::<1>(direction, keys, batch),
        }
        rest = after;
    }
}

#[target_feature(enable = "avx2")]
fn encrypt_wide(keys: &RoundKeys, blocks: &mut [Block]) {
    let mut state = load_wide(blocks);
    let sbox = Forward::new();
    for round in 0..ROUNDS {
        for (x, key) in state.iter_mut().zip(keys.0[round]) {
            *x = sbox.substitute(_mm256_xor_si256(*x, broadcast(key)));
        }
        mix::<false>(&mut state);
    }
    add_key(&mut state, &keys.0[ROUNDS]);
    store_wide(state, blocks);
}

#[target_feature(enable = "avx2")]
fn decrypt_wide(keys: &RoundKeys, blocks: &mut [Block]) {
    let mut state = load_wide(blocks);
    let sbox = Inverse::new();
    add_key(&mut state, &keys.0[ROUNDS]);
    for round in (0..ROUNDS).rev() {
        mix::<true>(&mut state);
        for (x, key) in state.iter_mut().zip(keys.0[round]) {
            *x = _mm256_xor_si256(sbox.substitute(*x), broadcast(key));
        }
    }
    store_wide(state, blocks);
}

#[inline]
#[target_feature(enable = "avx2")]
fn broadcast(byte: u8) -> __m256i {
    _mm256_set1_epi8(byte.cast_signed())
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_key(state: &mut [__m256i; 16], key: &Block) {
    for (x, key) in state.iter_mut().zip(key) {
        *x = _mm256_xor_si256(*x, broadcast(*key));
    }
}

/// L, or its inverse, by sixteen steps (`tables::LINEAR`).
#[inline]
#[target_feature(enable = "avx2")]
fn mix<const INVERSE: bool>(state: &mut [__m256i; 16]) {
    macro_rules! steps {
        ($($k:literal $next:literal),*) => { $(two_steps::<$k, $next>(state);)* };
    }
    if INVERSE {
        steps!(15 14, 13 12, 11 10, 9 8, 7 6, 5 4, 3 2, 1 0);
    } else {
        steps!(0 1, 2 3, 4 5, 6 7, 8 9, 10 11, 12 13, 14 15);
    }
}

/// The products of a low and a high half of a byte with one coefficient.
const fn products(coefficient: u8) -> [Nibbles; 2] {
    let (mut tables, mut x) = ([[0; 16]; 2], 0);
    while x < 16 {
        tables[0][x] = multiply(coefficient, x as u8);
        tables[1][x] = multiply(coefficient, (x as u8) << 4);
        x += 1;
    }
    tables
}

/// The coefficients that are multiplied by. 148 and 133 are 132 + 16 and 132 + 1, so one
/// multiplication by 132 and additions do for both.
const FACTORS: [u8; 6] = [132, 16, 32, 194, 192, 251];
static FACTOR_TABLES: [[Table; 2]; 6] = {
    let (mut tables, mut i) = ([[Table::of([0; 16]); 2]; 6], 0);
    while i < 6 {
        let [low, high] = products(FACTORS[i]);
        tables[i] = [Table::of(low), Table::of(high)];
        i += 1;
    }
    tables
};
const _: () = assert!(COEFFICIENTS[0] == 132 ^ 16 && COEFFICIENTS[2] == 132 ^ 1);

/// Steps `K` and `NEXT`. Bytes with the same coefficient are added before they are multiplied. Work
/// of the second step that does not depend on the first is done for both together, so that tables
/// are loaded once.
#[inline]
#[target_feature(enable = "avx2")]
fn two_steps<const K: usize, const NEXT: usize>(state: &mut [__m256i; 16]) {
    let at = |k: usize, j: usize| state[(16 + j - k) % 16];
    let pair = |k: usize, j: usize| _mm256_xor_si256(at(k, j), at(k, 14 - j));
    let mut sums = [K, NEXT].map(|k| _mm256_xor_si256(pair(k, 6), at(k, 15)));
    for (factor, terms) in [
        (2, [K, NEXT].map(|k| pair(k, 1))),
        (3, [K, NEXT].map(|k| pair(k, 4))),
        (4, [K, NEXT].map(|k| pair(k, 5))),
        (5, [K, NEXT].map(|k| at(k, 7))),
    ] {
        let [low, high] = [0, 1].map(|half| FACTOR_TABLES[factor][half].load());
        for (sum, term) in sums.iter_mut().zip(terms) {
            *sum = _mm256_xor_si256(*sum, multiplied(low, high, term));
        }
    }
    for (k, sum) in [K, NEXT].into_iter().zip(sums) {
        let at = |j: usize| state[(16 + j - k) % 16];
        let pair = |j: usize| _mm256_xor_si256(at(j), at(14 - j));
        let (by_148, by_133) = (pair(0), pair(2));
        // 133 is 132 + 1: here once, and below times 132 together with the pair of 148.
        let mut sum = _mm256_xor_si256(sum, by_133);
        for (factor, term) in [
            (0, _mm256_xor_si256(by_148, by_133)),
            (1, _mm256_xor_si256(by_148, pair(3))),
        ] {
            let [low, high] = [0, 1].map(|half| FACTOR_TABLES[factor][half].load());
            sum = _mm256_xor_si256(sum, multiplied(low, high, term));
        }
        state[15 - k] = sum;
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn multiplied(low_table: __m256i, high_table: __m256i, x: __m256i) -> __m256i {
    let [low, high] = halves(x);
    _mm256_xor_si256(
        _mm256_shuffle_epi8(low_table, low),
        _mm256_shuffle_epi8(high_table, high),
    )
}

/// Up to 32 blocks, turned: vector `i` gets byte `i` of each.
#[inline]
#[target_feature(enable = "avx2")]
fn load_wide(blocks: &[Block]) -> [__m256i; 16] {
    if let Ok(blocks) = <&[Block; WIDE]>::try_from(blocks) {
        return turned(load(blocks));
    }
    let mut padded = padded(blocks);
    let state = turned(padded);
    padded.zeroize();
    state
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_wide(state: [__m256i; 16], blocks: &mut [Block]) {
    let state = turned(state);
    if let Ok(blocks) = <&mut [Block; WIDE]>::try_from(&mut *blocks) {
        return store(state, blocks);
    }
    store_first(state, blocks);
}

/// Loads blocks into vectors, padded with zeros.
///
/// # Panics
/// If there are more blocks than there is room for.
#[inline]
#[target_feature(enable = "avx2")]
fn padded<const VECTORS: usize>(blocks: &[Block]) -> [__m256i; VECTORS] {
    let mut vectors = [_mm256_setzero_si256(); VECTORS];
    assert!(blocks.len() <= 2 * VECTORS, "room for all blocks");
    // SAFETY: the blocks are readable, a vector has room for two, and all byte values are valid.
    unsafe {
        let to = vectors.as_mut_ptr().cast::<Block>();
        std::ptr::copy_nonoverlapping(blocks.as_ptr(), to, blocks.len());
    }
    vectors
}

/// Writes the vectors' first blocks until `blocks` is full, and wipes the copy.
///
/// # Panics
/// If there is room for more blocks than there are.
#[inline]
#[target_feature(enable = "avx2")]
fn store_first<const VECTORS: usize>(mut vectors: [__m256i; VECTORS], blocks: &mut [Block]) {
    assert!(blocks.len() <= 2 * VECTORS, "a block for each place");
    // SAFETY: the blocks are writable, and a vector has two.
    unsafe {
        let from = vectors.as_ptr().cast::<Block>();
        std::ptr::copy_nonoverlapping(from, blocks.as_mut_ptr(), blocks.len());
    }
    vectors.zeroize();
}

/// Exchanges rows and columns in each half: byte `j` of vector `i` for byte `i` of vector `j`.
///
/// The index of a byte has eight bits, four of the vector and four of the place in it. To
/// interleave vectors `i` and `i + 8` turns those bits by one; four times, and vector and place
/// have changed roles.
#[inline]
#[target_feature(enable = "avx2")]
fn turned(mut rows: [__m256i; 16]) -> [__m256i; 16] {
    for _ in 0..4 {
        let from = rows;
        for i in 0..8 {
            rows[2 * i] = _mm256_unpacklo_epi8(from[i], from[i + 8]);
            rows[2 * i + 1] = _mm256_unpackhi_epi8(from[i], from[i + 8]);
        }
    }
    rows
}

#[inline]
#[target_feature(enable = "avx2")]
fn load<const BLOCKS: usize, const VECTORS: usize>(blocks: &[Block; BLOCKS]) -> [__m256i; VECTORS] {
    const { assert!(BLOCKS == 2 * VECTORS) };
    std::array::from_fn(|i| {
        // SAFETY: 32 bytes are readable from block 2i on; the load needs no alignment.
        unsafe { _mm256_loadu_si256(blocks.as_ptr().add(2 * i).cast()) }
    })
}

#[inline]
#[target_feature(enable = "avx2")]
fn store<const BLOCKS: usize, const VECTORS: usize>(
    vectors: [__m256i; VECTORS],
    blocks: &mut [Block; BLOCKS],
) {
    const { assert!(BLOCKS == 2 * VECTORS) };
    for (i, vector) in vectors.into_iter().enumerate() {
        // SAFETY: 32 bytes are writable from block 2i on; the store needs no alignment.
        unsafe { _mm256_storeu_si256(blocks.as_mut_ptr().add(2 * i).cast(), vector) };
    }
}

/// Up to two blocks a vector.
#[target_feature(enable = "avx2")]
fn crypt_few<const VECTORS: usize>(direction: Direction, keys: &RoundKeys, blocks: &mut [Block]) {
    let mut rows = padded::<VECTORS>(blocks);
    let crypted = match direction {
        Direction::Encrypt => encrypt_few(keys, rows),
        Direction::Decrypt => decrypt_few(keys, rows),
    };
    rows.zeroize();
    store_first(crypted, blocks);
}

/// S, then L, of one block, as `portable::substitute_and_mix`.
#[target_feature(enable = "avx2")]
pub(super) fn substitute_and_mix(block: u128) -> u128 {
    let halves = [block >> 64, block].map(|half| (half as u64).cast_signed());
    let row = _mm256_zextsi128_si256(_mm_set_epi64x(halves[0], halves[1]));
    let [mixed] = mix_rows(&DIAGONALS, [Forward::new().substitute(row)]);
    let mixed = _mm256_castsi256_si128(mixed);
    let halves = [_mm_extract_epi64::<1>(mixed), _mm_cvtsi128_si64(mixed)];
    let [high, low] = halves.map(|half| u128::from(half.cast_unsigned()));
    high << 64 | low
}

#[inline]
#[target_feature(enable = "avx2")]
fn encrypt_few<const VECTORS: usize>(
    keys: &RoundKeys,
    mut rows: [__m256i; VECTORS],
) -> [__m256i; VECTORS] {
    let sbox = Forward::new();
    for key in &keys.0[..ROUNDS] {
        let key = row_of(key);
        for row in &mut rows {
            *row = sbox.substitute(_mm256_xor_si256(*row, key));
        }
        rows = mix_rows(&DIAGONALS, rows);
    }
    let key = row_of(&keys.0[ROUNDS]);
    rows.map(|row| _mm256_xor_si256(row, key))
}

#[inline]
#[target_feature(enable = "avx2")]
fn decrypt_few<const VECTORS: usize>(
    keys: &RoundKeys,
    rows: [__m256i; VECTORS],
) -> [__m256i; VECTORS] {
    let sbox = Inverse::new();
    let key = row_of(&keys.0[ROUNDS]);
    let mut rows = rows.map(|row| _mm256_xor_si256(row, key));
    for key in keys.0[..ROUNDS].iter().rev() {
        let key = row_of(key);
        rows = mix_rows(&DIAGONALS_INVERSE, rows);
        for row in &mut rows {
            *row = _mm256_xor_si256(sbox.substitute(*row), key);
        }
    }
    rows
}

#[inline]
#[target_feature(enable = "avx2")]
fn row_of(block: &Block) -> __m256i {
    // SAFETY: 16 bytes are readable; the load needs no alignment.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(block.as_ptr().cast()) })
}

/// For each bit of coefficients, the highest first, and each rotation of a block: which bytes of it
/// have that bit in their coefficient.
type Diagonals = [[Table; 16]; 8];
static DIAGONALS: Diagonals = diagonals(&LINEAR);
static DIAGONALS_INVERSE: Diagonals = diagonals(&LINEAR_INVERSE);

const fn diagonals(matrix: &[[u8; 16]; 16]) -> Diagonals {
    let mut masks = [[Table::of([0; 16]); 16]; 8];
    let mut bit = 0;
    while bit < 8 {
        let mut rotation = 0;
        while rotation < 16 {
            let (mut mask, mut row) = ([0; 16], 0);
            while row < 16 {
                let coefficient = matrix[row][(row + rotation) % 16];
                mask[row] = 0_u8.wrapping_sub(coefficient >> (7 - bit) & 1);
                row += 1;
            }
            masks[bit][rotation] = Table::of(mask);
            rotation += 1;
        }
        bit += 1;
    }
    masks
}

/// L, or its inverse, of each block: coefficients are taken bit by bit, by Horner's rule.
#[inline]
#[target_feature(enable = "avx2")]
fn mix_rows<const VECTORS: usize>(
    diagonals: &Diagonals,
    rows: [__m256i; VECTORS],
) -> [__m256i; VECTORS] {
    macro_rules! rotations {
        ($row:expr, $($by:literal)*) => { [$(_mm256_alignr_epi8::<$by>($row, $row)),*] };
    }
    let rotated = rows.map(|row| rotations!(row, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15));
    let mut sums = [_mm256_setzero_si256(); VECTORS];
    for masks in diagonals {
        for (sum, rotated) in sums.iter_mut().zip(&rotated) {
            *sum = double(*sum);
            // Four independent chains, to hide latency.
            for (masks, rotated) in masks.as_chunks().0.iter().zip(rotated.as_chunks().0) {
                let [a, b, c, d]: &[Table; 4] = masks;
                let [e, f, g, h]: &[__m256i; 4] = rotated;
                let first = _mm256_xor_si256(
                    _mm256_and_si256(a.load(), *e),
                    _mm256_and_si256(b.load(), *f),
                );
                let second = _mm256_xor_si256(
                    _mm256_and_si256(c.load(), *g),
                    _mm256_and_si256(d.load(), *h),
                );
                *sum = _mm256_xor_si256(*sum, _mm256_xor_si256(first, second));
            }
        }
    }
    sums
}

/// The double modulo x^8 + x^7 + x^6 + x + 1 of each byte.
#[inline]
#[target_feature(enable = "avx2")]
fn double(x: __m256i) -> __m256i {
    // Bytes with the highest bit set are negative, and only a signed comparison exists.
    let carries = _mm256_cmpgt_epi8(_mm256_setzero_si256(), x);
    let reduction = _mm256_and_si256(carries, broadcast(0xc3));
    _mm256_xor_si256(_mm256_add_epi8(x, x), reduction)
}
