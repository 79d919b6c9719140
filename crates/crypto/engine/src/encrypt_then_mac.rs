//! Suites with an HMAC. An engine adds implementations of CBC and MAC.
//!
//! To seal: encrypt the text, then authenticate header, IV, ciphertext and the high half of an
//! extended sequence number, which is not sent (RFC 4303 §2.2.1, §3.3.2.1). To open: compare the
//! ICV in constant time, and decrypt only what is authentic.

use crate::transform::{
    EngineFailed, Packet, SequenceNumbers, Transform, one_by_one, open_each, text_of,
};
use ctutils::CtEq;
use std::ops::Range;
use wire::overhead::ESP_HEADER_BYTES;
use wire::{Hmac, Suite};

/// Length of the longest ICV.
const ICV_BYTES_MAX: usize = Hmac::Sha512.icv_bytes();

/// A block cipher in CBC under one key. Callers pass an IV of one block, and text of whole blocks.
pub(crate) trait Cbc: Send {
    /// Encrypts `text` in place.
    fn encrypt(&mut self, iv: &[u8], text: &mut [u8]);

    /// Encrypts several texts in place, each behind its IV. A single chain of blocks leaves most of
    /// a core idle; an implementation may process several chains in parallel.
    fn encrypt_all(&mut self, buffer: &mut [u8], places: &mut dyn Iterator<Item = Place>) {
        for Place { iv, text } in places {
            // IV and text are borrowed apart: one is read while the other is changed.
            let (before, behind) = buffer.split_at_mut(text.start);
            self.encrypt(&before[iv..], &mut behind[..text.len()]);
        }
    }

    /// Decrypts `text` in place.
    fn decrypt(&mut self, iv: &[u8], text: &mut [u8]);
}

/// The position of a packet's IV, and of the text behind it.
pub(crate) struct Place {
    pub(crate) iv: usize,
    pub(crate) text: Range<usize>,
}

/// An HMAC under one key.
pub(crate) trait Mac: Send {
    /// Writes the truncated MAC over the concatenation of both parts to `icv`.
    fn authenticate(&mut self, parts: [&[u8]; 2], icv: &mut [u8]);
}

/// One SA of a suite with an HMAC.
pub(crate) struct EncryptThenMac {
    suite: Suite,
    /// `None` if the suite does not encrypt.
    cbc: Option<Box<dyn Cbc>>,
    mac: Box<dyn Mac>,
    numbers: SequenceNumbers,
}

impl EncryptThenMac {
    pub(crate) fn new(
        suite: Suite,
        cbc: Option<Box<dyn Cbc>>,
        mac: Box<dyn Mac>,
        numbers: SequenceNumbers,
    ) -> Self {
        assert_eq!(
            cbc.is_some(),
            suite.iv_bytes() > 0,
            "{suite} and its cipher"
        );
        Self {
            suite,
            cbc,
            mac,
            numbers,
        }
    }

    fn encrypt(&mut self, packet: &mut [u8]) {
        let text = text_of(self.suite, packet.len());
        if let Some(cbc) = &mut self.cbc {
            let (prefix, behind) = packet.split_at_mut(text.start);
            cbc.encrypt(&prefix[ESP_HEADER_BYTES..], &mut behind[..text.len()]);
        }
    }

    fn authenticate(&mut self, sequence_high: u32, packet: &mut [u8]) {
        let text = text_of(self.suite, packet.len());
        let (sealed, icv) = packet.split_at_mut(text.end);
        let high = sequence_high.to_be_bytes();
        let high = &high[..self.numbers.unsent_bytes()];
        self.mac.authenticate([sealed, high], icv);
    }

    fn open_in_place(&mut self, sequence_high: u32, packet: &mut [u8]) -> bool {
        let text = text_of(self.suite, packet.len());
        let (sealed, icv) = packet.split_at_mut(text.end);
        let mut expected = [0; ICV_BYTES_MAX];
        let expected = &mut expected[..icv.len()];
        let high = sequence_high.to_be_bytes();
        // Empty with short numbers: the packet then has all that is authenticated.
        let high = &high[..self.numbers.unsent_bytes()];
        self.mac.authenticate([sealed, high], expected);
        // In constant time: the number of equal bytes would help to forge an ICV byte by byte.
        let authentic = bool::from((*expected).ct_eq(icv));
        let (prefix, text) = sealed.split_at_mut(text.start);
        // Decrypting first would offer a padding oracle, and cost time for forgeries.
        if !authentic {
            text.fill(0);
        } else if let Some(cbc) = &mut self.cbc {
            cbc.decrypt(&prefix[ESP_HEADER_BYTES..], text);
        }
        authentic
    }
}

impl Transform for EncryptThenMac {
    fn suite(&self) -> Suite {
        self.suite
    }

    fn numbers(&self) -> SequenceNumbers {
        self.numbers
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        // Positions are checked before any packet is changed.
        one_by_one(buffer, packets).for_each(drop);
        // One chain gains nothing from parallel ones.
        if let [packet] = packets {
            self.encrypt(&mut buffer[packet.at..packet.at + packet.bytes]);
        } else if let Some(cbc) = &mut self.cbc {
            let suite = self.suite;
            let mut places = packets.iter().map(|packet| {
                let text = text_of(suite, packet.bytes);
                Place {
                    iv: packet.at + ESP_HEADER_BYTES,
                    text: packet.at + text.start..packet.at + text.end,
                }
            });
            cbc.encrypt_all(buffer, &mut places);
        }
        // After all of them are encrypted: the ICV covers the ciphertext.
        for (packet, sequence_high) in one_by_one(buffer, packets) {
            self.authenticate(sequence_high, packet);
        }
        Ok(())
    }

    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        open_each(buffer, packets, authentic, |packet, sequence_high| {
            self.open_in_place(sequence_high, packet)
        })
    }
}
