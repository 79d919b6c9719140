//! Names of the operations of devices: `sha-256`, `aes-128-cbc encrypt`, `rsa-2048-oaep decrypt`,
//! `ecdsa-p256 sign`.
//!
//! A name determines everything about the result except key and input: [`Family`] defines the
//! details.
//!
//! | Action | Input | Output |
//! | --- | --- | --- |
//! | digest | message | digest or MAC |
//! | encrypt | plaintext | ciphertext; AEADs: and tag; KEMs (no input): ciphertext, then secret |
//! | decrypt | result of encryption; KEMs: the ciphertext | plaintext; KEMs: secret |
//! | sign | message | signature |
//! | verify | signature, then message | nothing |
//!
//! Signatures have a fixed length: ECDSA signatures are r and s, each with the length of the
//! curve's order (IEEE P1363).

mod list;

pub use list::ALGORITHMS;

use std::fmt;
use strum::IntoStaticStr;

/// An algorithm with everything that determines its result, except key and input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Algorithm {
    // Private, so that there is none beside those of the list, and a name says all about it.
    name: &'static str,
    family: Family,
}

/// The definition of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// A hash.
    Digest(Hash),
    /// HMAC (RFC 2104) with a key of the hash's output length.
    Hmac(Hash),
    /// CMAC (NIST SP 800-38B), which is OMAC of GOST R 34.13-2015 with a MAC of a whole block. For
    /// GOST 28147-89, the cipher's specific MAC of 4 bytes (RFC 5830 §8).
    Mac(Cipher),
    /// A block cipher in a mode without authentication.
    Cipher(Cipher, Mode),
    /// AES in GCM, with a nonce of 12 bytes and a tag of 16.
    Gcm(Cipher),
    /// ChaCha20-Poly1305 (RFC 8439).
    ChaCha20Poly1305,
    /// A GOST cipher in MGM (RFC 9058), with a nonce and a tag of one block each.
    Mgm(Cipher),
    /// RSA (RFC 8017) with a modulus of this many bits.
    Rsa(u16, Padding),
    /// ECDSA with the hash of the same length as the curve's order.
    Ecdsa(Curve),
    /// Ed25519 (RFC 8032).
    Ed25519,
    /// ML-DSA (FIPS 204), pure and with an empty context.
    MlDsa(MlDsa),
    /// ML-KEM (FIPS 203).
    MlKem(MlKem),
}

/// A hash.
#[allow(missing_docs, reason = "the names are self-explanatory")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hash {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha3_256,
    Sha3_512,
    /// GOST R 34.11-2012 (RFC 6986).
    Streebog256,
    Streebog512,
}

/// A cipher with the length of its key.
#[allow(missing_docs, reason = "the names are self-explanatory")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cipher {
    Aes128,
    Aes192,
    Aes256,
    Des,
    /// With three keys.
    TripleDes,
    Magma,
    Kuznyechik,
    /// GOST 28147-89 with the substitution of Magma (id-tc26-gost-28147-param-Z).
    Gost28147,
}

/// A mode without authentication. Each message begins with the IV of the trial's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Whole blocks.
    Ecb,
    /// Whole blocks.
    Cbc,
    /// With the padding of PKCS#7 (RFC 5652 §6.3), always at least one byte.
    CbcPad,
    /// AES: the IV is the first counter block. GOST R 34.13-2015: the IV is half of it, and the
    /// counter begins at 0. GOST 28147-89: its specific counter mode (RFC 5830 §6) without key
    /// meshing.
    Ctr,
    /// CTR-ACPKM (RFC 8645 §6.2.2): with a new key after each section of 1 KiB (Magma) or 4 KiB
    /// (Kuznyechik), as in OpenSSL's GOST engine.
    CtrAcpkm,
}

/// RSA's padding, and the hash of signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Padding {
    /// PKCS#1 v1.5: encryption, and signatures with SHA-256.
    Pkcs1,
    /// PKCS#1 v1.5: signatures with SHA-1.
    Pkcs1Sha1,
    /// OAEP with SHA-1, in MGF1 too: the default of libraries.
    Oaep,
    /// OAEP with SHA-256, in MGF1 too.
    OaepSha256,
    /// PSS with SHA-256, in MGF1 too, and a salt of 32 bytes.
    Pss,
}

/// A curve of ECDSA.
#[allow(missing_docs, reason = "the names are self-explanatory")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Curve {
    P256,
    P384,
    Secp256k1,
}

/// A set of parameters of ML-DSA.
#[allow(missing_docs, reason = "the names are self-explanatory")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MlDsa {
    MlDsa44,
    MlDsa65,
    MlDsa87,
}

/// A set of parameters of ML-KEM.
#[allow(missing_docs, reason = "the names are self-explanatory")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MlKem {
    MlKem512,
    MlKem768,
    MlKem1024,
}

/// The action on an algorithm's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Action {
    /// Message to digest or MAC.
    Digest,
    /// Plaintext to ciphertext (AEADs: and tag; KEMs: to ciphertext and shared secret).
    Encrypt,
    /// The inverse of [`Self::Encrypt`].
    Decrypt,
    /// Message to signature.
    Sign,
    /// Signature and message to a verdict.
    Verify,
}

/// An algorithm and an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// One of the algorithm's actions.
    pub action: Action,
}

/// The error for an unknown name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownName {
    /// The algorithm does not exist.
    #[error("there is no algorithm {name:?}; {hint}")]
    Algorithm {
        /// The given name.
        name: String,
        /// The nearest name, or the place to find the list.
        hint: String,
    },
    /// The algorithm does not have the action.
    #[error("{algorithm} has no action {action:?}; it has: {has}")]
    Action {
        /// The algorithm.
        algorithm: &'static str,
        /// The given action; empty if a required one is missing.
        action: String,
        /// The algorithm's actions.
        has: String,
    },
}

impl Algorithm {
    const fn new(name: &'static str, family: Family) -> Self {
        Self { name, family }
    }

    /// Finds an algorithm by its name.
    ///
    /// # Errors
    /// [`UnknownName::Algorithm`], with the nearest name.
    pub fn parse(name: &str) -> Result<Self, UnknownName> {
        let find = |algorithm: &&Self| algorithm.name == name;
        ALGORITHMS
            .iter()
            .find(find)
            .copied()
            .ok_or_else(|| UnknownName::Algorithm {
                name: name.to_owned(),
                hint: match nearest(name) {
                    Some(nearest) => format!("did you mean {nearest}?"),
                    None => "a functional trial of every algorithm lists them".to_owned(),
                },
            })
    }

    /// Returns its name in tables and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// Returns its definition.
    #[must_use]
    pub const fn family(self) -> Family {
        self.family
    }

    /// Returns its actions, in the order of tables.
    #[must_use]
    pub const fn actions(self) -> &'static [Action] {
        use Action::{Decrypt, Digest, Encrypt, Sign, Verify};
        match self.family {
            Family::Digest(_) | Family::Hmac(_) | Family::Mac(_) => &[Digest],
            // PKCS#1 v1.5 has paddings of both kinds (RFC 8017 §7.2 and §8.2), under one name.
            Family::Rsa(_, Padding::Pkcs1) => &[Encrypt, Decrypt, Sign, Verify],
            Family::Cipher(..)
            | Family::Gcm(_)
            | Family::ChaCha20Poly1305
            | Family::Mgm(_)
            | Family::Rsa(_, Padding::Oaep | Padding::OaepSha256)
            | Family::MlKem(_) => &[Encrypt, Decrypt],
            Family::Rsa(_, Padding::Pkcs1Sha1 | Padding::Pss)
            | Family::Ecdsa(_)
            | Family::Ed25519
            | Family::MlDsa(_) => &[Sign, Verify],
        }
    }

    /// Returns its operations.
    pub fn operations(self) -> impl Iterator<Item = Operation> {
        let operation = move |&action| Operation {
            algorithm: self,
            action,
        };
        self.actions().iter().map(operation)
    }
}

impl Operation {
    /// Parses `aes-128-cbc encrypt`, or `sha-256` if the algorithm has a single action.
    ///
    /// # Errors
    /// [`UnknownName`], with the nearest name.
    pub fn parse(text: &str) -> Result<Self, UnknownName> {
        // Any white space: names come from lists in files and from command lines.
        let mut words = text.split_whitespace();
        let algorithm = Algorithm::parse(words.next().unwrap_or_default())?;
        let wanted = words.collect::<Vec<_>>().join(" ");
        let actions = algorithm.actions();
        let action = match actions {
            // Nobody writes `sha-256 digest`, but it is understood.
            [only] if wanted.is_empty() => Some(*only),
            _ => actions
                .iter()
                .copied()
                .find(|action| action.name() == wanted),
        };
        action
            .map(|action| Self { algorithm, action })
            .ok_or_else(|| {
                let names: Vec<_> = actions.iter().map(|action| action.name()).collect();
                UnknownName::Action {
                    algorithm: algorithm.name,
                    action: wanted,
                    has: names.join(", "),
                }
            })
    }

    /// Whether the length of its input can be chosen freely or in whole blocks. Not for public
    /// keys: their inputs are short and do not affect the speed.
    #[must_use]
    pub const fn takes_size(self) -> bool {
        !matches!(
            self.algorithm.family,
            Family::Rsa(..)
                | Family::Ecdsa(_)
                | Family::Ed25519
                | Family::MlDsa(_)
                | Family::MlKem(_)
        )
    }

    /// Returns the operation that inverts or verifies it: encryption and decryption for each other,
    /// verification for signing. `None` for digests and verification.
    #[must_use]
    pub fn inverse(self) -> Option<Self> {
        let action = match self.action {
            // Nothing is left of the message to turn back.
            Action::Digest | Action::Verify => return None,
            Action::Encrypt => Action::Decrypt,
            Action::Decrypt => Action::Encrypt,
            Action::Sign => Action::Verify,
        };
        Some(Self { action, ..self })
    }

    /// Whether its result shows if the input is authentic or well-formed: verification, opening by
    /// AEADs, decryption with OAEP. A device that accepts everything without work would pass if all
    /// inputs were valid.
    #[must_use]
    pub const fn gives_verdict(self) -> bool {
        match self.action {
            Action::Verify => true,
            // Not with the padding of PKCS#1 v1.5: a device that showed whether it is right would
            // be the oracle of Bleichenbacher's attack, so libraries return random bytes instead.
            // ML-KEM returns another secret for the same reason (FIPS 203 §6.3). A wrong padding of
            // CBC looks right by chance, once in some 256 inputs.
            Action::Decrypt => matches!(
                self.algorithm.family,
                Family::Gcm(_)
                    | Family::ChaCha20Poly1305
                    | Family::Mgm(_)
                    | Family::Rsa(_, Padding::Oaep | Padding::OaepSha256)
            ),
            Action::Digest | Action::Encrypt | Action::Sign => false,
        }
    }

    /// Whether the same key and input always give the same output. Otherwise only the
    /// [`Self::inverse`] can verify a result.
    #[must_use]
    pub const fn is_deterministic(self) -> bool {
        match self.action {
            Action::Digest | Action::Decrypt | Action::Verify => true,
            // The paddings of RSA have random bytes, and a KEM draws the secret that it encrypts.
            Action::Encrypt => !matches!(self.algorithm.family, Family::Rsa(..) | Family::MlKem(_)),
            // Ed25519 derives its nonce from key and message (RFC 8032 §5.1.6), and PKCS#1 v1.5 has
            // no salt. ECDSA and ML-DSA have variants of both kinds, and PSS has a salt.
            Action::Sign => matches!(
                self.algorithm.family,
                Family::Ed25519 | Family::Rsa(_, Padding::Pkcs1 | Padding::Pkcs1Sha1)
            ),
        }
    }
}

impl Action {
    /// Returns its name, the second word of an operation's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Hash {
    /// Length of the output, in bytes.
    #[must_use]
    pub const fn output_bytes(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha224 => 28,
            Self::Sha256 | Self::Sha3_256 | Self::Streebog256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 | Self::Sha3_512 | Self::Streebog512 => 64,
        }
    }
}

impl Cipher {
    /// Length of a block, in bytes.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::Aes128 | Self::Aes192 | Self::Aes256 | Self::Kuznyechik => 16,
            Self::Des | Self::TripleDes | Self::Magma | Self::Gost28147 => 8,
        }
    }

    /// Length of the key, in bytes.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        match self {
            // With the bits of parity, which devices expect in it and may not check.
            Self::Des => 8,
            Self::Aes128 => 16,
            Self::Aes192 | Self::TripleDes => 24,
            Self::Aes256 | Self::Kuznyechik | Self::Magma | Self::Gost28147 => 32,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm.name)?;
        // Digests have no other action, so that the algorithm's name is enough.
        if self.action == Action::Digest {
            return Ok(());
        }
        write!(f, " {}", self.action.name())
    }
}

/// Returns the most likely intended name: for a common alias, the name that it stands for;
/// otherwise the name that differs only in case and dashes, begins with the given name, or is its
/// beginning.
fn nearest(name: &str) -> Option<&'static str> {
    // Case and dashes differ most often between libraries: `SHA256`, `aes128-cbc`.
    let simple = |name: &str| -> String {
        name.chars()
            .filter(char::is_ascii_alphanumeric)
            .collect::<String>()
            .to_ascii_lowercase()
    };
    let wanted = simple(name);
    // Every name begins with nothing.
    if wanted.is_empty() {
        return None;
    }
    let names = || ALGORITHMS.iter().map(|algorithm| algorithm.name);
    // Other common names.
    let other = match wanted.as_str() {
        "secp256r1" | "prime256v1" | "p256" | "ecdsa" => Some("ecdsa-p256"),
        "secp384r1" | "p384" => Some("ecdsa-p384"),
        "secp256k1" => Some("ecdsa-secp256k1"),
        "grasshopper" => Some("kuznyechik-ctr"),
        "3des" | "tripledes" => Some("des-ede3-cbc"),
        _ => None,
    };
    // The likeliest first: a name that begins alike may be of another key length.
    other
        .or_else(|| names().find(|name| simple(name) == wanted))
        .or_else(|| names().find(|name| simple(name).starts_with(&wanted)))
        .or_else(|| names().find(|name| wanted.starts_with(&simple(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_parsed_and_identifies_one_algorithm() {
        for algorithm in ALGORITHMS {
            assert_eq!(Algorithm::parse(algorithm.name), Ok(*algorithm));
            for operation in algorithm.operations() {
                assert_eq!(Operation::parse(&operation.to_string()), Ok(operation));
                if let Some(inverse) = operation.inverse() {
                    assert!(algorithm.actions().contains(&inverse.action), "{operation}");
                }
            }
            let twins = ALGORITHMS
                .iter()
                .filter(|other| other.family == algorithm.family);
            assert_eq!(twins.count(), 1, "{algorithm}");
        }
    }

    #[test]
    fn the_error_for_an_unknown_name_suggests_another() {
        let error = |text| Operation::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("SHA256"),
            "there is no algorithm \"SHA256\"; did you mean sha-256?"
        );
        assert_eq!(
            error("aes128-cbc encrypt"),
            "there is no algorithm \"aes128-cbc\"; did you mean aes-128-cbc?"
        );
        assert_eq!(
            error("rot13"),
            "there is no algorithm \"rot13\"; a functional trial of every algorithm lists them"
        );
        assert_eq!(
            error("secp256r1 sign"),
            "there is no algorithm \"secp256r1\"; did you mean ecdsa-p256?"
        );
        assert_eq!(
            error("ed25519 encrypt"),
            "ed25519 has no action \"encrypt\"; it has: sign, verify"
        );
        assert_eq!(
            error("aes-128-cbc"),
            "aes-128-cbc has no action \"\"; it has: encrypt, decrypt"
        );
    }
}
