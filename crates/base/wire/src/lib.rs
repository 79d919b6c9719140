//! Packet formats: bytes in, bytes out.
//!
//! Everything that must know how a header is laid out asks this crate: Ethernet, IPv4, IPv6, UDP, TCP and L2TPv3
//! fields, the ESP header and trailer, the `virtio_net_hdr` of offloaded packets, segmentation and coalescing of
//! super-packets, what a tunnel does to inner packets (ECN, MSS) and tells their senders (ICMP), the stamp in test
//! frames, and the one place that knows what encapsulation costs ([`overhead`]).
//!
//! It does no I/O, keeps no clock and has no `unsafe`.

#![forbid(unsafe_code)]

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
pub mod overhead;
pub mod segment;
pub mod stamp;
mod suite;
pub mod vnet;

pub use suite::{Cipher, Gost, Hmac, SALT_BYTES, Suite};
