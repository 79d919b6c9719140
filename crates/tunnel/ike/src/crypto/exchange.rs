//! Key exchanges: X25519 (RFC 8031), NIST curves (RFC 5903) and ML-KEM
//! (draft-ietf-ipsecme-ikev2-mlkem).

use super::Secret;
use crate::message::KeMethod;
use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey};
use aws_lc_rs::kem::{self, Ciphertext, DecapsulationKey, EncapsulationKey};
use std::sync::Arc;
use zeroize::Zeroizing;

/// An uncompressed point begins with this byte, which IKE omits.
const UNCOMPRESSED: u8 = 4;

/// An implemented method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeMethodKind {
    /// X25519.
    X25519,
    /// P-256.
    P256,
    /// P-384.
    P384,
    /// P-521.
    P521,
    /// ML-KEM-512.
    MlKem512,
    /// ML-KEM-768.
    MlKem768,
    /// ML-KEM-1024.
    MlKem1024,
}

/// A key exchange failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeError {
    /// The peer's value is not a public key, or not one with a secret.
    #[error("the peer's public value of {0} is invalid (RFC 7296 section 3.4)")]
    PublicValue(KeMethod),
    /// The library cannot make a key.
    #[error("no key of {0} could be made: the random number generator failed")]
    Random(KeMethod),
}

impl KeMethodKind {
    /// The method of a transform, if it is implemented.
    #[must_use]
    pub const fn of(id: KeMethod) -> Option<Self> {
        Some(match id {
            KeMethod::CURVE25519 => Self::X25519,
            KeMethod::ECP_256 => Self::P256,
            KeMethod::ECP_384 => Self::P384,
            KeMethod::ECP_521 => Self::P521,
            KeMethod::ML_KEM_512 => Self::MlKem512,
            KeMethod::ML_KEM_768 => Self::MlKem768,
            KeMethod::ML_KEM_1024 => Self::MlKem1024,
            _ => return None,
        })
    }

    /// The transform.
    #[must_use]
    pub const fn id(self) -> KeMethod {
        match self {
            Self::X25519 => KeMethod::CURVE25519,
            Self::P256 => KeMethod::ECP_256,
            Self::P384 => KeMethod::ECP_384,
            Self::P521 => KeMethod::ECP_521,
            Self::MlKem512 => KeMethod::ML_KEM_512,
            Self::MlKem768 => KeMethod::ML_KEM_768,
            Self::MlKem1024 => KeMethod::ML_KEM_1024,
        }
    }

    fn library(self) -> Library {
        match self {
            Self::X25519 => Library::Agreement(&agreement::X25519),
            Self::P256 => Library::Agreement(&agreement::ECDH_P256),
            Self::P384 => Library::Agreement(&agreement::ECDH_P384),
            Self::P521 => Library::Agreement(&agreement::ECDH_P521),
            Self::MlKem512 => Library::Kem(&kem::ML_KEM_512),
            Self::MlKem768 => Library::Kem(&kem::ML_KEM_768),
            Self::MlKem1024 => Library::Kem(&kem::ML_KEM_1024),
        }
    }
}

enum Library {
    Agreement(&'static agreement::Algorithm),
    Kem(&'static kem::Algorithm),
}

#[derive(Clone)]
enum Key {
    Agreement(Arc<PrivateKey>),
    Kem(Arc<DecapsulationKey>),
}

/// The private value of an initiator, used once. The library wipes it.
#[derive(Clone)]
pub struct PrivateValue {
    method: KeMethodKind,
    key: Key,
}

impl PrivateValue {
    /// A new private value, by the library's random number generator, with its public value.
    ///
    /// # Errors
    /// When the generator fails.
    pub fn generate(method: KeMethodKind) -> Result<(Self, Vec<u8>), ExchangeError> {
        let failed = ExchangeError::Random(method.id());
        match method.library() {
            Library::Agreement(algorithm) => {
                let key = PrivateKey::generate(algorithm).map_err(|_| failed)?;
                let public = public(method, &key).ok_or(failed)?;
                let key = Key::Agreement(Arc::new(key));
                Ok((Self { method, key }, public))
            }
            Library::Kem(algorithm) => {
                let key = DecapsulationKey::generate(algorithm).map_err(|_| failed)?;
                let public = key.encapsulation_key().and_then(|it| {
                    let bytes = it.key_bytes()?;
                    Ok(bytes.as_ref().to_vec())
                });
                let public = public.map_err(|_| failed)?;
                let key = Key::Kem(Arc::new(key));
                Ok((Self { method, key }, public))
            }
        }
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> KeMethodKind {
        self.method
    }

    /// The secret, from the responder's public value.
    ///
    /// # Errors
    /// When the value is invalid.
    pub fn finish(&self, peer: &[u8]) -> Result<Secret, ExchangeError> {
        let invalid = ExchangeError::PublicValue(self.method.id());
        match &self.key {
            Key::Agreement(key) => agree(self.method, key, peer).ok_or(invalid),
            Key::Kem(key) => {
                let secret = key
                    .decapsulate(Ciphertext::from(peer))
                    .map_err(|_| invalid)?;
                Ok(Zeroizing::new(secret.as_ref().to_vec()))
            }
        }
    }
}

/// The responder's part: its public value, and the secret.
///
/// # Errors
/// When the initiator's value is invalid, or the random number generator fails.
pub fn respond(method: KeMethodKind, peer: &[u8]) -> Result<(Vec<u8>, Secret), ExchangeError> {
    match method.library() {
        Library::Agreement(_) => {
            let (private, public) = PrivateValue::generate(method)?;
            Ok((public, private.finish(peer)?))
        }
        Library::Kem(algorithm) => {
            let invalid = ExchangeError::PublicValue(method.id());
            let key = EncapsulationKey::new(algorithm, peer).map_err(|_| invalid)?;
            let (ciphertext, secret) = key.encapsulate().map_err(|_| invalid)?;
            let secret = Zeroizing::new(secret.as_ref().to_vec());
            Ok((ciphertext.as_ref().to_vec(), secret))
        }
    }
}

fn public(method: KeMethodKind, key: &PrivateKey) -> Option<Vec<u8>> {
    let public = key.compute_public_key().ok()?;
    let bytes = public.as_ref();
    match method {
        KeMethodKind::X25519 => Some(bytes.to_vec()),
        _ => bytes.strip_prefix(&[UNCOMPRESSED]).map(<[u8]>::to_vec),
    }
}

fn agree(method: KeMethodKind, key: &PrivateKey, peer: &[u8]) -> Option<Secret> {
    let Library::Agreement(algorithm) = method.library() else {
        return None;
    };
    let point = match method {
        KeMethodKind::X25519 => peer.to_vec(),
        _ => [&[UNCOMPRESSED], peer].concat(),
    };
    let peer = UnparsedPublicKey::new(algorithm, point);
    agreement::agree(key, peer, (), |secret| Ok(Zeroizing::new(secret.to_vec()))).ok()
}
