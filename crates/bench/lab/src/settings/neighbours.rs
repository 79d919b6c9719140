//! Frames of ARP, neighbour and group discovery that a namespace receives on any interface.
//!
//! Packet sockets of these protocols see no IPv4 packet, so they cost the tools' traffic nothing.
//! They count received frames only: a frame that a node sends is counted at the other end of its
//! link.

use crate::packet_socket::PacketSocket;
use crate::sample::filter;
use std::io;
use wire::ethernet::{ARP, IPV6};

/// The counting sockets.
pub(super) struct Neighbours([PacketSocket; 2]);

impl Neighbours {
    /// Starts counting.
    ///
    /// # Errors
    /// If the kernel refuses a packet socket.
    pub(super) fn count() -> io::Result<Self> {
        // Without a filter: the kernel passes frames of this EtherType only.
        let arp = PacketSocket::open_on_all(ARP, &[])?;
        let discovery = PacketSocket::open_on_all(IPV6, &filter::discovery())?;
        Ok(Self([arp, discovery]))
    }

    /// Returns the frames since the start.
    pub(super) fn frames(&self) -> io::Result<u64> {
        self.0.iter().map(PacketSocket::frames).sum()
    }
}
