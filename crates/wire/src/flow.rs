//! The hash that chooses a flow's lane.
//!
//! The same for both directions of a flow, so that a flow has one lane on the way out and on the way back. The
//! same for all fragments of a packet, and so without the ports of any. Not keyed: who chooses addresses and
//! ports can choose the lane, which gains him nothing that sending more would not.
//!
//! All arithmetic is modulo 2^32 and fields are read in network order, so that the kernel can compute it too:
//!
//! ```text
//! address  IPv4: the address; IPv6: its four words xored
//! port     that of TCP or UDP; 0 for other protocols, fragments, IPv4 options, IPv6 extension headers, and
//!          where the packet is too short for both ports by its own length field
//! protocol IPv4: the protocol; IPv6: the first next header
//!
//! end(a, p):  e = a + p * 0x9e3779b1;  e ^= e >> 16;  e *= 0x85ebca6b;  e ^= e >> 13
//! hash:       h = end(source, source port) + end(target, target port) + protocol
//!             h ^= h >> 16;  h *= 0xc2b2ae35;  h ^= h >> 16
//! lane:       (h as u64 * lanes as u64) >> 32
//! ```
//!
//! Frames that are not IP are hashed by their MAC addresses instead: the last four bytes are the address, the first two
//! the port, and the EtherType the protocol.
//!
//! The multipliers are those of MurmurHash3's finaliser and the golden ratio's. Ends are mixed before they are
//! added: their plain xor or sum would be the same for flows whose two addresses count up together.

use crate::ethernet::EthernetView;
use crate::headers::{IpView, TCP, UDP, be16, be32};

/// The hash of an IP packet's flow, `view` being [`IpView::parse`] of the packet.
#[inline]
#[must_use]
pub fn hash(packet: &[u8], view: &IpView) -> u32 {
    let (source, target) = if view.version == 4 {
        (be32(packet, 12), be32(packet, 16))
    } else {
        (folded(packet, 8), folded(packet, 24))
    };
    let at = view.header_bytes;
    let has_ports =
        !view.opaque && matches!(view.protocol, TCP | UDP) && view.total_bytes >= at + 4;
    let (source_port, target_port) = if has_ports {
        (be16(packet, at), be16(packet, at + 2))
    } else {
        (0, 0)
    };
    joined(
        end(source, source_port),
        end(target, target_port),
        u16::from(view.protocol),
    )
}

/// The hash of an Ethernet frame's flow, `view` being [`EthernetView::parse`] of the frame: that of the IP packet
/// in it, where there is one.
#[inline]
#[must_use]
pub fn hash_frame(frame: &[u8], view: &EthernetView) -> u32 {
    if let Some(ip) = &view.ip {
        return hash(&frame[view.header_bytes..], ip);
    }
    let station = |at: usize| end(be32(frame, at + 2), be16(frame, at));
    joined(station(6), station(0), view.ethertype)
}

/// The lane of a flow with that hash, of `lanes`: below it.
#[inline]
#[must_use]
pub const fn lane(hash: u32, lanes: u32) -> u32 {
    ((hash as u64 * lanes as u64) >> 32) as u32
}

/// The four words of an IPv6 address, xored.
#[inline]
fn folded(packet: &[u8], at: usize) -> u32 {
    be32(packet, at) ^ be32(packet, at + 4) ^ be32(packet, at + 8) ^ be32(packet, at + 12)
}

#[inline]
const fn end(address: u32, port: u16) -> u32 {
    let mut end = address.wrapping_add((port as u32).wrapping_mul(0x9e37_79b1));
    end ^= end >> 16;
    end = end.wrapping_mul(0x85eb_ca6b);
    end ^ end >> 13
}

#[inline]
const fn joined(source: u32, target: u32, protocol: u16) -> u32 {
    let mut hash = source.wrapping_add(target).wrapping_add(protocol as u32);
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet_v4(source: u32, target: u32, ports: (u16, u16), protocol: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet.extend(source.to_be_bytes());
        packet.extend(target.to_be_bytes());
        packet.extend(ports.0.to_be_bytes());
        packet.extend(ports.1.to_be_bytes());
        packet.extend([0, 8, 0, 0]);
        packet
    }

    fn hash_of(packet: &[u8]) -> u32 {
        hash(packet, &IpView::parse(packet).unwrap())
    }

    /// How many of `flows` each of eight lanes gets.
    fn spread(flows: impl Iterator<Item = Vec<u8>>) -> [u32; 8] {
        let mut lanes = [0; 8];
        for packet in flows {
            lanes[lane(hash_of(&packet), 8) as usize] += 1;
        }
        lanes
    }

    proptest! {
        #[test]
        fn both_directions_have_one_hash(
            source: u32,
            target: u32,
            ports: (u16, u16),
            protocol: u8,
        ) {
            let there = packet_v4(source, target, ports, protocol);
            let back = packet_v4(target, source, (ports.1, ports.0), protocol);
            prop_assert_eq!(hash_of(&there), hash_of(&back));
        }

        #[test]
        fn both_directions_of_ipv6_have_one_hash(mut packet: [u8; 60], tcp: bool) {
            packet[0] = 0x60;
            packet[4..6].copy_from_slice(&[0, 20]);
            packet[6] = if tcp { TCP } else { UDP };
            let mut back = packet;
            back[8..24].copy_from_slice(&packet[24..40]);
            back[24..40].copy_from_slice(&packet[8..24]);
            back[40..42].copy_from_slice(&packet[42..44]);
            back[42..44].copy_from_slice(&packet[40..42]);
            prop_assert_eq!(hash_of(&packet), hash_of(&back));
        }

        #[test]
        fn both_directions_of_frames_have_one_hash(mut frame: [u8; 60], kind in 0usize..3) {
            frame[12..14].copy_from_slice(&[[8, 6], [0x88, 0xcc], [8, 0]][kind]);
            let mut back = frame;
            back[..6].copy_from_slice(&frame[6..12]);
            back[6..12].copy_from_slice(&frame[..6]);
            let view = EthernetView::parse(&frame).unwrap();
            prop_assert_eq!(hash_frame(&frame, &view), hash_frame(&back, &view));
        }

        #[test]
        fn a_frame_has_the_hash_of_its_packet(source: u32, target: u32, ports: (u16, u16)) {
            let packet = packet_v4(source, target, ports, TCP);
            let frame = [&[2; 12][..], &[8, 0], &packet].concat();
            let view = EthernetView::parse(&frame).unwrap();
            prop_assert_eq!(hash_frame(&frame, &view), hash_of(&packet));
        }

        #[test]
        fn all_fragments_have_the_hash_of_the_first(offset in 1u16..8192, ports: (u16, u16)) {
            let mut first = packet_v4(1, 2, ports, UDP);
            first[6] = 0x20;
            let mut other = packet_v4(1, 2, (0xdead, 0xbeef), UDP);
            other[6..8].copy_from_slice(&offset.to_be_bytes());
            prop_assert_eq!(hash_of(&first), hash_of(&other));
        }

        #[test]
        fn a_lane_is_one_of_those_that_are_there(hash: u32, lanes in 1u32..1000) {
            prop_assert!(lane(hash, lanes) < lanes);
        }

        #[test]
        fn never_panics(packet in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(view) = IpView::parse(&packet) {
                let _ = hash(&packet, &view);
            }
        }
    }

    #[test]
    fn values_that_other_implementations_must_give() {
        let udp = packet_v4(0x0a01_0002, 0x0a02_0002, (40_000, 5201), UDP);
        let mut fragment = udp.clone();
        fragment[6] = 0x20;
        let mut ipv6 = vec![0; 44];
        ipv6[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 4, TCP, 64]);
        for (at, byte) in ipv6[8..].iter_mut().enumerate() {
            *byte = at as u8;
        }
        assert_eq!(
            [hash_of(&udp), hash_of(&fragment), hash_of(&ipv6)],
            [3_585_444_644, 2_814_103_578, 2_033_226_791]
        );
    }

    #[test]
    fn flows_that_count_up_spread_over_the_lanes() {
        let by_port = spread((0..8000).map(|i| packet_v4(1, 2, (30_000 + i, 5201), UDP)));
        let by_host = spread((0..8000).map(|i| {
            // Both addresses and both ports count up together.
            let (host, port) = (u32::from(i), 1000 + i);
            packet_v4(0x0a01_0000 + host, 0x0a02_0000 + host, (port, port), UDP)
        }));
        for lanes in [by_port, by_host] {
            assert!(
                lanes.iter().all(|flows| (800..1200).contains(flows)),
                "{lanes:?}"
            );
        }
    }
}
