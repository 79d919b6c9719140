//! Nonces of MGM.

use wire::overhead::ESP_HEADER_BYTES;

/// Length of the longest block, which is that of the longest nonce.
const NONCE_BYTES_MAX: usize = 16;

/// A nonce as long as a block.
#[derive(Clone, Copy, zeroize::Zeroize)]
pub(super) struct Nonce {
    bytes: [u8; NONCE_BYTES_MAX],
    length: usize,
}

impl AsRef<[u8]> for Nonce {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Nonce {
    /// Makes a nonce without a packet's number.
    pub(super) fn new(salt: &[u8]) -> Self {
        let mut nonce = Self {
            bytes: [0; NONCE_BYTES_MAX],
            length: 4 + salt.len(),
        };
        nonce.bytes[4..4 + salt.len()].copy_from_slice(salt);
        nonce
    }

    /// Returns the nonce of `packet`, which begins with the header: the number is the last 3 bytes
    /// of the IV.
    #[inline]
    pub(super) fn of_packet(mut self, packet: &[u8]) -> Self {
        let number = ESP_HEADER_BYTES + 5..ESP_HEADER_BYTES + 8;
        // The first byte stays 0: MGM sets its first bit to tell the counters of text and MAC apart
        // (RFC 9058 §4.1).
        self.bytes[1..4].copy_from_slice(&packet[number]);
        self
    }
}
