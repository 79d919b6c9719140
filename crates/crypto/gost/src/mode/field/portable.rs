//! Products in safe Rust, by integer multiplication.

use super::Product;

/// The sum of the unreduced products of 8-byte blocks.
pub(super) fn products_64(factors: &[u8], data: &[u8]) -> Product {
    let sum = factors
        .chunks_exact(8)
        .zip(data.chunks(8))
        .fold(0, |sum, (factor, block)| {
            sum ^ multiply(word(factor), word(block))
        });
    Product([sum as u64, (sum >> 64) as u64, 0, 0])
}

/// The sum of the unreduced products of 16-byte blocks: three multiplications each (Karatsuba).
pub(super) fn products_128(factors: &[u8], data: &[u8]) -> Product {
    let (mut low, mut middle, mut high) = (0, 0, 0);
    for (factor, block) in factors.chunks_exact(16).zip(data.chunks(16)) {
        let (factor_high, factor_low) = (word(&factor[..8]), word(&factor[8..]));
        let (block_high, block_low) = block.split_at(block.len().min(8));
        let (block_high, block_low) = (word(block_high), word(block_low));
        low ^= multiply(factor_low, block_low);
        high ^= multiply(factor_high, block_high);
        middle ^= multiply(factor_low ^ factor_high, block_low ^ block_high);
    }
    // The product of the two sums has all four products of halves; without the outer two, the
    // middle ones are left.
    Product::from_parts(low, middle ^ low ^ high, high)
}

/// Up to 8 bytes as a polynomial; zeros follow if there are fewer.
fn word(bytes: &[u8]) -> u64 {
    let mut padded = [0; 8];
    padded[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(padded)
}

/// The product of two polynomials over GF(2).
///
/// Multiplies every fourth bit of each operand at a time, so that an integer product has three free
/// bits above each of its bits for the carries. One of the operands must have no more than 15 such
/// bits, since 16 would carry into the next position; so its highest four bits are multiplied
/// separately. (Bits with holes as in Pornin's BearSSL.)
fn multiply(a: u64, b: u64) -> u128 {
    const EVERY_FOURTH: u128 = 0x1111_1111_1111_1111_1111_1111_1111_1111;
    let part = |x: u64, k: usize| u128::from(x & (EVERY_FOURTH as u64) << k);
    let rest = a & ((1 << 60) - 1);
    let x: [u128; 4] = std::array::from_fn(|k| part(rest, k));
    let y: [u128; 4] = std::array::from_fn(|k| part(b, k));
    let mut product = 0;
    for k in 0..4 {
        // Parts with the remainders i and k - i modulo 4 have their product at places of the
        // remainder k. The other places have carries, and are masked out.
        let sum = (0..4).fold(0, |sum, i| sum ^ (x[i] * y[(4 + k - i) % 4]));
        product ^= sum & EVERY_FOURTH << k;
    }
    for k in 60..64 {
        // A mask and no branch: the bit is secret.
        let mask = 0_u128.wrapping_sub(u128::from(a >> k & 1));
        product ^= u128::from(b) << k & mask;
    }
    product
}
