//! Checks of a batch before it is passed to C code.

use crate::Packet;
use wire::overhead::ESP_HEADER_BYTES;
use wire::{Cipher, Suite};

/// The permitted lengths of a suite's packets.
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
            // All three AEADs encrypt like stream ciphers.
            _ => Cipher::Null,
        };
        Self {
            prefix_bytes,
            icv_bytes: suite.icv_bytes(),
            bytes_min: prefix_bytes + suite.pad_to_bytes() + suite.icv_bytes(),
            block_bytes: cipher.block_bytes(),
        }
    }

    /// Returns the length of a packet with a text of this length.
    pub(super) const fn packet_bytes(self, text_bytes: usize) -> usize {
        self.prefix_bytes + text_bytes + self.icv_bytes
    }

    /// Returns the length of the text in a packet that is long enough to have one.
    #[inline]
    const fn text_bytes(self, packet_bytes: usize) -> usize {
        packet_bytes - self.prefix_bytes - self.icv_bytes
    }

    /// Whether a packet may have this length. A block is a power of two.
    #[inline]
    const fn fits(self, packet_bytes: usize) -> bool {
        packet_bytes >= self.bytes_min
            && self.text_bytes(packet_bytes) & (self.block_bytes - 1) == 0
    }

    /// The only check before the C code, which relies on it. Returns the length of the longest
    /// packet.
    ///
    /// # Panics
    /// If a packet has an invalid length, lies outside a buffer of `buffer_bytes`, or is not behind
    /// the one before it.
    #[inline]
    pub(super) fn assert_batch(self, buffer_bytes: usize, packets: &[Packet]) -> usize {
        let (mut free, mut longest) = (0, 0);
        for (index, packet) in packets.iter().enumerate() {
            // Checked: an overflow would turn a wild offset into a valid one.
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
    /// If the packet's length is invalid, or that of its text is not `text_bytes`.
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
