//! The sealing half of an SA.

use engine::{EngineFailed, Packet, Transform};
use std::fmt;
use wire::overhead::{self, ESP_HEADER_BYTES, ESP_TRAILER_BYTES};
use wire::{Suite, overhead::padding_bytes};

/// Bytes that a buffer must have behind the inner packet: padding and trailer are written there for the
/// time of the call. The longest are 15 and 2.
pub const TRAILER_ROOM: usize = 24;

/// Packets that an SA seals before it stops, unless told otherwise.
///
/// Nonces would last for 2^64. AES has blocks of 128 bits, and what it reveals grows with the square of
/// the blocks sealed under one key: after 2^42 packets of 1500 bytes (6 PB; 50 days at a million packets a
/// second) an observer tells it from a random permutation with an advantage of about 2^-32, the margin
/// that NIST SP 800-38D §8 takes for GCM.
pub const DEFAULT_SEQUENCE_LIMIT: u64 = 1 << 42;

/// Why a packet was not sealed. Unless the engine failed, nothing was written and no sequence number used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The SA has sealed all the packets it may; only new keys help.
    #[error("the SA's sequence numbers are used up: it needs new keys")]
    SequenceExhausted,
    /// The caller's mistake: no [`TRAILER_ROOM`] behind the inner packet, or a destination too short.
    #[error("the buffers are too short for the packet")]
    NoRoom,
    /// The engine did not do it; the sequence number is spent.
    #[error(transparent)]
    Engine(#[from] EngineFailed),
}

/// An SA that seals.
pub struct OutboundSa {
    spi: u32,
    transform: Box<dyn Transform>,
    suite: Suite,
    /// Of the last packet sealed; 0 before the first (RFC 4303 §3.3.3).
    sequence: u64,
    sequence_limit: u64,
}

impl OutboundSa {
    /// An SA that has sealed nothing yet. `transform`'s keying material must never have sealed either.
    #[must_use]
    pub fn new(spi: u32, transform: Box<dyn Transform>) -> Self {
        let suite = transform.suite();
        Self {
            spi,
            transform,
            suite,
            sequence: 0,
            sequence_limit: DEFAULT_SEQUENCE_LIMIT,
        }
    }

    /// The SA with another limit than [`DEFAULT_SEQUENCE_LIMIT`].
    #[must_use]
    pub fn with_sequence_limit(self, packets: u64) -> Self {
        Self {
            sequence_limit: packets,
            ..self
        }
    }

    /// The SA's SPI.
    #[must_use]
    pub const fn spi(&self) -> u32 {
        self.spi
    }

    /// The SA's suite.
    #[must_use]
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Packets sealed so far.
    #[must_use]
    pub const fn sealed_packets(&self) -> u64 {
        self.sequence
    }

    /// Length of the ESP packet, header to ICV, that carries an inner packet of `inner_len`.
    #[inline]
    #[must_use]
    pub const fn sealed_len(&self, inner_len: usize) -> usize {
        overhead::esp_bytes(self.suite, inner_len)
    }

    /// Seals the inner packet `src[..inner_len]` into `dst` and returns the ESP packet's length, which is
    /// [`sealed_len`](Self::sealed_len).
    ///
    /// `src` must go on for [`TRAILER_ROOM`] bytes behind the inner packet. They are overwritten during
    /// the call and restored, so a slice of a larger packet can be sealed where it lies.
    ///
    /// 1. Padding 1, 2, 3 …, its length and `next_header` go behind the inner packet (RFC 4303 §2.4–2.6).
    /// 2. The next sequence number is taken; it is also an AEAD's IV.
    /// 3. SPI, low half of the sequence number and IV go to `dst`, ciphertext and ICV behind them.
    ///
    /// # Errors
    /// [`SealError`].
    #[inline]
    pub fn seal(
        &mut self,
        src: &mut [u8],
        inner_len: usize,
        next_header: u8,
        dst: &mut [u8],
    ) -> Result<usize, SealError> {
        let padding = padding_bytes(self.suite, inner_len);
        let plaintext_len = inner_len + padding + ESP_TRAILER_BYTES;
        let sealed_len = self.sealed_len(inner_len);
        if src.len() < inner_len + TRAILER_ROOM || dst.len() < sealed_len {
            return Err(SealError::NoRoom);
        }
        let dst = &mut dst[..sealed_len];
        let sequence = self.begin(dst)?;
        let mut kept = [0; TRAILER_ROOM];
        let room = &mut src[inner_len..inner_len + TRAILER_ROOM];
        kept.copy_from_slice(room);
        put_trailer(room, padding, next_header);
        let high = (sequence >> 32) as u32;
        let sealed = self.transform.seal_from(high, &src[..plaintext_len], dst);
        src[inner_len..inner_len + TRAILER_ROOM].copy_from_slice(&kept);
        sealed?;
        Ok(sealed_len)
    }

    /// Makes the ESP packet of `inner` at `at` in `buffer`, all but its sealing: header, IV, inner packet,
    /// padding and trailer. Its sequence number is taken. [`seal_staged`](Self::seal_staged) must follow before
    /// anybody else sees the buffer.
    ///
    /// # Errors
    /// [`SealError`].
    #[inline]
    pub fn stage(
        &mut self,
        inner: &[u8],
        next_header: u8,
        buffer: &mut [u8],
        at: usize,
    ) -> Result<Packet, SealError> {
        let bytes = self.sealed_len(inner.len());
        let Some(packet) = buffer.get_mut(at..at + bytes) else {
            return Err(SealError::NoRoom);
        };
        let sequence = self.begin(packet)?;
        let prefix = ESP_HEADER_BYTES + self.suite.iv_bytes();
        let (text, rest) = packet[prefix..].split_at_mut(inner.len());
        text.copy_from_slice(inner);
        put_trailer(rest, padding_bytes(self.suite, inner.len()), next_header);
        Ok(Packet {
            at,
            bytes,
            sequence_high: (sequence >> 32) as u32,
        })
    }

    /// Seals the packets that [`stage`](Self::stage) has made in `buffer`, in their order.
    ///
    /// # Errors
    /// [`EngineFailed`]: the buffer still holds plaintext, and must not be sent.
    #[inline]
    pub fn seal_staged(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
    ) -> Result<(), EngineFailed> {
        self.transform.seal(buffer, packets)
    }

    /// Takes the next sequence number, and writes header and IV.
    #[inline]
    fn begin(&mut self, packet: &mut [u8]) -> Result<u64, SealError> {
        if self.sequence >= self.sequence_limit {
            return Err(SealError::SequenceExhausted);
        }
        self.sequence += 1;
        let sequence = self.sequence.to_be_bytes();
        packet[..4].copy_from_slice(&self.spi.to_be_bytes());
        packet[4..8].copy_from_slice(&sequence[4..]);
        packet[8..16].copy_from_slice(&sequence);
        Ok(self.sequence)
    }
}

#[cfg(test)]
impl OutboundSa {
    /// Makes `sequence` the next number: what lies beyond 32 bits cannot be reached by sealing.
    pub(crate) fn skip_to(&mut self, sequence: u64) {
        self.sequence = sequence - 1;
    }
}

/// Writes padding 1, 2, 3 …, pad length and next header at the start of the room for them.
#[inline]
fn put_trailer(room: &mut [u8], padding: usize, next_header: u8) {
    for (byte, value) in room[..padding].iter_mut().zip(1..) {
        *byte = value;
    }
    room[padding] = padding as u8;
    room[padding + 1] = next_header;
}

impl fmt::Debug for OutboundSa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundSa")
            .field("spi", &format_args!("{:#010x}", self.spi))
            .field("suite", &self.suite)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trailer_fits_its_room_and_is_what_the_rfc_says() {
        for suite in Suite::ALL {
            for inner_len in 0..64 {
                let padding = padding_bytes(suite, inner_len);
                let mut trailer = [0; TRAILER_ROOM];
                put_trailer(&mut trailer, padding, 41);
                let expected: Vec<u8> = (1..=padding as u8).chain([padding as u8, 41]).collect();
                assert_eq!(trailer[..padding + 2], expected);
                assert_eq!((inner_len + padding + 2) % suite.pad_to_bytes(), 0);
            }
        }
    }
}
