//! Examples of RFC 7801, the structure of π, and every kernel against a literal implementation of
//! the RFC.

use super::{Block, Kuznyechik, tables};
use crate::kernel::kernels;
use crate::{BlockCipher, Kernel};
use proptest::prelude::*;

/// The key, plaintext and ciphertext of RFC 7801 §5.4–5.6.
const KEY: [u8; 32] = [
    0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
    0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
];
const PLAINTEXT: u128 = 0x1122_3344_5566_7700_ffee_ddcc_bbaa_9988;
const CIPHERTEXT: u128 = 0x7f67_9d90_bebc_2430_5a46_8d42_b9d4_edcd;

/// K_1 to K_10 of RFC 7801 §5.4.
const ROUND_KEYS: [u128; 10] = [
    0x8899_aabb_ccdd_eeff_0011_2233_4455_6677,
    0xfedc_ba98_7654_3210_0123_4567_89ab_cdef,
    0xdb31_4853_1569_4343_228d_6aef_8cc7_8c44,
    0x3d45_53d8_e9cf_ec68_15eb_adc4_0a9f_fd04,
    0x5764_6468_c44a_5e28_d3e5_9246_f429_f1ac,
    0xbd07_9435_165c_6432_b532_e828_34da_581b,
    0x51e6_4075_7e87_45de_7057_2726_5a00_98b1,
    0x5a79_2501_7b9f_dd3e_d72a_91a2_2286_f984,
    0xbb44_e253_78c7_3123_a5f3_2f73_cdb6_e517,
    0x72e9_dd74_16bc_f45b_755d_baa8_8e4a_4043,
];

/// Encryption with π as a table and L as sixteen steps of a register (RFC 7801 §4).
fn by_definition(key: &[u8; 32], block: &mut Block) {
    let keys = super::RoundKeys::new(key, Kernel::PORTABLE);
    for round in 0..9 {
        add(block, &keys.0[round]);
        *block = block.map(|byte| tables::PI[usize::from(byte)]);
        linear(block);
    }
    add(block, &keys.0[9]);
}

fn add(block: &mut Block, key: &Block) {
    block
        .iter_mut()
        .zip(key)
        .for_each(|(byte, key)| *byte ^= key);
}

fn linear(block: &mut Block) {
    for _ in 0..16 {
        let first = (0..16).fold(0, |sum, i| {
            sum ^ tables::multiply(block[i], tables::COEFFICIENTS[i])
        });
        block.rotate_right(1);
        block[0] = first;
    }
}

fn ciphers(key: &[u8; 32]) -> impl Iterator<Item = Kuznyechik> {
    kernels()
        .into_iter()
        .map(|kernel| Kuznyechik::new(key, kernel))
}

#[test]
fn makes_the_round_keys_of_rfc_7801() {
    for kernel in kernels() {
        let keys = super::RoundKeys::new(&KEY, kernel);
        assert_eq!(keys.0.map(u128::from_be_bytes), ROUND_KEYS, "{kernel}");
    }
}

#[test]
fn substitutes_and_mixes_as_in_rfc_7801() {
    // §5.1 and §5.3, first and last examples.
    let substituted = 0xffee_ddcc_bbaa_9988_1122_3344_5566_7700_u128.to_be_bytes();
    let substituted = substituted.map(|byte| tables::PI[usize::from(byte)]);
    assert_eq!(
        u128::from_be_bytes(substituted),
        0xb66c_d888_7d38_e8d7_7765_aeea_0c9a_7efc
    );
    let mut mixed = 0x64a5_9400_0000_0000_0000_0000_0000_0000_u128.to_be_bytes();
    linear(&mut mixed);
    assert_eq!(
        u128::from_be_bytes(mixed),
        0xd456_584d_d0e3_e84c_c316_6e4b_7fa2_890d
    );
}

#[test]
fn the_matrices_equal_the_steps_and_are_inverse() {
    for column in 0..16 {
        let mut block = [0; 16];
        block[column] = 1;
        linear(&mut block);
        for (row, byte) in block.into_iter().enumerate() {
            assert_eq!(tables::LINEAR[row][column], byte);
            let product = (0..16).fold(0, |sum, i| {
                sum ^ tables::multiply(tables::LINEAR_INVERSE[row][i], tables::LINEAR[i][column])
            });
            assert_eq!(product, u8::from(row == column));
        }
    }
}

#[test]
fn the_decomposition_equals_the_substitution() {
    for x in 0..=255 {
        let u = tables::apply(tables::ALPHA, x);
        let (l, r) = (u >> 4, u & 15);
        let product = |a: u8, b: u8| {
            (0..4).filter(|i| b >> i & 1 == 1).fold(0, |sum, i| {
                let mut term = a;
                for _ in 0..i {
                    term = (term << 1) ^ ((term >> 3) * 0x19);
                }
                sum ^ term
            })
        };
        let l = if r == 0 {
            tables::value(tables::NU_0, l)
        } else {
            let quotient = product(l, tables::value(tables::RECIPROCAL, r));
            tables::value(tables::NU_1, quotient)
        };
        let r = tables::value(tables::SIGMA, product(r, tables::value(tables::PHI, l)));
        let y = tables::apply(tables::OMEGA, l << 4 | r);
        assert_eq!(y, tables::PI[usize::from(x)], "{x:#x}");
        assert_eq!(tables::PI_INVERSE[usize::from(y)], x);
    }
}

#[test]
fn encrypts_and_decrypts_the_example_of_rfc_7801_in_every_kernel() {
    for cipher in ciphers(&KEY) {
        let mut block = PLAINTEXT.to_be_bytes();
        cipher.encrypt_blocks(&mut block);
        assert_eq!(u128::from_be_bytes(block), CIPHERTEXT, "{cipher:?}");
        cipher.decrypt_blocks(&mut block);
        assert_eq!(u128::from_be_bytes(block), PLAINTEXT, "{cipher:?}");
    }
}

#[test]
fn any_number_of_blocks_is_encrypted_as_defined() {
    let plain: Vec<u8> = (0..16 * 150_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut expected = plain.clone();
    for block in expected.as_chunks_mut().0 {
        by_definition(&KEY, block);
    }
    for cipher in ciphers(&KEY) {
        for count in 0..=150 {
            let mut blocks = plain[..16 * count].to_vec();
            cipher.encrypt_blocks(&mut blocks);
            assert!(
                blocks == expected[..16 * count],
                "{cipher:?}, {count} blocks"
            );
            cipher.decrypt_blocks(&mut blocks);
            assert!(blocks == plain[..16 * count], "{cipher:?}, {count} blocks");
        }
    }
}

#[test]
fn every_byte_value_is_substituted_in_every_place() {
    // Both layouts of a kernel: all blocks together, and few at a time.
    for value in 0..=255_u8 {
        let plain = [value; 16];
        let mut expected = plain;
        by_definition(&KEY, &mut expected);
        for cipher in ciphers(&KEY) {
            for count in [1, 64] {
                let mut blocks = plain.repeat(count);
                cipher.encrypt_blocks(&mut blocks);
                assert!(
                    blocks == expected.repeat(count),
                    "{cipher:?}, {count}, {value:#x}"
                );
                cipher.decrypt_blocks(&mut blocks);
                assert!(
                    blocks == plain.repeat(count),
                    "{cipher:?}, {count}, {value:#x}"
                );
            }
        }
    }
}

#[test]
#[should_panic(expected = "whole blocks of 16 bytes")]
fn refuses_a_partial_block() {
    Kuznyechik::new(&KEY, Kernel::PORTABLE).encrypt_blocks(&mut [0; 15]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn kernels_agree_under_any_key(
        key in any::<[u8; 32]>(),
        blocks in prop::collection::vec(any::<Block>(), 0..80),
    ) {
        let mut expected = blocks.clone();
        expected.iter_mut().for_each(|block| by_definition(&key, block));
        let (plain, expected) = (blocks.as_flattened(), expected.as_flattened());
        for cipher in ciphers(&key) {
            let mut text = plain.to_vec();
            cipher.encrypt_blocks(&mut text);
            prop_assert!(text == expected, "{cipher:?}");
            cipher.decrypt_blocks(&mut text);
            prop_assert!(text == plain, "{cipher:?}");
        }
    }
}
