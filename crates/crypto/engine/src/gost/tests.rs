//! Every kernel compared with RustCrypto, packet by packet.

mod examples;

use super::*;
use crate::{Packet, SequenceNumbers};
use ::magma::cipher::{BlockCipherEncrypt, KeyInit};
use ::mgm::aead::{AeadInPlace, NewAead};
use hmac::{Hmac, Mac};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use streebog::Streebog256;
use wire::overhead::ESP_HEADER_BYTES;

const SUITES: [Suites; 7] = [
    Suites::KuznyechikMgm,
    Suites::MagmaMgm,
    Suites::KuznyechikMgmMac,
    Suites::MagmaMgmMac,
    Suites::MagmaCbcOmac,
    Suites::MagmaCtr,
    Suites::MagmaEcb,
];

fn hex(digits: &str) -> Vec<u8> {
    let digits: String = digits.split_whitespace().collect();
    base16ct::mixed::decode_vec(digits).unwrap()
}

/// `KDF_GOSTR3411_2012_256` (RFC 7836 §4.5).
fn derive(key: &[u8], label: &str, seed: [u8; 2]) -> Vec<u8> {
    let data = [b"\x01", label.as_bytes(), b"\x00", &seed, b"\x01\x00"].concat();
    let mac = <Hmac<Streebog256> as KeyInit>::new_from_slice(key).unwrap();
    mac.chain_update(data).finalize().into_bytes().to_vec()
}

/// Returns the key for an IV (RFC 9227 §4).
fn leaf(root: &[u8], iv: &[u8]) -> Vec<u8> {
    let first = derive(root, "level1", [0, iv[0]]);
    let second = derive(&first, "level2", [iv[1], iv[2]]);
    derive(&second, "level3", [iv[3], iv[4]])
}

fn seal_mgm<M: NewAead + AeadInPlace>(
    key: &[u8],
    nonce: &[u8],
    aad: &[u8],
    text: &[u8],
) -> Vec<u8> {
    let cipher = M::new_from_slice(key).unwrap();
    let mut sealed = text.to_vec();
    let nonce = ::mgm::aead::Nonce::<M>::from_slice(nonce);
    let tag = cipher
        .encrypt_in_place_detached(nonce, aad, &mut sealed)
        .unwrap();
    sealed.extend_from_slice(&tag);
    sealed
}

fn magma_block(key: &[u8], block: &[u8]) -> Vec<u8> {
    let cipher = ::magma::Magma::new_from_slice(key).unwrap();
    let mut out = ::magma::cipher::Block::<::magma::Magma>::default();
    out.copy_from_slice(block);
    cipher.encrypt_block(&mut out);
    out.to_vec()
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// Returns a sealed packet without its prefix. MGM authenticates the high half of the sequence
/// number if given: without extended sequence numbers it authenticates only the low half.
fn slow(suite: Suites, keymat: &[u8], prefix: &[u8], high: Option<u32>, text: &[u8]) -> Vec<u8> {
    let (key, rest) = keymat.split_at(32);
    let (header, iv) = prefix.split_at(ESP_HEADER_BYTES);
    match suite {
        Suites::KuznyechikMgm
        | Suites::MagmaMgm
        | Suites::KuznyechikMgmMac
        | Suites::MagmaMgmMac => {
            let high = high.map(u32::to_be_bytes);
            let high = high.as_ref().map_or(&[][..], |high| &high[..]);
            let header = [&header[..4], high, &header[4..]].concat();
            let (aad, plain) = if Suite::Gost(suite).encrypts() {
                (header, text)
            } else {
                ([&header, iv, text].concat(), &[][..])
            };
            // The first bit of a nonce must be 0 in MGM (RFC 9058 §4.1).
            let nonce = [&[0], &iv[5..], rest].concat();
            let key = leaf(key, iv);
            let mut sealed = if matches!(suite, Suites::MagmaMgm | Suites::MagmaMgmMac) {
                seal_mgm::<::mgm::Mgm<magma_0_7::Magma>>(&key, &nonce, &aad, plain)
            } else {
                seal_mgm::<::mgm::Mgm<kuznyechik_0_7::Kuznyechik>>(&key, &nonce, &aad, plain)
            };
            if plain.is_empty() {
                sealed.splice(..0, text.iter().copied());
            }
            // RustCrypto's tag has a whole block; the suite's ICV may be shorter.
            sealed.truncate(text.len() + Suite::Gost(suite).icv_bytes());
            sealed
        }
        Suites::MagmaEcb => text
            .chunks(8)
            .flat_map(|block| magma_block(key, block))
            .collect(),
        Suites::MagmaCtr => {
            let keystream = |(number, block): (u32, &[u8])| {
                let counter = [&header[4..], &number.to_be_bytes()].concat();
                xor(block, &magma_block(key, &counter))
            };
            (0..).zip(text.chunks(8)).flat_map(keystream).collect()
        }
        Suites::MagmaCbcOmac => {
            let mut sealed = prefix.to_vec();
            for block in text.chunks(8) {
                // The ciphertext before, or the IV at the end of the prefix.
                let before = &sealed[sealed.len() - 8..];
                let block = magma_block(key, &xor(before, block));
                sealed.extend(block);
            }
            let mac = <cmac::Cmac<::magma::Magma> as KeyInit>::new_from_slice(rest).unwrap();
            let high = high.expect("OMAC is only known with extended sequence numbers");
            let data = [&sealed[..], &high.to_be_bytes()].concat();
            let mac = Mac::chain_update(mac, data);
            sealed.drain(..prefix.len());
            sealed.extend(Mac::finalize(mac).into_bytes());
            sealed
        }
    }
}

#[test]
fn leaves_of_a_tree_are_derived_in_any_order() {
    let root = [0x42; 32];
    let mut tree = tree::Tree::new(&root);
    for number in [
        0,
        1,
        0xffff,
        0x1_0000,
        5,
        0x1_0000_0000,
        0xff_ffff_ffff,
        0x1_0000_0005,
        0,
    ] {
        let iv = u64::to_be_bytes(number << 24);
        // Jumps forth and back, within a branch and between branches.
        let (key, branch) = tree.leaf(number);
        assert_eq!(key[..], leaf(&root, &iv), "{number:#x}");
        // Caching the branch makes no difference.
        if number % 2 == 1 {
            branch.into_iter().for_each(|branch| tree.keep(branch));
        }
    }
}

fn engines() -> impl Iterator<Item = &'static Gost> {
    [&PORTABLE, &AVX2, &AVX512]
        .into_iter()
        .filter(|engine| engine.probe().is_ok())
}

fn derived(name: &str, bytes: usize) -> Vec<u8> {
    let part = |at: usize| Sha256::digest(format!("{name} {}", 32 * at));
    let mut all: Vec<u8> = (0..bytes.div_ceil(32)).flat_map(part).collect();
    all.truncate(bytes);
    all
}

/// The file of packets by another implementation, which tests engines before first use.
#[test]
fn the_shipped_packets_equal_those_of_rustcrypto() {
    let mut text = "# ESP packets of the suites of GOST ciphers, made by RustCrypto: a test of crates/crypto/engine writes them.\n".to_owned();
    for suite in SUITES {
        let shape = Suite::Gost(suite);
        let sequences = [
            1,
            0x1_0000_0000,
            0xdead_beef_89ab_cdef,
            0xffff_ffff_ffff_fffe_u64,
        ];
        for (number, (blocks, sequence)) in (1..).zip([4, 6, 15, 41].into_iter().zip(sequences)) {
            let name = format!("{} packet {number}", suite.name());
            let keymat = derived(&format!("{name} keymat"), shape.keymat_bytes());
            let iv = derived(&format!("{name} iv"), shape.iv_bytes());
            let plain = derived(&format!("{name} text"), blocks * shape.pad_to_bytes());
            let (high, low) = ((sequence >> 32) as u32, sequence as u32);
            let prefix = [&0x43b1_2d01_u32.to_be_bytes(), &low.to_be_bytes(), &iv[..]].concat();
            let sealed = slow(suite, &keymat, &prefix, Some(high), &plain);
            writeln!(text, "\nname = {name}\nsuite = {shape}").unwrap();
            for (name, bytes) in [
                ("keymat", &keymat[..]),
                ("prefix", &prefix),
                ("esn", &high.to_be_bytes()),
                ("plaintext", &plain),
                ("sealed", &sealed),
            ] {
                write!(text, "{name} =").unwrap();
                for line in bytes.chunks(48) {
                    let space = if bytes.len() > 44 { "\n  " } else { " " };
                    write!(text, "{space}{:x}", base16ct::HexDisplay(line)).unwrap();
                }
                text.push('\n');
            }
        }
    }
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../vectors/gost-packets.txt"
    );
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(file).unwrap() == text,
        "see vectors/README.md"
    );
}

#[test]
fn every_kernel_gives_its_known_answers() {
    for engine in engines() {
        for suite in SUITES {
            let answer = crate::known_answers::check(engine, Suite::Gost(suite));
            assert_eq!(answer, Ok(()), "{} {}", engine.name, suite.name());
        }
    }
}

/// Returns a batch: packets with gaps between them, and their positions.
fn batch(packets: &[Vec<u8>], highs: &[u32]) -> (Vec<u8>, Vec<Packet>) {
    let mut buffer = vec![0xc3; 3];
    let mut places = Vec::new();
    for (packet, high) in packets.iter().zip(highs) {
        places.push(Packet {
            at: buffer.len(),
            bytes: packet.len(),
            sequence_high: *high,
        });
        buffer.extend(packet);
        buffer.extend([0xc3; 5]);
    }
    (buffer, places)
}

/// Sequence numbers around the end of a leaf, and lengths of texts in units of padding.
fn packets() -> impl Strategy<Value = Vec<(u64, usize)>> {
    let sequence = prop_oneof![1000_u64..1050, 0xff_fff0..0x100_0010_u64, any::<u64>()];
    prop::collection::vec((sequence, 1_usize..80), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn batches_are_sealed_like_rustcrypto_and_opened_again(
        seed: u64,
        packets in packets(),
        forged in any::<prop::sample::Index>(),
    ) {
        for suite in SUITES {
            let shape = Suite::Gost(suite);
            let keymat = derived(&format!("{seed} keymat"), shape.keymat_bytes());
            let highs: Vec<_> = packets.iter().map(|(sequence, _)| (sequence >> 32) as u32).collect();
            let (mut plain, mut sealed, mut texts) = (Vec::new(), Vec::new(), Vec::new());
            for ((sequence, units), high) in packets.iter().zip(&highs) {
                let low = (*sequence as u32).to_be_bytes();
                // A leaf for 1024 packets, as a sender chooses it for Magma.
                let iv = (sequence >> 10 << 24 | sequence & 1023).to_be_bytes();
                let prefix = [&b"SPI4"[..], &low, &iv[..shape.iv_bytes()]].concat();
                let text = derived(&format!("{seed} {sequence}"), units * shape.pad_to_bytes());
                let behind = slow(suite, &keymat, &prefix, Some(*high), &text);
                plain.push([&prefix[..], &text, &vec![0xdd; shape.icv_bytes()]].concat());
                sealed.push([&prefix[..], &behind].concat());
                texts.push((prefix.len(), text));
            }
            for engine in engines() {
                let mut transform = engine.transform(shape, &keymat, SequenceNumbers::Extended);
                let (mut buffer, places) = batch(&plain, &highs);
                transform.seal(&mut buffer, &places).unwrap();
                let (expected, _) = batch(&sealed, &highs);
                prop_assert!(buffer == expected, "{} {shape} seals differently", engine.name);

                // The sealing transform already has keys of the last leaves; a new receiver has
                // none.
                let mut transform = engine.transform(shape, &keymat, SequenceNumbers::Extended);
                let mut authentic = vec![false; places.len()];
                let forged = forged.index(places.len());
                let is_forged = shape.icv_bytes() > 0;
                if is_forged {
                    buffer[places[forged].at + places[forged].bytes - 1] ^= 1;
                }
                // Batches are small enough that the limit of derived keys is not reached.
                for (places, authentic) in places.chunks(3).zip(authentic.chunks_mut(3)) {
                    transform.open(&mut buffer, places, authentic).unwrap();
                }
                for (at, (place, (start, text))) in places.iter().zip(&texts).enumerate() {
                    let opened = &buffer[place.at + start..][..text.len()];
                    let is_good = !(is_forged && at == forged);
                    prop_assert_eq!(authentic[at], is_good, "{} {} {}", engine.name, shape, at);
                    if is_good {
                        prop_assert_eq!(opened, &text[..]);
                    } else {
                        prop_assert!(opened.iter().all(|byte| *byte == 0));
                    }
                }
            }
        }
    }
}

/// Returns a packet of Magma in MGM.
fn packet_of(keymat: &[u8], sequence: u64) -> Vec<u8> {
    let iv = sequence >> 10 << 24 | sequence & 1023;
    let prefix = [
        &b"SPI4"[..],
        &(sequence as u32).to_be_bytes(),
        &iv.to_be_bytes(),
    ]
    .concat();
    let sealed = slow(Suites::MagmaMgm, keymat, &prefix, Some(0), b"a text..");
    [prefix, sealed].concat()
}

const KEYMAT: [u8; 36] = [7; 36];

fn magma_mgm() -> Box<dyn Transform> {
    PORTABLE.transform(
        Suite::Gost(Suites::MagmaMgm),
        &KEYMAT,
        SequenceNumbers::Extended,
    )
}

/// Opens packets in one batch. Returns which are authentic, and how many keys were derived.
fn opened(transform: &mut dyn Transform, packets: &[Vec<u8>]) -> (Vec<bool>, usize) {
    let (mut buffer, places) = batch(packets, &vec![0; packets.len()]);
    let mut authentic = vec![false; packets.len()];
    let before = tree::DERIVATIONS.get();
    transform
        .open(&mut buffer, &places, &mut authentic)
        .unwrap();
    for (place, authentic) in places.iter().zip(&authentic) {
        let expected = if *authentic { b"a text.." } else { &[0; 8] };
        assert_eq!(&buffer[place.at + 16..][..8], expected);
    }
    (authentic, tree::DERIVATIONS.get() - before)
}

/// Forged packets with arbitrary leaves do not evict keys in use.
#[test]
fn forgeries_evict_no_key() {
    let packet = |sequence| packet_of(&KEYMAT, sequence);
    // A leaf in another branch on the first level: all three levels have to be derived.
    let mut forged = packet(1 << 44);
    forged[20] ^= 1;
    let order = [
        packet(1023),
        packet(1024),
        forged.clone(),
        packet(1022),
        packet(1025),
        forged,
    ];
    let mut transform = magma_mgm();
    let (authentic, derived) = opened(&mut *transform, &order);
    assert_eq!(authentic, [true, true, false, true, true, false]);
    // One key for the second leaf; all three levels once for the forgery.
    assert_eq!(derived, 1 + 3);
    // The branch is not evicted either: the next leaf still takes one derivation.
    let (authentic, derived) = opened(&mut *transform, &[packet(2048)]);
    assert_eq!((authentic, derived), (vec![true], 1));
}

#[test]
fn many_forgeries_cost_few_keys() {
    let packet = |sequence| packet_of(&KEYMAT, sequence);
    let mut transform = magma_mgm();
    let forged = |number: u64| {
        let mut forged = packet((2 + number) << 42);
        forged[20] ^= 1;
        forged
    };
    // Each forgery has its own leaf, and genuine packets are between them: a known leaf, the next,
    // and a known one again.
    let mut batch: Vec<_> = (0..100).map(forged).collect();
    // From the back, so that the places in front stay as they are.
    batch.insert(60, packet(1024));
    batch.insert(30, packet(1));
    batch.push(packet(1025));
    let (authentic, derived) = opened(&mut *transform, &batch);
    let good: Vec<_> = (0..batch.len()).filter(|at| authentic[*at]).collect();
    assert_eq!(good, [30, 61, 102]);
    // Three levels for each of four leaves, and one key for the next leaf.
    assert_eq!(derived, 4 * 3 + 1);

    // A packet after a gap opens in a batch with few forgeries before it, but not behind more.
    let late = packet(50 << 10);
    let behind = |count| -> Vec<_> { (0..count).map(forged).chain([late.clone()]).collect() };
    let (authentic, _) = opened(&mut *transform, &behind(4));
    assert_eq!(authentic, [false; 5]);
    let (authentic, _) = opened(&mut *transform, &behind(3));
    assert_eq!(authentic, [false, false, false, true]);
}

/// Forgeries that alternate with the next leaf cause repeated derivation, within a limit.
#[test]
fn derivations_of_the_next_leaf_are_limited() {
    let mut transform = magma_mgm();
    let forged = |sequence| {
        let mut forged = packet_of(&KEYMAT, sequence);
        forged[20] ^= 1;
        forged
    };
    let batch: Vec<_> = (0..100)
        .flat_map(|number| [forged(1024), forged((2 + number) << 42)])
        .collect();
    let (authentic, derived) = opened(&mut *transform, &batch);
    assert!(!authentic.contains(&true));
    // Three levels for each of the four leaves, and the next leaf again after each of them and at
    // first.
    assert_eq!(derived, 4 * 3 + 5);
}
