//! In safe Rust, by logic gates: bytes are spread over eight words, a bit in each.
//!
//! Two layouts. Few blocks keep their layout, and only π is computed in gates, for four blocks
//! together; L is a product with its matrix. Sixty-four blocks are transposed so that a word has
//! one bit of the same byte of each; then L is gates as well, and a block costs half.

use super::tables::{
    ALPHA, COEFFICIENTS, LINEAR, LINEAR_INVERSE, Matrix, NU_0, NU_1, Nibbles, OMEGA, PHI,
    RECIPROCAL, SIGMA, compose, inverse_matrix, inverse_nibbles, multiply,
};
use super::{Block, Direction, ROUNDS, RoundKeys};
use zeroize::Zeroize;

/// Blocks of one wide batch.
const WIDE: usize = 64;

/// From this number of blocks on a wide batch costs no more than separate calls for few blocks.
const WORTH_A_WIDE_BATCH: usize = 28;

/// Bit `b` of 64 bytes, in word `b`.
type Planes = [u64; 8];

/// En- or decrypts blocks in place.
pub(super) fn crypt(direction: Direction, keys: &RoundKeys, blocks: &mut [Block]) {
    let mut rest = blocks;
    while rest.len() >= WORTH_A_WIDE_BATCH {
        let (batch, after) = rest.split_at_mut(rest.len().min(WIDE));
        wide(direction, keys, batch);
        rest = after;
    }
    for four in rest.chunks_mut(4) {
        few(direction, keys, four);
    }
}

/// S, then L, of one block: the step of the key schedule (RFC 7801 §4.3).
pub(super) fn substitute_and_mix(block: u128) -> u128 {
    let mut state = [block, 0, 0, 0];
    substitute(&mut state, sbox);
    product(&COLUMNS, state[0])
}

/// Up to four blocks.
fn few(direction: Direction, keys: &RoundKeys, blocks: &mut [Block]) {
    let mut state = [0; 4];
    for (word, block) in state.iter_mut().zip(&*blocks) {
        *word = u128::from_le_bytes(*block);
    }
    let add = |state: &mut [u128; 4], round: usize| {
        let key = u128::from_le_bytes(keys.0[round]);
        state.iter_mut().for_each(|word| *word ^= key);
    };
    // π costs the same for four blocks as for one, while L is computed for each.
    let count = blocks.len();
    match direction {
        Direction::Encrypt => {
            for round in 0..ROUNDS {
                add(&mut state, round);
                substitute(&mut state, sbox);
                for word in &mut state[..count] {
                    *word = product(&COLUMNS, *word);
                }
            }
            add(&mut state, ROUNDS);
        }
        Direction::Decrypt => {
            add(&mut state, ROUNDS);
            for round in (0..ROUNDS).rev() {
                for word in &mut state[..count] {
                    *word = product(&COLUMNS_INVERSE, *word);
                }
                substitute(&mut state, sbox_inverse);
                add(&mut state, round);
            }
        }
    }
    for (word, block) in state.iter().zip(blocks) {
        *block = word.to_le_bytes();
    }
    state.zeroize();
}

/// Puts 64 bytes through `sbox`.
fn substitute(state: &mut [u128; 4], sbox: fn(Planes) -> Planes) {
    let mut words: Planes = std::array::from_fn(|i| (state[i / 2] >> (64 * (i % 2))) as u64);
    exchange_bits(&mut words);
    words = sbox(words);
    exchange_bits(&mut words);
    for (i, word) in state.iter_mut().enumerate() {
        *word = u128::from(words[2 * i]) | u128::from(words[2 * i + 1]) << 64;
    }
    words.zeroize();
}

/// Exchanges bit `i` of each byte of word `j` for bit `j` of the same byte of word `i`: bytes to
/// planes, and back.
fn exchange_bits(words: &mut Planes) {
    const LOW: [u64; 3] = [
        0x5555_5555_5555_5555,
        0x3333_3333_3333_3333,
        0x0f0f_0f0f_0f0f_0f0f,
    ];
    // A transposition of 8 × 8 bits in three rounds of swaps, for eight bytes at a time.
    for (level, low) in LOW.into_iter().enumerate() {
        let distance = 1 << level;
        for i in (0..8).filter(|i| i & distance == 0) {
            let (a, b) = (words[i], words[i + distance]);
            let differ = (a >> distance ^ b) & low;
            words[i] = a ^ differ << distance;
            words[i + distance] = b ^ differ;
        }
    }
}

/// L, or its inverse, as the contribution of each bit of a block.
static COLUMNS: [u128; 128] = columns(&LINEAR);
static COLUMNS_INVERSE: [u128; 128] = columns(&LINEAR_INVERSE);

const fn columns(matrix: &[[u8; 16]; 16]) -> [u128; 128] {
    let (mut columns, mut bit) = ([0; 128], 0);
    while bit < 128 {
        let mut row = 0;
        while row < 16 {
            let byte = multiply(matrix[row][bit / 8], 1 << (bit % 8));
            columns[bit] |= (byte as u128) << (8 * row);
            row += 1;
        }
        bit += 1;
    }
    columns
}

fn product(columns: &[u128; 128], block: u128) -> u128 {
    let (low, high) = (block as u64, (block >> 64) as u64);
    let mask = |half: u64, bit: usize| {
        let word = 0_u64.wrapping_sub(half >> bit & 1);
        u128::from(word) | u128::from(word) << 64
    };
    // Every column is read: an index by secret bits would be an address.
    (0..64).fold(0, |sum, bit| {
        sum ^ columns[bit] & mask(low, bit) ^ columns[bit + 64] & mask(high, bit)
    })
}

/// Up to 64 blocks, at the cost of 64.
fn wide(direction: Direction, keys: &RoundKeys, blocks: &mut [Block]) {
    let mut state = [[0; 8]; 16];
    for (byte, planes) in state.iter_mut().enumerate() {
        for (i, block) in blocks.iter().enumerate() {
            // Any place will do for a block, as long as it leaves from there again. With this one a
            // single exchange of bits makes planes.
            planes[i % 8] |= u64::from(block[byte]) << (i / 8 * 8);
        }
        exchange_bits(planes);
    }
    let add = |state: &mut [Planes; 16], round: usize| {
        for (planes, key) in state.iter_mut().zip(keys.0[round]) {
            for (bit, plane) in planes.iter_mut().enumerate() {
                // A key bit is the same for all blocks.
                *plane ^= 0_u64.wrapping_sub(u64::from(key >> bit & 1));
            }
        }
    };
    match direction {
        Direction::Encrypt => {
            for round in 0..ROUNDS {
                add(&mut state, round);
                state.iter_mut().for_each(|planes| *planes = sbox(*planes));
                (0..16).for_each(|k| step(&mut state, k));
            }
            add(&mut state, ROUNDS);
        }
        Direction::Decrypt => {
            add(&mut state, ROUNDS);
            for round in (0..ROUNDS).rev() {
                (0..16).rev().for_each(|k| step(&mut state, k));
                state
                    .iter_mut()
                    .for_each(|planes| *planes = sbox_inverse(*planes));
                add(&mut state, round);
            }
        }
    }
    for (byte, planes) in state.iter_mut().enumerate() {
        exchange_bits(planes);
        for (i, block) in blocks.iter_mut().enumerate() {
            block[byte] = (planes[i % 8] >> (i / 8 * 8)) as u8;
        }
    }
    state.zeroize();
}

/// Step `k` of L (see `tables::LINEAR`): bytes that have the same coefficient are added first, and
/// all products are computed together by Horner's rule.
#[inline]
fn step(state: &mut [Planes; 16], k: usize) {
    let at = |j: usize| state[(16 + j - k) % 16];
    let terms: [Planes; 8] = std::array::from_fn(|j| {
        if j == 7 {
            at(7)
        } else {
            add(at(j), at(14 - j))
        }
    });
    let mut sum = [0; 8];
    for bit in (0..8).rev() {
        sum = double(sum);
        for (term, coefficient) in terms.iter().zip(COEFFICIENTS) {
            if coefficient >> bit & 1 == 1 {
                sum = add(sum, *term);
            }
        }
    }
    state[15 - k] = add(state[15 - k], sum);
}

#[inline]
fn add(a: Planes, b: Planes) -> Planes {
    std::array::from_fn(|bit| a[bit] ^ b[bit])
}

/// The double modulo x^8 + x^7 + x^6 + x + 1.
#[inline]
fn double([a, b, c, d, e, f, g, h]: Planes) -> Planes {
    [h, a ^ h, b, c, d, e, f ^ h, g ^ h]
}

/// π (`tables::ALPHA` and the parts after it).
#[inline]
fn sbox(x: Planes) -> Planes {
    let [l, r] = halves(linear::<ALPHA>(x));
    let quotient = permute::<NU_1>(product_16(l, permute::<RECIPROCAL>(r)));
    let l = choose(is_zero(r), permute::<NU_0>(l), quotient);
    let r = permute::<SIGMA>(product_16(r, permute::<PHI>(l)));
    linear::<OMEGA>(joined(l, r))
}

/// The inverse of π: the steps of [`sbox`] undone in reverse order. φ is never zero.
#[inline]
fn sbox_inverse(x: Planes) -> Planes {
    let [l, r] = halves(linear::<{ inverse_matrix(OMEGA) }>(x));
    let r = product_16(
        permute::<{ inverse_nibbles(SIGMA) }>(r),
        permute::<{ compose(RECIPROCAL, PHI) }>(l),
    );
    let product = product_16(permute::<{ inverse_nibbles(NU_1) }>(l), r);
    let l = choose(is_zero(r), permute::<{ inverse_nibbles(NU_0) }>(l), product);
    linear::<{ inverse_matrix(ALPHA) }>(joined(l, r))
}

/// `l` and `r` of `l || r`.
#[inline]
fn halves([a, b, c, d, e, f, g, h]: Planes) -> [[u64; 4]; 2] {
    [[e, f, g, h], [a, b, c, d]]
}

#[inline]
fn joined([e, f, g, h]: [u64; 4], [a, b, c, d]: [u64; 4]) -> Planes {
    [a, b, c, d, e, f, g, h]
}

#[inline]
fn linear<const MATRIX: Matrix>(x: Planes) -> Planes {
    std::array::from_fn(|row| {
        (0..8)
            .filter(|column| MATRIX >> (8 * row + column) & 1 == 1)
            .fold(0, |sum, column| sum ^ x[column])
    })
}

/// A function of 4 bits as sums of products of them (its algebraic normal form).
#[inline]
fn permute<const FUNCTION: Nibbles>(x: [u64; 4]) -> [u64; 4] {
    let mut products = [!0; 16];
    for i in 1_usize..16 {
        // A shorter product, times the variable of the lowest bit.
        products[i] = products[i & (i - 1)] & x[i.trailing_zeros() as usize];
    }
    let terms = const { algebraic_normal_form(FUNCTION) };
    std::array::from_fn(|bit| {
        (0..16)
            .filter(|i| terms >> (4 * i + bit) & 1 == 1)
            .fold(0, |sum, i| sum ^ products[i])
    })
}

/// For each product of arguments the bits of the result that it is a term of.
const fn algebraic_normal_form(function: Nibbles) -> Nibbles {
    // The Möbius transform: for each variable, terms without it are added to terms that contain it.
    let form = function ^ (function & 0x0f0f_0f0f_0f0f_0f0f) << 4;
    let form = form ^ (form & 0x00ff_00ff_00ff_00ff) << 8;
    let form = form ^ (form & 0x0000_ffff_0000_ffff) << 16;
    form ^ form << 32
}

/// The product in GF(16) modulo x^4 + x^3 + 1.
#[inline]
fn product_16(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
    let mut c = [0; 7];
    for i in 0..4 {
        for j in 0..4 {
            c[i + j] ^= a[i] & b[j];
        }
    }
    [
        // x^4 = x^3 + 1, x^5 = x^3 + x + 1, x^6 = x^3 + x^2 + x + 1.
        c[0] ^ c[4] ^ c[5] ^ c[6],
        c[1] ^ c[5] ^ c[6],
        c[2] ^ c[6],
        c[3] ^ c[4] ^ c[5] ^ c[6],
    ]
}

#[inline]
fn is_zero(x: [u64; 4]) -> u64 {
    !(x[0] | x[1] | x[2] | x[3])
}

#[inline]
fn choose(condition: u64, yes: [u64; 4], no: [u64; 4]) -> [u64; 4] {
    std::array::from_fn(|bit| no[bit] ^ (yes[bit] ^ no[bit]) & condition)
}
