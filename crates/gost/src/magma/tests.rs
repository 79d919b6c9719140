use super::*;
use ::magma as rustcrypto;
use proptest::prelude::*;
use rustcrypto::cipher::{BlockCipherEncrypt, KeyInit};

/// More than any kernel does at once, and a tail behind it.
const BLOCKS: usize = 140;

fn hex<const N: usize>(digits: &str) -> [u8; N] {
    let digit = |at: usize| u8::from_str_radix(&digits[at..=at], 16).unwrap();
    assert_eq!(digits.len(), 2 * N);
    std::array::from_fn(|at| digit(2 * at) << 4 | digit(2 * at + 1))
}

fn both_ways<C: BlockCipher>(cipher: &C, plain: &[u8], sealed: &[u8]) {
    let mut blocks = plain.to_vec();
    cipher.encrypt_blocks(&mut blocks);
    assert!(blocks == sealed, "{} encrypts otherwise", cipher.kernel());
    cipher.decrypt_blocks(&mut blocks);
    assert!(
        blocks == plain,
        "{} does not find its way back",
        cipher.kernel()
    );
}

/// RFC 8891 appendix A.4 and A.5.
#[test]
fn the_block_of_rfc_8891_comes_out() {
    let key = hex("ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
    let plain: [u8; 8] = hex("fedcba9876543210");
    let sealed: [u8; 8] = hex("4ee901e5c2d8ca3d");
    for kernel in Kernel::all() {
        both_ways(&Magma::new(&key, kernel), &plain, &sealed);
    }
}

/// GOST R 34.13-2015 appendix A.2.1.
#[test]
fn the_blocks_of_the_standard_come_out() {
    let key = hex("ffeeddccbbaa99887766554433221100f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
    let plain: [u8; 32] = hex("92def06b3c130a59db54c704f8189d204a98fb2e67a8024c8912409b17b57e41");
    let sealed: [u8; 32] = hex("2b073f0494f372a0de70e715d3556e4811d8d9e9eacfbc1e7c68260996c67efb");
    for kernel in Kernel::all() {
        both_ways(&Magma::new(&key, kernel), &plain, &sealed);
    }
}

/// RFC 8891 §4, word for word, on one block.
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
fn every_number_of_blocks_is_done_and_no_block_more() {
    let key = std::array::from_fn(|at| (37 * at + 11) as u8);
    let plain: Vec<[u8; 8]> = (0..BLOCKS as u64)
        .map(|block| block.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
        .collect();
    let boxes = Sbox::Tc26Z.boxes();
    let sealed: Vec<[u8; 8]> = plain
        .iter()
        .map(|block| slow(&key, boxes, true, *block))
        .collect();
    for kernel in Kernel::all() {
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

/// A byte more, so that nothing is aligned.
#[test]
fn blocks_may_lie_anywhere() {
    let key = [0x5a; 32];
    for kernel in Kernel::all() {
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
fn part_of_a_block_is_refused() {
    Magma::new(&[0; 32], Kernel::detect()).encrypt_blocks(&mut [0; 12]);
}

/// The carries of sums that are all ones, and those that are not, at every byte.
#[test]
fn carries_run_through_all_bytes() {
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
            for kernel in Kernel::all() {
                let slow = |block| slow(&key, Sbox::Tc26Z.boxes(), true, block);
                agrees(&Magma::new(&key, kernel), &blocks, slow);
            }
        }
    }
}

#[test]
fn every_box_is_a_permutation() {
    for sbox in Sbox::ALL {
        for values in sbox.boxes() {
            let seen = (0..16).fold(0_u16, |seen, n| seen | 1 << (values >> (4 * n) & 15));
            assert_eq!(seen, u16::MAX, "{}", sbox.name());
        }
    }
}

/// GOST 28147-89 by another hand, which reads blocks as Magma does.
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
    fn kernels_agree_with_the_text_of_the_standard(
        key: [u8; 32],
        blocks in prop::collection::vec(any::<[u8; 8]>(), 0..BLOCKS),
    ) {
        for kernel in Kernel::all() {
            let oracle = |block| slow(&key, Sbox::Tc26Z.boxes(), true, block);
            agrees(&Magma::new(&key, kernel), &blocks, oracle);
            for sbox in Sbox::ALL {
                let oracle = |block| slow(&key, sbox.boxes(), false, block);
                agrees(&Gost89::with_sbox(&key, sbox, kernel), &blocks, oracle);
            }
        }
    }

    #[test]
    fn rustcrypto_agrees(key: [u8; 32], block: [u8; 8]) {
        let kernel = Kernel::detect();
        let magma = |block: [u8; 8]| {
            let mut out = block.into();
            rustcrypto::Magma::new(&key.into()).encrypt_block(&mut out);
            out.into()
        };
        agrees(&Magma::new(&key, kernel), &[block], magma);
        let gost = |sbox| Gost89::with_sbox(&key, sbox, kernel);
        agrees(&gost(Sbox::Tc26Z), &[block], |block| theirs::<rustcrypto::Magma>(&key, block));
        agrees(&gost(Sbox::CryptoProA), &[block], |block| {
            theirs::<rustcrypto::Gost89CryptoProA>(&key, block)
        });
        agrees(&gost(Sbox::CryptoProB), &[block], |block| {
            theirs::<rustcrypto::Gost89CryptoProB>(&key, block)
        });
        agrees(&gost(Sbox::CryptoProC), &[block], |block| {
            theirs::<rustcrypto::Gost89CryptoProC>(&key, block)
        });
        agrees(&gost(Sbox::CryptoProD), &[block], |block| {
            theirs::<rustcrypto::Gost89CryptoProD>(&key, block)
        });
    }
}
