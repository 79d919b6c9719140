//! Which engine has which suites.

use crate::noise;
use engine::{Choice, EngineError, engines, select};
use wire::{Cipher, Hmac, Suite};

/// Selecting proves: each engine gives its known answers of each suite that it has.
#[test]
fn rustcrypto_gives_the_known_answers_of_every_suite_but_those_of_gost_ciphers() {
    for suite in Suite::COMMON {
        let selection = select(&Choice::Named("rustcrypto".to_owned()), suite).unwrap();
        assert_eq!(
            (selection.engine(), selection.suite()),
            ("rustcrypto", suite)
        );
    }
}

#[test]
fn aws_lc_has_the_aeads_and_aes_or_null_with_sha() {
    for suite in Suite::ALL {
        let has = match suite {
            Suite::EncryptThenMac(Cipher::DesCbc | Cipher::TripleDesCbc, _)
            | Suite::EncryptThenMac(_, Hmac::Md5)
            | Suite::Gost(_) => false,
            Suite::EncryptThenMac(..)
            | Suite::Aes128Gcm
            | Suite::Aes256Gcm
            | Suite::ChaCha20Poly1305 => true,
        };
        match select(&Choice::Named("aws-lc".to_owned()), suite) {
            Ok(_) => assert!(has, "{suite}"),
            Err(EngineError::NotServed {
                name,
                suite: told,
                help,
            }) => {
                assert_eq!((has, name, told), (false, "aws-lc", suite));
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

#[test]
fn auto_finds_an_engine_for_every_suite_and_passes_over_none_that_lacks_it() {
    for suite in Suite::ALL {
        let selection = select(&Choice::Auto, suite).unwrap();
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
            let Ok(selection) = select(&Choice::Named(info.name.to_owned()), suite) else {
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
