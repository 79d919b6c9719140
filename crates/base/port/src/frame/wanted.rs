//! A caller's requirements on frame ports.

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
    /// The packets to receive, or to send; senders ignore their ports.
    pub packets: Packets<'a>,
}

/// Packets for a frame port. Receivers leave all others to the kernel.
#[derive(Debug, Clone, Copy)]
pub enum Packets<'a> {
    /// UDP datagrams to these target ports.
    Udp(&'a [u16]),
    /// Only the sealed ones of those: the ports are the key exchange's too.
    UdpBeside(&'a [u16], Beside),
    /// ESP directly in IP (protocol 50, RFC 4303 §2), with any SPI. The kernel may have SAs for
    /// them, and must not open them.
    BareEsp,
}

/// A protocol that uses the same ports as the sealed packets that it agrees on keys for. Both are
/// distinguished by their first four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// IKE: its messages begin with zeroes in place of ESP's SPI (RFC 3948 §2.2).
    Ike,
    /// WireGuard's handshake: its messages have other types than transport data.
    WireGuard,
}
