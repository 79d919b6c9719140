//! AWS-LC: hashes, MACs and ciphers.

use super::{function, in_place, output};
use crate::device::{aws_lc_failed, refused};
use crate::{DeviceError, Job, Secret};
use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    self, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{cmac, digest, hmac};
use catalog::{Cipher, Hash, Mode};

const BLOCK_BYTES: usize = 16;

pub(super) fn digest(hash: Hash) -> Box<dyn Job> {
    let algorithm = match hash {
        Hash::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
        Hash::Sha224 => &digest::SHA224,
        Hash::Sha256 => &digest::SHA256,
        Hash::Sha384 => &digest::SHA384,
        Hash::Sha512 => &digest::SHA512,
        Hash::Sha3_256 => &digest::SHA3_256,
        Hash::Sha3_512 => &digest::SHA3_512,
        Hash::Md5 | Hash::Streebog256 | Hash::Streebog512 => unreachable!("not a hash of AWS-LC"),
    };
    output(|input| Ok(digest::digest(algorithm, input)))
}

pub(super) fn hmac(hash: Hash, key: &[u8]) -> Box<dyn Job> {
    let algorithm = match hash {
        Hash::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
        Hash::Sha224 => hmac::HMAC_SHA224,
        Hash::Sha256 => hmac::HMAC_SHA256,
        Hash::Sha384 => hmac::HMAC_SHA384,
        Hash::Sha512 => hmac::HMAC_SHA512,
        _ => unreachable!("not a hash of AWS-LC"),
    };
    let key = hmac::Key::new(algorithm, key);
    output(move |input| Ok(hmac::sign(&key, input)))
}

pub(super) fn cmac(cipher: Cipher, key: &[u8]) -> Result<Box<dyn Job>, DeviceError> {
    let algorithm = match cipher {
        Cipher::Aes128 => cmac::AES_128,
        Cipher::Aes192 => cmac::AES_192,
        _ => cmac::AES_256,
    };
    let key = cmac::Key::new(algorithm, key).map_err(refused)?;
    Ok(output(move |input| {
        cmac::sign(&key, input).map_err(aws_lc_failed)
    }))
}

/// AES in CBC, with and without padding, and in CTR.
pub(super) fn cipher(
    cipher: Cipher,
    mode: Mode,
    encrypts: bool,
    secret: &Secret,
) -> Result<Box<dyn Job>, DeviceError> {
    let algorithm = match cipher {
        Cipher::Aes128 => &cipher::AES_128,
        Cipher::Aes192 => &cipher::AES_192,
        _ => &cipher::AES_256,
    };
    let key = UnboundCipherKey::new(algorithm, &secret.key).map_err(refused)?;
    let iv: [u8; BLOCK_BYTES] = secret.nonce.as_slice().try_into().map_err(refused)?;
    let is_ctr = match mode {
        Mode::Cbc | Mode::CbcPad => false,
        Mode::Ctr => true,
        Mode::Ecb | Mode::CtrAcpkm => {
            return Err(DeviceError::NotOffered(
                "AES in this mode is not implemented".to_owned(),
            ));
        }
    };
    if encrypts {
        let key = if is_ctr {
            EncryptingKey::ctr(key)
        } else {
            EncryptingKey::cbc(key)
        };
        let key = key.map_err(refused)?;
        let encrypt = move |text: &mut [u8]| {
            let context = EncryptionContext::Iv128(FixedLength::from(iv));
            key.less_safe_encrypt(text, context).is_ok()
        };
        return Ok(match mode {
            Mode::CbcPad => function(move |input, output| {
                output.clear();
                output.extend_from_slice(input);
                pad(output);
                Ok(encrypt(output))
            }),
            Mode::Cbc => in_place(BLOCK_BYTES, encrypt),
            _ => in_place(1, encrypt),
        });
    }
    let key = if is_ctr {
        DecryptingKey::ctr(key)
    } else {
        DecryptingKey::cbc(key)
    };
    let key = key.map_err(refused)?;
    let decrypt = move |text: &mut [u8]| {
        let context = DecryptionContext::Iv128(FixedLength::from(iv));
        key.decrypt(text, context).is_ok()
    };
    Ok(match mode {
        Mode::CbcPad => function(move |input, output| {
            output.clear();
            output.extend_from_slice(input);
            Ok(input.len().is_multiple_of(BLOCK_BYTES) && decrypt(output) && unpad(output))
        }),
        Mode::Cbc => in_place(BLOCK_BYTES, decrypt),
        _ => in_place(1, decrypt),
    })
}

pub(super) const fn gcm(cipher: Cipher) -> &'static aead::Algorithm {
    match cipher {
        Cipher::Aes128 => &aead::AES_128_GCM,
        Cipher::Aes192 => &aead::AES_192_GCM,
        _ => &aead::AES_256_GCM,
    }
}

pub(super) fn aead(
    algorithm: &'static aead::Algorithm,
    encrypts: bool,
    secret: &Secret,
) -> Result<Box<dyn Job>, DeviceError> {
    let key = LessSafeKey::new(UnboundKey::new(algorithm, &secret.key).map_err(refused)?);
    let nonce: [u8; 12] = secret.nonce.as_slice().try_into().map_err(refused)?;
    let aad = secret.aad.clone();
    Ok(function(move |input, output| {
        output.clear();
        output.extend_from_slice(input);
        let nonce = Nonce::assume_unique_for_key(nonce);
        if encrypts {
            key.seal_in_place_append_tag(nonce, Aad::from(&aad), output)
                .map_err(aws_lc_failed)?;
            return Ok(true);
        }
        let opened = key
            .open_in_place(nonce, Aad::from(&aad), output)
            .map(|text| text.len());
        output.truncate(opened.unwrap_or(0));
        Ok(opened.is_ok())
    }))
}

/// Padding of PKCS#7 (RFC 5652 §6.3).
fn pad(text: &mut Vec<u8>) {
    let missing = BLOCK_BYTES - text.len() % BLOCK_BYTES;
    let byte = u8::try_from(missing).expect("at most a block");
    text.resize(text.len() + missing, byte);
}

/// Removes the padding; `false`: it is invalid.
fn unpad(text: &mut Vec<u8>) -> bool {
    // Not in constant time: keys of trials protect nothing.
    let count = text.last().map_or(0, |&last| usize::from(last));
    let right = (1..=BLOCK_BYTES).contains(&count)
        && text.len() >= count
        && text[text.len() - count..]
            .iter()
            .all(|&byte| usize::from(byte) == count);
    let left = if right { text.len() - count } else { 0 };
    text.truncate(left);
    right
}
