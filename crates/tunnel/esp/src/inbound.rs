//! The inbound half of an SA.

use crate::shape::{PADDING, Shape};
use crate::window::{Rejected, Window, WindowSize};
use engine::{EngineFailed, Packet, Transform};
use std::fmt;
use std::ops::Range;
use wire::Suite;
use wire::overhead::ESP_TRAILER_BYTES;

/// An opened packet: the range of the inner packet, and its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The inner packet, in the opened buffer. It may be followed by traffic-flow padding (RFC 4303
    /// §2.7).
    pub inner: Range<usize>,
    /// 4 or 41 for IPv4 or IPv6, 143 for Ethernet (RFC 8986 §9), 144 for AGGFRAG (RFC 9347); 59 for
    /// a dummy packet, to be dropped (RFC 4303 §2.6).
    pub next_header: u8,
}

/// Why a packet was not opened. Every such packet has exactly one reason, and must be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Shorter than the shortest ESP packet.
    #[error("shorter than any ESP packet")]
    Runt,
    /// Its sequence number has been received before.
    #[error("replayed")]
    Replayed,
    /// Left of the anti-replay window and before the SA's first packet.
    ///
    /// Later in the SA's life, ESN interprets the number of a packet left of the window as one
    /// almost 2^32 ahead (RFC 4303 appendix A2), so it counts as
    /// [`IntegrityFailed`](Self::IntegrityFailed).
    #[error("older than the anti-replay window")]
    TooOld,
    /// The SPI is not this SA's, its length is impossible for the suite, or the ICV does not match:
    /// forged, damaged, under another key, or too late (see [`TooOld`](Self::TooOld)).
    #[error("the integrity check failed")]
    IntegrityFailed,
    /// Authentic, but its padding or trailer violates RFC 4303 §2.4–2.6: the peer is at fault.
    #[error("authentic, but its padding is malformed")]
    BadTrailer,
    /// The engine failed.
    #[error("the engine failed")]
    EngineFailed,
}

impl From<EngineFailed> for OpenError {
    fn from(_: EngineFailed) -> Self {
        Self::EngineFailed
    }
}

impl From<Rejected> for OpenError {
    fn from(rejected: Rejected) -> Self {
        match rejected {
            Rejected::Replayed => Self::Replayed,
            Rejected::TooOld => Self::TooOld,
        }
    }
}

/// An inbound SA.
pub struct InboundSa {
    spi: u32,
    transform: Box<dyn Transform>,
    suite: Suite,
    shape: Shape,
    /// Whether the high half of a number is to be inferred.
    is_extended: bool,
    window: Window,
}

impl InboundSa {
    /// An SA that has opened nothing yet.
    #[must_use]
    pub fn new(spi: u32, transform: Box<dyn Transform>, window: WindowSize) -> Self {
        let suite = transform.suite();
        Self {
            spi,
            // Kept here: a call through the trait per packet would cost more than the field.
            is_extended: transform.numbers().are_extended(),
            transform,
            suite,
            shape: Shape::of(suite),
            window: Window::new(window),
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

    /// Opens an ESP packet in place, from its SPI to the end of its ICV.
    ///
    /// 1. The high half of an extended sequence number is inferred, and the number checked against
    ///    the window.
    /// 2. The ICV is verified over SPI and that number too; the packet is decrypted.
    /// 3. Only now the number is marked in the window (RFC 4303 §3.4.3).
    /// 4. Padding and trailer are checked and removed.
    ///
    /// # Errors
    /// [`OpenError`]; after [`OpenError::IntegrityFailed`] the content of `packet` is unusable.
    #[inline]
    pub fn open(&mut self, packet: &mut [u8]) -> Result<Opened, OpenError> {
        let sequence = self.authenticate(packet)?;
        self.accept(packet, sequence, true)
    }

    /// Opens an ESP packet in place without accepting it: returns its full sequence number if it is
    /// authentic. The window is unchanged; so, on a copy, this shows whether the SA is the right
    /// one for a packet that is opened later.
    ///
    /// # Errors
    /// [`OpenError`] except [`OpenError::BadTrailer`]: padding and trailer are not checked.
    #[inline]
    pub fn authenticate(&mut self, packet: &mut [u8]) -> Result<u64, OpenError> {
        let sequence = self.expect(packet)?;
        // A batch of one: engines have no second way of opening.
        let whole = Packet {
            at: 0,
            bytes: packet.len(),
            sequence_high: (sequence >> 32) as u32,
        };
        let mut authentic = [false];
        self.transform.open(packet, &[whole], &mut authentic)?;
        if authentic[0] {
            Ok(sequence)
        } else {
            Err(OpenError::IntegrityFailed)
        }
    }

    /// The full sequence number of a packet, if it can belong to this SA: the step before opening.
    /// Changes nothing.
    ///
    /// # Errors
    /// [`OpenError`]; the packet must not be opened.
    #[inline]
    pub fn expect(&self, packet: &[u8]) -> Result<u64, OpenError> {
        // One pattern instead of two slices: the length is checked once.
        let [p0, p1, p2, p3, s0, s1, s2, s3, ..] = *packet else {
            return Err(OpenError::Runt);
        };
        let Some(more) = packet.len().checked_sub(self.shape.least) else {
            return Err(OpenError::Runt);
        };
        // A foreign SPI has the same reason as a forged packet: to an SA both are equal.
        if u32::from_be_bytes([p0, p1, p2, p3]) != self.spi || !self.shape.is_aligned(more) {
            return Err(OpenError::IntegrityFailed);
        }
        let low = u32::from_be_bytes([s0, s1, s2, s3]);
        let sequence = if self.is_extended {
            self.window.infer(low)?
        } else {
            // Short numbers never wrap, so that nothing has to be inferred.
            low.into()
        };
        self.window.check(sequence)?;
        Ok(sequence)
    }

    /// Opens packets in place, each of which [`expect`](Self::expect) has accepted, and returns
    /// which are authentic. [`accept`](Self::accept) must follow for each.
    ///
    /// # Errors
    /// [`EngineFailed`]: all of them must be dropped.
    #[inline]
    pub fn open_staged(
        &mut self,
        buffer: &mut [u8],
        packets: &[Packet],
        authentic: &mut [bool],
    ) -> Result<(), EngineFailed> {
        self.transform.open(buffer, packets, authentic)
    }

    /// The step after opening: marks the packet's sequence number, and removes padding and trailer.
    /// Detects duplicates within one batch.
    ///
    /// # Errors
    /// [`OpenError`].
    #[inline]
    pub fn accept(
        &mut self,
        packet: &[u8],
        sequence: u64,
        authentic: bool,
    ) -> Result<Opened, OpenError> {
        if !authentic {
            return Err(OpenError::IntegrityFailed);
        }
        // Checked again: an earlier packet of the same batch may have been its duplicate.
        self.window.check(sequence)?;
        // Before the trailer is checked: an authentic packet is received, whatever it carries.
        self.window.mark(sequence);
        let Shape { prefix, icv, .. } = self.shape;
        let plaintext = &packet[prefix..packet.len() - icv];
        let (inner_len, next_header) = unpad(plaintext).ok_or(OpenError::BadTrailer)?;
        Ok(Opened {
            inner: prefix..prefix + inner_len,
            next_header,
        })
    }
}

#[cfg(test)]
impl InboundSa {
    /// Makes the number before `sequence` the highest received, as if the packets up to there had
    /// arrived.
    pub(crate) fn skip_to(&mut self, sequence: u64) {
        self.window.mark(sequence - 1);
    }
}

/// Length of the inner packet, and next header; `None` unless the padding is 1, 2, 3 … of the
/// length in the trailer.
#[inline]
fn unpad(plaintext: &[u8]) -> Option<(usize, u8)> {
    // Nothing here has to take constant time: the packet is authentic, and its padding no secret.
    let (rest, &[pad_length, next_header]) = plaintext.split_last_chunk::<ESP_TRAILER_BYTES>()?;
    let inner_len = rest.len().checked_sub(usize::from(pad_length))?;
    let padding = &rest[inner_len..];
    let counts_up = match rest.last_chunk::<16>() {
        // No suite needs more padding, so this is the usual case: one comparison for any length.
        Some(end) if padding.len() <= 16 => {
            // Bits of the inner packet in the last 16 bytes: shifted out on both sides before the
            // comparison.
            let foreign = 8 * (16 - padding.len() as u32);
            let difference = u128::from_le_bytes(*end).checked_shr(foreign).unwrap_or(0)
                ^ PADDING & u128::MAX.checked_shr(foreign).unwrap_or(0);
            difference == 0
        }
        _ => padding
            .iter()
            // Longer padding is legal (RFC 4303 §2.4), but only a peer that hides lengths sends it.
            .zip(1..=u8::MAX)
            .all(|(&byte, expected)| byte == expected),
    };
    counts_up.then_some((inner_len, next_header))
}

impl fmt::Debug for InboundSa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboundSa")
            // The transform, which holds the keys, is left out.
            .field("spi", &format_args!("{:#010x}", self.spi))
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4303 §2.4–2.6, byte by byte.
    fn obvious(plaintext: &[u8]) -> Option<(usize, u8)> {
        let at = plaintext.len().checked_sub(2)?;
        let padding = usize::from(plaintext[at]);
        let inner_len = at.checked_sub(padding)?;
        (0..padding)
            .all(|number| usize::from(plaintext[inner_len + number]) == number + 1)
            .then_some((inner_len, plaintext[at + 1]))
    }

    #[test]
    fn padding_of_any_length_is_removed_and_any_wrong_byte_is_rejected() {
        for inner_len in 0..40 {
            for padding in 0..=255u8 {
                let mut text = vec![0xee; inner_len];
                text.extend(1..=padding);
                text.extend([padding, 4]);
                assert_eq!(unpad(&text), Some((inner_len, 4)));
                for at in 0..text.len() {
                    for flip in [1, 0x80] {
                        text[at] ^= flip;
                        assert_eq!(unpad(&text), obvious(&text), "{inner_len} {padding} {at}");
                        text[at] ^= flip;
                    }
                }
                for length in 0..2 {
                    assert_eq!(unpad(&text[..length]), obvious(&text[..length]));
                }
            }
        }
    }
}
