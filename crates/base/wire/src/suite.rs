//! ESP cipher suites: their names and their lengths on the wire.

mod gost;

pub use gost::Gost;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Length of the salt of [`Suite::AEADS`], which is keyed but not sent, in bytes (RFC 4106 §4, RFC
/// 7634 §2).
pub const SALT_BYTES: usize = 4;

/// An ESP transform: cipher and integrity together.
///
/// Closed on purpose: the compiler shows every place that a new suite must extend. In files it is
/// its [`name`](Self::name).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suite {
    /// AES-128-GCM with a 16-byte ICV (RFC 4106).
    Aes128Gcm,
    /// AES-256-GCM with a 16-byte ICV (RFC 4106).
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 7634).
    ChaCha20Poly1305,
    /// A cipher, then an HMAC over header, IV and ciphertext (RFC 4303 §3.3.2.1).
    EncryptThenMac(Cipher, Hmac),
    /// Russian ciphers.
    Gost(Gost),
}

/// The cipher of a suite with an HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cipher {
    /// None: packets are not encrypted (RFC 2410).
    Null,
    /// DES-CBC (RFC 2405).
    DesCbc,
    /// Triple DES in CBC (RFC 2451).
    TripleDesCbc,
    /// AES-128-CBC (RFC 3602).
    Aes128Cbc,
    /// AES-256-CBC (RFC 3602).
    Aes256Cbc,
}

/// The HMAC of a suite, truncated as in ESP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hmac {
    /// HMAC-MD5-96 (RFC 2403).
    Md5,
    /// HMAC-SHA-1-96 (RFC 2404).
    Sha1,
    /// HMAC-SHA-256-128 (RFC 4868).
    Sha256,
    /// HMAC-SHA-512-256 (RFC 4868).
    Sha512,
}

impl Cipher {
    /// All ciphers, weakest first.
    pub const ALL: [Self; 5] = [
        Self::Null,
        Self::DesCbc,
        Self::TripleDesCbc,
        Self::Aes128Cbc,
        Self::Aes256Cbc,
    ];

    /// Length of its key in bytes.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Null => 0,
            Self::DesCbc => 8,
            Self::Aes128Cbc => 16,
            Self::TripleDesCbc => 24,
            Self::Aes256Cbc => 32,
        }
    }

    /// Length of its blocks in bytes, which is also that of its IV; 1 for no cipher, which has no
    /// IV.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::Null => 1,
            Self::DesCbc | Self::TripleDesCbc => 8,
            Self::Aes128Cbc | Self::Aes256Cbc => 16,
        }
    }
}

impl Hmac {
    /// All HMACs, weakest first.
    pub const ALL: [Self; 4] = [Self::Md5, Self::Sha1, Self::Sha256, Self::Sha512];

    /// Length of its key in bytes: that of the hash.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// Length of the transmitted part in bytes.
    #[must_use]
    pub const fn icv_bytes(self) -> usize {
        match self {
            Self::Md5 | Self::Sha1 => 12,
            Self::Sha256 => 16,
            Self::Sha512 => 32,
        }
    }
}

/// Names of the suites with an HMAC, in the order of [`Cipher::ALL`] and [`Hmac::ALL`].
const ENCRYPT_THEN_MAC: [[&str; 4]; 5] = [
    [
        "null-hmac-md5",
        "null-hmac-sha1",
        "null-hmac-sha256",
        "null-hmac-sha512",
    ],
    [
        "des-cbc-hmac-md5",
        "des-cbc-hmac-sha1",
        "des-cbc-hmac-sha256",
        "des-cbc-hmac-sha512",
    ],
    [
        "3des-cbc-hmac-md5",
        "3des-cbc-hmac-sha1",
        "3des-cbc-hmac-sha256",
        "3des-cbc-hmac-sha512",
    ],
    [
        "aes-128-cbc-hmac-md5",
        "aes-128-cbc-hmac-sha1",
        "aes-128-cbc-hmac-sha256",
        "aes-128-cbc-hmac-sha512",
    ],
    [
        "aes-256-cbc-hmac-md5",
        "aes-256-cbc-hmac-sha1",
        "aes-256-cbc-hmac-sha256",
        "aes-256-cbc-hmac-sha512",
    ],
];

impl Suite {
    /// Every suite, the AEADs first.
    pub const ALL: [Self; 30] = {
        let mut all = [Self::Aes256Gcm; 30];
        all[1] = Self::Aes128Gcm;
        all[2] = Self::ChaCha20Poly1305;
        all[3] = Self::Gost(Gost::KuznyechikMgm);
        all[4] = Self::Gost(Gost::MagmaMgm);
        let mut at = 0;
        while at < 20 {
            // The strongest first here too.
            let cipher = Cipher::ALL[4 - at / 4];
            all[5 + at] = Self::EncryptThenMac(cipher, Hmac::ALL[3 - at % 4]);
            at += 1;
        }
        all[25] = Self::Gost(Gost::MagmaCbcOmac);
        all[26] = Self::Gost(Gost::KuznyechikMgmMac);
        all[27] = Self::Gost(Gost::MagmaMgmMac);
        all[28] = Self::Gost(Gost::MagmaCtr);
        all[29] = Self::Gost(Gost::MagmaEcb);
        all
    };

    /// The suites that other tunnels also support: all but those of GOST ciphers.
    pub const COMMON: [Self; 23] = {
        let mut common = [Self::Aes256Gcm; 23];
        let (mut at, mut next) = (0, 0);
        while at < Self::ALL.len() {
            if !matches!(Self::ALL[at], Self::Gost(_)) {
                common[next] = Self::ALL[at];
                next += 1;
            }
            at += 1;
        }
        // A new suite changes the length here: the compiler reports it.
        assert!(next == common.len());
        common
    };

    /// The AEADs that all tunnels support: a nonce of 12 bytes, a tag of 16, one key for all
    /// packets.
    pub const AEADS: [Self; 3] = [Self::Aes256Gcm, Self::Aes128Gcm, Self::ChaCha20Poly1305];

    /// The name used in campaigns, configuration and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "aes-128-gcm",
            Self::Aes256Gcm => "aes-256-gcm",
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
            // The discriminants are the places in `ALL`, which a test holds.
            Self::EncryptThenMac(cipher, hmac) => ENCRYPT_THEN_MAC[cipher as usize][hmac as usize],
            Self::Gost(gost) => gost.name(),
        }
    }

    /// The suite with this [`name`](Self::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// Why it must not protect real traffic; `None` for a secure suite.
    #[must_use]
    pub const fn insecure(self) -> Option<&'static str> {
        match self {
            Self::EncryptThenMac(Cipher::Null, _) => Some("it does not encrypt"),
            Self::EncryptThenMac(Cipher::DesCbc, _) => {
                Some("DES keys of 56 bits are found by trying")
            }
            Self::EncryptThenMac(Cipher::TripleDesCbc, _) => {
                Some("blocks of 64 bits give plaintext away (CVE-2016-2183)")
            }
            Self::EncryptThenMac(_, Hmac::Md5) => Some("MD5 is broken as a hash"),
            Self::Gost(gost) => gost.insecure(),
            _ => None,
        }
    }

    /// Whether it encrypts, however weakly; `false` where only integrity is protected.
    #[must_use]
    pub const fn encrypts(self) -> bool {
        match self {
            Self::EncryptThenMac(Cipher::Null, _) => false,
            Self::Gost(gost) => gost.encrypts(),
            _ => true,
        }
    }

    /// Whether it omits encryption or authentication, for tests and comparisons, so that it must be
    /// requested as insecure.
    #[must_use]
    pub const fn is_bare(self) -> bool {
        !self.encrypts() || matches!(self, Self::Gost(Gost::MagmaCtr | Gost::MagmaEcb))
    }

    /// Whether equal blocks of plaintext become equal blocks of ciphertext (electronic codebook),
    /// so that its ciphertext does not look random.
    #[must_use]
    pub const fn repeats_blocks(self) -> bool {
        matches!(self, Self::Gost(Gost::MagmaEcb))
    }

    /// Whether it exists for old peers and comparisons with them (DES, triple DES, MD5, Magma in
    /// CBC), so that it must be requested explicitly.
    #[must_use]
    pub const fn is_legacy(self) -> bool {
        matches!(
            self,
            Self::EncryptThenMac(Cipher::DesCbc | Cipher::TripleDesCbc, _)
                | Self::EncryptThenMac(_, Hmac::Md5)
                | Self::Gost(Gost::MagmaCbcOmac)
        )
    }

    /// Length of the cipher key in bytes, without salt or HMAC key.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
            Self::EncryptThenMac(cipher, _) => cipher.key_bytes(),
            Self::Gost(_) => Gost::KEY_BYTES,
        }
    }

    /// Length of an SA's keying material in bytes: cipher key, then salt (RFC 4106 §8.1) or the key
    /// of the MAC (RFC 7296 §2.17).
    #[must_use]
    pub const fn keymat_bytes(self) -> usize {
        self.key_bytes()
            + match self {
                Self::EncryptThenMac(_, hmac) => hmac.key_bytes(),
                Self::Gost(gost) => gost.behind_key_bytes(),
                _ => SALT_BYTES,
            }
    }

    /// Length of the transmitted initialisation vector, in bytes.
    #[must_use]
    pub const fn iv_bytes(self) -> usize {
        match self {
            Self::EncryptThenMac(Cipher::Null, _) => 0,
            Self::EncryptThenMac(cipher, _) => cipher.block_bytes(),
            Self::Gost(gost) => gost.iv_bytes(),
            _ => 8,
        }
    }

    /// Length of the integrity check value, in bytes.
    #[must_use]
    pub const fn icv_bytes(self) -> usize {
        match self {
            Self::EncryptThenMac(_, hmac) => hmac.icv_bytes(),
            Self::Gost(gost) => gost.icv_bytes(),
            _ => 16,
        }
    }

    /// The plaintext with its trailer is padded to a multiple of this (RFC 4303 §2.4): 4 or the
    /// cipher's block.
    #[must_use]
    pub const fn pad_to_bytes(self) -> usize {
        match self {
            Self::EncryptThenMac(cipher, _) if cipher.block_bytes() > 4 => cipher.block_bytes(),
            Self::Gost(gost) => gost.pad_to_bytes(),
            _ => 4,
        }
    }
}

impl std::fmt::Display for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Suite {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Suite {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_name(&name)
            .ok_or_else(|| de::Error::invalid_value(de::Unexpected::Str(&name), &"an ESP suite"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_suite_has_a_distinct_name_that_parses_back() {
        let names: BTreeSet<_> = Suite::ALL.iter().map(|suite| suite.name()).collect();
        assert_eq!(names.len(), Suite::ALL.len());
        for suite in Suite::ALL {
            assert_eq!(Suite::from_name(suite.name()), Some(suite));
            let text = serde_json::to_string(&suite).unwrap();
            assert_eq!(text, format!("\"{suite}\""));
            assert_eq!(serde_json::from_str::<Suite>(&text).unwrap(), suite);
        }
        for (at, cipher) in Cipher::ALL.into_iter().enumerate() {
            assert_eq!(cipher as usize, at);
        }
        for (at, hmac) in Hmac::ALL.into_iter().enumerate() {
            assert_eq!(hmac as usize, at);
        }
    }

    #[test]
    fn suites_that_must_be_requested_are_insecure() {
        for suite in Suite::ALL {
            let is_asked_for = suite.is_legacy() || suite.is_bare();
            assert!(!is_asked_for || suite.insecure().is_some(), "{suite}");
            let is_readable = suite.insecure() == Some("it does not encrypt");
            assert_eq!(is_readable, !suite.encrypts(), "{suite}");
            assert!(suite.encrypts() || suite.is_bare(), "{suite}");
        }
    }
}
