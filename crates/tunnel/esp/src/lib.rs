//! ESP security associations (RFC 4303): sequence numbers, anti-replay, sealing and opening.
//!
//! An SA is one direction of one lane. [`OutboundSa`] and [`InboundSa`] work on packets in the
//! caller's buffers, singly or in batches, without allocation; the caller decides which SA a packet
//! belongs to, and when keys change. Sequence numbers have 64 bits (ESN), of which the low half is
//! sent, unless the transform is for a peer with 32 bits; an AEAD's IV is the full sequence number,
//! so a nonce cannot repeat under one key.
//! The IVs of CBC are unpredictable.
//!
//! A batch takes three steps in either direction, so that an engine processes all its packets at
//! once:
//!
//! ```text
//! OutboundSa::stage, one by one   -> OutboundSa::seal_staged
//! InboundSa::expect, one by one   -> InboundSa::open_staged   -> InboundSa::accept, one by one
//! ```
//!
//! [`OutboundSa::stage_with`] and [`OutboundSa::stage_in_place`] stage data written directly into
//! the outgoing buffer. An SA stops permanently at its [`Limits`].
//!
//! No clock, no I/O except a seed from the operating system when a CBC SA is created, and no
//! algorithm of its own: the transform comes from `engine`.

#![forbid(unsafe_code)]

/// The example in `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod inbound;
mod iv;
mod limits;
mod outbound;
mod shape;
#[cfg(test)]
mod tests;
mod window;

pub use inbound::{InboundSa, OpenError, Opened};
pub use limits::Limits;
pub use outbound::{OutboundSa, SealError, TRAILER_ROOM};
pub use window::WindowSize;
