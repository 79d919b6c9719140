//! π and its inverse on the bytes of a vector.
//!
//! Their structure (`tables::ALPHA` and the parts after it) has permutations of 4 bits and
//! multiplication in GF(16). A shuffle looks up 16 values in parallel; multiplication is addition
//! of logarithms. The logarithm of zero is a number that keeps its highest bit set after any
//! subtraction; for this kind of index a shuffle gives zero.

use super::super::tables::{
    ALPHA, Matrix, NU_0, NU_1, OMEGA, PHI, SIGMA, apply, inverse_matrix, inverse_nibbles, value,
};
use std::arch::x86_64::*;

/// The values at 0 to 15.
pub(super) type Nibbles = [u8; 16];

/// Sixteen bytes, in both halves of a vector.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Table([Nibbles; 2]);

impl Table {
    pub(super) const fn of(values: Nibbles) -> Self {
        Self([values; 2])
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn load(&self) -> __m256i {
        // SAFETY: a table is 32 bytes, aligned to 32 bytes.
        unsafe { _mm256_load_si256((&raw const self.0).cast()) }
    }
}

/// The low and the high half of each byte.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn halves(x: __m256i) -> [__m256i; 2] {
    let low = _mm256_set1_epi8(0x0f);
    // Bytes cannot be shifted alone; the mask removes the bits of the neighbour.
    let high = _mm256_srli_epi16::<4>(x);
    [_mm256_and_si256(x, low), _mm256_and_si256(high, low)]
}

/// Exponents of the generator x of GF(16) modulo x^4 + x^3 + 1.
const EXPONENTIAL: Nibbles = {
    let (mut powers, mut i, mut power) = ([1; 16], 1, 1);
    while i < 16 {
        power = (power << 1) ^ ((power >> 3) * 0x19);
        powers[i] = power;
        i += 1;
    }
    powers
};

/// The logarithm of zero as a minuend, and as a subtrahend.
///
/// The differences 0xe8 - (0…14), (0…14) - 0x50, 0xe8 - 0x50, and those of the first with either,
/// have the highest bit set, and so have they with 15 added.
const ZERO_MINUEND: u8 = 0xe8;
const ZERO_SUBTRAHEND: u8 = 0x50;

/// The logarithm of `x`, or `zero`.
const fn logarithm(x: u8, zero: u8) -> u8 {
    if x == 0 {
        return zero;
    }
    let mut i = 0;
    while EXPONENTIAL[i as usize] != x {
        i += 1;
    }
    i
}

/// The logarithm of 1 / x, or `zero`.
const fn negative_logarithm(x: u8, zero: u8) -> u8 {
    match logarithm(x, zero) {
        0 => 0,
        i if i < 15 => 15 - i,
        zero => zero,
    }
}

/// `a - b` modulo 15, from 0 to 14, or with the highest bit set if one of them is the logarithm of
/// zero.
#[inline]
#[target_feature(enable = "avx2")]
fn quotient(a: __m256i, b: __m256i) -> __m256i {
    let difference = _mm256_sub_epi8(a, b);
    // A difference from 0 to 14 is less than the same with 15 added. Below 0 it is 242 or more as a
    // byte, and with 15 added it wraps to the right one.
    _mm256_min_epu8(
        difference,
        _mm256_add_epi8(difference, _mm256_set1_epi8(15)),
    )
}

/// Both halves of each byte of `matrix` · `x`; `low` and `high` are its products with halves.
#[inline]
#[target_feature(enable = "avx2")]
fn linear(low: __m256i, high: __m256i, x: __m256i) -> [__m256i; 2] {
    let [x_low, x_high] = halves(x);
    halves(_mm256_xor_si256(
        _mm256_shuffle_epi8(low, x_low),
        _mm256_shuffle_epi8(high, x_high),
    ))
}

macro_rules! substitution {
    ($(#[$doc:meta])* $name:ident: $($table:ident($x:ident) = $value:expr;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name { $($table: __m256i),* }

        impl $name {
            /// Loads the tables.
            #[inline]
            #[target_feature(enable = "avx2")]
            pub(super) fn new() -> Self {
                $(let $table = {
                    static TABLE: Table = {
                        let (mut values, mut $x) = ([0; 16], 0_u8);
                        while $x < 16 {
                            values[$x as usize] = $value;
                            $x += 1;
                        }
                        Table::of(values)
                    };
                    TABLE.load()
                };)*
                Self { $($table),* }
            }
        }
    };
}

substitution! {
    /// π. `l` after ν is kept as the difference from ν1(0), and `r` after σ as the difference from
    /// σ(0), so that the zero from a shuffle with an invalid index is the right value.
    Forward:
    alpha_low(x) = apply(ALPHA, x);
    alpha_high(x) = apply(ALPHA, x << 4);
    log_l(l) = logarithm(l, ZERO_MINUEND);
    log_r(r) = logarithm(r, ZERO_SUBTRAHEND);
    nu_1(log) = value(NU_1, EXPONENTIAL[log as usize]) ^ value(NU_1, 0);
    nu_0(l) = value(NU_0, l) ^ value(NU_1, 0);
    negative_log_phi(l) = negative_logarithm(value(PHI, l ^ value(NU_1, 0)), 0);
    omega_low(log) = apply(OMEGA, value(SIGMA, EXPONENTIAL[15 - log as usize]) ^ value(SIGMA, 0));
    omega_high(l) = apply(OMEGA, (l ^ value(NU_1, 0)) << 4 | value(SIGMA, 0));
}

impl Forward {
    /// π of each byte.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn substitute(&self, x: __m256i) -> __m256i {
        let [r, l] = linear(self.alpha_low, self.alpha_high, x);
        let log_r = _mm256_shuffle_epi8(self.log_r, r);
        let log = quotient(_mm256_shuffle_epi8(self.log_l, l), log_r);
        let r_is_zero = _mm256_cmpeq_epi8(r, _mm256_setzero_si256());
        let l = _mm256_xor_si256(
            _mm256_shuffle_epi8(self.nu_1, log),
            _mm256_and_si256(_mm256_shuffle_epi8(self.nu_0, l), r_is_zero),
        );
        let negative_log = quotient(_mm256_shuffle_epi8(self.negative_log_phi, l), log_r);
        _mm256_xor_si256(
            _mm256_shuffle_epi8(self.omega_low, negative_log),
            _mm256_shuffle_epi8(self.omega_high, l),
        )
    }
}

const OMEGA_INVERSE: Matrix = inverse_matrix(OMEGA);
const ALPHA_INVERSE: Matrix = inverse_matrix(ALPHA);

substitution! {
    /// The inverse of π, step by step from its end: `r` is σ^-1(r) / φ(l), and `l` is ν0^-1(l) if
    /// that is zero and ν1^-1(l) · r otherwise.
    Inverse:
    omega_low(x) = apply(OMEGA_INVERSE, x);
    omega_high(x) = apply(OMEGA_INVERSE, x << 4);
    log_sigma(r) = logarithm(value(inverse_nibbles(SIGMA), r), ZERO_MINUEND);
    log_phi(l) = logarithm(value(PHI, l), 0);
    negative_log_nu_1(l) = negative_logarithm(value(inverse_nibbles(NU_1), l), ZERO_SUBTRAHEND);
    nu_0(l) = apply(ALPHA_INVERSE, value(inverse_nibbles(NU_0), l) << 4);
    alpha_low(log) = apply(ALPHA_INVERSE, EXPONENTIAL[log as usize]);
    alpha_high(log) = apply(ALPHA_INVERSE, EXPONENTIAL[log as usize] << 4);
}

impl Inverse {
    /// The inverse of π of each byte.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn substitute(&self, x: __m256i) -> __m256i {
        let [r, l] = linear(self.omega_low, self.omega_high, x);
        let log_r = quotient(
            _mm256_shuffle_epi8(self.log_sigma, r),
            _mm256_shuffle_epi8(self.log_phi, l),
        );
        let log_l = quotient(log_r, _mm256_shuffle_epi8(self.negative_log_nu_1, l));
        // The logarithm of zero has its highest bit set.
        let r_is_zero = _mm256_cmpgt_epi8(_mm256_setzero_si256(), log_r);
        let l_if_so = _mm256_and_si256(_mm256_shuffle_epi8(self.nu_0, l), r_is_zero);
        let r = _mm256_shuffle_epi8(self.alpha_low, log_r);
        let l = _mm256_xor_si256(_mm256_shuffle_epi8(self.alpha_high, log_l), l_if_so);
        _mm256_xor_si256(l, r)
    }
}
