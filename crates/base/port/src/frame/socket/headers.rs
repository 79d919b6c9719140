//! Headers of test frames: read from a frame to send, rebuilt in front of a received payload.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use wire::checksum::{self, word};
use wire::headers::{IpView, UDP, be16};

const ETHERNET_BYTES: usize = 14;
const UDP_BYTES: usize = 8;
/// The longest headers: Ethernet, IPv6, UDP.
pub(super) const HEADERS_BYTES_MAX: usize = ETHERNET_BYTES + 40 + UDP_BYTES;
/// Hop limit of rebuilt headers.
const HOPS: u8 = 64;

/// The parts of a frame that a socket needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Datagram {
    pub(super) source: SocketAddr,
    pub(super) target: SocketAddr,
    /// Range of the payload in the frame.
    pub(super) payload: std::ops::Range<usize>,
}

impl Datagram {
    /// Reads a frame; `None` when it is not UDP.
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        let packet = frame.get(ETHERNET_BYTES..)?;
        let view = IpView::parse(packet)?;
        if view.opaque || view.protocol != UDP {
            return None;
        }
        let udp = packet.get(view.header_bytes..view.total_bytes)?;
        let udp_bytes = usize::from(be16(udp.get(..UDP_BYTES)?, 4));
        if !(UDP_BYTES..=udp.len()).contains(&udp_bytes) {
            return None;
        }
        let (source, target) = addresses(&view, packet)?;
        let start = ETHERNET_BYTES + view.header_bytes;
        Some(Self {
            source: SocketAddr::new(source, be16(udp, 0)),
            target: SocketAddr::new(target, be16(udp, 2)),
            payload: start + UDP_BYTES..start + udp_bytes,
        })
    }
}

fn addresses(view: &IpView, packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    if view.version == 4 {
        let at = |start: usize| packet.get(start..)?.first_chunk::<4>().copied();
        Some((
            Ipv4Addr::from(at(12)?).into(),
            Ipv4Addr::from(at(16)?).into(),
        ))
    } else {
        let at = |start: usize| packet.get(start..)?.first_chunk::<16>().copied();
        Some((
            Ipv6Addr::from(at(8)?).into(),
            Ipv6Addr::from(at(24)?).into(),
        ))
    }
}

/// Writes headers in front of the payload, which begins at [`HEADERS_BYTES_MAX`] and ends with
/// `slot`; returns the offset of the frame. MAC addresses are zero.
pub(super) fn rebuild(slot: &mut [u8], source: SocketAddr, target: SocketAddr) -> usize {
    let (source_port, target_port) = (source.port(), target.port());
    let (source, target) = (source.ip().to_canonical(), target.ip().to_canonical());
    let ip_bytes = if source.is_ipv4() { 20 } else { 40 };
    let start = HEADERS_BYTES_MAX - ETHERNET_BYTES - ip_bytes - UDP_BYTES;
    let frame = &mut slot[start..];
    let udp_bytes = (frame.len() - ETHERNET_BYTES - ip_bytes) as u16;
    frame[..12].fill(0);
    let ip = &mut frame[ETHERNET_BYTES..];
    let pseudo_sum = match (source, target) {
        (IpAddr::V4(source), IpAddr::V4(target)) => {
            ip[..12].fill(0);
            ip[0] = 0x45;
            ip[2..4].copy_from_slice(&(20 + udp_bytes).to_be_bytes());
            // Don't fragment.
            ip[6] = 0x40;
            (ip[8], ip[9]) = (HOPS, UDP);
            ip[12..16].copy_from_slice(&source.octets());
            ip[16..20].copy_from_slice(&target.octets());
            let sum = checksum::finish(checksum::portable(&ip[..20], 0));
            ip[10..12].copy_from_slice(&sum);
            frame[12..14].copy_from_slice(&0x0800u16.to_be_bytes());
            checksum::portable(&frame[26..34], word(u16::from(UDP)))
        }
        (source, target) => {
            ip[..8].fill(0);
            ip[0] = 0x60;
            ip[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
            (ip[6], ip[7]) = (UDP, HOPS);
            ip[8..24].copy_from_slice(&octets(source));
            ip[24..40].copy_from_slice(&octets(target));
            frame[12..14].copy_from_slice(&0x86ddu16.to_be_bytes());
            checksum::portable(&frame[22..54], word(u16::from(UDP)))
        }
    };
    let udp = &mut frame[ETHERNET_BYTES + ip_bytes..];
    udp[..2].copy_from_slice(&source_port.to_be_bytes());
    udp[2..4].copy_from_slice(&target_port.to_be_bytes());
    udp[4..6].copy_from_slice(&udp_bytes.to_be_bytes());
    udp[6..8].fill(0);
    let sum = checksum::finish(checksum::portable(udp, pseudo_sum + word(udp_bytes)));
    // A sum of zero is sent as its equal, all ones (RFC 768).
    let sum = if sum == [0, 0] { [0xff, 0xff] } else { sum };
    udp[6..8].copy_from_slice(&sum);
    start
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    #[test]
    fn rebuilt_headers_equal_those_of_another_implementation() {
        let payload: Vec<u8> = (0..100).collect();
        for (source, target) in [
            ("10.1.2.3:4000", "10.200.0.9:52000"),
            ("[::ffff:10.1.2.3]:4000", "[::ffff:10.200.0.9]:52000"),
            ("[2001:db8::1]:4000", "[2001:db8:9::fe]:52000"),
        ] {
            let (source, target): (SocketAddr, SocketAddr) =
                (source.parse().unwrap(), target.parse().unwrap());
            let mut slot = vec![0xee; HEADERS_BYTES_MAX];
            slot.extend_from_slice(&payload);
            let start = rebuild(&mut slot, source, target);
            let ethernet = PacketBuilder::ethernet2([0; 6], [0; 6]);
            let mut expected = Vec::new();
            match (source.ip().to_canonical(), target.ip().to_canonical()) {
                (IpAddr::V4(source), IpAddr::V4(target)) => {
                    let udp = ethernet.ipv4(source.octets(), target.octets(), HOPS);
                    udp.udp(4000, 52000).write(&mut expected, &payload).unwrap();
                }
                (source, target) => {
                    let udp = ethernet.ipv6(octets(source), octets(target), HOPS);
                    udp.udp(4000, 52000).write(&mut expected, &payload).unwrap();
                }
            }
            assert_eq!(slot[start..], expected);
            let datagram = Datagram::parse(&expected).unwrap();
            assert_eq!(datagram.source.ip(), source.ip().to_canonical());
            assert_eq!(datagram.target.ip(), target.ip().to_canonical());
            assert_eq!(
                (datagram.source.port(), datagram.target.port()),
                (4000, 52000)
            );
            assert_eq!(expected[datagram.payload], payload);
        }
    }

    #[test]
    fn truncated_and_other_frames_are_not_datagrams() {
        let mut frame = Vec::new();
        let ethernet = PacketBuilder::ethernet2([0; 6], [0; 6]);
        let udp = ethernet.ipv4([1; 4], [2; 4], 9).udp(1, 2);
        udp.write(&mut frame, &[1, 2, 3]).unwrap();
        assert!(Datagram::parse(&frame).is_some());
        for cut in 0..frame.len() {
            assert_eq!(Datagram::parse(&frame[..cut]), None, "{cut} bytes");
        }
        let mut wrong = frame.clone();
        wrong[23] = 6;
        assert_eq!(Datagram::parse(&wrong), None, "TCP");
        frame[39] = 200;
        assert_eq!(Datagram::parse(&frame), None, "a length beyond the packet");
    }
}
