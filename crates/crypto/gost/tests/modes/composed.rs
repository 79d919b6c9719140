//! MGM (R 1323565.1.026-2019, RFC 9058), which OpenSSL's engine lacks, composed from its block
//! ciphers as the standard writes it, on random messages: the second implementation beside
//! RustCrypto's that shares no code with this crate.

use crate::openssl::{enc, engine, sets};
use crate::support::{hex, kernels, noise};
use gost::kuznyechik::Kuznyechik;
use gost::magma::Magma;
use gost::mode::{AeadMessage, Mgm};
use gost::{BlockCipher, KEY_BYTES, Kernel};

/// Messages of a key.
const MESSAGES: u64 = 4;

/// A block cipher of OpenSSL.
trait Blocks: BlockCipher {
    /// The field's polynomial without its highest term.
    const REDUCTION: u128;

    /// Encrypts each block alone.
    fn encrypt(key: &[u8; KEY_BYTES], blocks: &[u128]) -> Vec<u128>;
}

impl Blocks for Kuznyechik {
    /// x^128 + x^7 + x^2 + x + 1.
    const REDUCTION: u128 = 0x87;

    fn encrypt(key: &[u8; KEY_BYTES], blocks: &[u128]) -> Vec<u128> {
        let text: Vec<u8> = blocks
            .iter()
            .flat_map(|block| block.to_be_bytes())
            .collect();
        let encrypted = enc("kuznyechik-ecb", false, key, &[], &text);
        let (encrypted, rest) = encrypted.as_chunks();
        assert!(rest.is_empty(), "whole blocks");
        encrypted
            .iter()
            .map(|block| u128::from_be_bytes(*block))
            .collect()
    }
}

impl Blocks for Magma {
    /// x^64 + x^4 + x^3 + x + 1.
    const REDUCTION: u128 = 0x1b;

    /// The engine has no ECB with Magma: a chain of one block, with an IV of zeros, is the same.
    fn encrypt(key: &[u8; KEY_BYTES], blocks: &[u128]) -> Vec<u128> {
        let one = |block: &u128| {
            let text = u64::try_from(*block).expect("a block of 64 bits");
            let encrypted = enc("magma-cbc", false, key, &[0; 8], &text.to_be_bytes());
            u128::from(u64::from_be_bytes(encrypted.try_into().expect("a block")))
        };
        blocks.iter().map(one).collect()
    }
}

/// The blocks of `bytes`, the last filled with zeros.
fn blocks_of<C: Blocks>(bytes: &[u8]) -> Vec<u128> {
    let block = |part: &[u8]| {
        let mut filled = vec![0; C::BLOCK_BYTES];
        filled[..part.len()].copy_from_slice(part);
        filled
            .iter()
            .fold(0, |block, byte| block << 8 | u128::from(*byte))
    };
    bytes.chunks(C::BLOCK_BYTES).map(block).collect()
}

fn bytes_of<C: Blocks>(block: u128) -> Vec<u8> {
    block.to_be_bytes()[16 - C::BLOCK_BYTES..].to_vec()
}

/// The product in the field of 2^n elements, bit by bit.
fn product<C: Blocks>(mut a: u128, b: u128) -> u128 {
    let bits = 8 * C::BLOCK_BYTES;
    let mask = u128::MAX >> (128 - bits);
    let mut sum = 0;
    for bit in 0..bits {
        if b >> bit & 1 == 1 {
            sum ^= a;
        }
        let overflows = a >> (bits - 1) & 1 == 1;
        a = a << 1 & mask;
        if overflows {
            a ^= C::REDUCTION;
        }
    }
    sum
}

/// Ciphertext and tag.
fn sealed<C: Blocks>(
    key: &[u8; KEY_BYTES],
    nonce: &[u8],
    aad: &[u8],
    text: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let half = 4 * C::BLOCK_BYTES;
    let low = u128::MAX >> (128 - half);
    let [nonce] = blocks_of::<C>(nonce)[..] else {
        panic!("a nonce is a block")
    };
    let [first, first_mac] = C::encrypt(key, &[nonce, nonce | 1 << (2 * half - 1)])[..] else {
        panic!("two blocks")
    };
    // One counts in the right half, the other in the left one.
    let counters = (0..text.len().div_ceil(C::BLOCK_BYTES) as u128)
        .map(|count| first & !low | (first.wrapping_add(count)) & low);
    let keystream = C::encrypt(key, &counters.collect::<Vec<_>>());
    let keystream = keystream.into_iter().flat_map(bytes_of::<C>);
    let text: Vec<u8> = text.iter().zip(keystream).map(|(a, b)| a ^ b).collect();

    let lengths = ((aad.len() as u128 * 8) << half) | (text.len() as u128 * 8);
    let authenticated = [blocks_of::<C>(aad), blocks_of::<C>(&text), vec![lengths]].concat();
    let counters = (0..authenticated.len() as u128)
        .map(|count| ((first_mac >> half).wrapping_add(count) & low) << half | first_mac & low);
    let factors = C::encrypt(key, &counters.collect::<Vec<_>>());
    let sum = factors
        .into_iter()
        .zip(authenticated)
        .fold(0, |sum, (factor, block)| sum ^ product::<C>(factor, block));
    let tag = C::encrypt(key, &[sum])[0];
    (text, bytes_of::<C>(tag))
}

fn compare<C: Blocks>(
    aad_bytes_max: usize,
    text_bytes_max: usize,
    new: fn(&[u8; KEY_BYTES], Kernel) -> C,
) {
    for set in sets() {
        for number in 0..MESSAGES {
            let random = noise(u64::from(set.iv[0]) << 32 | number, 3 + C::BLOCK_BYTES);
            let pick = |at: usize, max: usize| usize::from(random[at]) * max / 255;
            let aad = &set.text[..pick(0, aad_bytes_max)];
            let text = &set.text[1000..][..1 + pick(1, text_bytes_max)];
            let mut nonce = random[3..].to_vec();
            nonce[0] &= 0x7f;
            let (expected, expected_tag) = sealed::<C>(&set.key, &nonce, aad, text);
            for kernel in kernels() {
                let (mut text, mut tag) = (text.to_vec(), vec![0; C::BLOCK_BYTES]);
                let message = AeadMessage {
                    nonce: &nonce,
                    aad,
                    text: &mut text,
                    tag: &mut tag,
                };
                Mgm::new(new(&set.key, kernel)).seal_all([message]);
                let case = format!(
                    "{} with {kernel}: {} B after {} B",
                    C::NAME,
                    text.len(),
                    aad.len()
                );
                assert_eq!(hex(&text), hex(&expected), "{case}");
                assert_eq!(hex(&tag), hex(&expected_tag), "the tag of {case}");
            }
        }
    }
}

#[test]
fn mgm_equals_that_of_openssls_ciphers() {
    if engine() {
        compare(100, 3000, Kuznyechik::new);
        // Each block costs a process.
        compare(20, 40, Magma::new);
    }
}
