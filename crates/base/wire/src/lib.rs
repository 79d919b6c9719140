//! Packet formats: bytes in, bytes out.
//!
//! The layout of every header is defined in this crate: Ethernet, IPv4, IPv6, UDP, TCP and L2TPv3
//! fields, the ESP header and trailer, the `virtio_net_hdr` of offloaded packets, segmentation and
//! coalescing of super-packets, a tunnel's changes to inner packets (ECN, MSS) and its messages to
//! their senders (ICMP), the stamp in test frames, and the cost of encapsulation ([`overhead`]).
//!
//! It does no I/O, reads no clock and has no `unsafe`.

#![forbid(unsafe_code)]

/// The example in `README.md`, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod aggfrag;
pub mod checksum;
pub mod coalesce;
pub mod ecn;
pub mod ethernet;
pub mod headers;
pub mod icmp;
pub mod l2tp;
pub mod mix;
pub mod mss;
#[cfg(feature = "oracle")]
#[doc(hidden)]
pub mod oracle;
pub mod overhead;
pub mod overlay;
pub mod segment;
pub mod stamp;
mod suite;
pub mod variation;
pub mod vnet;

pub use suite::{Cipher, Gost, Hmac, SALT_BYTES, Suite};
