//! AUTH payloads (RFC 7296 section 2.15): codes by shared keys, and signatures (RFC 4754, RFC 7427,
//! RFC 8420).

use super::{Prf, Secret};
use crate::message::{AuthMethod, SignatureHash};
use aws_lc_rs::constant_time;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair, UnparsedPublicKey, VerificationAlgorithm,
};
use std::sync::Arc;

const KEY_PAD: &[u8] = b"Key Pad for IKEv2";

/// The octets that one side authenticates.
#[derive(Debug, Clone, Copy)]
pub struct SignedOctets<'a> {
    /// Its message of IKE_SA_INIT, from the first byte of the header.
    pub message: &'a [u8],
    /// The other side's nonce.
    pub peer_nonce: &'a [u8],
    /// Its `SK_p`.
    pub key: &'a [u8],
    /// The content of its ID payload: the type, three reserved bytes, and the value.
    pub identity: &'a [u8],
    /// `IntAuth` (RFC 9242 section 3.3.2); empty without IKE_INTERMEDIATE.
    pub intermediate: &'a [u8],
}

impl SignedOctets<'_> {
    /// The octets.
    #[must_use]
    pub fn bytes(&self, prf: Prf) -> Vec<u8> {
        let identity = prf.compute(self.key, &[self.identity]);
        [self.message, self.peer_nonce, &identity, self.intermediate].concat()
    }
}

/// The code of a shared key.
#[must_use]
pub fn shared_key_code(prf: Prf, shared_key: &[u8], octets: &SignedOctets<'_>) -> Secret {
    let key = prf.compute(shared_key, &[KEY_PAD]);
    prf.compute(&key, &[&octets.bytes(prf)])
}

/// Whether the peer's code is right, compared in constant time.
#[must_use]
pub fn verify_shared_key(
    prf: Prf,
    shared_key: &[u8],
    octets: &SignedOctets<'_>,
    code: &[u8],
) -> bool {
    let expected = shared_key_code(prf, shared_key, octets);
    constant_time::verify_slices_are_equal(&expected, code).is_ok()
}

/// An algorithm of RFC 7427, with the DER of its AlgorithmIdentifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SignatureScheme {
    /// ECDSA with SHA-256, on the key's curve.
    EcdsaSha256,
    /// ECDSA with SHA-384, on the key's curve.
    EcdsaSha384,
    /// ECDSA with SHA-512, on the key's curve.
    EcdsaSha512,
    /// RSASSA-PSS with SHA-256, and a salt of 32 bytes.
    RsaPssSha256,
    /// RSASSA-PSS with SHA-384, and a salt of 48 bytes.
    RsaPssSha384,
    /// RSASSA-PSS with SHA-512, and a salt of 64 bytes.
    RsaPssSha512,
    /// Ed25519.
    Ed25519,
}

/// RSASSA-PSS with a hash, MGF1 of the same hash, and a salt of the hash's length (RFC 7427
/// appendix A.4).
macro_rules! rsa_pss {
    ($hash:literal, $salt:literal) => {
        &[
            0x30, 0x41, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a, 0x30,
            0x34, 0xa0, 0x0f, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04,
            0x02, $hash, 0x05, 0x00, 0xa1, 0x1c, 0x30, 0x1a, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86,
            0xf7, 0x0d, 0x01, 0x01, 0x08, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65,
            0x03, 0x04, 0x02, $hash, 0x05, 0x00, 0xa2, 0x03, 0x02, 0x01, $salt,
        ]
    };
}

impl SignatureScheme {
    /// All schemes.
    pub const ALL: [Self; 7] = [
        Self::EcdsaSha256,
        Self::EcdsaSha384,
        Self::EcdsaSha512,
        Self::RsaPssSha256,
        Self::RsaPssSha384,
        Self::RsaPssSha512,
        Self::Ed25519,
    ];

    /// The AlgorithmIdentifier in DER.
    #[must_use]
    pub const fn identifier(self) -> &'static [u8] {
        match self {
            Self::EcdsaSha256 => b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02",
            Self::EcdsaSha384 => b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x03",
            Self::EcdsaSha512 => b"\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x04",
            Self::RsaPssSha256 => rsa_pss!(0x01, 32),
            Self::RsaPssSha384 => rsa_pss!(0x02, 48),
            Self::RsaPssSha512 => rsa_pss!(0x03, 64),
            Self::Ed25519 => b"\x30\x05\x06\x03\x2b\x65\x70",
        }
    }

    /// The hash in SIGNATURE_HASH_ALGORITHMS.
    #[must_use]
    pub const fn hash(self) -> SignatureHash {
        match self {
            Self::EcdsaSha256 | Self::RsaPssSha256 => SignatureHash::SHA2_256,
            Self::EcdsaSha384 | Self::RsaPssSha384 => SignatureHash::SHA2_384,
            Self::EcdsaSha512 | Self::RsaPssSha512 => SignatureHash::SHA2_512,
            Self::Ed25519 => SignatureHash::IDENTITY,
        }
    }

    /// The library's algorithms; an AlgorithmIdentifier of ECDSA does not name the curve.
    fn library(self) -> &'static [&'static dyn VerificationAlgorithm] {
        match self {
            Self::EcdsaSha256 => &[
                &signature::ECDSA_P256_SHA256_ASN1,
                &signature::ECDSA_P384_SHA256_ASN1,
                &signature::ECDSA_P521_SHA256_ASN1,
            ],
            Self::EcdsaSha384 => &[
                &signature::ECDSA_P256_SHA384_ASN1,
                &signature::ECDSA_P384_SHA384_ASN1,
                &signature::ECDSA_P521_SHA384_ASN1,
            ],
            Self::EcdsaSha512 => &[
                &signature::ECDSA_P256_SHA512_ASN1,
                &signature::ECDSA_P384_SHA512_ASN1,
                &signature::ECDSA_P521_SHA512_ASN1,
            ],
            Self::RsaPssSha256 => &[&signature::RSA_PSS_2048_8192_SHA256],
            Self::RsaPssSha384 => &[&signature::RSA_PSS_2048_8192_SHA384],
            Self::RsaPssSha512 => &[&signature::RSA_PSS_2048_8192_SHA512],
            Self::Ed25519 => &[&signature::ED25519],
        }
    }
}

/// A private key that signs.
#[derive(Clone)]
pub enum Signer {
    /// ECDSA; the scheme is the hash of the key's curve.
    Ecdsa(SignatureScheme, Arc<EcdsaKeyPair>),
    /// RSASSA-PSS with the scheme's hash.
    Rsa(SignatureScheme, Arc<RsaKeyPair>),
    /// Ed25519.
    Ed25519(Arc<Ed25519KeyPair>),
}

impl Signer {
    /// The key in a PKCS #8 file (DER): ECDSA on P-256, P-384 or P-521, Ed25519, or RSA of 2048 to
    /// 8192 bits. `None`: it is none of these.
    #[must_use]
    pub fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let curves = [
            (
                SignatureScheme::EcdsaSha256,
                &signature::ECDSA_P256_SHA256_ASN1_SIGNING,
            ),
            (
                SignatureScheme::EcdsaSha384,
                &signature::ECDSA_P384_SHA384_ASN1_SIGNING,
            ),
            (
                SignatureScheme::EcdsaSha512,
                &signature::ECDSA_P521_SHA512_ASN1_SIGNING,
            ),
        ];
        for (scheme, algorithm) in curves {
            if let Ok(key) = EcdsaKeyPair::from_pkcs8(algorithm, der) {
                return Some(Self::Ecdsa(scheme, Arc::new(key)));
            }
        }
        if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
            return Some(Self::Ed25519(Arc::new(key)));
        }
        let key = RsaKeyPair::from_pkcs8(der).ok()?;
        Some(Self::Rsa(SignatureScheme::RsaPssSha256, Arc::new(key)))
    }

    /// The scheme.
    #[must_use]
    pub const fn scheme(&self) -> SignatureScheme {
        match self {
            Self::Ecdsa(scheme, _) | Self::Rsa(scheme, _) => *scheme,
            Self::Ed25519(_) => SignatureScheme::Ed25519,
        }
    }

    /// This key, with a scheme whose hash is accepted; `None`: no scheme of the key has one.
    #[must_use]
    pub fn accepted(&self, hashes: &[SignatureHash]) -> Option<Self> {
        let is_accepted = |scheme: &SignatureScheme| hashes.contains(&scheme.hash());
        match self {
            Self::Rsa(_, key) => [
                SignatureScheme::RsaPssSha256,
                SignatureScheme::RsaPssSha384,
                SignatureScheme::RsaPssSha512,
            ]
            .into_iter()
            .find(is_accepted)
            .map(|scheme| Self::Rsa(scheme, Arc::clone(key))),
            other => is_accepted(&other.scheme()).then(|| other.clone()),
        }
    }

    /// Authentication data of method [`AuthMethod::DIGITAL_SIGNATURE`]: the AlgorithmIdentifier
    /// after its length, and the signature. `None`: the random number generator failed.
    #[must_use]
    pub fn sign(&self, octets: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        let signature = match self {
            Self::Ecdsa(_, key) => key.sign(&random, octets).ok()?.as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(octets).as_ref().to_vec(),
            Self::Rsa(scheme, key) => {
                let encoding = match scheme {
                    SignatureScheme::RsaPssSha512 => &signature::RSA_PSS_SHA512,
                    SignatureScheme::RsaPssSha384 => &signature::RSA_PSS_SHA384,
                    _ => &signature::RSA_PSS_SHA256,
                };
                let mut out = vec![0; key.public_modulus_len()];
                key.sign(encoding, &random, octets, &mut out).ok()?;
                out
            }
        };
        let identifier = self.scheme().identifier();
        Some([&[identifier.len() as u8], identifier, &signature].concat())
    }
}

/// Whether the peer's signature of `octets` is right. `key` is its SubjectPublicKeyInfo (DER); the
/// method is one of RFC 4754, or RFC 7427 with one of [`SignatureScheme`].
#[must_use]
pub fn verify_signature(method: AuthMethod, key: &[u8], octets: &[u8], data: &[u8]) -> bool {
    let verify = |algorithm: &'static dyn VerificationAlgorithm, signature: &[u8]| {
        UnparsedPublicKey::new(algorithm, key)
            .verify(octets, signature)
            .is_ok()
    };
    match method {
        AuthMethod::ECDSA_256 => verify(&signature::ECDSA_P256_SHA256_FIXED, data),
        AuthMethod::ECDSA_384 => verify(&signature::ECDSA_P384_SHA384_FIXED, data),
        AuthMethod::ECDSA_521 => verify(&signature::ECDSA_P521_SHA512_FIXED, data),
        AuthMethod::DIGITAL_SIGNATURE => {
            let Some((length, rest)) = data.split_first() else {
                return false;
            };
            let Some((identifier, signature)) = rest.split_at_checked(usize::from(*length)) else {
                return false;
            };
            let mut schemes = SignatureScheme::ALL.into_iter();
            let Some(scheme) = schemes.find(|it| it.identifier() == identifier) else {
                return false;
            };
            scheme.library().iter().any(|it| verify(*it, signature))
        }
        _ => false,
    }
}
