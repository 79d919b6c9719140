//! The control `null`: the shape of an engine without its work.
//!
//! What is measured with it is everything but the cipher: so it tells the cipher's share. It neither
//! encrypts nor authenticates, is never chosen by itself, and whoever configures it must say that this is
//! meant.

use crate::selection::Engine;
use crate::{Aead, NONCE_BYTES, TAG_BYTES, TagMismatch};
use wire::Suite;

/// The same for every packet: tells a peer that really seals, and nothing else.
const TAG: [u8; TAG_BYTES] = *b"null: no secrets";

pub(crate) struct Null;

impl Engine for Null {
    fn name(&self) -> &'static str {
        crate::NULL
    }

    fn probe(&self) -> Result<String, String> {
        Ok("control without encryption".to_owned())
    }

    fn aead(&self, suite: Suite, _key: &[u8]) -> Box<dyn Aead> {
        Box::new(Key(suite))
    }
}

struct Key(Suite);

impl Aead for Key {
    fn suite(&self) -> Suite {
        self.0
    }

    fn seal(&mut self, _nonce: &[u8; NONCE_BYTES], _aad: &[u8], src: &[u8], dst: &mut [u8]) {
        assert_eq!(
            dst.len(),
            src.len() + TAG_BYTES,
            "room for the ciphertext and the tag"
        );
        let (text, tag) = dst.split_at_mut(src.len());
        text.copy_from_slice(src);
        tag.copy_from_slice(&TAG);
    }

    fn seal_in_place(&mut self, _nonce: &[u8; NONCE_BYTES], _aad: &[u8], buf: &mut [u8]) {
        let (_, tag) = buf
            .split_last_chunk_mut::<TAG_BYTES>()
            .expect("room for the tag");
        *tag = TAG;
    }

    fn open(
        &mut self,
        _nonce: &[u8; NONCE_BYTES],
        _aad: &[u8],
        buf: &mut [u8],
    ) -> Result<(), TagMismatch> {
        match buf.last_chunk() {
            Some(&TAG) => Ok(()),
            _ => {
                buf.fill(0);
                Err(TagMismatch)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Choice, NULL, TagMismatch, select};
    use wire::Suite;

    #[test]
    fn the_control_passes_text_through_and_is_had_by_name_only() {
        let selection = select(&Choice::Named(NULL.to_owned()), Suite::Aes256Gcm).unwrap();
        assert_eq!(selection.engine(), NULL);
        let mut key = selection.aead(&[7; 32]);
        let mut sealed = [0; 3 + 16];
        key.seal(&[0; 12], b"", b"abc", &mut sealed);
        assert_eq!(&sealed[..3], b"abc");
        assert_eq!(key.open(&[0; 12], b"", &mut sealed), Ok(()));

        let auto = select(&Choice::Auto, Suite::Aes256Gcm).unwrap();
        assert_ne!(auto.engine(), NULL);
        assert!(crate::engines().iter().all(|engine| engine.name != NULL));
    }

    #[test]
    fn what_a_real_engine_has_sealed_is_refused() {
        let real = select(&Choice::Auto, Suite::Aes256Gcm).unwrap();
        let null = select(&Choice::Named(NULL.to_owned()), Suite::Aes256Gcm).unwrap();
        let mut sealed = [0; 3 + 16];
        real.aead(&[7; 32]).seal(&[0; 12], b"", b"abc", &mut sealed);
        let opened = null.aead(&[7; 32]).open(&[0; 12], b"", &mut sealed);
        assert_eq!(opened, Err(TagMismatch));
        assert_eq!(sealed, [0; 19], "nothing of it is left");
    }
}
