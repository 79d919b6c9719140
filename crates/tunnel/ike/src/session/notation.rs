//! Suites of IKE SAs in strongSwan's notation: `aes256gcm16-prfsha384-x25519-ke1_mlkem768`.

use super::{ADDITIONAL_MAX, IkeSuite};
use crate::crypto::{Cipher, Integrity, KeMethodKind, Prf};
use std::str::FromStr;

/// Why a text is no suite, as the predicate of a sentence about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotationError(String);

impl From<&str> for NotationError {
    fn from(what: &str) -> Self {
        Self(what.to_owned())
    }
}

impl FromStr for IkeSuite {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let mut encryption = None;
        let mut integrity = None;
        let mut prf = None;
        let mut exchange = None;
        let mut additional = [None; ADDITIONAL_MAX];
        for token in text.split('-') {
            let is_repeated = if let Some(found) = encryption_of(token) {
                encryption.replace(found).is_some()
            } else if let Some(found) = integrity_of(token) {
                integrity.replace(found).is_some()
            } else if let Some(found) = prf_of(token) {
                prf.replace(found).is_some()
            } else if let Some(found) = exchange_of(token) {
                exchange.replace(found).is_some()
            } else {
                let unknown = || NotationError(format!("has an unknown part `{token}`"));
                let (place, kind) = additional_of(token).ok_or_else(unknown)?;
                additional[place].replace(kind).is_some()
            };
            if is_repeated {
                let what = format!("has a second algorithm of one kind, `{token}`");
                return Err(NotationError(what));
            }
        }
        let encryption = encryption.ok_or("has no cipher")?;
        let exchange = exchange.ok_or("has no key exchange")?;
        let (cipher, usual_prf) = match (encryption, integrity) {
            (Encryption::Aead(cipher), None) => (cipher, None),
            (Encryption::Aead(_), Some(_)) => {
                return Err("has a cipher with integrity, and another integrity".into());
            }
            (Encryption::Cbc(_), None) => return Err("has no integrity".into()),
            (Encryption::Cbc(key_bits), Some((integrity, prf))) => {
                let cipher = Cipher::AesCbc {
                    key_bits,
                    integrity,
                };
                (cipher, Some(prf))
            }
        };
        let prf = prf.or(usual_prf).ok_or("has no pseudo-random function")?;
        // Without gaps, as the exchanges follow each other.
        let mut pairs = additional.windows(2);
        if pairs.any(|pair| pair[0].is_none() && pair[1].is_some()) {
            return Err("has additional key exchanges with a gap".into());
        }
        Ok(Self {
            cipher,
            prf,
            exchange,
            additional,
        })
    }
}

#[derive(Clone, Copy)]
enum Encryption {
    Aead(Cipher),
    Cbc(u16),
}
fn encryption_of(token: &str) -> Option<Encryption> {
    let gcm = |key_bits| Some(Encryption::Aead(Cipher::AesGcm16 { key_bits }));
    match token {
        "aes128gcm16" => gcm(128),
        "aes192gcm16" => gcm(192),
        "aes256gcm16" => gcm(256),
        "chacha20poly1305" => Some(Encryption::Aead(Cipher::ChaCha20Poly1305)),
        "aes128" => Some(Encryption::Cbc(128)),
        "aes192" => Some(Encryption::Cbc(192)),
        "aes256" => Some(Encryption::Cbc(256)),
        _ => None,
    }
}

fn integrity_of(token: &str) -> Option<(Integrity, Prf)> {
    match token {
        "sha1" => Some((Integrity::HmacSha1, Prf::HmacSha1)),
        "sha256" => Some((Integrity::HmacSha256, Prf::HmacSha256)),
        "sha384" => Some((Integrity::HmacSha384, Prf::HmacSha384)),
        "sha512" => Some((Integrity::HmacSha512, Prf::HmacSha512)),
        _ => None,
    }
}

fn prf_of(token: &str) -> Option<Prf> {
    match token {
        "prfsha1" => Some(Prf::HmacSha1),
        "prfsha256" => Some(Prf::HmacSha256),
        "prfsha384" => Some(Prf::HmacSha384),
        "prfsha512" => Some(Prf::HmacSha512),
        _ => None,
    }
}

fn exchange_of(token: &str) -> Option<KeMethodKind> {
    match token {
        "x25519" | "curve25519" => Some(KeMethodKind::X25519),
        "ecp256" => Some(KeMethodKind::P256),
        "ecp384" => Some(KeMethodKind::P384),
        "ecp521" => Some(KeMethodKind::P521),
        "mlkem512" => Some(KeMethodKind::MlKem512),
        "mlkem768" => Some(KeMethodKind::MlKem768),
        "mlkem1024" => Some(KeMethodKind::MlKem1024),
        _ => None,
    }
}

/// The place among the additional exchanges, and the exchange.
fn additional_of(token: &str) -> Option<(usize, KeMethodKind)> {
    let (place, name) = token.strip_prefix("ke")?.split_once('_')?;
    let place: usize = place.parse().ok()?;
    let place = place.checked_sub(1).filter(|it| *it < ADDITIONAL_MAX)?;
    Some((place, exchange_of(name)?))
}
