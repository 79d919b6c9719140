//! Suites in the terms of IKE.

use ike::crypto::{Cipher, Integrity};
use wire::{Cipher as EspCipher, Hmac, Suite};

/// The cipher of a suite in child SAs, if IKE has it.
pub(crate) fn child_cipher(suite: Suite) -> Option<Cipher> {
    let gcm = |key_bits| Some(Cipher::AesGcm16 { key_bits });
    match suite {
        Suite::Aes128Gcm => gcm(128),
        Suite::Aes256Gcm => gcm(256),
        Suite::ChaCha20Poly1305 => Some(Cipher::ChaCha20Poly1305),
        Suite::EncryptThenMac(cipher, hmac) => {
            let key_bits = match cipher {
                EspCipher::Aes128Cbc => 128,
                EspCipher::Aes256Cbc => 256,
                _ => return None,
            };
            let integrity = match hmac {
                Hmac::Sha1 => Integrity::HmacSha1,
                Hmac::Sha256 => Integrity::HmacSha256,
                Hmac::Sha512 => Integrity::HmacSha512,
                Hmac::Md5 => return None,
            };
            Some(Cipher::AesCbc {
                key_bits,
                integrity,
            })
        }
        Suite::Gost(_) => None,
    }
}
