//! Frames of ARP and neighbour discovery that a namespace receives, on whatever interface.
//!
//! Packet sockets of these protocols see no packet of IPv4, so that they cost the traffic of the
//! tools nothing. They count what arrives only: what a node sends the other end of its link counts.

use crate::packet_socket::PacketSocket;
use crate::sample::filter;
use std::io;

/// `ETH_P_ARP` and `ETH_P_IPV6` of linux/if_ether.h.
const ARP: u16 = 0x0806;
const IPV6: u16 = 0x86dd;

/// Sockets that count.
pub(super) struct Neighbours([PacketSocket; 2]);

impl Neighbours {
    /// Counts from here on.
    ///
    /// # Errors
    /// When the kernel refuses a packet socket.
    pub(super) fn count() -> io::Result<Self> {
        let arp = PacketSocket::open_on_all(ARP, &[])?;
        let discovery = PacketSocket::open_on_all(IPV6, &filter::discovery())?;
        Ok(Self([arp, discovery]))
    }

    /// Returns the frames since then.
    pub(super) fn frames(&self) -> io::Result<u64> {
        self.0.iter().map(PacketSocket::frames).sum()
    }
}
