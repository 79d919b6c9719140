//! A suite's lengths, computed once: the packet path only adds.

use wire::Suite;
use wire::overhead::{self, ESP_HEADER_BYTES, ESP_TRAILER_BYTES};

/// The first 16 bytes of padding, 1, 2, 3 … (RFC 4303 §2.4), as a little-endian number.
pub(crate) const PADDING: u128 = 0x100f_0e0d_0c0b_0a09_0807_0605_0403_0201;

/// The lengths of a suite's packets, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Header and IV, in front of the plaintext.
    pub(crate) prefix: usize,
    pub(crate) icv: usize,
    /// Length of the shortest packet, which has no inner packet.
    pub(crate) least: usize,
    /// The plaintext's alignment, a power of two, less one.
    mask: usize,
}

impl Shape {
    pub(crate) const fn of(suite: Suite) -> Self {
        let align = suite.pad_to_bytes();
        // Masks replace divisions on the packet path, and need a power of two.
        assert!(
            align.is_power_of_two() && align > ESP_TRAILER_BYTES,
            "text is padded to 4, 8 or 16 bytes"
        );
        Self {
            prefix: ESP_HEADER_BYTES + suite.iv_bytes(),
            icv: suite.icv_bytes(),
            least: overhead::esp_bytes(suite, 0),
            mask: align - 1,
        }
    }

    /// Length of the plaintext: inner packet, padding and trailer.
    #[inline]
    pub(crate) const fn text(self, inner: usize) -> usize {
        // Rounded up, with the trailer inside: pad length and next header end a block.
        (inner + ESP_TRAILER_BYTES + self.mask) & !self.mask
    }

    /// Length of the ESP packet of an inner packet.
    #[inline]
    pub(crate) const fn esp(self, inner: usize) -> usize {
        self.prefix + self.text(inner) + self.icv
    }

    /// Whether a plaintext can have this many bytes more than the shortest.
    #[inline]
    pub(crate) const fn is_aligned(self, bytes: usize) -> bool {
        bytes & self.mask == 0
    }

    /// The longest padding that alignment requires.
    #[inline]
    pub(crate) const fn padding_max(self) -> usize {
        self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_agree_with_the_overhead_function() {
        for suite in Suite::ALL {
            let shape = Shape::of(suite);
            for inner in 0..200 {
                assert_eq!(shape.esp(inner), overhead::esp_bytes(suite, inner));
                let padding = overhead::padding_bytes(suite, inner);
                assert_eq!(shape.text(inner), inner + padding + ESP_TRAILER_BYTES);
                assert!(padding <= shape.padding_max());
                assert!(shape.is_aligned(shape.esp(inner) - shape.least));
                assert!(!shape.is_aligned(shape.esp(inner) - shape.least + 1));
            }
        }
    }
}
