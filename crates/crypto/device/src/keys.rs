//! Keys and other secrets of a trial, the same for a device and its reference.
//!
//! Secret keys and IVs are derived from the seed. Key pairs are built in, one per algorithm, since
//! generating RSA keys takes long and test programs of cards do the same. They protect nothing.
//! Vectors bring keys with their records.

mod der;

pub use der::RsaNumbers;

use aws_lc_rs::digest::{Context, SHA256, digest};
use catalog::{Algorithm, Cipher, Curve, Family, MlDsa, MlKem, Mode};
use std::fmt;
use zeroize::Zeroizing;

/// Keys of one trial, or of one vector.
pub struct Keys {
    /// Seed for deriving the secrets.
    pub seed: u64,
    given: Option<KeyMaterial>,
}

/// The value of [`Keys::fingerprint`].
pub(crate) type Fingerprint = [u8; 32];

/// Keys that do not come from the seed.
enum KeyMaterial {
    Secret(Secret),
    Pair { private: Vec<u8>, public: Vec<u8> },
}

/// The key and parameters of a MAC or a cipher.
#[derive(Clone)]
pub struct Secret {
    /// The key.
    pub key: Zeroizing<Vec<u8>>,
    /// Nonce, IV or first counter block, at the beginning of each message. Empty if the mode has
    /// none.
    pub nonce: Vec<u8>,
    /// Additional data of an AEAD. Empty in secrets derived from a seed.
    pub aad: Vec<u8>,
}

/// A key pair in its algorithm's encoding.
///
/// RSA, ECDSA and Ed25519: PKCS#8 and SubjectPublicKeyInfo in DER. ML-DSA: the seed, and the public
/// key as in FIPS 204. ML-KEM: decapsulation and encapsulation key as in FIPS 203.
#[derive(Clone, Copy)]
pub struct KeyPair<'a> {
    /// The private key. Empty if a vector has none.
    pub private: &'a [u8],
    /// The public key. Empty if a vector has none.
    pub public: &'a [u8],
}

impl Keys {
    /// Keys derived from a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, given: None }
    }

    /// The secret of a vector.
    #[must_use]
    pub const fn of_secret(secret: Secret) -> Self {
        Self {
            seed: 0,
            given: Some(KeyMaterial::Secret(secret)),
        }
    }

    /// The key pair of a vector; either half may be empty.
    #[must_use]
    pub const fn of_pair(private: Vec<u8>, public: Vec<u8>) -> Self {
        Self {
            seed: 0,
            given: Some(KeyMaterial::Pair { private, public }),
        }
    }

    /// Returns the secret for `algorithm`; it is empty for an algorithm without a key.
    #[must_use]
    pub fn secret(&self, algorithm: Algorithm) -> Secret {
        if let Some(KeyMaterial::Secret(secret)) = &self.given {
            return secret.clone();
        }
        let (key_bytes, nonce_bytes) = secret_lengths(algorithm);
        let mut key = self.derive(algorithm, "key", key_bytes);
        let mut nonce = self.derive(algorithm, "nonce", nonce_bytes);
        match algorithm.family() {
            // Tokens refuse a DES key without its parity bits (FIPS PUB 46-3): each byte has an odd
            // number of ones.
            Family::Cipher(Cipher::Des | Cipher::TripleDes, _) => {
                for byte in key.iter_mut() {
                    *byte = (*byte & 0xfe) | u8::from((*byte >> 1).count_ones() % 2 == 0);
                }
            }
            // The mode reserves the first bit (RFC 9058 §4.1).
            Family::Mgm(_) => nonce[0] &= 0x7f,
            _ => {}
        }
        Secret {
            key,
            nonce: nonce.to_vec(),
            aad: Vec::new(),
        }
    }

    /// Returns the key pair for `algorithm`: the vector's or the built-in one.
    ///
    /// # Panics
    /// If the algorithm has no key pair.
    #[must_use]
    pub fn pair(&self, algorithm: Algorithm) -> KeyPair<'_> {
        match &self.given {
            Some(KeyMaterial::Pair { private, public }) => KeyPair { private, public },
            _ => built_in(algorithm.family()).expect("only a public-key algorithm has a pair"),
        }
    }

    /// Returns a hash that identifies these keys. As secret as the keys themselves.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let parts: [&[u8]; 3] = match &self.given {
            None => Default::default(),
            Some(KeyMaterial::Secret(Secret { key, nonce, aad })) => [key, nonce, aad],
            Some(KeyMaterial::Pair { private, public }) => [private, public, &[]],
        };
        let mut whole = Context::new(&SHA256);
        whole.update(&self.seed.to_le_bytes());
        for part in parts {
            // With its length, so that no two lists of parts have the same bytes.
            whole.update(&part.len().to_le_bytes());
            whole.update(part);
        }
        let mut fingerprint = Fingerprint::default();
        fingerprint.copy_from_slice(whole.finish().as_ref());
        fingerprint
    }

    /// Derives pseudo-random bytes that differ for each algorithm and use.
    fn derive(&self, algorithm: Algorithm, what: &str, length: usize) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(length.next_multiple_of(32)));
        for block in 0_u32.. {
            if bytes.len() >= length {
                break;
            }
            let text = format!("cipherbench {} {algorithm} {what} {block}", self.seed);
            bytes.extend_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        }
        bytes.truncate(length);
        bytes
    }
}

impl<'a> KeyPair<'a> {
    /// Returns the numbers of an RSA key, without the private ones if the private key is missing.
    ///
    /// `None` if this is not an RSA key.
    #[must_use]
    pub fn rsa(self) -> Option<RsaNumbers<'a>> {
        der::rsa(self.private, self.public)
    }

    /// Returns the public key without DER: of ECDSA the uncompressed point (04, x, y), of Ed25519
    /// its 32 bytes, of others unchanged.
    #[must_use]
    pub fn public_bytes(self) -> &'a [u8] {
        der::public_bytes(self.public).unwrap_or(self.public)
    }

    /// Returns the private key without DER: for ECDSA the scalar, padded to the length of the
    /// order, for Ed25519 the seed, for others unchanged.
    #[must_use]
    pub fn private_bytes(self) -> &'a [u8] {
        der::private_bytes(self.private).unwrap_or(self.private)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = self.given.as_ref().map(|given| match given {
            KeyMaterial::Secret(_) => "secret",
            KeyMaterial::Pair { .. } => "pair",
        });
        f.debug_struct("Keys")
            .field("seed", &self.seed)
            .field("given", &given)
            .finish()
    }
}

/// Lengths of key and nonce.
const fn secret_lengths(algorithm: Algorithm) -> (usize, usize) {
    match algorithm.family() {
        Family::Hmac(hash) => (hash.output_bytes(), 0),
        Family::Mac(cipher) | Family::Cipher(cipher, Mode::Ecb) => (cipher.key_bytes(), 0),
        Family::Cipher(
            cipher @ (Cipher::Magma | Cipher::Kuznyechik),
            Mode::Ctr | Mode::CtrAcpkm,
        ) => (cipher.key_bytes(), cipher.block_bytes() / 2),
        Family::Cipher(cipher, _) | Family::Mgm(cipher) => {
            (cipher.key_bytes(), cipher.block_bytes())
        }
        Family::Gcm(cipher) => (cipher.key_bytes(), 12),
        Family::ChaCha20Poly1305 => (32, 12),
        Family::Digest(_)
        | Family::Rsa(..)
        | Family::Ecdsa(_)
        | Family::Ed25519
        | Family::MlDsa(_)
        | Family::MlKem(_) => (0, 0),
    }
}

/// The built-in pair. The pairs for RSA, ECDSA and Ed25519 were made by `openssl genpkey`; the
/// pairs for ML-DSA and ML-KEM are the first of Project Wycheproof.
fn built_in(family: Family) -> Option<KeyPair<'static>> {
    macro_rules! pair {
        ($private:literal, $public:literal) => {
            Some(KeyPair {
                private: include_bytes!(concat!("../keys/", $private)),
                public: include_bytes!(concat!("../keys/", $public)),
            })
        };
    }
    match family {
        Family::Rsa(1024, _) => pair!("rsa-1024.der", "rsa-1024.pub.der"),
        Family::Rsa(2048, _) => pair!("rsa-2048.der", "rsa-2048.pub.der"),
        Family::Rsa(3072, _) => pair!("rsa-3072.der", "rsa-3072.pub.der"),
        Family::Rsa(4096, _) => pair!("rsa-4096.der", "rsa-4096.pub.der"),
        Family::Ecdsa(Curve::P256) => pair!("ecdsa-p256.der", "ecdsa-p256.pub.der"),
        Family::Ecdsa(Curve::P384) => pair!("ecdsa-p384.der", "ecdsa-p384.pub.der"),
        Family::Ecdsa(Curve::Secp256k1) => pair!("ecdsa-secp256k1.der", "ecdsa-secp256k1.pub.der"),
        Family::Ed25519 => pair!("ed25519.der", "ed25519.pub.der"),
        Family::MlDsa(MlDsa::MlDsa44) => pair!("ml-dsa-44.seed", "ml-dsa-44.pub"),
        Family::MlDsa(MlDsa::MlDsa65) => pair!("ml-dsa-65.seed", "ml-dsa-65.pub"),
        Family::MlDsa(MlDsa::MlDsa87) => pair!("ml-dsa-87.seed", "ml-dsa-87.pub"),
        Family::MlKem(MlKem::MlKem512) => pair!("ml-kem-512.key", "ml-kem-512.pub"),
        Family::MlKem(MlKem::MlKem768) => pair!("ml-kem-768.key", "ml-kem-768.pub"),
        Family::MlKem(MlKem::MlKem1024) => pair!("ml-kem-1024.key", "ml-kem-1024.pub"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_printed() {
        let secret = Secret {
            key: Zeroizing::new(vec![0xab; 4]),
            nonce: Vec::new(),
            aad: Vec::new(),
        };
        let all = [
            Keys::of_pair(vec![0xab; 4], vec![0xab; 4]),
            Keys::of_secret(secret),
        ];
        for keys in all {
            let text = format!("{keys:?} {keys:x?}");
            assert!(text.contains("given"), "{text}");
            assert!(!text.contains("171") && !text.contains("ab"), "{text}");
        }
    }
}
