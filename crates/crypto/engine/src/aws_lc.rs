//! Engine `aws-lc`: AWS-LC through aws-lc-rs, on every platform that it supports.
//!
//! Without DES: aws-lc-rs refuses weak keys and triple keys with repetitions, and an SA may have
//! either. Without MD5: aws-lc-rs has no HMAC-MD5.

use crate::encrypt_then_mac::{Cbc, EncryptThenMac, Mac};
use crate::engine::Engine;
use crate::{Aead, NONCE_BYTES, SequenceNumbers, TAG_BYTES, TagMismatch, Transform, verdict};
use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use aws_lc_rs::cipher::{
    AES_128, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use wire::{Cipher, Hmac, Suite};

pub(crate) struct AwsLc;

impl Engine for AwsLc {
    fn name(&self) -> &'static str {
        "aws-lc"
    }

    fn probe(&self) -> Result<String, String> {
        Ok(concat!("aws-lc-rs ", env!("AWS_LC_RS_VERSION")).to_owned())
    }

    fn aead(&self, suite: Suite, key: &[u8]) -> Box<dyn Aead> {
        let algorithm = match suite {
            Suite::Aes128Gcm => &AES_128_GCM,
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
            Suite::EncryptThenMac(..) | Suite::Gost(_) => unreachable!("{suite} is not served"),
        };
        // The type that counts nonces itself cannot take those of ESP, which are in the packets.
        let key = UnboundKey::new(algorithm, key)
            .expect("only the length can be wrong, and the caller has checked it");
        Box::new(Key {
            suite,
            key: LessSafeKey::new(key),
        })
    }

    fn encrypt_then_mac(
        &self,
        cipher: Cipher,
        hmac: Hmac,
        cipher_key: &[u8],
        hmac_key: &[u8],
        numbers: SequenceNumbers,
    ) -> Box<dyn Transform> {
        let suite = Suite::EncryptThenMac(cipher, hmac);
        let cbc: Option<Box<dyn Cbc>> = match cipher {
            Cipher::Null => None,
            _ => Some(Box::new(AesCbcKey::new(cipher_key))),
        };
        let algorithm =
            hmac_algorithm(hmac).unwrap_or_else(|| unreachable!("{suite} is not served"));
        let mac = HmacKey(hmac::Key::new(algorithm, hmac_key));
        Box::new(EncryptThenMac::new(suite, cbc, Box::new(mac), numbers))
    }
}

fn hmac_algorithm(hmac: Hmac) -> Option<hmac::Algorithm> {
    match hmac {
        Hmac::Md5 => None,
        Hmac::Sha1 => Some(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
        Hmac::Sha256 => Some(hmac::HMAC_SHA256),
        Hmac::Sha512 => Some(hmac::HMAC_SHA512),
    }
}

/// The library keeps the key in its own context and zeroizes it when freed.
struct Key {
    suite: Suite,
    key: LessSafeKey,
}

impl Aead for Key {
    fn suite(&self) -> Suite {
        self.suite
    }

    fn seal(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], src: &[u8], dst: &mut [u8]) {
        assert_eq!(
            dst.len(),
            src.len() + TAG_BYTES,
            "room for the ciphertext and the tag"
        );
        let (ciphertext, tag) = dst.split_at_mut(src.len());
        let nonce = Nonce::assume_unique_for_key(*nonce);
        // No nonce is used twice: the SA counts its packets.
        self.key
            .seal_out_of_place_scatter(nonce, Aad::from(aad), src, ciphertext, &[], tag)
            .expect("the lengths fit and no packet is near the 64 GiB that one nonce may seal");
    }

    fn seal_in_place(&mut self, nonce: &[u8; NONCE_BYTES], aad: &[u8], buf: &mut [u8]) {
        let (text, tag) = buf
            .split_last_chunk_mut::<TAG_BYTES>()
            .expect("room for the tag");
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let made = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(aad), text)
            .expect("no packet is near the 64 GiB that one nonce may seal");
        tag.copy_from_slice(made.as_ref());
    }

    fn open(
        &mut self,
        nonce: &[u8; NONCE_BYTES],
        aad: &[u8],
        buf: &mut [u8],
    ) -> Result<(), TagMismatch> {
        // `open_in_place` would copy the plaintext onto itself afterwards.
        let opened = buf
            .split_last_chunk_mut::<TAG_BYTES>()
            .is_some_and(|(ciphertext, tag)| {
                let nonce = Nonce::assume_unique_for_key(*nonce);
                self.key
                    .open_in_place_separate_tag(nonce, Aad::from(aad), tag, ciphertext)
                    .is_ok()
            });
        verdict(opened, buf)
    }
}

/// An AES key, expanded for both directions; the library zeroizes it.
struct AesCbcKey {
    encrypting: EncryptingKey,
    decrypting: DecryptingKey,
}

impl AesCbcKey {
    fn new(key: &[u8]) -> Self {
        let algorithm = match key.len() {
            16 => &AES_128,
            _ => &AES_256,
        };
        // Two copies, because each direction takes its key by value.
        let unbound = || {
            UnboundCipherKey::new(algorithm, key)
                .expect("keying material is divided by the suite's lengths")
        };
        Self {
            encrypting: EncryptingKey::cbc(unbound()).expect("AES has CBC"),
            decrypting: DecryptingKey::cbc(unbound()).expect("AES has CBC"),
        }
    }
}

fn aes_iv(iv: &[u8]) -> FixedLength<16> {
    iv.try_into().expect("an IV of one block")
}

impl Cbc for AesCbcKey {
    fn encrypt(&mut self, iv: &[u8], text: &mut [u8]) {
        let context = EncryptionContext::Iv128(aes_iv(iv));
        self.encrypting
            .less_safe_encrypt(text, context)
            .expect("text of whole blocks");
    }

    fn decrypt(&mut self, iv: &[u8], text: &mut [u8]) {
        let context = DecryptionContext::Iv128(aes_iv(iv));
        self.decrypting
            .decrypt(text, context)
            .expect("text of whole blocks");
    }
}

/// An HMAC with both keyed states computed; the library zeroizes them.
struct HmacKey(hmac::Key);

impl Mac for HmacKey {
    fn authenticate(&mut self, parts: [&[u8]; 2], icv: &mut [u8]) {
        // All its state is inline: creating it does not allocate.
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(part);
        }
        // Truncated as each HMAC for ESP is (RFC 2404 §2, RFC 4868 §2.6).
        icv.copy_from_slice(&context.sign().as_ref()[..icv.len()]);
    }
}
