//! AEADs of all engines, compared with each other and checked against their contract.

use crate::{noise, selections};
use engine::{Aead, TAG_BYTES, TagMismatch};
use wire::Suite;

const NONCE: &[u8; 12] = b"salt\0\0\0\0\0\0\0\x07";

/// Returns a key on every engine, with the same secret.
fn keys(suite: Suite) -> Vec<(&'static str, Box<dyn Aead>)> {
    let secret = noise(suite.key_bytes(), 1);
    let key = |selection: engine::Selection| (selection.engine(), selection.aead(&secret));
    selections(suite).into_iter().map(key).collect()
}

/// Every length up to 300, those around powers of two, and ones longer than any packet.
fn lengths() -> impl Iterator<Item = usize> {
    let around = |power: usize| [power - 1, power, power + 1];
    let large = [512, 1024, 2048, 4096, 8192, 65_536]
        .into_iter()
        .flat_map(around);
    (0..=300).chain(large).chain([1_408, 9_000, 200_000])
}

#[test]
fn engines_seal_equally_and_open_each_others_packets_at_every_length() {
    for suite in Suite::AEADS {
        let mut keys = keys(suite);
        for length in lengths() {
            let aad = noise(length % 29, length as u64);
            let plaintext = noise(length, 2);
            let sealed: Vec<Vec<u8>> = keys
                .iter_mut()
                .map(|(_, key)| {
                    let mut sealed = vec![0xee; length + TAG_BYTES];
                    key.seal(NONCE, &aad, &plaintext, &mut sealed);
                    sealed
                })
                .collect();
            for other in &sealed {
                assert!(*other == sealed[0], "{suite} at {length}");
                for (engine, key) in &mut keys {
                    let mut opened = other.clone();
                    key.open(NONCE, &aad, &mut opened).unwrap();
                    assert!(
                        opened[..length] == plaintext,
                        "{engine} {suite} at {length}"
                    );
                }
            }
        }
    }
}

#[test]
fn alignment_makes_no_difference_and_neighbours_are_not_touched() {
    const CANARY: u8 = 0xc3;
    for suite in Suite::AEADS {
        for (engine, mut key) in keys(suite) {
            for length in [0, 1, 15, 16, 17, 63, 64, 65, 255, 257, 1_408] {
                let plaintext = noise(length, 3);
                let mut expected = vec![0; length + TAG_BYTES];
                key.seal(NONCE, b"aad", &plaintext, &mut expected);
                for offset in 0..64 {
                    let case = format!("{engine} {suite} {length} at {offset}");
                    let mut src = vec![CANARY; 64 + length + 64];
                    src[63 - offset..][..length].copy_from_slice(&plaintext);
                    let mut dst = vec![CANARY; 64 + length + TAG_BYTES + 64];
                    let place = offset..offset + length + TAG_BYTES;
                    key.seal(
                        NONCE,
                        b"aad",
                        &src[63 - offset..][..length],
                        &mut dst[place.clone()],
                    );
                    assert_eq!(dst[place.clone()], expected, "{case}");
                    key.open(NONCE, b"aad", &mut dst[place.clone()]).unwrap();
                    assert_eq!(dst[offset..][..length], plaintext, "{case}");
                    let (before, after) = (&dst[..place.start], &dst[place.end..]);
                    assert!(
                        before.iter().chain(after).all(|&byte| byte == CANARY),
                        "{case}"
                    );
                }
            }
        }
    }
}

#[test]
fn any_wrong_bit_of_nonce_aad_ciphertext_or_tag_is_refused_and_the_buffer_wiped() {
    for suite in Suite::AEADS {
        for (engine, mut key) in keys(suite) {
            let (aad, plaintext) = (noise(12, 4), noise(100, 5));
            let mut sealed = vec![0; plaintext.len() + TAG_BYTES];
            key.seal(NONCE, &aad, &plaintext, &mut sealed);
            let mut refuses = |nonce: &[u8; 12], aad: &[u8], sealed: &[u8], case: &str| {
                let mut buf = sealed.to_vec();
                assert_eq!(
                    key.open(nonce, aad, &mut buf),
                    Err(TagMismatch),
                    "{engine} {case}"
                );
                assert!(
                    buf.iter().all(|&byte| byte == 0),
                    "{engine} {case}: not wiped"
                );
            };
            for bit in 0..8 * NONCE.len() {
                let mut nonce = *NONCE;
                nonce[bit / 8] ^= 1 << (bit % 8);
                refuses(&nonce, &aad, &sealed, "nonce");
            }
            for bit in 0..8 * aad.len() {
                let mut aad = aad.clone();
                aad[bit / 8] ^= 1 << (bit % 8);
                refuses(NONCE, &aad, &sealed, "aad");
            }
            for bit in 0..8 * sealed.len() {
                let mut sealed = sealed.clone();
                sealed[bit / 8] ^= 1 << (bit % 8);
                refuses(NONCE, &aad, &sealed, "sealed");
            }
            refuses(NONCE, &aad[..11], &sealed, "shorter aad");
            refuses(NONCE, &[&aad[..], &[0]].concat(), &sealed, "longer aad");
            refuses(NONCE, &[], &sealed, "no aad");
            refuses(NONCE, &aad, &[&sealed[..], &[0]].concat(), "longer");
        }
    }
}

#[test]
fn truncated_packets_are_refused_down_to_zero_length() {
    for suite in Suite::AEADS {
        for (engine, mut key) in keys(suite) {
            let mut sealed = [0; 40 + TAG_BYTES];
            key.seal(NONCE, b"", &noise(40, 6), &mut sealed);
            for length in 0..sealed.len() {
                let mut short = sealed[..length].to_vec();
                assert_eq!(
                    key.open(NONCE, b"", &mut short),
                    Err(TagMismatch),
                    "{engine} {length}"
                );
                assert!(
                    short.iter().all(|&byte| byte == 0),
                    "{engine} {length}: not wiped"
                );
            }
        }
    }
}

#[test]
fn a_destination_of_the_wrong_length_is_a_mistake_of_the_caller() {
    for suite in Suite::AEADS {
        for (engine, mut key) in keys(suite) {
            for length in [15, 17] {
                let seals = std::panic::AssertUnwindSafe(|| {
                    key.seal(NONCE, b"", b"", &mut vec![0; length]);
                });
                assert!(
                    std::panic::catch_unwind(seals).is_err(),
                    "{engine} {length}"
                );
            }
        }
    }
}

#[test]
fn keys_of_many_threads_do_not_disturb_one_another() {
    for suite in Suite::AEADS {
        let plaintext = noise(1_000, 7);
        let mut expected = vec![0; plaintext.len() + TAG_BYTES];
        keys(suite)[0]
            .1
            .seal(NONCE, b"aad", &plaintext, &mut expected);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // Made here and moved to the thread: a key may change its thread.
                for (engine, mut key) in keys(suite) {
                    let (plaintext, expected) = (&plaintext, &expected);
                    scope.spawn(move || {
                        for _ in 0..500 {
                            let mut sealed = vec![0; expected.len()];
                            key.seal(NONCE, b"aad", plaintext, &mut sealed);
                            assert!(sealed == *expected, "{engine} {suite}");
                            key.open(NONCE, b"aad", &mut sealed).unwrap();
                        }
                    });
                }
            }
        });
    }
}
