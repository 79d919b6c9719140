//! Suites by strongSwan's names: in proposals and in the list of SAs.

use super::answers::Answer;
use wire::{Cipher, Hmac, Suite};

/// A suite by strongSwan's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Words {
    /// In `esp_proposals`: the cipher, and the integrity algorithm if any.
    ask: (&'static str, Option<&'static str>),
    /// `encr-alg` of an SA.
    pub(super) cipher: &'static str,
    /// `encr-keysize` if the cipher has several key lengths.
    key_bits: Option<&'static str>,
    /// `integ-alg` of an SA.
    pub(super) integrity: Option<&'static str>,
}

impl Words {
    pub(super) fn of(suite: Suite) -> Self {
        let aead = |ask, cipher, key_bits| Self {
            ask: (ask, None),
            cipher,
            key_bits,
            integrity: None,
        };
        let (cipher, hmac) = match suite {
            Suite::Aes128Gcm => return aead("aes128gcm16", "AES_GCM_16", Some("128")),
            Suite::Aes256Gcm => return aead("aes256gcm16", "AES_GCM_16", Some("256")),
            Suite::ChaCha20Poly1305 => return aead("chacha20poly1305", "CHACHA20_POLY1305", None),
            Suite::EncryptThenMac(cipher, hmac) => (cipher, hmac),
            Suite::Gost(_) => unreachable!("campaigns give strongSwan no {suite}"),
        };
        let (ask, cipher, key_bits) = match cipher {
            Cipher::Null => ("null", "NULL", None),
            Cipher::DesCbc => ("des", "DES_CBC", None),
            Cipher::TripleDesCbc => ("3des", "3DES_CBC", None),
            Cipher::Aes128Cbc => ("aes128", "AES_CBC", Some("128")),
            Cipher::Aes256Cbc => ("aes256", "AES_CBC", Some("256")),
        };
        let (ask_integrity, integrity) = match hmac {
            Hmac::Md5 => ("md5", "HMAC_MD5_96"),
            Hmac::Sha1 => ("sha1", "HMAC_SHA1_96"),
            Hmac::Sha256 => ("sha256", "HMAC_SHA2_256_128"),
            Hmac::Sha512 => ("sha512", "HMAC_SHA2_512_256"),
        };
        Self {
            ask: (ask, Some(ask_integrity)),
            cipher,
            key_bits,
            integrity: Some(integrity),
        }
    }

    /// Returns the value for `esp_proposals`.
    pub(super) fn proposal(self) -> String {
        match self.ask {
            (cipher, None) => cipher.to_owned(),
            (cipher, Some(integrity)) => format!("{cipher}-{integrity}"),
        }
    }

    /// Returns the first of its algorithms that is missing in a daemon's `get-algorithms`.
    pub(super) fn missing(self, algorithms: &Answer) -> Option<&'static str> {
        let kind = match self.integrity {
            None => "aead",
            Some(_) => "encryption",
        };
        let needed = [
            Some((kind, self.cipher)),
            self.integrity.map(|name| ("integrity", name)),
        ];
        let is_there = |kind: &str, name: &str| algorithms.contains_key(&format!("{kind}/{name}"));
        let mut missing = needed.into_iter().flatten();
        missing
            .find(|(kind, name)| !is_there(kind, name))
            .map(|(_, name)| name)
    }
}

/// Returns the suite of an SA from its section of the answer.
pub(super) fn negotiated(answer: &Answer, section: &str) -> Option<Suite> {
    let value = |key: &str| answer.get(&format!("{section}/{key}")).map(String::as_str);
    // Compared in strongSwan's words, since several suites share a cipher or an HMAC.
    Suite::COMMON.into_iter().find(|&suite| {
        let words = Words::of(suite);
        value("encr-alg") == Some(words.cipher)
            && (words.key_bits.is_none() || value("encr-keysize") == words.key_bits)
            && value("integ-alg") == words.integrity
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_suite_has_a_proposal_of_its_own_and_is_recognized() {
        let proposals: BTreeSet<_> = Suite::COMMON.map(|s| Words::of(s).proposal()).into();
        assert_eq!(proposals.len(), Suite::COMMON.len());
        for suite in Suite::COMMON {
            let words = Words::of(suite);
            let listed = [
                ("encr-alg", Some(words.cipher)),
                ("encr-keysize", words.key_bits),
                ("integ-alg", words.integrity),
            ];
            let listed = listed.into_iter().filter_map(|(key, value)| {
                Some((format!("t/child-sas/c0-1/{key}"), value?.to_owned()))
            });
            let listed = listed.collect();
            assert_eq!(negotiated(&listed, "t/child-sas/c0-1"), Some(suite));
            assert_eq!(negotiated(&listed, "t"), None);
        }
    }

    #[test]
    fn an_algorithm_that_the_daemon_lacks_is_named() {
        let algorithms = ["aead/AES_GCM_16", "encryption/NULL"];
        let algorithms = algorithms.map(|path| (path.to_owned(), "openssl".to_owned()));
        let algorithms = Answer::from(algorithms);
        let missing = |name| Words::of(Suite::from_name(name).unwrap()).missing(&algorithms);
        assert_eq!(missing("aes-128-gcm"), None);
        assert_eq!(missing("chacha20-poly1305"), Some("CHACHA20_POLY1305"));
        assert_eq!(missing("null-hmac-sha1"), Some("HMAC_SHA1_96"));
    }
}
