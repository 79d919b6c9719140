//! The control `null`: an engine without cryptography.
//!
//! Measurements with it include everything except the cipher, and so show the cipher's share. It
//! neither encrypts nor authenticates, is never selected automatically, and its configuration
//! requires `insecure`.

use crate::engine::Engine;
use crate::transform::{one_by_one, open_each, text_of};
use crate::{
    Aead, EngineFailed, NONCE_BYTES, Packet, SequenceNumbers, TAG_BYTES, TagMismatch, Transform,
    verdict,
};
use wire::Suite;

/// A constant ICV, truncated to the suite's length. It only detects a peer that really seals.
const ICV: [u8; 32] = *b"null: no secretsnull: no secrets";
/// An AEAD's constant tag.
const TAG: [u8; TAG_BYTES] = *ICV.first_chunk().expect("it is longer");

pub(crate) struct Null;

impl Engine for Null {
    fn name(&self) -> &'static str {
        crate::NULL
    }

    fn probe(&self) -> Result<String, String> {
        Ok("control without encryption".to_owned())
    }

    fn aead(&self, suite: Suite, _key: &[u8]) -> Box<dyn Aead> {
        Box::new(Key(suite, SequenceNumbers::Extended))
    }

    fn transform(
        &self,
        suite: Suite,
        _keymat: &[u8],
        numbers: SequenceNumbers,
    ) -> Box<dyn Transform> {
        Box::new(Key(suite, numbers))
    }
}

/// The part of a key that it needs: the suite, for the lengths of packets, and the numbers.
struct Key(Suite, SequenceNumbers);

impl Transform for Key {
    fn suite(&self) -> Suite {
        self.0
    }

    fn numbers(&self) -> SequenceNumbers {
        self.1
    }

    fn seal_from(
        &mut self,
        _sequence_high: u32,
        text: &[u8],
        packet: &mut [u8],
    ) -> Result<(), EngineFailed> {
        let place = text_of(self.0, packet.len());
        let icv = place.end;
        packet[place].copy_from_slice(text);
        packet[icv..].copy_from_slice(&ICV[..self.0.icv_bytes()]);
        Ok(())
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        for (packet, _) in one_by_one(buffer, packets) {
            let icv = text_of(self.0, packet.len()).end;
            packet[icv..].copy_from_slice(&ICV[..self.0.icv_bytes()]);
        }
        Ok(())
    }

    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        open_each(buffer, packets, authentic, |packet, _| {
            let text = text_of(self.0, packet.len());
            let authentic = packet[text.end..] == ICV[..self.0.icv_bytes()];
            // As a real engine: a measurement is to include the zeroing.
            if !authentic {
                packet[text].fill(0);
            }
            authentic
        })
    }
}

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
        // A packet of a real engine has another tag, so a wrong pairing of ends is seen.
        verdict(buf.last_chunk() == Some(&TAG), buf)
    }
}

#[cfg(test)]
mod tests {
    use crate::{CpuChoice, NULL, Packet, TagMismatch, select};
    use wire::Suite;

    #[test]
    fn the_control_copies_text_and_is_selected_by_name_only() {
        let selection = select(&CpuChoice::Named(NULL.to_owned()), Suite::Aes256Gcm).unwrap();
        assert_eq!(selection.engine(), NULL);
        let mut key = selection.aead(&[7; 32]);
        let mut sealed = [0; 3 + 16];
        key.seal(&[0; 12], b"", b"abc", &mut sealed);
        assert_eq!(&sealed[..3], b"abc");
        assert_eq!(key.open(&[0; 12], b"", &mut sealed), Ok(()));

        let auto = select(&CpuChoice::Auto, Suite::Aes256Gcm).unwrap();
        assert_ne!(auto.engine(), NULL);
        assert!(crate::engines().iter().all(|engine| engine.name != NULL));
    }

    #[test]
    fn packets_of_a_real_engine_are_refused() {
        let real = select(&CpuChoice::Auto, Suite::Aes256Gcm).unwrap();
        let null = select(&CpuChoice::Named(NULL.to_owned()), Suite::Aes256Gcm).unwrap();
        let mut sealed = [0; 3 + 16];
        real.aead(&[7; 32]).seal(&[0; 12], b"", b"abc", &mut sealed);
        let opened = null.aead(&[7; 32]).open(&[0; 12], b"", &mut sealed);
        assert_eq!(opened, Err(TagMismatch));
        assert_eq!(sealed, [0; 19], "the text is wiped");
    }

    #[test]
    fn every_suite_keeps_its_shape_and_text() {
        for suite in Suite::ALL {
            let null = select(&CpuChoice::Named(NULL.to_owned()), suite).unwrap();
            let mut key = null.transform(&vec![7; suite.keymat_bytes()]);
            let (start, text) = (8 + suite.iv_bytes(), [5; 48]);
            let bytes = start + text.len() + suite.icv_bytes();
            let mut packet = vec![1; bytes];
            key.seal_from(0, &text, &mut packet).unwrap();
            assert_eq!(packet[start..][..48], text, "{suite}");
            let icv = &packet[start + 48..];
            assert!(
                b"null: no secretsnull: no secrets".starts_with(icv),
                "{suite}"
            );

            let place = Packet {
                at: 0,
                bytes,
                sequence_high: 0,
            };
            let mut again = packet.clone();
            again[start + 48..].fill(0);
            key.seal(&mut again, &[place]).unwrap();
            assert_eq!(again, packet, "{suite}");

            let mut authentic = [false];
            key.open(&mut packet, &[place], &mut authentic).unwrap();
            assert_eq!((authentic, &packet[start..][..48]), ([true], &text[..]));
            if suite.icv_bytes() == 0 {
                continue;
            }
            packet[bytes - 1] ^= 1;
            key.open(&mut packet, &[place], &mut authentic).unwrap();
            assert_eq!((authentic, &packet[start..][..48]), ([false], &[0; 48][..]));
        }
    }
}
