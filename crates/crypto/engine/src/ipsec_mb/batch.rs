//! What a batch must be before the C code may touch it.

use crate::Packet;
use wire::overhead::ESP_HEADER_BYTES;
use wire::{Cipher, Suite};

/// The lengths that a suite's packets may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Header and IV.
    prefix_bytes: usize,
    icv_bytes: usize,
    /// Header, IV, one unit of padding and ICV.
    bytes_min: usize,
    block_bytes: usize,
}

impl Shape {
    pub(super) const fn of(suite: Suite) -> Self {
        let prefix_bytes = ESP_HEADER_BYTES + suite.iv_bytes();
        let cipher = match suite {
            Suite::EncryptThenMac(cipher, _) => cipher,
            // All three AEADs encrypt as stream ciphers do.
            _ => Cipher::Null,
        };
        Self {
            prefix_bytes,
            icv_bytes: suite.icv_bytes(),
            bytes_min: prefix_bytes + suite.pad_to_bytes() + suite.icv_bytes(),
            block_bytes: cipher.block_bytes(),
        }
    }

    /// Length of the packet that carries a text of that length.
    pub(super) const fn packet_bytes(self, text_bytes: usize) -> usize {
        self.prefix_bytes + text_bytes + self.icv_bytes
    }

    /// Length of the text in a packet that is long enough to have one.
    #[inline]
    const fn text_bytes(self, packet_bytes: usize) -> usize {
        packet_bytes - self.prefix_bytes - self.icv_bytes
    }

    /// Whether a packet may have that length. A block is a power of two.
    #[inline]
    const fn fits(self, packet_bytes: usize) -> bool {
        packet_bytes >= self.bytes_min
            && self.text_bytes(packet_bytes) & (self.block_bytes - 1) == 0
    }

    /// The only gate before the C code, which trusts its caller with all of this. Returns the
    /// length of the longest packet.
    ///
    /// # Panics
    /// If a packet has not the suite's form, lies outside a buffer of `buffer_bytes`, or does not
    /// lie behind the one before it.
    #[inline]
    pub(super) fn assert_batch(self, buffer_bytes: usize, packets: &[Packet]) -> usize {
        let (mut free, mut longest) = (0, 0);
        for (index, packet) in packets.iter().enumerate() {
            let end = packet.at.checked_add(packet.bytes);
            match end {
                Some(end)
                    if packet.at >= free && end <= buffer_bytes && self.fits(packet.bytes) =>
                {
                    free = end;
                    longest = longest.max(packet.bytes);
                }
                _ => self.refuse(index, *packet, free, buffer_bytes),
            }
        }
        longest
    }

    /// # Panics
    /// If a packet of that length has not the suite's form, or its text another length than
    /// `text_bytes`.
    #[inline]
    pub(super) fn assert_packet(self, text_bytes: usize, packet_bytes: usize) {
        if !self.fits(packet_bytes) || self.text_bytes(packet_bytes) != text_bytes {
            panic!("a packet of {packet_bytes} B does not fit a text of {text_bytes} B: {self:?}");
        }
    }

    #[cold]
    fn refuse(self, index: usize, packet: Packet, free: usize, buffer_bytes: usize) -> ! {
        panic!(
            "packet {index} of a batch must lie whole between {free} and {buffer_bytes} and have the \
             suite's form, {self:?}: {packet:?}"
        )
    }
}
