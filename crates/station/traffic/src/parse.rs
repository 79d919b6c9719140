//! Parses a received frame down to its UDP payload, or to bare ESP.

use std::ops::Range;
use wire::ethernet;
use wire::headers::{ESP, UDP, be16};
use wire::mix::ETHERNET_HEADER_BYTES;
use wire::overhead::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, UDP_HEADER_BYTES};

const VLAN_TAG_BYTES: usize = 4;

/// A UDP datagram in an IP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Destination port.
    pub(crate) port: u16,
    /// Length of the IP packet from its header.
    pub(crate) ip_bytes: u16,
    /// Range of the payload in the packet; `None` when lengths contradict each other.
    pub(crate) payload: Option<Range<usize>>,
}

/// The IP packet in a frame, behind the Ethernet header and at most one VLAN tag.
#[inline]
pub(crate) fn ip_packet(frame: &mut [u8]) -> Option<&mut [u8]> {
    let header = frame.first_chunk::<ETHERNET_HEADER_BYTES>()?;
    let mut ethertype = be16(header, 12);
    let mut at = ETHERNET_HEADER_BYTES;
    // A DUT may add a priority tag; test frames have none.
    if ethertype == ethernet::VLAN {
        ethertype = be16(frame.get(at..)?.first_chunk::<VLAN_TAG_BYTES>()?, 2);
        at += VLAN_TAG_BYTES;
    }
    let packet = &mut frame[at..];
    let version = match ethertype {
        ethernet::IPV4 => 4,
        ethernet::IPV6 => 6,
        _ => return None,
    };
    // The two must agree, or lengths would be read from the wrong fields.
    (*packet.first()? >> 4 == version).then_some(packet)
}

/// Length of the IP header in front of that protocol, and of the IP packet; `None` for anything
/// else, and for fragments.
#[inline]
fn lengths(packet: &[u8], protocol: u8) -> Option<(usize, usize)> {
    match packet.first()? >> 4 {
        4 => {
            let header = packet.first_chunk::<IPV4_HEADER_BYTES>()?;
            let header_bytes = usize::from(header[0] & 15) * 4;
            // MF or a fragment offset.
            let fragment = be16(header, 6) & 0x3fff != 0;
            if header[9] != protocol || fragment || header_bytes < IPV4_HEADER_BYTES {
                return None;
            }
            Some((header_bytes, usize::from(be16(header, 2))))
        }
        6 => {
            let header = packet.first_chunk::<IPV6_HEADER_BYTES>()?;
            if header[6] != protocol {
                return None;
            }
            let bytes = IPV6_HEADER_BYTES + usize::from(be16(header, 4));
            Some((IPV6_HEADER_BYTES, bytes))
        }
        _ => None,
    }
}

/// The place of bare ESP in an IP packet; `None` for anything else, and for fragments. The place is
/// `None` when lengths contradict each other.
#[inline]
pub(crate) fn bare_esp(packet: &[u8]) -> Option<Option<Range<usize>>> {
    let (header_bytes, ip_bytes) = lengths(packet, ESP)?;
    let fits = header_bytes <= ip_bytes && ip_bytes <= packet.len();
    Some(fits.then_some(header_bytes..ip_bytes))
}

/// The UDP datagram in an IP packet; `None` for anything else, and for fragments.
#[inline]
pub(crate) fn datagram(packet: &[u8]) -> Option<Datagram> {
    let (header_bytes, ip_bytes) = lengths(packet, UDP)?;
    let udp = packet
        .get(header_bytes..)?
        .first_chunk::<UDP_HEADER_BYTES>()?;
    let udp_bytes = usize::from(be16(udp, 4));
    // The frame may be longer than the packet, by padding to 60 bytes.
    let fits = udp_bytes >= UDP_HEADER_BYTES
        && header_bytes + udp_bytes == ip_bytes
        && ip_bytes <= packet.len();
    Some(Datagram {
        port: be16(udp, 2),
        // The longest IPv6 packet is 40 B longer than 64 KB; no frame comes near that.
        ip_bytes: u16::try_from(ip_bytes).unwrap_or(u16::MAX),
        payload: fits.then_some(header_bytes + UDP_HEADER_BYTES..ip_bytes),
    })
}
