use super::*;
use crate::kernel::kernels;
use ::magma as rustcrypto;
use proptest::prelude::*;
use rustcrypto::cipher::{BlockCipherEncrypt, KeyInit};

/// More blocks than any kernel processes in parallel, and a remainder.
const BLOCKS: usize = 140;

fn hex<const N: usize>(digits: &str) -> [u8; N] {
    let bytes = base16ct::lower::decode_vec(digits).unwrap();
    bytes.try_into().unwrap()
}

fn both_ways<C: BlockCipher>(cipher: &C, plain: &[u8], sealed: &[u8]) {
    let mut blocks = plain.to_vec();
    cipher.encrypt_blocks(&mut blocks);
    assert!(blocks == sealed, "{} encrypts differently", cipher.kernel());
    cipher.decrypt_blocks(&mut blocks);
    assert!(blocks == plain, "{} does not decrypt", cipher.kernel());
}

/// RFC 8891 appendix A.4 and A.5.
#[test]
fn encrypts_the_example_of_rfc_8891() {
    let key = hex("ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
    let plain: [u8; 8] = hex("fedcba9876543210");
    let sealed: [u8; 8] = hex("4ee901e5c2d8ca3d");
    for kernel in kernels() {
        both_ways(&Magma::new(&key, kernel), &plain, &sealed);
    }
}

/// GOST R 34.13-2015 appendix A.2.1.
#[test]
fn encrypts_the_examples_of_the_standard() {
    let key = hex("ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
    let plain: [u8; 32] = hex("92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41");
    let sealed: [u8; 32] = hex("2b073f0494f372a0de70e715d3556e4811d8d9e9eacfbc1e7c68260996c67efb");
    for kernel in kernels() {
        both_ways(&Magma::new(&key, kernel), &plain, &sealed);
    }
}

/// RFC 8891 appendix A.1: t, and A.2: g.
#[test]
fn computes_the_rounds_of_rfc_8891() {
    let t = [
        0xfdb9_7531,
        0x2a19_6f34,
        0xebd9_f03a,
        0xb039_bb3d,
        0x6869_5433,
    ];
    let g = [
        0xfedc_ba98,
        0x8765_4321,
        0xfdcb_c20c,
        0x7e79_1a4b,
        0xc765_49ec,
        0x9791_c849,
    ];
    for kernel in kernels() {
        for pair in t.windows(2) {
            assert_eq!(
                rotated(kernel, 0, pair[0]),
                u32::rotate_left(pair[1], 11),
                "{kernel}"
            );
        }
        for three in g.windows(3) {
            assert_eq!(rotated(kernel, three[1], three[0]), three[2], "{kernel}");
        }
    }
}

/// g of RFC 8891 §4.2.
fn rotated(kernel: Kernel, key: u32, word: u32) -> u32 {
    let mut core = Core::<true>::new([0; 8], Sbox::Tc26Z, kernel);
    core.encrypt = Rounds::new(
        std::array::from_fn(|round| if round == 0 { key } else { 0 }),
        kernel,
    );
    let mut block = (u64::from(word)).to_be_bytes();
    core.run(&core.encrypt, 2, &mut block);
    // The number of rounds is even. The second leaves the result of the first in the lower half.
    (u64::from_be_bytes(block) & 0xffff_ffff) as u32
}

/// RFC 8891 appendix A.3: the key's words three times, and then from the last one back.
#[test]
fn makes_the_round_keys_of_rfc_8891() {
    let key = hex("ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
    let words = [
        0xffee_ddcc,
        0xbbaa_9988,
        0x7766_5544,
        0x3322_1100,
        0xf0f1_f2f3,
        0xf4f5_f6f7,
        0xf8f9_fafb,
        0xfcfd_feff,
    ];
    let expected: Vec<u32> = [words; 3]
        .into_iter()
        .flatten()
        .chain(words.into_iter().rev())
        .collect();
    for kernel in kernels() {
        let Magma(core) = Magma::new(&key, kernel);
        assert_eq!(core.encrypt.words[..], expected);
        assert!(core.decrypt.words.iter().eq(expected.iter().rev()));
    }
}

/// Literal implementation of RFC 8891 §4, on one block.
fn slow(key: &[u8; 32], boxes: [u64; 8], big_endian: bool, block: [u8; 8]) -> [u8; 8] {
    let number = |bytes: &[u8]| {
        let word: [u8; 4] = bytes.try_into().unwrap();
        if big_endian {
            u32::from_be_bytes(word)
        } else {
            u32::from_le_bytes(word)
        }
    };
    let words: Vec<u32> = key.chunks(4).map(number).collect();
    let (mut high, mut low) = if big_endian {
        (number(&block[..4]), number(&block[4..]))
    } else {
        (number(&block[4..]), number(&block[..4]))
    };
    let order = (0..24).map(|round| round % 8).chain((0..8).rev());
    for word in order {
        let sum = low.wrapping_add(words[word]);
        let mut out = 0;
        for (at, values) in boxes.into_iter().enumerate() {
            let nibble = sum >> (4 * at) & 15;
            let value = values >> (60 - 4 * nibble) & 15;
            out |= u32::try_from(value).unwrap() << (4 * at);
        }
        (high, low) = (low, high ^ out.rotate_left(11));
    }
    let number = u64::from(low) << 32 | u64::from(high);
    if big_endian {
        number.to_be_bytes()
    } else {
        number.to_le_bytes()
    }
}

fn agrees<C: BlockCipher>(cipher: &C, blocks: &[[u8; 8]], slow: impl Fn([u8; 8]) -> [u8; 8]) {
    let sealed: Vec<[u8; 8]> = blocks.iter().map(|block| slow(*block)).collect();
    both_ways(cipher, blocks.as_flattened(), sealed.as_flattened());
}

#[test]
fn any_number_of_blocks_is_processed_and_no_more() {
    let key = std::array::from_fn(|at| (37 * at + 11) as u8);
    let plain: Vec<[u8; 8]> = (0..BLOCKS as u64)
        .map(|block| block.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect();
    let boxes = Sbox::Tc26Z.boxes();
    let sealed: Vec<[u8; 8]> = plain
        .iter()
        .map(|block| slow(&key, boxes, true, *block))
        .collect();
    for kernel in kernels() {
        let cipher = Magma::new(&key, kernel);
        for count in 0..=BLOCKS {
            let mut blocks = plain.clone();
            cipher.encrypt_blocks(blocks[..count].as_flattened_mut());
            assert_eq!(blocks[..count], sealed[..count], "{kernel}, {count} blocks");
            assert_eq!(
                blocks[count..],
                plain[count..],
                "{kernel}, behind {count} blocks"
            );
        }
    }
}

/// One byte more, so that nothing is aligned.
#[test]
fn blocks_may_be_unaligned() {
    let key = [0x5a; 32];
    for kernel in kernels() {
        let cipher = Magma::new(&key, kernel);
        let mut bytes = vec![7; 8 * BLOCKS + 1];
        cipher.encrypt_blocks(&mut bytes[1..]);
        let expected = slow(&key, Sbox::Tc26Z.boxes(), true, [7; 8]);
        assert_eq!(bytes[0], 7);
        assert!(bytes[1..].chunks(8).all(|block| block == expected));
    }
}

#[test]
#[should_panic(expected = "whole blocks of 8 bytes")]
fn a_partial_block_is_refused() {
    Magma::new(&[0; 32], Kernel::detect()).encrypt_blocks(&mut [0; 12]);
}

/// The carries of sums that are all ones, and those that are not, at every byte.
#[test]
fn carries_propagate_through_all_bytes() {
    let edges = [0x00, 0x01, 0x7f, 0x80, 0x81, 0xfe, 0xff];
    let mut blocks = Vec::new();
    for a in edges {
        for b in edges {
            blocks.push([0, 0, 0, 0, a, b, b, a]);
            blocks.push([0, 0, 0, 0, b, a, a, a]);
        }
    }
    for edge in edges {
        for other in edges {
            let key = std::array::from_fn(|at| if at % 4 < 2 { edge } else { other });
            for kernel in kernels() {
                let slow = |block| slow(&key, Sbox::Tc26Z.boxes(), true, block);
                agrees(&Magma::new(&key, kernel), &blocks, slow);
            }
        }
    }
}

#[test]
fn every_s_box_is_a_permutation() {
    for sbox in Sbox::ALL {
        for values in sbox.boxes() {
            let seen = (0..16).fold(0_u16, |seen, n| seen | 1 << (values >> (4 * n) & 15));
            assert_eq!(seen, u16::MAX, "{}", sbox.name());
        }
    }
}

/// S-boxes from the parameters of RFC 4357 §11.2, as they are encoded there: of each input the
/// outputs of the eight, that of the lowest nibble first.
const fn encoded(parameters: [u32; 16]) -> [[u8; 16]; 8] {
    let (mut boxes, mut at) = ([[0; 16]; 8], 0);
    while at < 128 {
        boxes[at % 8][at / 8] = (parameters[at / 8] >> (28 - 4 * (at % 8))) as u8 & 15;
        at += 1;
    }
    boxes
}

/// `id-Gost28147-89-TestParamSet`, for RustCrypto, whose S-boxes of that name differ.
enum TestParamSet {}

impl rustcrypto::Sbox for TestParamSet {
    const NAME: &'static str = "Test";
    const SBOX: [[u8; 16]; 8] = encoded([
        0x4cde_389c,
        0x2989_efb6,
        0xffeb_56c5,
        0x5ec2_9b02,
        0x9875_613b,
        0x113f_8960,
        0x0397_0c79,
        0x8aa1_d55d,
        0xe210_ad43,
        0x375d_b38e,
        0xb42c_77e7,
        0xcd46_cafa,
        0xd66a_201f,
        0x70f4_1ea4,
        0xab03_f221,
        0x65b8_44d8,
    ]);
}

/// `id-Gost28147-89-CryptoPro-D-ParamSet`, for RustCrypto, whose S-boxes of that name differ.
enum CryptoProD {}

impl rustcrypto::Sbox for CryptoProD {
    const NAME: &'static str = "CryptoProD";
    const SBOX: [[u8; 16]; 8] = encoded([
        0xfb11_0831,
        0xc6c5_c00a,
        0x23be_8f66,
        0xa40c_93f8,
        0x6cfa_d21f,
        0x4fe7_25eb,
        0x5e60_ae90,
        0x025d_bb24,
        0x77a6_71dc,
        0x9dd2_3a83,
        0xe84b_64c5,
        0xd084_5749,
        0x1599_4cb7,
        0xba33_e9ad,
        0x897f_fd52,
        0x3128_167e,
    ]);
}

/// RustCrypto's GOST 28147-89, which reads blocks as Magma does.
fn theirs<C: KeyInit + BlockCipherEncrypt>(key: &[u8; 32], block: [u8; 8]) -> [u8; 8] {
    let mut words = *key;
    words
        .as_chunks_mut::<4>()
        .0
        .iter_mut()
        .for_each(|word| word.reverse());
    let cipher = C::new_from_slice(&words).unwrap();
    let mut bytes = block;
    bytes.reverse();
    let mut out = rustcrypto::cipher::Block::<C>::default();
    out.copy_from_slice(&bytes);
    cipher.encrypt_block(&mut out);
    let mut out: [u8; 8] = out.as_slice().try_into().unwrap();
    out.reverse();
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn kernels_agree_with_the_standard(
        key: [u8; 32],
        blocks in prop::collection::vec(any::<[u8; 8]>(), 0..BLOCKS),
    ) {
        for kernel in kernels() {
            let oracle = |block| slow(&key, Sbox::Tc26Z.boxes(), true, block);
            agrees(&Magma::new(&key, kernel), &blocks, oracle);
            for sbox in Sbox::ALL {
                let oracle = |block| slow(&key, sbox.boxes(), false, block);
                agrees(&Gost89::with_sbox(&key, sbox, kernel), &blocks, oracle);
            }
        }
    }

    #[test]
    fn rustcrypto_agrees(
        key: [u8; 32],
        blocks in prop::collection::vec(any::<[u8; 8]>(), 0..BLOCKS),
    ) {
        for kernel in kernels() {
            let magma = |block: [u8; 8]| {
                let mut out = block.into();
                rustcrypto::Magma::new(&key.into()).encrypt_block(&mut out);
                out.into()
            };
            agrees(&Magma::new(&key, kernel), &blocks, magma);
            let gost = |sbox, theirs: fn(&[u8; 32], [u8; 8]) -> [u8; 8]| {
                let ours = Gost89::with_sbox(&key, sbox, kernel);
                agrees(&ours, &blocks, |block| theirs(&key, block));
            };
            gost(Sbox::Tc26Z, theirs::<rustcrypto::Magma>);
            gost(Sbox::Test, theirs::<rustcrypto::Gost89<TestParamSet>>);
            gost(Sbox::CryptoProA, theirs::<rustcrypto::Gost89CryptoProA>);
            gost(Sbox::CryptoProB, theirs::<rustcrypto::Gost89CryptoProB>);
            gost(Sbox::CryptoProC, theirs::<rustcrypto::Gost89CryptoProC>);
            gost(Sbox::CryptoProD, theirs::<rustcrypto::Gost89<CryptoProD>>);
        }
    }
}
