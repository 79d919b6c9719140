//! The outbound half of an SA.

use crate::iv::Ivs;
use crate::limits::Limits;
use crate::shape::{PADDING, Shape};
use engine::{EngineFailed, Packet, Transform};
use std::fmt;
use wire::Suite;
use wire::overhead::ESP_TRAILER_BYTES;

/// Bytes that a buffer must have behind the inner packet: padding and trailer are written there
/// during the call. The longest are 15 and 2 bytes.
pub const TRAILER_ROOM: usize = 24;
/// The part of that room for 3 bytes of padding and the trailer: enough for every AEAD.
const SHORT_ROOM: usize = 8;

/// Why a packet was not sealed. Unless the engine failed, nothing was written and no sequence
/// number used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The SA has sealed the maximum number of packets; new keys are required.
    #[error("the SA's sequence numbers are used up: it needs new keys")]
    SequenceExhausted,
    /// The SA has sealed the maximum number of bytes ([`Limits`]); new keys are required.
    #[error("the SA has sealed all the bytes its cipher may: it needs new keys")]
    BytesExhausted,
    /// The caller's mistake: no [`TRAILER_ROOM`] behind the inner packet, or a destination too
    /// short.
    #[error("the buffers are too short for the packet")]
    NoRoom,
    /// The engine failed; the sequence number is spent.
    #[error(transparent)]
    Engine(#[from] EngineFailed),
}

/// An outbound SA.
pub struct OutboundSa {
    spi: u32,
    transform: Box<dyn Transform>,
    suite: Suite,
    shape: Shape,
    ivs: Ivs,
    /// Sequence number of the last packet sealed; 0 before the first (RFC 4303 §3.3.3).
    sequence: u64,
    /// Bytes of plaintext sealed, never more than the limit.
    bytes: u64,
    limits: Limits,
    /// From these amounts on new keys are due.
    due: Limits,
}

impl OutboundSa {
    /// An SA that has sealed nothing yet, and stops at the suite's [`Limits::of`], or at the last
    /// of short sequence numbers. `transform`'s keying material must never have been used for
    /// sealing.
    ///
    /// # Panics
    /// If the suite uses CBC, and the operating system provides no random bytes.
    #[must_use]
    pub fn new(spi: u32, transform: Box<dyn Transform>) -> Self {
        let suite = transform.suite();
        let numbers = transform.numbers();
        let limits = Limits::of(suite).within(suite, numbers);
        Self {
            spi,
            transform,
            suite,
            shape: Shape::of(suite),
            ivs: Ivs::of(suite),
            sequence: 0,
            bytes: 0,
            limits,
            due: limits.due(),
        }
    }

    /// Replaces the limits; [`Limits::packets_max`] still applies.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        let limits = limits.within(self.suite, self.transform.numbers());
        Self {
            limits,
            due: limits.due(),
            ..self
        }
    }

    /// Makes [new keys due](Self::new_keys_are_due) at this lifetime or earlier. The SA continues
    /// beyond it.
    #[must_use]
    pub fn with_lifetime(self, lifetime: Limits) -> Self {
        let due = Limits {
            packets: self.due.packets.min(lifetime.packets),
            bytes: self.due.bytes.min(lifetime.bytes),
        };
        Self { due, ..self }
    }

    /// Continues behind this sequence number: the keying material has sealed packets up to it, or
    /// they are set aside for another sender.
    #[must_use]
    pub fn after(self, sequence: u64) -> Self {
        Self {
            // Never backwards: a repeated number would repeat a nonce.
            sequence: sequence.max(self.sequence),
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

    /// The limits of the SA.
    #[must_use]
    pub const fn remaining(&self) -> Limits {
        Limits {
            packets: self.limits.packets.saturating_sub(self.sequence),
            bytes: self.limits.bytes.saturating_sub(self.bytes),
        }
    }

    /// The amount sealed so far.
    #[must_use]
    pub const fn sealed(&self) -> Limits {
        Limits {
            packets: self.sequence,
            bytes: self.bytes,
        }
    }

    /// Whether half of one limit is used, or 2^31 sequence numbers, or the
    /// [lifetime](Self::with_lifetime) has ended: new keys are needed, while this SA continues.
    ///
    /// A receiver that starts late cannot know the high half of sequence numbers, which is not
    /// sent: it never opens a packet of an SA beyond 2^32. Half of a limit leaves time because
    /// ciphers with 64-bit blocks reach theirs within milliseconds at full rate.
    #[must_use]
    pub const fn new_keys_are_due(&self) -> bool {
        self.sequence >= self.due.packets || self.bytes >= self.due.bytes
    }

    /// Length of the ESP packet, header to ICV, that carries an inner packet of `inner_len`.
    #[inline]
    #[must_use]
    pub const fn sealed_len(&self, inner_len: usize) -> usize {
        self.shape.esp(inner_len)
    }

    /// Offset of the inner packet in an ESP packet of this SA, behind header and IV.
    #[inline]
    #[must_use]
    pub const fn inner_offset(&self) -> usize {
        self.shape.prefix
    }

    /// Seals the inner packet `src[..inner_len]` into `dst` and returns the ESP packet's length,
    /// which is [`sealed_len`](Self::sealed_len).
    ///
    /// `src` must have [`TRAILER_ROOM`] bytes behind the inner packet. They are overwritten during
    /// the call and restored, so a slice of a larger packet can be sealed in place.
    ///
    /// 1. Padding 1, 2, 3 …, its length and `next_header` are written behind the inner packet (RFC
    ///    4303 §2.4–2.6).
    /// 2. The next sequence number is used; it is also an AEAD's IV, while CBC gets an
    ///    unpredictable one.
    /// 3. SPI, low half of the sequence number and IV are written to `dst`, ciphertext and ICV
    ///    behind them.
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
        if self.shape.padding_max() + ESP_TRAILER_BYTES <= SHORT_ROOM {
            self.seal_with_room::<SHORT_ROOM>(src, inner_len, next_header, dst)
        } else {
            self.seal_with_room::<TRAILER_ROOM>(src, inner_len, next_header, dst)
        }
    }

    /// [`seal`](Self::seal) with a trailer of at most `ROOM` bytes, which are saved and restored.
    #[inline]
    fn seal_with_room<const ROOM: usize>(
        &mut self,
        src: &mut [u8],
        inner_len: usize,
        next_header: u8,
        dst: &mut [u8],
    ) -> Result<usize, SealError> {
        // All lengths are checked before a number is used: a refused packet must leave no gap.
        let Some((_, behind)) = src.split_at_mut_checked(inner_len) else {
            return Err(SealError::NoRoom);
        };
        let sealed_len = self.sealed_len(inner_len);
        if behind.len() < TRAILER_ROOM || dst.len() < sealed_len {
            return Err(SealError::NoRoom);
        }
        let dst = &mut dst[..sealed_len];
        let text_len = self.shape.text(inner_len);
        let sequence = self.begin(dst, text_len)?;
        let mut kept = [0; ROOM];
        // An array, not a vector: the room is known at compile time, and nothing is allocated.
        kept.copy_from_slice(&behind[..ROOM]);
        put_trailer(behind, text_len - inner_len, next_header);
        // The high half is authenticated, but not sent.
        let high = (sequence >> 32) as u32;
        let sealed = self.transform.seal_from(high, &src[..text_len], dst);
        // Restored before an error is returned, too.
        src[inner_len..inner_len + ROOM].copy_from_slice(&kept);
        sealed?;
        Ok(sealed_len)
    }

    /// Builds the ESP packet of `inner` at `at` in `buffer`, unsealed: header, IV, inner packet,
    /// padding and trailer. Uses a sequence number. [`seal_staged`](Self::seal_staged) must follow
    /// before the buffer is used otherwise.
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
        self.stage_with(inner.len(), next_header, buffer, at, |text| {
            text.copy_from_slice(inner);
        })
    }

    /// As [`stage`](Self::stage), for an inner packet that `write` puts into a slice of `inner_len`
    /// bytes with the buffer's previous content. `write` is not called on an error.
    ///
    /// # Errors
    /// [`SealError`].
    #[inline]
    pub fn stage_with(
        &mut self,
        inner_len: usize,
        next_header: u8,
        buffer: &mut [u8],
        at: usize,
        write: impl FnOnce(&mut [u8]),
    ) -> Result<Packet, SealError> {
        // Compared before the sum of lengths is formed, so that no length can overflow it.
        let Some(rest) = buffer.get_mut(at..).filter(|rest| rest.len() >= inner_len) else {
            return Err(SealError::NoRoom);
        };
        let bytes = self.sealed_len(inner_len);
        let Some(packet) = rest.get_mut(..bytes) else {
            return Err(SealError::NoRoom);
        };
        let text_len = self.shape.text(inner_len);
        let sequence = self.begin(packet, text_len)?;
        let (inner, behind) = packet[self.shape.prefix..].split_at_mut(inner_len);
        // After all checks: the closure may consume what it writes.
        write(inner);
        put_trailer(behind, text_len - inner_len, next_header);
        Ok(Packet {
            at,
            bytes,
            sequence_high: (sequence >> 32) as u32,
        })
    }

    /// As [`stage`](Self::stage), for an inner packet that is already in its place,
    /// [`inner_offset`](Self::inner_offset) behind `at`.
    ///
    /// # Errors
    /// [`SealError`].
    #[inline]
    pub fn stage_in_place(
        &mut self,
        inner_len: usize,
        next_header: u8,
        buffer: &mut [u8],
        at: usize,
    ) -> Result<Packet, SealError> {
        self.stage_with(inner_len, next_header, buffer, at, |_| {})
    }

    /// Seals the packets staged in `buffer`, in their order.
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

    /// Uses the next sequence number, and writes header and IV.
    #[inline]
    fn begin(&mut self, packet: &mut [u8], text_len: usize) -> Result<u64, SealError> {
        let left = self.remaining();
        // Checked before the number is used: an SA at its limit stays there for ever.
        if left.packets == 0 {
            return Err(SealError::SequenceExhausted);
        }
        if left.bytes < text_len as u64 {
            return Err(SealError::BytesExhausted);
        }
        // Counted before sealing: if the engine fails halfway, its output may have been seen.
        self.sequence += 1;
        self.bytes += text_len as u64;
        packet[..4].copy_from_slice(&self.spi.to_be_bytes());
        packet[4..8].copy_from_slice(&(self.sequence as u32).to_be_bytes());
        self.ivs.write(self.sequence, packet);
        Ok(self.sequence)
    }
}

#[cfg(test)]
impl OutboundSa {
    /// Makes `sequence` the next number: numbers beyond 32 bits cannot be reached by sealing.
    pub(crate) fn skip_to(&mut self, sequence: u64) {
        self.sequence = sequence - 1;
    }
}

/// Writes padding 1, 2, 3 …, pad length and next header, `bytes` in all, at the start of `behind`.
/// Overwrites up to 16 bytes, or [`SHORT_ROOM`] if the trailer fits into that; where there is less
/// room, because the suite has no ICV, only the trailer.
#[inline]
fn put_trailer(behind: &mut [u8], bytes: usize, next_header: u8) {
    let padding = bytes - ESP_TRAILER_BYTES;
    let trailer = [padding as u8, next_header];
    if behind.len() < 16 {
        // Staged packets stand close together; the next one must not be overwritten.
        behind[..padding].copy_from_slice(&PADDING.to_le_bytes()[..padding]);
        behind[padding..bytes].copy_from_slice(&trailer);
    } else if bytes <= SHORT_ROOM {
        // A single store: the engine reads these bytes immediately, and would stall on several.
        let end = 8 * padding as u32;
        let counting = PADDING as u64 & !(u64::MAX << end);
        let room = counting | u64::from(u16::from_le_bytes(trailer)) << end;
        behind[..SHORT_ROOM].copy_from_slice(&room.to_le_bytes());
    } else {
        // Always 16 bytes: a fixed length is one store, a variable one a call of `memcpy`.
        behind[..16].copy_from_slice(&PADDING.to_le_bytes());
        behind[padding..bytes].copy_from_slice(&trailer);
    }
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
    fn the_trailer_matches_the_rfc_and_fits_its_room() {
        for suite in Suite::ALL {
            let shape = Shape::of(suite);
            for inner_len in 0..64 {
                let bytes = shape.text(inner_len) - inner_len;
                let padding = (bytes - 2) as u8;
                let expected: Vec<u8> = (1..=padding).chain([padding, 41]).collect();
                // As staged, with only the ICV behind it; and as sealed from a source.
                for room in [bytes + shape.icv, TRAILER_ROOM] {
                    let mut trailer = vec![0xee; room];
                    put_trailer(&mut trailer, bytes, 41);
                    assert_eq!(trailer[..bytes], expected, "{suite} {inner_len}");
                    let touched = if bytes <= SHORT_ROOM {
                        SHORT_ROOM
                    } else {
                        bytes.max(16)
                    };
                    let rest = trailer.iter().skip(touched);
                    assert!(rest.copied().all(|byte| byte == 0xee));
                }
                assert_eq!(shape.text(inner_len) % suite.pad_to_bytes(), 0);
            }
        }
    }
}
