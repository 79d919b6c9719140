//! ESP transforms of whole batches, for one SA on one engine.

use crate::{Aead, NONCE_BYTES, TAG_BYTES};
use std::ops::Range;
use wire::overhead::ESP_HEADER_BYTES;
use wire::{SALT_BYTES, Suite};

/// The position of a packet in a batch's buffer. ESP header, IV, text and ICV are contiguous.
///
/// ```text
/// |SPI 4|sequence number, low half 4|IV, iv_bytes()|text|ICV, icv_bytes()|
/// ^ at                                                                   ^ at + bytes
/// ```
///
/// In C layout, since batches are passed to engines in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Packet {
    /// Offset of the SPI.
    pub at: usize,
    /// Length from the SPI to the end of the ICV.
    pub bytes: usize,
    /// High half of an extended sequence number, which is authenticated and not sent (RFC 4303
    /// §2.2.1); 0 if numbers are short.
    pub sequence_high: u32,
}

/// Length of the sequence numbers that both ends of an SA have agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SequenceNumbers {
    /// 64 bits (ESN, RFC 4303 §2.2.1): the high half is authenticated and not sent.
    #[default]
    Extended,
    /// 32 bits, all of which are sent.
    Short,
}

impl SequenceNumbers {
    /// Whether they have 64 bits.
    #[inline]
    #[must_use]
    pub const fn are_extended(self) -> bool {
        matches!(self, Self::Extended)
    }

    /// Length of the part that is authenticated and not sent.
    #[inline]
    pub(crate) const fn unsent_bytes(self) -> usize {
        match self {
            Self::Extended => 4,
            Self::Short => 0,
        }
    }
}

/// A failure of the engine: a device is absent or reports an error. The batch is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("engine {engine} failed: {reason}")]
pub struct EngineFailed {
    /// The engine.
    pub engine: &'static str,
    /// The reason, as text.
    pub reason: String,
}

/// The keying material of one SA on one engine. Belongs to one thread.
///
/// The caller writes header and IV before sealing. The text includes padding and trailer. A packet
/// has at least header, IV, one unit of [`Suite::pad_to_bytes`] and ICV, and its text is a multiple
/// of the cipher's block. Methods panic if a packet violates that, lies outside the buffer, is out
/// of order or overlaps another.
pub trait Transform: Send {
    /// Returns the suite of the SA.
    fn suite(&self) -> Suite;

    /// Returns what sequence numbers the SA has.
    fn numbers(&self) -> SequenceNumbers {
        SequenceNumbers::Extended
    }

    /// Seals `text` into `packet`, which already has header and IV: ciphertext, then ICV. For long
    /// packets, where a copy would cost more than a batch gains.
    ///
    /// By default the text is copied and sealed in place: with a slow cipher the cost of the copy
    /// is negligible.
    ///
    /// # Errors
    /// [`EngineFailed`]: the content of `packet` behind header and IV is undefined.
    fn seal_from(
        &mut self,
        sequence_high: u32,
        text: &[u8],
        packet: &mut [u8],
    ) -> Result<(), EngineFailed> {
        let place = text_of(self.suite(), packet.len());
        packet[place].copy_from_slice(text);
        let whole = Packet {
            at: 0,
            bytes: packet.len(),
            sequence_high,
        };
        self.seal(packet, &[whole])
    }

    /// Seals packets in place.
    ///
    /// # Errors
    /// [`EngineFailed`]: the buffer is unchanged, and another engine may seal the same batch.
    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed>;

    /// Opens packets in place, and sets for each whether it is authentic. The text of others is
    /// zeroed.
    ///
    /// # Errors
    /// [`EngineFailed`]: the buffer is unchanged, and `authentic` is undefined.
    fn open(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed>;
}

/// Length of the longest additional authenticated data: SPI and the whole sequence number.
const AAD_BYTES_MAX: usize = 12;
/// Length of an AEAD's IV.
const IV_BYTES: usize = NONCE_BYTES - SALT_BYTES;
/// Length of the shortest text: all AEADs pad to 4 bytes.
const PAD_TO_BYTES: usize = Suite::Aes256Gcm.pad_to_bytes();
/// Length of header and IV.
const PREFIX_BYTES: usize = ESP_HEADER_BYTES + IV_BYTES;

/// Any AEAD as an ESP transform (RFC 4106, RFC 7634), packet by packet.
pub(crate) struct EspAead {
    aead: Box<dyn Aead>,
    salt: [u8; SALT_BYTES],
    numbers: SequenceNumbers,
}

impl EspAead {
    pub(crate) const fn new(
        aead: Box<dyn Aead>,
        salt: [u8; SALT_BYTES],
        numbers: SequenceNumbers,
    ) -> Self {
        Self {
            aead,
            salt,
            numbers,
        }
    }

    /// Returns additional data, with its length, and nonce of a packet with this prefix (RFC 4106
    /// §3.1, §5; RFC 7634 §2, §2.1).
    #[inline]
    fn aad_and_nonce(
        &self,
        prefix: &[u8; PREFIX_BYTES],
        sequence_high: u32,
    ) -> ([u8; AAD_BYTES_MAX], usize, [u8; NONCE_BYTES]) {
        let unsent = self.numbers.unsent_bytes();
        let mut aad = [0; AAD_BYTES_MAX];
        aad[..4].copy_from_slice(&prefix[..4]);
        // With short numbers the copy of the low half below overwrites it.
        aad[4..8].copy_from_slice(&sequence_high.to_be_bytes());
        aad[4 + unsent..8 + unsent].copy_from_slice(&prefix[4..8]);
        let mut nonce = [0; NONCE_BYTES];
        nonce[..SALT_BYTES].copy_from_slice(&self.salt);
        nonce[SALT_BYTES..].copy_from_slice(&prefix[ESP_HEADER_BYTES..]);
        (aad, ESP_HEADER_BYTES + unsent, nonce)
    }
}

impl Transform for EspAead {
    fn suite(&self) -> Suite {
        self.aead.suite()
    }

    fn numbers(&self) -> SequenceNumbers {
        self.numbers
    }

    #[inline]
    fn seal_from(
        &mut self,
        sequence_high: u32,
        text: &[u8],
        packet: &mut [u8],
    ) -> Result<(), EngineFailed> {
        let (prefix, sealed) = split(packet);
        let (aad, aad_bytes, nonce) = self.aad_and_nonce(prefix, sequence_high);
        self.aead.seal(&nonce, &aad[..aad_bytes], text, sealed);
        Ok(())
    }

    fn seal(&mut self, buffer: &mut [u8], packets: &[Packet]) -> Result<(), EngineFailed> {
        for (packet, sequence_high) in one_by_one(buffer, packets) {
            let (prefix, sealed) = split(packet);
            let (aad, aad_bytes, nonce) = self.aad_and_nonce(prefix, sequence_high);
            self.aead.seal_in_place(&nonce, &aad[..aad_bytes], sealed);
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
            let (prefix, sealed) = split(packet);
            let (aad, aad_bytes, nonce) = self.aad_and_nonce(prefix, sequence_high);
            self.aead.open(&nonce, &aad[..aad_bytes], sealed).is_ok()
        })
    }
}

/// Splits a packet into prefix, and text with tag.
#[inline]
fn split(packet: &mut [u8]) -> (&[u8; PREFIX_BYTES], &mut [u8]) {
    assert!(
        packet.len() >= PREFIX_BYTES + PAD_TO_BYTES + TAG_BYTES,
        "a packet of {} B has no text",
        packet.len()
    );
    let (prefix, rest) = packet
        .split_first_chunk_mut()
        .expect("a packet begins with header and IV, as just asserted");
    (prefix, rest)
}

/// Returns the packets of a batch, each with the high half of its sequence number.
///
/// # Panics
/// On a packet that is not completely in the buffer or not behind the one before it.
#[inline]
pub(crate) fn one_by_one<'a>(
    buffer: &'a mut [u8],
    packets: &'a [Packet],
) -> impl Iterator<Item = (&'a mut [u8], u32)> {
    let (mut rest, mut free) = (buffer, 0);
    packets.iter().map(move |packet| {
        let gap = packet.at.checked_sub(free);
        // Splitting the rest of the buffer makes overlaps impossible: each byte is in one slice at
        // most.
        let gap = gap.expect("a packet lies behind the one before it");
        // A reborrow would end with this call: the slices outlive it.
        let (_, behind) = std::mem::take(&mut rest).split_at_mut(gap);
        let (bytes, behind) = behind.split_at_mut(packet.bytes);
        rest = behind;
        free = packet.at + packet.bytes;
        (bytes, packet.sequence_high)
    })
}

/// Opens the packets of a batch one by one with `open`, which returns whether a packet is
/// authentic.
///
/// # Panics
/// As [`one_by_one`], and if there is not one verdict per packet.
#[inline]
pub(crate) fn open_each(
    buffer: &mut [u8],
    packets: &[Packet],
    authentic: &mut [bool],
    mut open: impl FnMut(&mut [u8], u32) -> bool,
) -> Result<(), EngineFailed> {
    assert_eq!(packets.len(), authentic.len(), "one verdict per packet");
    for ((packet, sequence_high), authentic) in one_by_one(buffer, packets).zip(authentic) {
        *authentic = open(packet, sequence_high);
    }
    Ok(())
}

/// Returns the range of the text in a packet of this suite and length.
///
/// # Panics
/// If the packet is too short, or its text is not of whole blocks.
#[inline]
pub(crate) fn text_of(suite: Suite, packet_bytes: usize) -> Range<usize> {
    let start = ESP_HEADER_BYTES + suite.iv_bytes();
    let end = packet_bytes.saturating_sub(suite.icv_bytes());
    assert!(
        end >= start + suite.pad_to_bytes(),
        "a packet of {packet_bytes} B has no text of {suite}"
    );
    if let Suite::EncryptThenMac(cipher, _) = suite {
        let text = end - start;
        assert!(
            text.is_multiple_of(cipher.block_bytes()),
            "{text} B are whole blocks of {suite}"
        );
    }
    start..end
}
