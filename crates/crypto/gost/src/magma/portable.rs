//! Safe Rust, without a look-up in memory.

use super::sbox::Tables;
use zeroize::Zeroize;

/// One block per bit of a word.
const SLICED: usize = 64;

/// From this number of blocks on slices, even partly empty, are faster than one block after
/// another.
const WORTH_SLICING: usize = 24;

pub(super) fn run<const BIG_ENDIAN: bool>(words: &[u32], tables: &Tables, blocks: &mut [[u8; 8]]) {
    for group in blocks.chunks_mut(SLICED) {
        if group.len() < WORTH_SLICING {
            for block in group {
                let number = one(words, tables, read::<BIG_ENDIAN>(block));
                *block = write::<BIG_ENDIAN>(number);
            }
            continue;
        }
        let mut slices = [0; SLICED];
        for (slice, block) in slices.iter_mut().zip(&*group) {
            *slice = read::<BIG_ENDIAN>(block);
        }
        transpose(&mut slices);
        sliced(words, tables, &mut slices);
        transpose(&mut slices);
        for (slice, block) in slices.iter().zip(group) {
            *block = write::<BIG_ENDIAN>(*slice);
        }
        // The stack would keep the plaintext.
        slices.zeroize();
    }
}

fn read<const BIG_ENDIAN: bool>(block: &[u8; 8]) -> u64 {
    if BIG_ENDIAN {
        u64::from_be_bytes(*block)
    } else {
        u64::from_le_bytes(*block)
    }
}

fn write<const BIG_ENDIAN: bool>(number: u64) -> [u8; 8] {
    if BIG_ENDIAN {
        number.to_be_bytes()
    } else {
        number.to_le_bytes()
    }
}

/// One block. The S-boxes are shifted in numbers of 64 bits: a 64-bit processor with a barrel
/// shifter takes the same time for every distance. A 32-bit one may have to branch, so this is not
/// constant-time there.
fn one(words: &[u32], tables: &Tables, block: u64) -> u64 {
    let (mut high, mut low) = ((block >> 32) as u32, block as u32);
    for word in words {
        let sum = low.wrapping_add(*word);
        let mut out = 0;
        for (at, packed) in tables.packed.iter().enumerate() {
            let nibble = sum >> (4 * at) & 15;
            out |= ((packed >> (4 * nibble)) as u32 & 15) << (4 * at);
        }
        (high, low) = (low, high ^ out.rotate_left(11));
    }
    // The halves are not swapped after the last round (RFC 8891 §4.4).
    u64::from(low) << 32 | u64::from(high)
}

/// 64 blocks: slice n has bit n of each.
fn sliced(words: &[u32], tables: &Tables, slices: &mut [u64; SLICED]) {
    let (halves, _) = slices.as_chunks_mut::<32>();
    let [low, high] = halves else {
        unreachable!("64 slices are two times 32");
    };
    let (mut low, mut high) = (low, high);
    for word in words {
        round(high, low, *word, tables);
        (high, low) = (low, high);
    }
    // An even number of swaps leaves the halves in place; undoes the last one, which the standard
    // omits.
    std::mem::swap(low, high);
}

/// high ^= g(low + word), rotated.
fn round(high: &mut [u64; 32], low: &[u64; 32], word: u32, tables: &Tables) {
    let mut sum = [0; 32];
    // An adder bit by bit, for 64 blocks together, with the carry rippling through.
    let mut carry = 0;
    for (at, (sum, bit)) in sum.iter_mut().zip(low).enumerate() {
        // A key bit is the same for all blocks.
        let key = 0_u64.wrapping_sub(u64::from(word >> at & 1));
        let half = bit ^ key;
        *sum = half ^ carry;
        carry = (bit & key) | (half & carry);
    }
    let (nibbles, _) = sum.as_chunks::<4>();
    for (at, (nibble, masks)) in nibbles.iter().zip(&tables.products).enumerate() {
        let [a, b, c, d] = *nibble;
        let (ab, cd) = (a & b, c & d);
        // Product m is at place m - 1: `a` is bit 0 of m, `d` is bit 3. Product 0 is the constant
        // 1, and its masks are the initial value.
        let products = [
            a,
            b,
            ab,
            c,
            a & c,
            b & c,
            ab & c,
            d,
            a & d,
            b & d,
            ab & d,
            cd,
            a & cd,
            b & cd,
            ab & cd,
        ];
        let mut out = masks[0];
        for (product, masks) in products.iter().zip(&masks[1..]) {
            for (out, mask) in out.iter_mut().zip(masks) {
                *out ^= product & mask;
            }
        }
        for (bit, out) in out.into_iter().enumerate() {
            // The rotation is a matter of indices.
            high[(4 * at + bit + 11) % 32] ^= out;
        }
    }
}

/// Transposes: bit c of word r goes to bit r of word c. Blocks of half the size are swapped over
/// the diagonal, then halves of those.
fn transpose(rows: &mut [u64; SLICED]) {
    let mut width = 32;
    let mut mask = u64::MAX >> 32;
    while width > 0 {
        let mut row = 0;
        while row < SLICED {
            let swapped = (rows[row] >> width ^ rows[row + width]) & mask;
            rows[row] ^= swapped << width;
            rows[row + width] ^= swapped;
            // The next row that begins a pair: its number lacks this bit.
            row = (row + width + 1) & !width;
        }
        width /= 2;
        mask ^= mask << width;
    }
}
