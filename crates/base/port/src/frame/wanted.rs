//! What a caller wants of frame ports.

use super::FramePortKind;

/// Requirements on frame ports.
#[derive(Debug, Clone, Copy)]
pub struct OpenFrames<'a> {
    /// Interface of this network namespace.
    pub interface: &'a str,
    /// The kind to use; `None`: the fastest that works.
    pub kind: Option<FramePortKind>,
    /// Length of the longest frame expected, without FCS.
    pub max_frame_bytes: usize,
    /// Number of ports to open, one per thread; at least 1. Receivers divide the flows among them.
    pub threads: usize,
    /// UDP target ports of the frames to receive; senders ignore it.
    pub udp_ports: &'a [u16],
    /// Whose ports those are; then only sealed packets are taken, and the rest is left to the
    /// owner.
    pub beside: Option<Beside>,
}

/// A protocol that uses the same ports as the sealed packets that it agrees on keys for. Both are
/// distinguished by their first four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// IKE, whose messages begin with zeroes there, where ESP has an SPI (RFC 3948 §2.2).
    Ike,
    /// WireGuard's handshake, whose messages have another type than transport data.
    WireGuard,
}
