//! Known answers of a suite as an ESP transform: single packets and batches.

use super::Failure;
use crate::vectors::{Vector, VectorError};
use crate::{Packet, Transform};
use std::ops::Range;
use wire::overhead::ESP_HEADER_BYTES;
use wire::{SALT_BYTES, Suite};

/// Packets in a batch: more than any engine processes in parallel, and not a multiple of that.
const BATCH: usize = 19;
/// The gap between the packets of a batch.
const GAP: [u8; 5] = [0xc3; 5];

/// The expected ESP packet, or the part of it that the vector specifies.
pub(super) struct Answer {
    name: String,
    suite: Suite,
    pub(super) keymat: Vec<u8>,
    /// Header and IV.
    prefix: Vec<u8>,
    sequence_high: u32,
    text: Vec<u8>,
    /// The specified bytes behind the prefix, from offset `first_known` on.
    sealed: Vec<u8>,
    first_known: usize,
}

impl Answer {
    /// Returns the answer of `vector` for `suite` as an ESP transform, if it has one.
    pub(super) fn of(suite: Suite, vector: &Vector) -> Result<Option<Self>, VectorError> {
        let is = |field, name| vector.text(field) == Ok(name);
        if is("suite", suite.name()) && vector.has("nonce") {
            return Self::of_aead(suite, vector);
        }
        let (cipher, hmac) = suite.name().split_once("-hmac-").unwrap_or_default();
        if is("suite", suite.name()) {
            Self::of_packet(suite, vector).map(Some)
        } else if is("cipher", cipher) {
            Self::of_cipher(suite, vector).map(Some)
        } else if is("hmac", hmac) && cipher == "null" {
            Self::of_hmac(suite, vector).map(Some)
        } else {
            Ok(None)
        }
    }

    /// A whole packet.
    fn of_packet(suite: Suite, vector: &Vector) -> Result<Self, VectorError> {
        Ok(Self {
            name: vector.name().to_owned(),
            suite,
            keymat: vector.bytes("keymat")?,
            prefix: vector.bytes("prefix")?,
            sequence_high: u32::from_be_bytes(vector.array("esn")?),
            text: vector.bytes("plaintext")?,
            sealed: vector.bytes("sealed")?,
            first_known: 0,
        })
    }

    /// An AEAD's answer, if its additional data is that of ESP with extended sequence numbers, and
    /// its plaintext has ESP's padding.
    fn of_aead(suite: Suite, vector: &Vector) -> Result<Option<Self>, VectorError> {
        let (aad, text) = (vector.bytes("aad")?, vector.bytes("plaintext")?);
        let padded = !text.is_empty() && text.len().is_multiple_of(suite.pad_to_bytes());
        // 12 bytes: with 8 the numbers are short, and known answers are for extended ones.
        let (true, ([spi, high, low], [])) = (padded, aad.as_chunks::<4>()) else {
            return Ok(None);
        };
        let (key, nonce) = (vector.bytes("key")?, vector.bytes("nonce")?);
        // The nonce of an AEAD in ESP is the salt, then the IV (RFC 4106 §4).
        let (salt, iv) = nonce.split_at(SALT_BYTES);
        Ok(Some(Self {
            name: vector.name().to_owned(),
            suite,
            keymat: [&key, salt].concat(),
            prefix: [&spi[..], low, iv].concat(),
            sequence_high: u32::from_be_bytes(*high),
            text,
            sealed: vector.bytes("sealed")?,
            first_known: 0,
        }))
    }

    /// A cipher's answer: the ciphertext of a packet with any header and HMAC key.
    fn of_cipher(suite: Suite, vector: &Vector) -> Result<Self, VectorError> {
        let mut keymat = vector.bytes("key")?;
        keymat.resize(suite.keymat_bytes(), 0x0b);
        // Any header does: CBC does not depend on it, and the MAC of the packet is not compared.
        let header = b"\x00\x00\x10\x01\x00\x00\x00\x01";
        Ok(Self {
            name: vector.name().to_owned(),
            suite,
            keymat,
            prefix: [&header[..], &vector.bytes("iv")?].concat(),
            sequence_high: 0,
            text: vector.bytes("plaintext")?,
            sealed: vector.bytes("sealed")?,
            first_known: 0,
        })
    }

    /// An HMAC's answer, with the null cipher: the data is what ESP authenticates, so that its
    /// first eight bytes are the header and its last four the high half of the sequence number.
    /// Zeros behind a key do not change it (RFC 2104 §2).
    fn of_hmac(suite: Suite, vector: &Vector) -> Result<Self, VectorError> {
        let mut keymat = vector.bytes("key")?;
        keymat.resize(suite.keymat_bytes(), 0);
        let data = vector.bytes("data")?;
        let (prefix, rest) = data
            .split_at_checked(ESP_HEADER_BYTES)
            .ok_or_else(|| vector.wrong_length("data"))?;
        let (text, high) = rest
            .split_last_chunk()
            .ok_or_else(|| vector.wrong_length("data"))?;
        let mut mac = vector.bytes("mac")?;
        mac.truncate(suite.icv_bytes());
        Ok(Self {
            name: vector.name().to_owned(),
            suite,
            keymat,
            prefix: prefix.to_vec(),
            sequence_high: u32::from_be_bytes(*high),
            text: text.to_vec(),
            sealed: mac,
            first_known: text.len(),
        })
    }

    pub(super) fn check(&self, transform: &mut dyn Transform) -> Result<(), Failure> {
        let packet = self.seals_from(transform)?;
        self.seals_batches(transform, &packet)?;
        self.opens_batches(transform, &packet)?;
        if self.suite.icv_bytes() == 0 {
            // Without an ICV forgeries cannot be detected.
            return Ok(());
        }
        self.refuses_forgeries(transform, &packet)
    }

    /// Seals the packet from a separate text.
    fn seals_from(&self, transform: &mut dyn Transform) -> Result<Vec<u8>, Failure> {
        // Filled with other bytes: an engine that reads the text from the wrong place is found.
        let mut packet = self.unsealed(&vec![0xee; self.text.len()]);
        transform
            .seal_from(self.sequence_high, &self.text, &mut packet)
            .map_err(|error| self.gave_up(&error.reason))?;
        let (prefix, sealed) = packet.split_at(self.prefix.len());
        if prefix != self.prefix {
            return Err(self.beside());
        }
        if sealed
            .get(self.first_known..)
            .is_none_or(|known| !known.starts_with(&self.sealed))
        {
            return Err(self.sealed_differently());
        }
        Ok(packet)
    }

    fn seals_batches(&self, transform: &mut dyn Transform, packet: &[u8]) -> Result<(), Failure> {
        for count in [1, BATCH] {
            // Some engines seal a single packet on another path than a batch.
            let (mut buffer, places) = self.batch(&self.unsealed(&self.text), count);
            transform
                .seal(&mut buffer, &places)
                .map_err(|error| self.gave_up(&error.reason))?;
            if buffer != self.batch(packet, count).0 {
                return Err(self.sealed_differently());
            }
        }
        Ok(())
    }

    fn opens_batches(&self, transform: &mut dyn Transform, packet: &[u8]) -> Result<(), Failure> {
        for count in [1, BATCH] {
            let (mut buffer, places) = self.batch(packet, count);
            let mut authentic = vec![false; count];
            transform
                .open(&mut buffer, &places, &mut authentic)
                .map_err(|error| self.gave_up(&error.reason))?;
            let opened = |place: &Packet| buffer[place.at..][self.place_of_text()] == self.text;
            if authentic.contains(&false) || !places.iter().all(opened) {
                return Err(Failure::Opened {
                    vector: self.name.clone(),
                });
            }
            self.nothing_beside(&buffer, &places, packet)?;
        }
        Ok(())
    }

    /// Opens a batch in which most packets have one flipped bit: in header, IV, text, ICV, and the
    /// high half of the sequence number.
    fn refuses_forgeries(
        &self,
        transform: &mut dyn Transform,
        packet: &[u8],
    ) -> Result<(), Failure> {
        let text = self.place_of_text();
        let ends = [
            0,
            ESP_HEADER_BYTES - 1,
            text.start - 1,
            text.start,
            text.end - 1,
            text.end,
        ];
        // Both ends of each field, since an engine may leave out its last or first bytes.
        let flipped = ends.into_iter().chain([packet.len() - 1]);
        let (mut buffer, mut places) = self.batch(packet, BATCH);
        let mut genuine = [true; BATCH];
        // Every second packet stays genuine: a verdict must not end up at a neighbor's place.
        for (at, byte) in (0..).step_by(2).zip(flipped) {
            buffer[places[at].at + byte] ^= 0x10;
            genuine[at] = false;
        }
        // Nothing in the packet itself shows this one.
        places[BATCH - 2].sequence_high ^= 1;
        genuine[BATCH - 2] = false;

        let mut authentic = [false; BATCH];
        transform
            .open(&mut buffer, &places, &mut authentic)
            .map_err(|error| self.gave_up(&error.reason))?;
        let forged = || Failure::Forged {
            vector: self.name.clone(),
        };
        let zeros = vec![0; self.text.len()];
        for ((place, genuine), authentic) in places.iter().zip(genuine).zip(authentic) {
            let expected = if genuine { &self.text } else { &zeros };
            if authentic != genuine || buffer[place.at..][text.clone()] != **expected {
                return Err(forged());
            }
        }
        Ok(())
    }

    /// Returns prefix and `text`, with room for the ICV.
    fn unsealed(&self, text: &[u8]) -> Vec<u8> {
        let icv = vec![0xdd; self.suite.icv_bytes()];
        [&self.prefix, text, &icv].concat()
    }

    fn place_of_text(&self) -> Range<usize> {
        self.prefix.len()..self.prefix.len() + self.text.len()
    }

    /// Returns `count` copies of a packet in one buffer, with gaps around them.
    fn batch(&self, packet: &[u8], count: usize) -> (Vec<u8>, Vec<Packet>) {
        let one = [packet, &GAP].concat();
        let buffer = [&GAP[..], &one.repeat(count)].concat();
        let place = |index| Packet {
            at: GAP.len() + index * one.len(),
            bytes: packet.len(),
            sequence_high: self.sequence_high,
        };
        (buffer, (0..count).map(place).collect())
    }

    /// Checks that gaps and prefixes are unchanged.
    fn nothing_beside(
        &self,
        buffer: &[u8],
        places: &[Packet],
        packet: &[u8],
    ) -> Result<(), Failure> {
        let gaps = std::iter::once(0).chain(places.iter().map(|place| place.at + place.bytes));
        let gaps_untouched = gaps.into_iter().all(|gap| buffer[gap..].starts_with(&GAP));
        let prefix = &packet[..self.prefix.len()];
        if gaps_untouched
            && places
                .iter()
                .all(|place| buffer[place.at..].starts_with(prefix))
        {
            Ok(())
        } else {
            Err(self.beside())
        }
    }

    fn sealed_differently(&self) -> Failure {
        Failure::Sealed {
            vector: self.name.clone(),
        }
    }

    fn beside(&self) -> Failure {
        Failure::Beside {
            vector: self.name.clone(),
        }
    }

    fn gave_up(&self, reason: &str) -> Failure {
        Failure::GaveUp {
            vector: self.name.clone(),
            reason: reason.to_owned(),
        }
    }
}
