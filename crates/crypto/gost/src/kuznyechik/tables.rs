//! The cipher's constants and tables derived from them, all computed at compile time.
//!
//! The substitution has a structure, found by Biryukov, Perrin and Udovenko ("Reverse-Engineering
//! the S-Box of Streebog, Kuznyechik and STRIBOBr1", EUROCRYPT 2016): between two linear maps it is
//! arithmetic in GF(16) and permutations of 4 bits. Those are small enough for logic gates and for
//! registers used as tables, so that no secret becomes an address.

/// The substitution π (RFC 7801 §4.1.1).
#[rustfmt::skip]
pub(super) const PI: [u8; 256] = [
    252, 238, 221, 17, 207, 110, 49, 22, 251, 196, 250, 218, 35, 197, 4, 77,
    233, 119, 240, 219, 147, 46, 153, 186, 23, 54, 241, 187, 20, 205, 95, 193,
    249, 24, 101, 90, 226, 92, 239, 33, 129, 28, 60, 66, 139, 1, 142, 79,
    5, 132, 2, 174, 227, 106, 143, 160, 6, 11, 237, 152, 127, 212, 211, 31,
    235, 52, 44, 81, 234, 200, 72, 171, 242, 42, 104, 162, 253, 58, 206, 204,
    181, 112, 14, 86, 8, 12, 118, 18, 191, 114, 19, 71, 156, 183, 93, 135,
    21, 161, 150, 41, 16, 123, 154, 199, 243, 145, 120, 111, 157, 158, 178, 177,
    50, 117, 25, 61, 255, 53, 138, 126, 109, 84, 198, 128, 195, 189, 13, 87,
    223, 245, 36, 169, 62, 168, 67, 201, 215, 121, 214, 246, 124, 34, 185, 3,
    224, 15, 236, 222, 122, 148, 176, 188, 220, 232, 40, 80, 78, 51, 10, 74,
    167, 151, 96, 115, 30, 0, 98, 68, 26, 184, 56, 130, 100, 159, 38, 65,
    173, 69, 70, 146, 39, 94, 85, 47, 140, 163, 165, 125, 105, 213, 149, 59,
    7, 88, 179, 64, 134, 172, 29, 247, 48, 55, 107, 228, 136, 217, 231, 137,
    225, 27, 131, 73, 76, 63, 248, 254, 141, 83, 170, 144, 202, 216, 133, 97,
    32, 113, 103, 164, 45, 43, 9, 91, 203, 155, 37, 208, 190, 229, 108, 82,
    89, 166, 116, 210, 230, 244, 180, 192, 209, 102, 175, 194, 57, 75, 99, 182,
];

/// The inverse of [`PI`].
pub(super) const PI_INVERSE: [u8; 256] = {
    let mut inverse = [0; 256];
    let mut x = 0;
    while x < 256 {
        inverse[PI[x] as usize] = x as u8;
        x += 1;
    }
    inverse
};

/// The coefficients of the linear transformation, the first byte of a block first (RFC 7801
/// §4.1.2).
///
/// They are symmetric: the coefficients of bytes `j` and `14 - j` are equal.
pub(super) const COEFFICIENTS: [u8; 16] = [
    148, 32, 133, 16, 194, 192, 1, 251, 1, 192, 194, 16, 133, 32, 148, 1,
];

/// The product in the field of the linear transformation, modulo x^8 + x^7 + x^6 + x + 1.
pub(super) const fn multiply(a: u8, b: u8) -> u8 {
    multiply_modulo(a, b, 0xc3)
}

/// The product in GF(256) modulo x^8 + `modulus`.
pub(super) const fn multiply_modulo(mut a: u8, mut b: u8, modulus: u8) -> u8 {
    let mut product = 0;
    // Its arguments are public constants, so these branches reveal nothing.
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = a << 1 ^ if a & 0x80 == 0 { 0 } else { modulus };
        b >>= 1;
    }
    product
}

/// The linear transformation L as a matrix: byte `i` of the result is Σ `LINEAR[i][j]` · byte `j`.
pub(super) const LINEAR: [[u8; 16]; 16] = linear_matrix(false);

/// The inverse of [`LINEAR`].
pub(super) const LINEAR_INVERSE: [[u8; 16]; 16] = linear_matrix(true);

/// Applies the sixteen steps of L, or undoes them, to each unit vector.
const fn linear_matrix(inverse: bool) -> [[u8; 16]; 16] {
    let mut matrix = [[0; 16]; 16];
    let mut column = 0;
    while column < 16 {
        let mut block = [0; 16];
        // The results for unit vectors are the columns of the matrix.
        block[column] = 1;
        let mut i = 0;
        while i < 16 {
            step(&mut block, if inverse { 15 - i } else { i });
            i += 1;
        }
        let mut row = 0;
        while row < 16 {
            matrix[row][column] = block[row];
            row += 1;
        }
        column += 1;
    }
    matrix
}

/// Step `k` of the sixteen that make up L, with no byte moved: after `k` steps byte `j` of RFC
/// 7801's register is at `(j - k) mod 16`, and a step changes the byte that leaves the register.
/// The steps in reverse order undo it.
const fn step(block: &mut [u8; 16], k: usize) {
    let mut j = 0;
    while j < 15 {
        block[15 - k] ^= multiply(block[(16 + j - k) % 16], COEFFICIENTS[j]);
        j += 1;
    }
}

/// L of a block of zeros with last byte `number`: a constant of the key schedule (RFC 7801 §4.3),
/// as a little-endian number.
pub(super) const fn mixed_number(number: u8) -> u128 {
    let (mut block, mut row) = (0, 0);
    while row < 16 {
        block |= (multiply(LINEAR[row][15], number) as u128) << (8 * row);
        row += 1;
    }
    block
}

/// A function of 4 bits to 4 bits; the value at `x` is in the bits from `4x` up.
pub(super) type Nibbles = u64;

/// A linear map of 8 bits; bit `b` of the result is the parity of the argument AND byte `b` of the
/// matrix.
pub(super) type Matrix = u64;

// The parts of π, with the names of the paper: α maps `x` to `l || r`. `l` becomes ν0(l) if `r` is
// zero, and ν1(l / r) otherwise. Then `r` becomes σ(r · φ(l)), and ω takes `l || r` to the result.
// The field is GF(16) modulo x^4 + x^3 + 1.
pub(super) const ALPHA: Matrix = 0x0841_43ef_8a44_1a20;
pub(super) const OMEGA: Matrix = 0x0a04_209a_0844_8201;
pub(super) const NU_0: Nibbles = 0x7cd8_1f40_ae96_b352;
pub(super) const NU_1: Nibbles = 0xa32d_eb54_18f0_9c67;
pub(super) const PHI: Nibbles = 0xb63e_8536_c14c_8b2b;
pub(super) const SIGMA: Nibbles = 0x761f_2593_eab8_40dc;

/// 1 / x in GF(16), and 0 for 0.
pub(super) const RECIPROCAL: Nibbles = 0x5792_abd3_e4f6_8c10;

/// The value of `function` at `x`.
pub(super) const fn value(function: Nibbles, x: u8) -> u8 {
    (function >> (4 * x)) as u8 & 15
}

/// `inner`, then `outer`.
pub(super) const fn compose(outer: Nibbles, inner: Nibbles) -> Nibbles {
    let (mut composed, mut x) = (0, 0);
    while x < 16 {
        composed |= (value(outer, value(inner, x)) as u64) << (4 * x);
        x += 1;
    }
    composed
}

/// The inverse of a permutation of 4 bits.
pub(super) const fn inverse_nibbles(permutation: Nibbles) -> Nibbles {
    let (mut inverse, mut x) = (0, 0);
    while x < 16 {
        inverse |= (x as u64) << (4 * value(permutation, x));
        x += 1;
    }
    inverse
}

/// `matrix` · `x`.
pub(super) const fn apply(matrix: Matrix, x: u8) -> u8 {
    let (mut product, mut bit) = (0, 0);
    while bit < 8 {
        let common = (matrix >> (8 * bit)) as u8 & x;
        product |= (common.count_ones() as u8 & 1) << bit;
        bit += 1;
    }
    product
}

/// The matrix of the linear map that takes bit `b` to `images[b]`.
pub(super) const fn matrix_of(images: [u8; 8]) -> Matrix {
    let (mut matrix, mut bit) = (0, 0);
    while bit < 64 {
        matrix |= ((images[bit % 8] >> (bit / 8)) as u64 & 1) << bit;
        bit += 1;
    }
    matrix
}

/// The inverse of a linear map, by exhaustive search.
pub(super) const fn inverse_matrix(matrix: Matrix) -> Matrix {
    let (mut images, mut x) = ([0; 8], 0);
    while x < 256 {
        let y = apply(matrix, x as u8);
        // The arguments that give unit vectors are the columns of the inverse.
        if y.is_power_of_two() {
            images[y.trailing_zeros() as usize] = x as u8;
        }
        x += 1;
    }
    matrix_of(images)
}
