//! RustCrypto: algorithms that AWS-LC lacks or computes block by block (AES in ECB).

use super::{in_place, output};
use crate::device::refused;
use crate::{DeviceError, Job, Secret};
use aes::{Aes128, Aes192, Aes256};
use catalog::{Cipher, Hash};
use cbc::cipher::{
    Array, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, InnerIvInit,
    KeyInit,
};
use des::{Des, TdesEde3};
use hmac::digest::{Digest, FixedOutputReset};
use hmac::{HmacReset, Mac};
use md5::Md5;
use streebog::{Streebog256, Streebog512};

pub(super) fn digest(hash: Hash) -> Box<dyn Job> {
    match hash {
        Hash::Streebog256 => digest_of::<Streebog256>(),
        Hash::Streebog512 => digest_of::<Streebog512>(),
        _ => digest_of::<Md5>(),
    }
}

fn digest_of<D: Digest>() -> Box<dyn Job> {
    output(|input| Ok(D::digest(input)))
}

pub(super) fn hmac(hash: Hash, key: &[u8]) -> Box<dyn Job> {
    match hash {
        Hash::Streebog256 => mac_of::<HmacReset<Streebog256>>(key),
        Hash::Streebog512 => mac_of::<HmacReset<Streebog512>>(key),
        _ => mac_of::<HmacReset<Md5>>(key),
    }
}

fn mac_of<M: Mac + KeyInit + FixedOutputReset + 'static>(key: &[u8]) -> Box<dyn Job> {
    let mut mac = <M as KeyInit>::new_from_slice(key).expect("HMAC takes a key of any length");
    output(move |input| {
        Mac::update(&mut mac, input);
        Ok(mac.finalize_fixed_reset())
    })
}

pub(super) fn aes_ecb(
    cipher: Cipher,
    encrypts: bool,
    key: &[u8],
) -> Result<Box<dyn Job>, DeviceError> {
    match cipher {
        Cipher::Aes128 => ecb_of::<Aes128>(encrypts, key),
        Cipher::Aes192 => ecb_of::<Aes192>(encrypts, key),
        _ => ecb_of::<Aes256>(encrypts, key),
    }
}

fn ecb_of<C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt + 'static>(
    encrypts: bool,
    key: &[u8],
) -> Result<Box<dyn Job>, DeviceError> {
    let cipher = C::new_from_slice(key).map_err(refused)?;
    Ok(in_place(C::block_size(), move |text| {
        let (blocks, _) = Array::slice_as_chunks_mut(text);
        if encrypts {
            cipher.encrypt_blocks(blocks);
        } else {
            cipher.decrypt_blocks(blocks);
        }
        true
    }))
}

pub(super) fn des_cbc(
    cipher: Cipher,
    encrypts: bool,
    secret: &Secret,
) -> Result<Box<dyn Job>, DeviceError> {
    match cipher {
        Cipher::Des => cbc_of::<Des>(encrypts, secret),
        _ => cbc_of::<TdesEde3>(encrypts, secret),
    }
}

fn cbc_of<C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt + 'static>(
    encrypts: bool,
    secret: &Secret,
) -> Result<Box<dyn Job>, DeviceError> {
    let cipher = C::new_from_slice(&secret.key).map_err(refused)?;
    let iv: Array<u8, C::BlockSize> = secret.nonce.as_slice().try_into().map_err(refused)?;
    Ok(in_place(C::block_size(), move |text| {
        let (blocks, _) = Array::slice_as_chunks_mut(text);
        if encrypts {
            cbc::Encryptor::inner_iv_init(&cipher, &iv).encrypt_blocks(blocks);
        } else {
            cbc::Decryptor::inner_iv_init(&cipher, &iv).decrypt_blocks(blocks);
        }
        true
    }))
}
