//! Every kernel against RustCrypto, packet by packet.

use super::*;
use crate::Packet;
use ::magma::cipher::{BlockCipherEncrypt, KeyInit};
use ::mgm::aead::{AeadInPlace, NewAead};
use hmac::{Hmac, Mac};
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use streebog::Streebog256;
use wire::overhead::ESP_HEADER_BYTES;

const SUITES: [Suites; 5] = [
    Suites::KuznyechikMgm,
    Suites::MagmaMgm,
    Suites::MagmaCbcOmac,
    Suites::MagmaCtr,
    Suites::MagmaEcb,
];

fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<_> = digits.split_whitespace().collect();
    let pair = |at| u8::from_str_radix(&digits.concat()[at..at + 2], 16).unwrap();
    (0..digits.concat().len()).step_by(2).map(pair).collect()
}

/// `KDF_GOSTR3411_2012_256` (RFC 7836 §4.4).
fn derive(key: &[u8], label: &str, seed: [u8; 2]) -> Vec<u8> {
    let data = [b"\x01", label.as_bytes(), b"\x00", &seed, b"\x01\x00"].concat();
    let mac = <Hmac<Streebog256> as KeyInit>::new_from_slice(key).unwrap();
    mac.chain_update(data).finalize().into_bytes().to_vec()
}

/// The key for an IV (RFC 9227 §4).
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
    #[expect(deprecated, reason = "the crate's generation of arrays")]
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

/// What stands behind the prefix of a packet.
fn slow(suite: Suites, keymat: &[u8], prefix: &[u8], high: u32, text: &[u8]) -> Vec<u8> {
    let (key, rest) = keymat.split_at(32);
    let (header, iv) = prefix.split_at(ESP_HEADER_BYTES);
    match suite {
        Suites::KuznyechikMgm | Suites::MagmaMgm => {
            let aad = [&header[..4], &high.to_be_bytes(), &header[4..]].concat();
            let nonce = [&[0], &iv[5..], rest].concat();
            let key = leaf(key, iv);
            let mut sealed = if suite == Suites::MagmaMgm {
                seal_mgm::<::mgm::Mgm<magma_0_7::Magma>>(&key, &nonce, &aad, text)
            } else {
                seal_mgm::<::mgm::Mgm<kuznyechik_0_7::Kuznyechik>>(&key, &nonce, &aad, text)
            };
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
                let before = &sealed[sealed.len() - 8..];
                let block = magma_block(key, &xor(before, block));
                sealed.extend(block);
            }
            let mac = <cmac::Cmac<::magma::Magma> as KeyInit>::new_from_slice(rest).unwrap();
            let data = [&sealed[..], &high.to_be_bytes()].concat();
            let mac = Mac::chain_update(mac, data);
            sealed.drain(..prefix.len());
            sealed.extend(Mac::finalize(mac).into_bytes());
            sealed
        }
    }
}

/// Root key, salt, SPI with sequence number, and text of the example; then key, ciphertext and ICV that it gives.
struct Example {
    suite: Suites,
    given: [&'static str; 4],
    expected: [&'static str; 3],
}

/// RFC 9227 appendix A: the first example of either transform.
const EXAMPLES: [Example; 2] = [
    Example {
        suite: Suites::KuznyechikMgm,
        given: [
            "b6180c145c512dbd69d9cea92cac1b5ce1bcfa73792d61af0b440d84b522cc38",
            "7b67e6f244f97f0678952e45",
            "5146536b00000001",
            "4500003c233500007f01eecc0a6f0ac50a6f0a1d0800f35b0200580061626364
             65666768696a6b6c6d6e6f707172737475767761626364656667686901020204",
        ],
        expected: [
            "2ff1c90ede786e061e17b374d782af7bd880bd527c66a2badc3e569aab271da4",
            "189d1288b718f9eabe554b239bee6596c6d4eafd316496ef901cac316005aa07
             6297b224bf6d2be35fd6f67e7b9deb3185ffe9179ca9bf0bdbafc23eae4da56f",
            "50b070a15a2bd9738689f8ed",
        ],
    },
    Example {
        suite: Suites::MagmaMgm,
        given: [
            "5b50bf3378870238f3ca740fd124ba6c2283ef589be6f46a894aa35d5f06b203",
            "cf366312",
            "c8c2b28d00000001",
            "4500003c242d00007f01edd40a6f0ac50a6f0a1d0800de5b02006d0061626364
             65666768696a6b6c6d6e6f707172737475767761626364656667686901020204",
        ],
        expected: [
            "256521e270b74a164dfc26e6bf0cca765e9d41027d4b7b19762b1cc901dcde7f",
            "fa0840332c4f3fc9644d8c2c4a917e0cd86f8e61040387646bb9dfbd91503f4a
             f5d2426949d35a229e1e0efc99acee9e3243e23ba4d11e845c91a7191552cce8",
            "5f4afa8b02940f5c",
        ],
    },
];

fn seals_the_example<C: BlockCipher>(example: &Example) {
    let [root, salt, aad, text] = example.given.map(hex);
    let [key, ciphertext, icv] = example.expected.map(hex);
    let found = tree::Tree::new(&root.try_into().unwrap()).leaf(0);
    assert_eq!(found[..], key);
    let nonce = [&[0; 4][..], &salt].concat();
    for kernel in Kernel::all() {
        let mut mgm = ::gost::mode::Mgm::new(C::new(&found, kernel));
        let mut sealed = text.clone();
        let mut tag = vec![0; Suite::Gost(example.suite).icv_bytes()];
        mgm.seal(&nonce, &aad, &mut sealed, &mut tag);
        assert_eq!((&sealed, &tag), (&ciphertext, &icv), "{kernel}");
        assert!(mgm.open(&nonce, &aad, &mut sealed, &tag), "{kernel}");
        assert_eq!(sealed, text, "{kernel}");
    }
}

#[test]
fn the_examples_of_rfc_9227_come_out() {
    for example in &EXAMPLES {
        match example.suite {
            Suites::KuznyechikMgm => seals_the_example::<Kuznyechik>(example),
            _ => seals_the_example::<Magma>(example),
        }
    }
}

#[test]
fn a_trees_leaves_are_found_in_any_order() {
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
        assert_eq!(tree.leaf(number)[..], leaf(&root, &iv), "{number:#x}");
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

/// The file of packets by another hand, which engines are held to before first use.
#[test]
fn the_shipped_packets_are_those_of_rustcrypto() {
    let mut text = "# ESP packets of the suites of GOST ciphers, made by RustCrypto: a test of crates/engine writes them.\n".to_owned();
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
            let sealed = slow(suite, &keymat, &prefix, high, &plain);
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
                    let digits: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
                    let space = if bytes.len() > 44 { "\n  " } else { " " };
                    write!(text, "{space}{digits}").unwrap();
                }
                text.push('\n');
            }
        }
    }
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../vectors/gost-packets.txt"
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

/// A batch: packets with gaps between them, and where they lie.
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
    fn batches_are_sealed_as_rustcrypto_does_and_opened_again(
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
                let iv = (sequence >> 10 << 24 | sequence & 1023).to_be_bytes();
                let prefix = [&b"SPI4"[..], &low, &iv[..shape.iv_bytes()]].concat();
                let text = derived(&format!("{seed} {sequence}"), units * shape.pad_to_bytes());
                let behind = slow(suite, &keymat, &prefix, *high, &text);
                plain.push([&prefix[..], &text, &vec![0xdd; shape.icv_bytes()]].concat());
                sealed.push([&prefix[..], &behind].concat());
                texts.push((prefix.len(), text));
            }
            for engine in engines() {
                let mut transform = engine.transform(shape, &keymat);
                let (mut buffer, places) = batch(&plain, &highs);
                transform.seal(&mut buffer, &places).unwrap();
                let (expected, _) = batch(&sealed, &highs);
                prop_assert!(buffer == expected, "{} {shape} seals otherwise", engine.name);

                // Packets of the last leaf were sealed just now: a receiver that is new knows none of them.
                let mut transform = engine.transform(shape, &keymat);
                let mut authentic = vec![false; places.len()];
                let forged = forged.index(places.len());
                let is_forged = shape.icv_bytes() > 0;
                if is_forged {
                    buffer[places[forged].at + places[forged].bytes - 1] ^= 1;
                }
                transform.open(&mut buffer, &places, &mut authentic).unwrap();
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

/// Forged packets name leaves as they like: keys that are in use stay.
#[test]
fn forgeries_put_no_key_away() {
    let keymat = [7; 36];
    let suite = Suite::Gost(Suites::MagmaMgm);
    let engine = engines().next().unwrap();
    let packet = |sequence: u64| {
        let iv = sequence >> 10 << 24 | sequence & 1023;
        let prefix = [
            &b"SPI4"[..],
            &(sequence as u32).to_be_bytes(),
            &iv.to_be_bytes(),
        ]
        .concat();
        let sealed = slow(Suites::MagmaMgm, &keymat, &prefix, 0, b"a text..");
        [prefix, sealed].concat()
    };
    let mut transform = engine.transform(suite, &keymat);
    let mut forged = packet(1 << 20);
    forged[20] ^= 1;
    let order = [
        packet(1023),
        packet(1024),
        forged.clone(),
        packet(1022),
        packet(1025),
        forged,
    ];
    let (mut buffer, places) = batch(&order, &[0; 6]);
    let mut authentic = [false; 6];
    transform
        .open(&mut buffer, &places, &mut authentic)
        .unwrap();
    assert_eq!(authentic, [true, true, false, true, true, false]);
}
