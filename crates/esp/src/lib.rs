//! ESP security associations (RFC 4303): sequence numbers, anti-replay, sealing and opening.
//!
//! An SA is one direction of one lane. [`OutboundSa`] and [`InboundSa`] work on packets in buffers of the
//! caller, singly or in batches, without allocation; which SA a packet belongs to, and when keys change, is decided
//! elsewhere. Sequence numbers are always extended ones of 64 bits (ESN), of which the low half is sent; an AEAD's
//! IV is the whole sequence number, so a nonce cannot repeat under one key.
//!
//! A batch takes three steps on either side, so that an engine sees all its packets at once:
//!
//! ```text
//! OutboundSa::stage, one by one   -> OutboundSa::seal_staged
//! InboundSa::expect, one by one   -> InboundSa::open_staged   -> InboundSa::accept, one by one
//! ```
//!
//! No I/O and no clock, and no algorithm of its own: the transform comes from `engine`.

#![forbid(unsafe_code)]

mod inbound;
mod outbound;
#[cfg(test)]
mod tests;
mod window;

pub use inbound::{InboundSa, OpenError, Opened};
pub use outbound::{DEFAULT_SEQUENCE_LIMIT, OutboundSa, SealError, TRAILER_ROOM};
pub use window::WindowSize;
