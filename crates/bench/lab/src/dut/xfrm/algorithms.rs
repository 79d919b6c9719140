//! Suites by the kernel's names, as `ip xfrm` accepts and prints them.

use crate::scan::field;
use wire::{Cipher, Hmac, Suite};

/// Salt after the key of an AEAD (RFC 4106 §8.1, RFC 7634 §2).
const SALT_BYTES: usize = 4;

/// A suite's algorithms.
pub(super) struct Algorithms {
    pub(super) suite: Suite,
    /// In `ip`'s output order.
    list: Vec<Algorithm>,
}

/// One algorithm of an SA.
struct Algorithm {
    /// Its kind in `ip`'s words.
    kind: &'static str,
    name: &'static str,
    key_bytes: usize,
    /// Length of the transmitted ICV, for one that authenticates.
    icv_bits: Option<usize>,
    /// Kernel module that implements it.
    module: &'static str,
}

impl Algorithms {
    pub(super) fn of(suite: Suite) -> Self {
        let aead = |name, module| {
            vec![Algorithm {
                kind: "aead",
                name,
                key_bytes: suite.key_bytes() + SALT_BYTES,
                icv_bits: Some(8 * suite.icv_bytes()),
                module,
            }]
        };
        let list = match suite {
            Suite::Aes128Gcm | Suite::Aes256Gcm => aead("rfc4106(gcm(aes))", "gcm"),
            Suite::ChaCha20Poly1305 => aead("rfc7539esp(chacha20,poly1305)", "chacha20poly1305"),
            Suite::EncryptThenMac(cipher, hmac) => vec![of_hmac(hmac), of_cipher(cipher)],
            Suite::Gost(_) => unreachable!("campaigns give the kernel no {suite}"),
        };
        Self { suite, list }
    }

    /// Returns each algorithm with its part of an SA's keying material, in hexadecimal: the
    /// cipher's key comes first.
    fn parts<'a>(&self, keymat: &'a str) -> Vec<(&Algorithm, &'a str)> {
        let (mut rest, mut parts) = (keymat, Vec::new());
        // Reversed: `ip` lists the HMAC first, and the keying material has its key last.
        for algorithm in self.list.iter().rev() {
            let (key, behind) = rest.split_at(2 * algorithm.key_bytes);
            parts.push((algorithm, key));
            rest = behind;
        }
        parts.reverse();
        parts
    }

    /// Returns the non-empty keys in an SA's keying material.
    pub(super) fn keys<'a>(&self, keymat: &'a str) -> Vec<&'a str> {
        let keys = self.parts(keymat).into_iter().map(|(_, key)| key);
        keys.filter(|key| !key.is_empty()).collect()
    }

    /// As `ip xfrm state add` accepts them.
    pub(super) fn with_key(&self, keymat: &str) -> String {
        let words = self.parts(keymat).into_iter().map(|(algorithm, key)| {
            let key = match key {
                // The NULL cipher has no key.
                "" => "\"\"".to_owned(),
                key => format!("0x{key}"),
            };
            let icv = algorithm.icv_bits.map(|bits| format!(" {bits}"));
            let icv = icv.unwrap_or_default();
            format!("{} {} {key}{icv}", algorithm.kind, algorithm.name)
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Returns the algorithms in the form of [`SaState`](super::sa_state::SaState).
    pub(super) fn reported(&self) -> Vec<String> {
        let words = self.list.iter().map(|algorithm| {
            let bits = 8 * algorithm.key_bytes;
            let icv = algorithm.icv_bits.map(|bits| format!(" {bits}"));
            let icv = icv.unwrap_or_default();
            format!("{} {} ({bits} bits){icv}", algorithm.kind, algorithm.name)
        });
        words.collect()
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.list.iter().map(|algorithm| algorithm.name).collect()
    }

    /// Returns the kernel modules that implement them, including the template that combines two.
    pub(super) fn modules(&self) -> Vec<&'static str> {
        let mut modules: Vec<_> = self.list.iter().map(|it| it.module).collect();
        if modules.len() > 1 {
            modules.push("authencesn");
        }
        modules
    }

    /// Returns the kernel's driver according to `/proc/crypto`: the one of the highest priority.
    pub(super) fn driver(&self, crypto: &str) -> Option<String> {
        let template = match &*self.list {
            [hmac, cipher] => format!("authencesn({},{})", hmac.name, cipher.name),
            list => list.first()?.name.to_owned(),
        };
        // The driver may be one with a generator of vectors: `seqiv(rfc4106(gcm(aes)))`.
        let with_iv = format!("({template})");
        let entries = crypto.split("\n\n").filter_map(|entry| {
            let name = field(entry, "name")?;
            let is_it = name == template || name.ends_with(&with_iv);
            let priority: u32 = field(entry, "priority")?.parse().ok()?;
            is_it.then(|| (priority, field(entry, "driver").unwrap_or_default()))
        });
        // As the kernel chooses among several implementations.
        let best = entries.max_by_key(|(priority, _)| *priority);
        best.map(|(_, driver)| driver.to_owned())
    }
}

fn of_hmac(hmac: Hmac) -> Algorithm {
    let (name, module) = match hmac {
        Hmac::Md5 => ("hmac(md5)", "md5"),
        Hmac::Sha1 => ("hmac(sha1)", "sha1_generic"),
        Hmac::Sha256 => ("hmac(sha256)", "sha256_generic"),
        Hmac::Sha512 => ("hmac(sha512)", "sha512_generic"),
    };
    Algorithm {
        kind: "auth-trunc",
        name,
        key_bytes: hmac.key_bytes(),
        icv_bits: Some(8 * hmac.icv_bytes()),
        module,
    }
}

fn of_cipher(cipher: Cipher) -> Algorithm {
    let (name, module) = match cipher {
        Cipher::Null => ("ecb(cipher_null)", "crypto_null"),
        Cipher::DesCbc => ("cbc(des)", "des_generic"),
        Cipher::TripleDesCbc => ("cbc(des3_ede)", "des_generic"),
        Cipher::Aes128Cbc | Cipher::Aes256Cbc => ("cbc(aes)", "cbc"),
    };
    Algorithm {
        kind: "enc",
        name,
        key_bytes: cipher.key_bytes(),
        icv_bits: None,
        module,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn of(suite: &str) -> Algorithms {
        Algorithms::of(Suite::from_name(suite).unwrap())
    }

    #[test]
    fn every_suite_has_words_of_its_own_and_keys_that_fill_its_keying_material() {
        let reported: BTreeSet<_> = Suite::COMMON
            .map(|suite| Algorithms::of(suite).reported())
            .into();
        assert_eq!(reported.len(), Suite::COMMON.len());
        for suite in Suite::COMMON {
            let algorithms = Algorithms::of(suite);
            let keymat = "ab".repeat(suite.keymat_bytes());
            let keys = algorithms.keys(&keymat).concat();
            assert_eq!(keys.len(), keymat.len(), "{suite}");
        }
    }

    #[test]
    fn the_ciphers_key_is_the_first_of_the_keying_material_and_stands_last() {
        let keymat = format!("{}{}", "11".repeat(32), "22".repeat(32));
        assert_eq!(
            of("aes-256-cbc-hmac-sha256").with_key(&keymat),
            format!(
                "auth-trunc hmac(sha256) 0x{} 128 enc cbc(aes) 0x{}",
                "22".repeat(32),
                "11".repeat(32)
            )
        );
        assert_eq!(
            of("null-hmac-sha1").with_key(&"33".repeat(20)),
            format!(
                "auth-trunc hmac(sha1) 0x{} 96 enc ecb(cipher_null) \"\"",
                "33".repeat(20)
            )
        );
        assert_eq!(
            of("aes-128-gcm").reported(),
            ["aead rfc4106(gcm(aes)) (160 bits) 128"]
        );
    }

    #[test]
    fn the_driver_is_the_one_that_the_kernel_prefers() {
        let crypto = "name         : rfc4106(gcm(aes))\ndriver       : rfc4106(gcm_base(ctr,ghash))\n\
                      priority     : 100\n\nname         : seqiv(rfc4106(gcm(aes)))\n\
                      driver       : seqiv(rfc4106-gcm-aesni)\npriority     : 400\n\n\
                      name         : gcm(aes)\ndriver       : other\npriority     : 900\n";
        let driver = of("aes-256-gcm").driver(crypto);
        assert_eq!(driver.as_deref(), Some("seqiv(rfc4106-gcm-aesni)"));
        assert_eq!(of("chacha20-poly1305").driver(crypto), None);
    }
}
