//! IKEv2 (RFC 7296): negotiation of the keys of ESP with any vendor's gateway.
//!
//! [`message`] is the codec: every payload of RFC 7296 section 3 and the fragments of RFC 7383,
//! parsed strictly within bounds.
//!
//! [`crypto`] has the key derivation, the key exchanges, the encrypted payload and authentication.
//!
//! [`session`] is one IKE SA as a state machine.
//!
//! The crate has no I/O, no clock and no threads.

#![forbid(unsafe_code)]

pub mod crypto;
pub mod message;
#[cfg(any(test, feature = "oracle"))]
pub mod oracle;
pub mod session;
