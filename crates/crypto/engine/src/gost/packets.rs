//! The parts of packets in a batch.

use crate::transform::{Packet, one_by_one};
use wire::Suite;
use wire::overhead::ESP_HEADER_BYTES;

/// One packet: header and IV, text, ICV.
pub(super) struct Parts<'a> {
    pub(super) prefix: &'a [u8],
    pub(super) text: &'a mut [u8],
    pub(super) icv: &'a mut [u8],
    pub(super) sequence_high: u32,
}

impl<'a> Parts<'a> {
    /// # Panics
    /// If the packet is too short for the suite, or its text is not of whole blocks.
    #[inline]
    pub(super) fn of(suite: Suite, packet: &'a mut [u8], sequence_high: u32) -> Self {
        let (prefix, icv) = (ESP_HEADER_BYTES + suite.iv_bytes(), suite.icv_bytes());
        let text = packet.len().saturating_sub(prefix + icv);
        assert!(
            text > 0 && text.is_multiple_of(suite.pad_to_bytes()),
            "a packet of {} B has no text of {suite}",
            packet.len()
        );
        // Lengths are checked above, so no split below can fail.
        let (prefix, rest) = packet.split_at_mut(prefix);
        let (text, icv) = rest.split_at_mut(text);
        Self {
            prefix,
            text,
            icv,
            sequence_high,
        }
    }

    /// Returns SPI and the whole sequence number.
    #[inline]
    pub(super) fn aad(&self) -> [u8; 12] {
        let mut aad = [0; 12];
        aad[..4].copy_from_slice(&self.prefix[..4]);
        aad[4..8].copy_from_slice(&self.sequence_high.to_be_bytes());
        aad[8..].copy_from_slice(&self.prefix[4..8]);
        aad
    }
}

/// Returns the packets of a batch.
///
/// # Panics
/// On a packet with an invalid position or length.
#[inline]
pub(super) fn parts<'a>(
    suite: Suite,
    buffer: &'a mut [u8],
    packets: &'a [Packet],
) -> impl Iterator<Item = Parts<'a>> {
    one_by_one(buffer, packets).map(move |(packet, high)| Parts::of(suite, packet, high))
}
