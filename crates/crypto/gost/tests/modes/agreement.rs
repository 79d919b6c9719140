//! Every mode compared with RustCrypto, and MGM with its definition: batches of texts of every
//! length, with every kernel.

use crate::support::{hex, kernels, key, lengths, noise, texts};
use cbc::cipher::{Block, BlockCipherEncrypt, BlockModeEncrypt, KeyInit, KeyIvInit};
use cmac::{Cmac, Mac};
use ctr::cipher::StreamCipher;
use gost::kuznyechik::Kuznyechik;
use gost::magma::{Gost89, Magma, Sbox};
use gost::mode::{
    AeadMessage, Cbc, Cnt, Ctr, CtrAcpkm, Ecb, IV_BLOCKS_MAX, MacMessage, Message, Mgm, Omac,
};
use gost::{BlockCipher, KEY_BYTES, Kernel};
use proptest::prelude::*;

/// RustCrypto's modes for one of this crate's ciphers. Whole texts, in place.
trait Peer: BlockCipher {
    fn block(key: &[u8; KEY_BYTES], block: &mut [u8]);
    fn ctr(key: &[u8; KEY_BYTES], first: &[u8], text: &mut [u8]);
    fn cbc(key: &[u8; KEY_BYTES], iv: &[u8], text: &mut [u8]);
    fn mac(key: &[u8; KEY_BYTES], text: &[u8]) -> Vec<u8>;
}

macro_rules! peer {
    ($ours:ty, $theirs:ty, $counter:ident) => {
        impl Peer for $ours {
            fn block(key: &[u8; KEY_BYTES], block: &mut [u8]) {
                let block = <&mut Block<$theirs>>::try_from(block).expect("a block");
                <$theirs>::new(key.into()).encrypt_block(block);
            }

            fn ctr(key: &[u8; KEY_BYTES], first: &[u8], text: &mut [u8]) {
                let first = first.try_into().expect("a block");
                ctr::$counter::<$theirs>::new(key.into(), first).apply_keystream(text);
            }

            fn cbc(key: &[u8; KEY_BYTES], iv: &[u8], text: &mut [u8]) {
                let iv = iv.try_into().expect("a block");
                let mut cbc = cbc::Encryptor::<$theirs>::new(key.into(), iv);
                for block in text.chunks_exact_mut(Self::BLOCK_BYTES) {
                    cbc.encrypt_block(block.try_into().expect("a block"));
                }
            }

            fn mac(key: &[u8; KEY_BYTES], text: &[u8]) -> Vec<u8> {
                let mut mac = <Cmac<$theirs> as KeyInit>::new(key.into());
                mac.update(text);
                mac.finalize().into_bytes().to_vec()
            }
        }
    };
}

peer!(Magma, magma::Magma, Ctr32BE);
peer!(Kuznyechik, kuznyechik::Kuznyechik, Ctr64BE);

/// MGM by its definition (RFC 9058 §4.1), with RustCrypto's ciphers: encrypts `text`, and returns
/// the tag.
///
/// RustCrypto's own `mgm` 0.4.2 is no measure: its multiplication loses a carry where every fourth
/// bit of both factors is set (16 products of one place, which has four bits), and so computes a
/// wrong tag for one random block in about 10^8.
fn mgm_by_definition<C: Peer>(
    key: &[u8; KEY_BYTES],
    nonce: &[u8],
    aad: &[u8],
    text: &mut [u8],
) -> Vec<u8> {
    let bytes = C::BLOCK_BYTES;
    let half_bits = 4 * bytes;
    let half = u128::MAX >> (128 - half_bits);
    let (all, modulus) = match bytes {
        8 => (u128::from(u64::MAX), 0x1b),
        _ => (u128::MAX, 0x87),
    };
    // A last block that is not whole is padded with zeros.
    let number = |block: &[u8]| {
        (0..bytes).fold(0, |n, at| n << 8 | u128::from(*block.get(at).unwrap_or(&0)))
    };
    let block = |number: u128| number.to_be_bytes()[16 - bytes..].to_vec();
    let encrypted = |plain: u128| {
        let mut block = block(plain);
        C::block(key, &mut block);
        number(&block)
    };
    let product = |a: u128, b: u128| {
        (0..2 * half_bits).rev().fold(0, |product: u128, at| {
            let reduced = (product >> (2 * half_bits - 1)) * modulus;
            (product << 1 & all) ^ reduced ^ ((a >> at & 1) * b)
        })
    };

    let mut keystream = encrypted(number(nonce));
    for block_of_text in text.chunks_mut(bytes) {
        let mask = block(encrypted(keystream));
        block_of_text
            .iter_mut()
            .zip(mask)
            .for_each(|(byte, mask)| *byte ^= mask);
        keystream = keystream & !half | keystream.wrapping_add(1) & half;
    }
    let lengths = [aad.len(), text.len()].map(|length| 8 * length as u128);
    let authenticated = aad.chunks(bytes).chain(text.chunks(bytes)).map(number);
    let mut factor = encrypted(number(nonce) | 1 << (2 * half_bits - 1));
    let mut sum = 0;
    for block in authenticated.chain([lengths[0] << half_bits | lengths[1]]) {
        sum ^= product(encrypted(factor), block);
        factor = factor.wrapping_add(1 << half_bits) & all;
    }
    block(encrypted(sum))
}

/// Runs a test with both ciphers and all kernels.
fn everywhere(magma: fn(Kernel), kuznyechik: fn(Kernel)) {
    for kernel in kernels() {
        magma(kernel);
        kuznyechik(kernel);
    }
}

/// Texts with their IVs or nonces.
struct Batch {
    key: [u8; KEY_BYTES],
    ivs: Vec<Vec<u8>>,
    texts: Vec<Vec<u8>>,
}

impl Batch {
    /// A text of each length, each with an IV of its own.
    fn new(seed: u64, lengths: &[usize], iv_bytes: usize) -> Self {
        let texts = texts(lengths);
        Self {
            key: key(seed),
            ivs: (0..texts.len() as u64)
                .map(|at| noise(seed ^ at << 20, iv_bytes))
                .collect(),
            texts,
        }
    }

    /// The same with texts cut to whole blocks.
    fn whole(seed: u64, lengths: &[usize], iv_bytes: usize, block_bytes: usize) -> Self {
        let lengths: Vec<_> = lengths
            .iter()
            .map(|bytes| bytes / block_bytes * block_bytes)
            .collect();
        Self::new(seed, &lengths, iv_bytes)
    }

    /// The result of `peer` for each text alone.
    fn each(&self, peer: impl Fn(&[u8], &mut [u8])) -> Vec<Vec<u8>> {
        let texts = self.ivs.iter().zip(&self.texts);
        texts
            .map(|(iv, text)| {
                let mut text = text.clone();
                peer(iv, &mut text);
                text
            })
            .collect()
    }
}

fn messages<'a>(
    ivs: &'a [Vec<u8>],
    texts: &'a mut [Vec<u8>],
) -> impl Iterator<Item = Message<'a, &'a Vec<u8>>> {
    let pairs = ivs.iter().zip(texts);
    pairs.map(|(iv, text)| Message { iv, text })
}

#[track_caller]
fn assert_same<C: BlockCipher>(kernel: Kernel, found: &[Vec<u8>], expected: &[Vec<u8>]) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let bytes = expected.len();
        assert_eq!(
            hex(found),
            hex(expected),
            "{} with {kernel}: message {at} of {bytes} B",
            C::NAME
        );
    }
}

fn ecb<C: Peer>(kernel: Kernel, seed: u64, lengths: &[usize]) {
    let batch = Batch::whole(seed, lengths, 0, C::BLOCK_BYTES);
    let expected = batch.each(|_, text| {
        for block in text.chunks_exact_mut(C::BLOCK_BYTES) {
            C::block(&batch.key, block);
        }
    });
    let mut mode = Ecb::new(C::new(&batch.key, kernel));
    let mut texts = batch.texts.clone();
    mode.encrypt_all(texts.iter_mut().map(Vec::as_mut_slice));
    assert_same::<C>(kernel, &texts, &expected);
    mode.decrypt_all(texts.iter_mut().map(Vec::as_mut_slice));
    assert_same::<C>(kernel, &texts, &batch.texts);
}

fn ctr<C: Peer>(kernel: Kernel, seed: u64, lengths: &[usize]) {
    let batch = Batch::new(seed, lengths, C::BLOCK_BYTES / 2);
    let expected = batch.each(|iv, text| {
        let mut first = iv.to_vec();
        first.resize(C::BLOCK_BYTES, 0);
        C::ctr(&batch.key, &first, text);
    });
    let mut mode = Ctr::new(C::new(&batch.key, kernel));
    let mut texts = batch.texts.clone();
    mode.apply_all(messages(&batch.ivs, &mut texts));
    assert_same::<C>(kernel, &texts, &expected);
}

fn cbc<C: Peer>(kernel: Kernel, seed: u64, lengths: &[usize]) {
    for iv_blocks in 1..=IV_BLOCKS_MAX {
        let batch = Batch::whole(seed, lengths, iv_blocks * C::BLOCK_BYTES, C::BLOCK_BYTES);
        let expected = batch.each(|iv, text| {
            // With an IV of n blocks, every nth block is a chain of its own.
            for (chain, iv) in iv.chunks_exact(C::BLOCK_BYTES).enumerate() {
                let own = |text: &mut [u8], found: &mut Vec<u8>, back: bool| {
                    let blocks = text.chunks_exact_mut(C::BLOCK_BYTES);
                    for (at, block) in blocks.skip(chain).step_by(iv_blocks).enumerate() {
                        if back {
                            block.copy_from_slice(&found[at * C::BLOCK_BYTES..][..C::BLOCK_BYTES]);
                        } else {
                            found.extend_from_slice(block);
                        }
                    }
                };
                let mut found = Vec::new();
                own(text, &mut found, false);
                C::cbc(&batch.key, iv, &mut found);
                own(text, &mut found, true);
            }
        });
        let mut mode = Cbc::new(C::new(&batch.key, kernel));
        let mut texts = batch.texts.clone();
        mode.encrypt_all(messages(&batch.ivs, &mut texts));
        assert_same::<C>(kernel, &texts, &expected);
        mode.decrypt_all(messages(&batch.ivs, &mut texts));
        assert_same::<C>(kernel, &texts, &batch.texts);
    }
}

fn omac<C: Peer>(kernel: Kernel, seed: u64, lengths: &[usize]) {
    let batch = Batch::new(seed, lengths, 0);
    let expected: Vec<_> = batch
        .texts
        .iter()
        .map(|text| C::mac(&batch.key, text))
        .collect();
    let mut mode = Omac::new(C::new(&batch.key, kernel));
    let mut macs = vec![vec![0; C::BLOCK_BYTES]; expected.len()];
    // Some have separate tails.
    let split =
        |at: usize, text: &'static [u8]| text.split_at(text.len() - text.len().min(at % 23));
    let parts: Vec<_> = (batch.texts.iter().enumerate())
        .map(|(at, text)| split(at, text.clone().leak()))
        .collect();
    mode.mac_all(
        parts
            .iter()
            .zip(&mut macs)
            .map(|((text, tail), mac)| MacMessage { text, tail, mac }),
    );
    assert_same::<C>(kernel, &macs, &expected);

    // Truncated, and every third wrong in one bit.
    let wrong = |at: usize| at.is_multiple_of(3);
    for (at, mac) in macs.iter_mut().enumerate() {
        mac.truncate(1 + at % C::BLOCK_BYTES);
        let last = mac.len() - 1;
        mac[last] ^= u8::from(wrong(at)) << (at % 8);
    }
    let mut authentic = vec![false; macs.len()];
    let claims = parts.iter().zip(&mut macs);
    mode.verify_all(
        claims.map(|((text, tail), mac)| MacMessage { text, tail, mac }),
        &mut authentic,
    );
    for (at, authentic) in authentic.iter().enumerate() {
        assert_eq!(
            *authentic,
            !wrong(at),
            "{} with {kernel}: message {at}",
            C::NAME
        );
    }
}

fn ctr_acpkm<C: Peer>(kernel: Kernel, seed: u64, lengths: &[usize]) {
    for section_blocks in [7, 40] {
        let section_bytes = section_blocks * C::BLOCK_BYTES;
        let batch = Batch::new(seed, lengths, C::BLOCK_BYTES / 2);
        let expected = batch.each(|iv, text| {
            let mut key = batch.key;
            for (section, text) in text.chunks_mut(section_bytes).enumerate() {
                let count = (section * section_blocks) as u64;
                let mut first = iv.to_vec();
                first.extend_from_slice(&count.to_be_bytes()[8 - iv.len()..]);
                C::ctr(&key, &first, text);
                let mut next: Vec<u8> = (0x80..0xa0).collect();
                for block in next.chunks_exact_mut(C::BLOCK_BYTES) {
                    C::block(&key, block);
                }
                key = next.try_into().expect("32 B");
            }
        });
        let mut mode = CtrAcpkm::<C>::new(&batch.key, kernel, section_bytes);
        // The second time the ciphers of the first sections are cached.
        for _ in 0..2 {
            let mut texts = batch.texts.clone();
            mode.apply_all(messages(&batch.ivs, &mut texts));
            assert_same::<C>(kernel, &texts, &expected);
        }
    }
}

/// MGM with additional data of each length, too.
fn mgm<C: Peer>(kernel: Kernel, seed: u64, lengths: &[usize]) {
    let mut batch = Batch::new(seed, lengths, C::BLOCK_BYTES);
    for (at, nonce) in batch.ivs.iter_mut().enumerate() {
        nonce[0] &= 0x7f;
        // Whether counters soon overflow depends on E(nonce); random nonces find some.
        nonce[1] = at as u8;
    }
    let mut aads: Vec<_> = lengths
        .iter()
        .rev()
        .map(|bytes| noise(seed, bytes % 301))
        .collect();
    // MGM must not seal a message without text and additional data.
    for (aad, text) in aads.iter_mut().zip(&batch.texts) {
        if text.is_empty() && aad.is_empty() {
            aad.push(1);
        }
    }
    let mut expected_tags = Vec::new();
    let mut expected = batch.texts.clone();
    for ((nonce, aad), text) in batch.ivs.iter().zip(&aads).zip(&mut expected) {
        expected_tags.push(mgm_by_definition::<C>(&batch.key, nonce, aad, text));
    }
    let mut mode = Mgm::new(C::new(&batch.key, kernel));
    let mut texts = batch.texts.clone();
    let mut tags = vec![vec![0; C::BLOCK_BYTES]; texts.len()];
    fn messages<'a>(
        nonces: &'a [Vec<u8>],
        aads: &'a [Vec<u8>],
        texts: &'a mut [Vec<u8>],
        tags: &'a mut [Vec<u8>],
    ) -> impl Iterator<Item = AeadMessage<'a, &'a Vec<u8>, &'a Vec<u8>>> {
        let given = nonces.iter().zip(aads);
        let changed = texts.iter_mut().zip(tags);
        given
            .zip(changed)
            .map(|((nonce, aad), (text, tag))| AeadMessage {
                nonce,
                aad,
                text,
                tag,
            })
    }
    mode.seal_all(messages(&batch.ivs, &aads, &mut texts, &mut tags));
    assert_same::<C>(kernel, &texts, &expected);
    assert_same::<C>(kernel, &tags, &expected_tags);

    // Truncated tags; every third is wrong in one bit, or its text or additional data.
    let wrong = |at: usize| at.is_multiple_of(3);
    for (at, tag) in tags.iter_mut().enumerate() {
        tag.truncate(4 + at % (C::BLOCK_BYTES - 3));
        if wrong(at) {
            let changed = match at % 9 {
                0 => texts[at].last_mut(),
                3 => aads[at].last_mut(),
                _ => None,
            };
            *changed.unwrap_or(&mut tag[3]) ^= 1 << (at % 8);
        }
    }
    let mut authentic = vec![false; texts.len()];
    mode.open_all(
        messages(&batch.ivs, &aads, &mut texts, &mut tags),
        &mut authentic,
    );
    for (at, (authentic, text)) in authentic.iter().zip(&texts).enumerate() {
        assert_eq!(
            *authentic,
            !wrong(at),
            "{} with {kernel}: message {at}",
            C::NAME
        );
        if *authentic {
            assert_eq!(*text, batch.texts[at]);
        } else {
            assert!(text.iter().all(|byte| *byte == 0), "wiped");
        }
    }
}

/// The counter mode of GOST 28147-89 by the standard, block by block.
fn cnt(kernel: Kernel, seed: u64, lengths: &[usize]) {
    for sbox in Sbox::ALL {
        let batch = Batch::new(seed, lengths, 8);
        let cipher = Gost89::with_sbox(&batch.key, sbox, Kernel::PORTABLE);
        let expected = batch.each(|iv, text| {
            let mut start: [u8; 8] = iv.try_into().expect("8 B");
            cipher.encrypt_blocks(&mut start);
            let (n3, n4) = start.split_at(4);
            let mut n3 = u64::from(u32::from_le_bytes(n3.try_into().expect("4 B")));
            let mut n4 = u64::from(u32::from_le_bytes(n4.try_into().expect("4 B")));
            for text in text.chunks_mut(8) {
                n3 = (n3 + 0x0101_0101) % (1 << 32);
                // Modulo 2^32 - 1, where 0 and 2^32 - 1 are equal: the standard uses the latter.
                n4 = (n4 + 0x0101_0104 - 1) % ((1 << 32) - 1) + 1;
                let mut block = (n4 << 32 | n3).to_le_bytes();
                cipher.encrypt_blocks(&mut block);
                text.iter_mut()
                    .zip(block)
                    .for_each(|(text, key)| *text ^= key);
            }
        });
        let mut mode = Cnt::new(Gost89::with_sbox(&batch.key, sbox, kernel));
        let mut texts = batch.texts.clone();
        mode.apply_all(messages(&batch.ivs, &mut texts));
        assert_same::<Gost89>(kernel, &texts, &expected);
    }
}

#[test]
fn ecb_of_every_length() {
    everywhere(
        |kernel| ecb::<Magma>(kernel, 1, &lengths()),
        |kernel| ecb::<Kuznyechik>(kernel, 1, &lengths()),
    );
}

#[test]
fn ctr_of_every_length() {
    everywhere(
        |kernel| ctr::<Magma>(kernel, 2, &lengths()),
        |kernel| ctr::<Kuznyechik>(kernel, 2, &lengths()),
    );
}

#[test]
fn cbc_of_every_length() {
    everywhere(
        |kernel| cbc::<Magma>(kernel, 3, &lengths()),
        |kernel| cbc::<Kuznyechik>(kernel, 3, &lengths()),
    );
}

#[test]
fn omac_of_every_length() {
    everywhere(
        |kernel| omac::<Magma>(kernel, 4, &lengths()),
        |kernel| omac::<Kuznyechik>(kernel, 4, &lengths()),
    );
}

#[test]
fn ctr_acpkm_of_every_length() {
    everywhere(
        |kernel| ctr_acpkm::<Magma>(kernel, 5, &lengths()),
        |kernel| ctr_acpkm::<Kuznyechik>(kernel, 5, &lengths()),
    );
}

#[test]
fn mgm_of_every_length() {
    everywhere(
        |kernel| mgm::<Magma>(kernel, 6, &lengths()),
        |kernel| mgm::<Kuznyechik>(kernel, 6, &lengths()),
    );
}

#[test]
fn cnt_of_every_length() {
    everywhere(|kernel| cnt(kernel, 7, &lengths()), |_| ());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Random batches: the scratch fills, chains end and begin, and sections change at random
    /// places.
    #[test]
    fn batches_of_any_texts(
        seed in any::<u64>(),
        kernel in prop::sample::select(kernels()),
        lengths in prop::collection::vec(prop_oneof![0usize..80, 0usize..300, 0usize..5000], 0..50),
    ) {
        ecb::<Magma>(kernel, seed, &lengths);
        ecb::<Kuznyechik>(kernel, seed, &lengths);
        ctr::<Magma>(kernel, seed, &lengths);
        ctr::<Kuznyechik>(kernel, seed, &lengths);
        cbc::<Magma>(kernel, seed, &lengths);
        omac::<Kuznyechik>(kernel, seed, &lengths);
        ctr_acpkm::<Magma>(kernel, seed, &lengths);
        mgm::<Magma>(kernel, seed, &lengths);
        mgm::<Kuznyechik>(kernel, seed, &lengths);
    }
}
