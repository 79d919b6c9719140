//! Views on the IP and transport headers of one packet.

use crate::checksum::{self, Sum};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;
/// IP protocol number of ESP.
pub const ESP: u8 = 50;
/// Next header of an IPv4 packet in ESP tunnel mode.
pub const IPV4_IN_IP: u8 = 4;
/// Next header of an IPv6 packet in ESP tunnel mode.
pub const IPV6_IN_IP: u8 = 41;
/// Next header of a dummy packet (RFC 4303 §2.6).
pub const NO_NEXT_HEADER: u8 = 59;

/// "More fragments" and the fragment offset, in an IPv4 header's fourth word.
const MF_AND_OFFSET: u16 = 0x3fff;

/// The layout of an IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpView {
    /// 4 or 6.
    pub version: u8,
    /// Length of the IP header in bytes; the transport header follows.
    pub header_bytes: usize,
    /// Length of the packet from its header; link padding may follow.
    pub total_bytes: usize,
    /// IP protocol, or the first next header of IPv6.
    pub protocol: u8,
    /// A fragment, or a header with options or extensions: passed through unchanged.
    pub opaque: bool,
}

impl IpView {
    /// Reads the IP header; `None` when `packet` is not a whole IP packet.
    #[inline]
    #[must_use]
    pub fn parse(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::parse_v4(packet),
            6 => Self::parse_v6(packet),
            _ => None,
        }
    }

    #[inline]
    fn parse_v4(packet: &[u8]) -> Option<Self> {
        let header = packet.first_chunk::<20>()?;
        // IHL counts words of 4 bytes (RFC 791 §3.1).
        let header_bytes = usize::from(header[0] & 15) * 4;
        let total_bytes = usize::from(be16(header, 2));
        // The first fragment has MF and no offset, the last one an offset and no MF.
        let fragment = be16(header, 6) & MF_AND_OFFSET != 0;
        (header_bytes >= 20 && header_bytes <= total_bytes && total_bytes <= packet.len())
            .then_some(Self {
                version: 4,
                header_bytes,
                total_bytes,
                protocol: header[9],
                opaque: fragment || header_bytes != 20,
            })
    }

    #[inline]
    fn parse_v6(packet: &[u8]) -> Option<Self> {
        let header = packet.first_chunk::<40>()?;
        // The payload length excludes the fixed header; the 0 of a jumbogram (RFC 2675) reads as an
        // empty payload.
        let total_bytes = 40 + usize::from(be16(header, 4));
        let protocol = header[6];
        (total_bytes <= packet.len()).then_some(Self {
            version: 6,
            header_bytes: 40,
            total_bytes,
            protocol,
            // Extension headers, fragments among them, hide the transport header.
            opaque: !matches!(protocol, TCP | UDP),
        })
    }

    /// ESP's next header value for this packet in tunnel mode.
    #[inline]
    #[must_use]
    pub const fn next_header(&self) -> u8 {
        if self.version == 4 {
            IPV4_IN_IP
        } else {
            IPV6_IN_IP
        }
    }

    /// Length of the transport header, for TCP and UDP; `None` when it is not whole.
    #[inline]
    #[must_use]
    pub fn transport_header_bytes(&self, packet: &[u8]) -> Option<usize> {
        let transport = packet.get(self.header_bytes..self.total_bytes)?;
        let length = match self.protocol {
            UDP => 8,
            TCP => usize::from(*transport.get(12)? >> 4) * 4,
            _ => return None,
        };
        // A data offset of fewer than 5 words is inside the fixed header (RFC 9293 §3.1).
        let least = if self.protocol == TCP { 20 } else { 8 };
        (length >= least && length <= transport.len()).then_some(length)
    }

    /// Partial sum of the pseudo-header without its length field (RFC 9293 §3.1, RFC 8200 §8.1).
    #[inline]
    #[must_use]
    pub fn pseudo_sum(&self, packet: &[u8]) -> u64 {
        let addresses = if self.version == 4 {
            &packet[12..20]
        } else {
            &packet[8..40]
        };
        checksum::portable(addresses, checksum::word(u16::from(self.protocol)))
    }

    /// Whether the IPv4 header's checksum is right; IPv6 has none.
    #[inline]
    #[must_use]
    pub fn header_checksum_is_valid(&self, packet: &[u8]) -> bool {
        self.version == 6 || checksum::is_valid(checksum::portable(&packet[..self.header_bytes], 0))
    }

    /// Whether it is a fragment of an IPv4 packet, the first included.
    #[inline]
    #[must_use]
    pub fn is_ipv4_fragment(&self, packet: &[u8]) -> bool {
        self.version == 4 && be16(packet, 6) & MF_AND_OFFSET != 0
    }

    /// Whether it is a UDP datagram without a checksum: the field is zero (RFC 768), over IPv4 only
    /// (RFC 8200 §8.1).
    #[inline]
    #[must_use]
    pub fn has_no_checksum(&self, packet: &[u8]) -> bool {
        let at = self.header_bytes + 6;
        self.protocol == UDP && self.version == 4 && packet.get(at..at + 2) == Some(&[0, 0])
    }

    /// Whether the TCP or UDP checksum is right; a UDP checksum of zero ("none") is not.
    #[must_use]
    pub fn transport_checksum_is_valid(&self, packet: &[u8], sum: Sum) -> bool {
        let Some(transport) = packet.get(self.header_bytes..self.total_bytes) else {
            return false;
        };
        // It proves nothing over IPv4, and is forbidden over IPv6 (RFC 8200 §8.1).
        if self.protocol == UDP && transport.get(6..8) == Some(&[0, 0]) {
            return false;
        }
        let start = self.pseudo_sum(packet) + checksum::word(transport.len() as u16);
        checksum::is_valid(sum(transport, start))
    }
}

/// The source address of an IP packet; `None` when it is not one.
#[inline]
#[must_use]
pub fn source_address(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(IpAddr::V4(Ipv4Addr::from(
            *packet.get(12..)?.first_chunk::<4>()?,
        ))),
        6 => Some(IpAddr::V6(Ipv6Addr::from(
            *packet.get(8..)?.first_chunk::<16>()?,
        ))),
        _ => None,
    }
}

/// The big-endian 16-bit field at `at`.
#[inline]
#[must_use]
pub fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The big-endian 32-bit field at `at`.
#[inline]
#[must_use]
pub fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Writes the big-endian 16-bit field at `at`.
#[inline]
pub fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Writes the length of an IPv4 packet without options, and the checksum of its header.
#[inline]
pub fn put_ipv4_length(headers: &mut [u8], total: usize) {
    put16(headers, 2, total as u16);
    put16(headers, 10, 0);
    let sum = checksum::finish(checksum::portable(&headers[..20], 0));
    headers[10..12].copy_from_slice(&sum);
}

/// Writes the big-endian 32-bit field at `at`.
#[inline]
pub fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
