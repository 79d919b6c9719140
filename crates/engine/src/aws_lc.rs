//! Engine `aws-lc`: AWS-LC by aws-lc-rs, on every platform that it builds for.

use crate::selection::Engine;
use crate::{Aead, NONCE_BYTES, TAG_BYTES, TagMismatch};
use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use wire::Suite;

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
            Suite::EncryptThenMac(..) => unreachable!("{suite} is not served"),
        };
        let key = UnboundKey::new(algorithm, key)
            .expect("only the length can be wrong, and the caller has checked it");
        Box::new(Key {
            suite,
            key: LessSafeKey::new(key),
        })
    }
}

/// The library keeps the key in its own context and zeroizes that when it is freed.
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
        // `open_in_place` would move the plaintext onto itself afterwards.
        let opened = buf
            .split_last_chunk_mut::<TAG_BYTES>()
            .is_some_and(|(ciphertext, tag)| {
                let nonce = Nonce::assume_unique_for_key(*nonce);
                self.key
                    .open_in_place_separate_tag(nonce, Aad::from(aad), tag, ciphertext)
                    .is_ok()
            });
        if opened {
            Ok(())
        } else {
            buf.fill(0);
            Err(TagMismatch)
        }
    }
}
