//! Packets inside the UDP datagrams of overlay networks: VXLAN (RFC 7348) and Geneve (RFC 8926), as
//! clusters use them.
//!
//! Found for joining and for segmentation, so all bytes in front of the inner IP packet are opaque:
//! they are compared and repeated, never interpreted further.

use crate::ethernet::{EthernetView, HEADER_BYTES_MAX};
use crate::headers::{IpView, UDP, be16};
use crate::overhead::UDP_HEADER_BYTES;

/// UDP port of VXLAN (RFC 7348 §5).
pub const VXLAN_PORT: u16 = 4789;
/// UDP port of VXLAN before it was standardised: the kernel's default, and that of many clusters.
pub const OLD_VXLAN_PORT: u16 = 8472;
/// UDP port of Geneve (RFC 8926 §3.3).
pub const GENEVE_PORT: u16 = 6081;

/// Length of a VXLAN header, and of a Geneve header without options.
const OVERLAY_BYTES: usize = 8;
/// A Geneve header has up to 63 words of options (RFC 8926 §3.4).
const OPTIONS_BYTES_MAX: usize = 63 * 4;

/// The longest sequence of headers in front of an inner IP packet, from the outer IP header on.
pub const OUTER_BYTES_MAX: usize =
    40 + UDP_HEADER_BYTES + OVERLAY_BYTES + OPTIONS_BYTES_MAX + HEADER_BYTES_MAX;

/// The flag of a valid network identifier; others are reserved (RFC 7348 §5).
const VXLAN_FLAGS: u8 = 0x08;
/// Transparent Ethernet bridging: the payload is a frame (RFC 8926 §3.4).
const ETHERNET_PAYLOAD: u16 = 0x6558;

/// An IP packet in an overlay's datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inner {
    /// Offset of its IP header from the outer one.
    pub at: usize,
    /// Its layout. It ends with the outer packet.
    pub view: IpView,
}

impl Inner {
    /// Finds the IP packet in a datagram to the port of VXLAN or Geneve; `outer` is the layout of
    /// `packet`. `None` for other packets, and for frames without IP or with padding.
    #[inline]
    #[must_use]
    pub fn find(packet: &[u8], outer: &IpView) -> Option<Self> {
        if outer.protocol != UDP || outer.opaque {
            return None;
        }
        let packet = packet.get(..outer.total_bytes)?;
        let (udp, payload) =
            packet[outer.header_bytes..].split_first_chunk::<UDP_HEADER_BYTES>()?;
        let overlay = payload.first_chunk::<OVERLAY_BYTES>()?;
        let frame_at = match be16(udp, 2) {
            VXLAN_PORT | OLD_VXLAN_PORT if overlay[0] == VXLAN_FLAGS => OVERLAY_BYTES,
            // Version 0, and the options' length in words.
            GENEVE_PORT if overlay[0] >> 6 == 0 && be16(overlay, 2) == ETHERNET_PAYLOAD => {
                OVERLAY_BYTES + usize::from(overlay[0]) * 4
            }
            _ => return None,
        };
        let frame = EthernetView::parse(payload.get(frame_at..)?)?;
        let at = outer.header_bytes + UDP_HEADER_BYTES + frame_at + frame.header_bytes;
        let view = frame.ip.filter(|ip| at + ip.total_bytes == packet.len())?;
        Some(Self { at, view })
    }

    /// Finds the TCP or UDP packet whose transport header is at `transport_at` from the outer IP
    /// header, behind the headers of any UDP tunnel.
    #[inline]
    pub(crate) fn before(
        packet: &[u8],
        outer: &IpView,
        transport_at: usize,
        protocol: u8,
    ) -> Option<Self> {
        let packet = packet.get(..outer.total_bytes)?;
        let least = outer.header_bytes + UDP_HEADER_BYTES;
        // The versions cannot be confused in practice: the header must have its version at the
        // first byte, the protocol, no options, and exactly the length of the rest.
        [(6, 40), (4, 20)].into_iter().find_map(|(version, bytes)| {
            let at = transport_at.checked_sub(bytes).filter(|at| *at >= least)?;
            let view = IpView::parse(packet.get(at..)?)?;
            let fits = view.version == version
                && view.header_bytes == bytes
                && view.protocol == protocol
                && !view.opaque
                && at + view.total_bytes == packet.len();
            fits.then_some(Self { at, view })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{Fields, Tunnel};

    #[test]
    fn finds_packets_in_vxlan_and_geneve() {
        for (port, options, tag) in [
            (VXLAN_PORT, 0, false),
            (OLD_VXLAN_PORT, 0, true),
            (GENEVE_PORT, 0, false),
            (GENEVE_PORT, 63, true),
        ] {
            for ipv6 in [false, true] {
                let fields = Fields {
                    ipv6,
                    ..Fields::sample(100)
                };
                let tunnel = Tunnel {
                    port,
                    options,
                    tag,
                    ..Tunnel::sample()
                };
                let packet = tunnel.wrap(&fields, 0);
                let outer = IpView::parse(&packet).unwrap();
                let found = Inner::find(&packet, &outer).unwrap();
                assert_eq!(packet[found.at..], fields.packet());
                let transport_at = found.at + found.view.header_bytes;
                assert_eq!(Inner::before(&packet, &outer, transport_at, 6), Some(found));
                assert_eq!(Inner::before(&packet, &outer, transport_at, 17), None);
                assert_eq!(Inner::before(&packet, &outer, transport_at + 4, 6), None);
                assert!(found.at <= OUTER_BYTES_MAX);
            }
        }
    }

    #[test]
    fn other_datagrams_have_no_inner_packet() {
        let found = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut packet = Tunnel::sample().wrap(&Fields::sample(100), 0);
            change(&mut packet);
            IpView::parse(&packet).is_some_and(|outer| Inner::find(&packet, &outer).is_some())
        };
        assert!(found(&|_| ()));
        // Another port, another flag, no IP inside, a shorter packet inside, a fragment.
        assert!(!found(&|packet| packet[23] ^= 1));
        assert!(!found(&|packet| packet[28] = 0x0c));
        assert!(!found(&|packet| packet[48] = 0x88));
        assert!(!found(&|packet| packet[53] -= 1));
        assert!(!found(&|packet| packet[6] = 0x20));
    }
}
