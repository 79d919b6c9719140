//! ESP security associations (RFC 4303): sequence numbers, anti-replay, sealing and opening.
//!
//! An SA is one direction of one lane. [`OutboundSa`] and [`InboundSa`] work on single packets in buffers of
//! the caller, without allocation; which SA a packet belongs to, and when keys change, is decided elsewhere.
//! Sequence numbers are always extended ones of 64 bits (ESN), of which the low half is sent; the IV is the
//! whole sequence number, so a nonce cannot repeat under one key.
//!
//! No I/O and no clock, and no algorithm of its own: the AEAD comes from `engine`.

#![forbid(unsafe_code)]

mod inbound;
mod outbound;
#[cfg(test)]
mod tests;
mod window;

pub use inbound::{InboundSa, OpenError, Opened};
pub use outbound::{DEFAULT_SEQUENCE_LIMIT, OutboundSa, SealError, TRAILER_ROOM};
pub use window::WindowSize;

use engine::NONCE_BYTES;
use wire::overhead::ESP_HEADER_BYTES;

pub use wire::SALT_BYTES;

/// Length of the IV that is sent.
const IV_BYTES: usize = NONCE_BYTES - SALT_BYTES;
/// What stands before the ciphertext: SPI, sequence number and IV.
const PREFIX_BYTES: usize = ESP_HEADER_BYTES + IV_BYTES;
/// SPI and the whole sequence number.
const AAD_BYTES: usize = 12;

/// The additional authenticated data of a packet (RFC 4106 §5, RFC 7634 §2.1).
#[inline]
fn aad(spi: u32, sequence: u64) -> [u8; AAD_BYTES] {
    let mut aad = [0; AAD_BYTES];
    aad[..4].copy_from_slice(&spi.to_be_bytes());
    aad[4..].copy_from_slice(&sequence.to_be_bytes());
    aad
}

/// Salt, then IV.
#[inline]
fn nonce(salt: [u8; SALT_BYTES], iv: [u8; IV_BYTES]) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    nonce[..SALT_BYTES].copy_from_slice(&salt);
    nonce[SALT_BYTES..].copy_from_slice(&iv);
    nonce
}
