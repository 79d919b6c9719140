//! The suites of each engine.

use crate::noise;
use engine::{CpuChoice, EngineError, engines, select};
use wire::{Cipher, Hmac, Suite};

/// The suites of each engine, listed independently of the table that selection uses.
fn is_expected(engine: &str, suite: Suite) -> bool {
    match (engine, suite) {
        ("aws-lc", Suite::EncryptThenMac(Cipher::DesCbc | Cipher::TripleDesCbc, _))
        | ("aws-lc", Suite::EncryptThenMac(_, Hmac::Md5)) => false,
        (
            "ipsec-mb" | "aws-lc" | "rustcrypto",
            Suite::EncryptThenMac(..)
            | Suite::Aes128Gcm
            | Suite::Aes256Gcm
            | Suite::ChaCha20Poly1305,
        ) => true,
        ("ipsec-mb" | "aws-lc" | "rustcrypto", Suite::Gost(_)) => false,
        ("gost-avx512" | "gost-avx2" | "gost-portable", suite) => matches!(suite, Suite::Gost(_)),
        _ => panic!("the suites of {engine} are not listed here"),
    }
}

/// Selecting an engine checks its known answers for the suite.
#[test]
fn each_usable_engine_gives_the_known_answers_of_its_suites_and_has_no_others() {
    let usable = engines().iter().filter(|info| info.version.is_ok());
    let usable: Vec<_> = usable.map(|info| info.name).collect();
    for always in ["aws-lc", "rustcrypto", "gost-portable"] {
        assert!(usable.contains(&always), "{always} is not usable");
    }
    for engine in usable {
        for suite in Suite::ALL {
            let has = is_expected(engine, suite);
            match select(&CpuChoice::Named(engine.to_owned()), suite) {
                Ok(selection) => {
                    assert!(has, "{engine} has {suite}");
                    assert_eq!((selection.engine(), selection.suite()), (engine, suite));
                }
                Err(EngineError::NotServed {
                    name,
                    suite: reported,
                    help,
                }) => {
                    assert!(!has, "{engine} does not have {suite}");
                    assert_eq!((name, reported), (engine, suite));
                    let other = match suite {
                        Suite::Gost(_) => "gost-portable",
                        _ => "rustcrypto",
                    };
                    assert!(help.contains(other), "{help}");
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn auto_finds_an_engine_for_every_suite_and_does_not_report_engines_without_it() {
    for suite in Suite::ALL {
        let selection = select(&CpuChoice::Auto, suite).unwrap();
        for over in selection.passed_over() {
            assert!(
                !matches!(over.reason, EngineError::NotServed { .. }),
                "{selection:?}"
            );
        }
    }
}

#[test]
fn no_byte_of_a_key_shows_in_debug() {
    for suite in Suite::ALL {
        let keymat = noise(suite.keymat_bytes(), 9);
        for info in engines().iter().filter(|info| info.version.is_ok()) {
            let Ok(selection) = select(&CpuChoice::Named(info.name.to_owned()), suite) else {
                continue;
            };
            drop(selection.transform(&keymat));
            let text = format!("{selection:?}");
            for width in [1, 2] {
                let shown = keymat[..8]
                    .iter()
                    .map(|byte| format!("{byte:0width$x}"))
                    .collect::<String>();
                assert!(!text.contains(&shown), "{text}");
            }
            assert!(!text.contains(&format!("{:?}", &keymat[..4])), "{text}");
        }
    }
}
