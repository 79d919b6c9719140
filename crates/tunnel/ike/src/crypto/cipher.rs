//! The encrypted payload (RFC 7296 section 3.14, RFC 5282, RFC 7634) and its fragments (RFC 7383).

use super::{Prf, Secret};
use crate::message::{Encryption, Header, IntegrityId, Message, Payload, PayloadType, TooLong};
use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::constant_time;
use zeroize::Zeroizing;

const AEAD_IV_BYTES: usize = 8;
const AEAD_TAG_BYTES: usize = 16;
const AEAD_SALT_BYTES: usize = 4;
const BLOCK_BYTES: usize = 16;

/// Integrity of messages that are encrypted without an AEAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Integrity {
    /// HMAC-SHA-1, 12 bytes.
    HmacSha1,
    /// HMAC-SHA-256, 16 bytes.
    HmacSha256,
    /// HMAC-SHA-384, 24 bytes.
    HmacSha384,
    /// HMAC-SHA-512, 32 bytes.
    HmacSha512,
}

impl Integrity {
    /// The algorithm of a transform, if it is implemented.
    #[must_use]
    pub const fn of(id: IntegrityId) -> Option<Self> {
        Some(match id {
            IntegrityId::HMAC_SHA1_96 => Self::HmacSha1,
            IntegrityId::HMAC_SHA2_256_128 => Self::HmacSha256,
            IntegrityId::HMAC_SHA2_384_192 => Self::HmacSha384,
            IntegrityId::HMAC_SHA2_512_256 => Self::HmacSha512,
            _ => return None,
        })
    }

    const fn hash(self) -> Prf {
        match self {
            Self::HmacSha1 => Prf::HmacSha1,
            Self::HmacSha256 => Prf::HmacSha256,
            Self::HmacSha384 => Prf::HmacSha384,
            Self::HmacSha512 => Prf::HmacSha512,
        }
    }

    const fn code_bytes(self) -> usize {
        match self {
            Self::HmacSha1 => 12,
            _ => self.hash().bytes() / 2,
        }
    }
}

/// The protection of encrypted payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// AES-GCM with an ICV of 16 bytes.
    AesGcm16 {
        /// 128, 192 or 256.
        key_bits: u16,
    },
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305,
    /// AES-CBC with an HMAC.
    AesCbc {
        /// 128, 192 or 256.
        key_bits: u16,
        /// The HMAC.
        integrity: Integrity,
    },
}

impl Cipher {
    /// The protection by transforms, if it is implemented. An AEAD needs no integrity algorithm.
    #[must_use]
    pub fn of(
        encryption: Encryption,
        key_bits: Option<u16>,
        integrity: Option<IntegrityId>,
    ) -> Option<Self> {
        let has_integrity = integrity.is_some_and(|id| id != IntegrityId::NONE);
        let aes_bits = key_bits.filter(|bits| matches!(bits, 128 | 192 | 256));
        match encryption {
            Encryption::AES_GCM_16 if !has_integrity => {
                aes_bits.map(|key_bits| Self::AesGcm16 { key_bits })
            }
            Encryption::CHACHA20_POLY1305 if !has_integrity && key_bits.is_none() => {
                Some(Self::ChaCha20Poly1305)
            }
            Encryption::AES_CBC => Some(Self::AesCbc {
                key_bits: aes_bits?,
                integrity: Integrity::of(integrity?)?,
            }),
            _ => None,
        }
    }

    /// Bytes of an encryption key, with the salt of an AEAD.
    #[must_use]
    pub fn encryption_key_bytes(self) -> usize {
        match self {
            Self::AesGcm16 { key_bits } => usize::from(key_bits) / 8 + AEAD_SALT_BYTES,
            Self::ChaCha20Poly1305 => 32 + AEAD_SALT_BYTES,
            Self::AesCbc { key_bits, .. } => usize::from(key_bits) / 8,
        }
    }

    /// Bytes of an integrity key.
    #[must_use]
    pub fn integrity_key_bytes(self) -> usize {
        match self {
            Self::AesCbc { integrity, .. } => integrity.hash().bytes(),
            _ => 0,
        }
    }

    /// Bytes of an IV.
    #[must_use]
    pub const fn iv_bytes(self) -> usize {
        match self {
            Self::AesCbc { .. } => BLOCK_BYTES,
            _ => AEAD_IV_BYTES,
        }
    }

    const fn code_bytes(self) -> usize {
        match self {
            Self::AesCbc { integrity, .. } => integrity.code_bytes(),
            _ => AEAD_TAG_BYTES,
        }
    }

    /// Bytes of an encrypted payload's body for so many inner bytes.
    #[must_use]
    pub const fn sealed_bytes(self, inner: usize) -> usize {
        self.iv_bytes() + self.padded_bytes(inner) + self.code_bytes()
    }

    /// Inner bytes with padding and its length.
    const fn padded_bytes(self, inner: usize) -> usize {
        match self {
            Self::AesCbc { .. } => (inner + 1).next_multiple_of(BLOCK_BYTES),
            _ => inner + 1,
        }
    }
}

/// Keys of one direction.
#[derive(Clone, Copy)]
pub struct CipherKeys<'a> {
    /// `SK_e`.
    pub encryption: &'a [u8],
    /// `SK_a`.
    pub integrity: &'a [u8],
}

/// A message could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// No encrypted payload, or one that is too short.
    #[error("the message has no encrypted payload of a possible length (RFC 7296 section 3.14)")]
    Shape,
    /// The integrity check failed.
    #[error("the integrity check of the message failed (RFC 7296 section 3.14)")]
    Integrity,
    /// The padding exceeds the payload.
    #[error("the padding of the message is longer than its payload (RFC 7296 section 3.14)")]
    Padding,
}

/// A message with encrypted payloads. `fragment` is its number and the number of fragments. The
/// `iv` must be unique for an AEAD's key, and unpredictable for CBC.
///
/// # Errors
/// When the payloads exceed the length of a message.
///
/// # Panics
/// When a key or the IV has a wrong length.
pub fn seal(
    cipher: Cipher,
    keys: CipherKeys<'_>,
    header: Header,
    (first, inner): (PayloadType, &[u8]),
    fragment: Option<(u16, u16)>,
    iv: &[u8],
) -> Result<Vec<u8>, TooLong> {
    assert_eq!(iv.len(), cipher.iv_bytes(), "an IV of the cipher");
    let padded = cipher.padded_bytes(inner.len());
    let mut body = Vec::with_capacity(cipher.sealed_bytes(inner.len()));
    body.extend_from_slice(iv);
    body.extend_from_slice(inner);
    body.resize(iv.len() + padded, 0);
    body[iv.len() + padded - 1] = (padded - inner.len() - 1) as u8;
    body.resize(body.len() + cipher.code_bytes(), 0);
    let body_bytes = body.len();
    let payload = match fragment {
        None => Payload::Encrypted { first, body },
        Some((number, total)) => Payload::Fragment {
            first,
            number,
            total,
            body,
        },
    };
    let message = Message {
        header,
        payloads: vec![payload],
    };
    let mut out = Vec::new();
    message.emit(&mut out)?;
    let ahead_bytes = out.len() - body_bytes;
    let (ahead, body) = out.split_at_mut(ahead_bytes);
    let (iv, text) = body.split_at_mut(iv.len());
    let (text, code) = text.split_at_mut(padded);
    match cipher {
        Cipher::AesCbc { integrity, .. } => {
            cbc_encrypt(keys.encryption, iv, text);
            let parts: [&[u8]; 3] = [ahead, iv, text];
            let full = integrity.hash().compute(keys.integrity, &parts);
            code.copy_from_slice(&full[..integrity.code_bytes()]);
        }
        _ => {
            let (key, nonce) = aead_key(cipher, keys.encryption, iv);
            let tag = key.seal_in_place_separate_tag(nonce, Aad::from(&*ahead), text);
            code.copy_from_slice(tag.expect("a message is far below the limit").as_ref());
        }
    }
    Ok(out)
}

/// The inner payloads of a message, or a part of them in a fragment. `datagram` is the message as
/// it was received, and `body_bytes` the length of its encrypted body, which ends it.
///
/// # Errors
/// When the message is too short, or was not sealed by these keys.
pub fn open(
    cipher: Cipher,
    keys: CipherKeys<'_>,
    datagram: &[u8],
    body_bytes: usize,
) -> Result<Secret, OpenError> {
    let at = datagram
        .len()
        .checked_sub(body_bytes)
        .ok_or(OpenError::Shape)?;
    let (ahead, body) = datagram.split_at(at);
    let (iv, rest) = body
        .split_at_checked(cipher.iv_bytes())
        .ok_or(OpenError::Shape)?;
    let text_bytes = rest
        .len()
        .checked_sub(cipher.code_bytes())
        .ok_or(OpenError::Shape)?;
    let (text, code) = rest.split_at(text_bytes);
    let mut inner;
    match cipher {
        Cipher::AesCbc { integrity, .. } => {
            if text.is_empty() || !text.len().is_multiple_of(BLOCK_BYTES) {
                return Err(OpenError::Shape);
            }
            let full = integrity.hash().compute(keys.integrity, &[ahead, iv, text]);
            constant_time::verify_slices_are_equal(&full[..integrity.code_bytes()], code)
                .map_err(|_| OpenError::Integrity)?;
            inner = Zeroizing::new(text.to_vec());
            cbc_decrypt(keys.encryption, iv, &mut inner);
        }
        _ => {
            let (key, nonce) = aead_key(cipher, keys.encryption, iv);
            inner = Zeroizing::new(rest.to_vec());
            key.open_in_place(nonce, Aad::from(ahead), &mut inner)
                .map_err(|_| OpenError::Integrity)?;
            inner.truncate(text_bytes);
        }
    }
    // The content of the padding is not checked: a sender may choose it.
    let padding = usize::from(*inner.last().ok_or(OpenError::Shape)?);
    let end = inner
        .len()
        .checked_sub(1 + padding)
        .ok_or(OpenError::Padding)?;
    inner.truncate(end);
    Ok(inner)
}

fn aead_key(cipher: Cipher, key: &[u8], iv: &[u8]) -> (LessSafeKey, Nonce) {
    let (key, salt) = key.split_at(key.len() - AEAD_SALT_BYTES);
    let algorithm = match (cipher, key.len()) {
        (Cipher::ChaCha20Poly1305, _) => &aead::CHACHA20_POLY1305,
        (_, 16) => &aead::AES_128_GCM,
        (_, 24) => &aead::AES_192_GCM,
        _ => &aead::AES_256_GCM,
    };
    let mut nonce = [0; 12];
    nonce[..AEAD_SALT_BYTES].copy_from_slice(salt);
    nonce[AEAD_SALT_BYTES..].copy_from_slice(iv);
    let key = UnboundKey::new(algorithm, key).expect("a key of the cipher's length");
    (LessSafeKey::new(key), Nonce::assume_unique_for_key(nonce))
}

fn cbc_key(key: &[u8]) -> UnboundCipherKey {
    let algorithm = match key.len() {
        16 => &AES_128,
        24 => &AES_192,
        _ => &AES_256,
    };
    UnboundCipherKey::new(algorithm, key).expect("a key of the cipher's length")
}

fn cbc_encrypt(key: &[u8], iv: &[u8], text: &mut [u8]) {
    let iv: [u8; BLOCK_BYTES] = iv.try_into().expect("one block");
    let key = EncryptingKey::cbc(cbc_key(key)).expect("an AES key");
    let context = EncryptionContext::Iv128(iv.into());
    key.less_safe_encrypt(text, context).expect("whole blocks");
}

fn cbc_decrypt(key: &[u8], iv: &[u8], text: &mut [u8]) {
    let iv: [u8; BLOCK_BYTES] = iv.try_into().expect("one block");
    let key = DecryptingKey::cbc(cbc_key(key)).expect("an AES key");
    let context = DecryptionContext::Iv128(iv.into());
    key.decrypt(text, context).expect("whole blocks");
}
