//! The sealing half of an SA.

use crate::{IV_BYTES, PREFIX_BYTES, SALT_BYTES, aad, nonce};
use engine::Aead;
use std::fmt;
use wire::overhead::{self, ESP_TRAILER_BYTES};
use wire::{Suite, overhead::padding_bytes};

/// Bytes that a buffer must have behind the inner packet: padding and trailer are written there for the
/// time of the call.
pub const TRAILER_ROOM: usize = 8;

/// Packets that an SA seals before it stops, unless told otherwise.
///
/// Nonces would last for 2^64. AES has blocks of 128 bits, and what it reveals grows with the square of
/// the blocks sealed under one key: after 2^42 packets of 1500 bytes (6 PB; 50 days at a million packets a
/// second) an observer tells it from a random permutation with an advantage of about 2^-32, the margin
/// that NIST SP 800-38D §8 takes for GCM.
pub const DEFAULT_SEQUENCE_LIMIT: u64 = 1 << 42;

/// Why a packet was not sealed. Nothing was written and no sequence number was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The SA has sealed all the packets it may; only new keys help.
    #[error("the SA's sequence numbers are used up: it needs new keys")]
    SequenceExhausted,
    /// The caller's mistake: no [`TRAILER_ROOM`] behind the inner packet, or a destination too short.
    #[error("the buffers are too short for the packet")]
    NoRoom,
}

/// An SA that seals.
pub struct OutboundSa {
    spi: u32,
    salt: [u8; SALT_BYTES],
    aead: Box<dyn Aead>,
    suite: Suite,
    /// Of the last packet sealed; 0 before the first (RFC 4303 §3.3.3).
    sequence: u64,
    sequence_limit: u64,
}

impl OutboundSa {
    /// An SA that has sealed nothing yet. `aead`, with `salt`, must never have sealed either.
    #[must_use]
    pub fn new(spi: u32, salt: [u8; SALT_BYTES], aead: Box<dyn Aead>) -> Self {
        let suite = aead.suite();
        Self {
            spi,
            salt,
            aead,
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
    /// 2. The next sequence number is taken; it is also the IV.
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
        let room = src
            .get_mut(inner_len..)
            .and_then(|rest| rest.first_chunk_mut::<TRAILER_ROOM>());
        let dst = dst.get_mut(..sealed_len);
        let prefix = dst.and_then(|dst| dst.split_first_chunk_mut::<PREFIX_BYTES>());
        let (Some(room), Some((prefix, sealed))) = (room, prefix) else {
            return Err(SealError::NoRoom);
        };
        if self.sequence >= self.sequence_limit {
            return Err(SealError::SequenceExhausted);
        }
        self.sequence += 1;

        let iv: [u8; IV_BYTES] = self.sequence.to_be_bytes();
        prefix[..4].copy_from_slice(&self.spi.to_be_bytes());
        prefix[4..8].copy_from_slice(&iv[4..]);
        prefix[8..].copy_from_slice(&iv);

        let kept = *room;
        *room = trailer(padding, next_header);
        let aad = aad(self.spi, self.sequence);
        self.aead
            .seal(&nonce(self.salt, iv), &aad, &src[..plaintext_len], sealed);
        src[inner_len..inner_len + TRAILER_ROOM].copy_from_slice(&kept);
        Ok(sealed_len)
    }
}

#[cfg(test)]
impl OutboundSa {
    /// Makes `sequence` the next number: what lies beyond 32 bits cannot be reached by sealing.
    pub(crate) fn skip_to(&mut self, sequence: u64) {
        self.sequence = sequence - 1;
    }
}

/// Padding 1, 2, 3 …, pad length and next header, at the start of the room for them.
#[inline]
fn trailer(padding: usize, next_header: u8) -> [u8; TRAILER_ROOM] {
    let mut trailer = [1, 2, 3, 4, 5, 6, 7, 8];
    // No suite pads to more than 4 bytes, so padding and trailer take 5 at most; the mask tells the compiler.
    let padding = padding & 3;
    trailer[padding] = padding as u8;
    trailer[padding + 1] = next_header;
    trailer
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
                let trailer = trailer(padding, 41);
                let expected: Vec<u8> = (1..=padding as u8).chain([padding as u8, 41]).collect();
                assert_eq!(trailer[..padding + 2], expected);
                assert_eq!((inner_len + padding + 2) % 4, 0);
            }
        }
    }
}
