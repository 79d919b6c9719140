//! The lane of a flow: a hash that is the same for both of its directions, on every host.
//!
//! [`flow_hash`] and the kernel program compute the same value: each endpoint (address, and port if
//! it has one) is mixed by itself, and the two are added, which is independent of their order. With
//! the kernel's default choice of queue, the two directions of a flow could use different lanes.

use crate::bpf::{
    self, ADD_REGISTER, AND, Assembly, COPY, EXIT, IF_EQUAL, IF_NOT_EQUAL, JUMP, MULTIPLY_REGISTER,
    PACKET_U8, PACKET_U16, PACKET_U16_AT, PACKET_U32, SET, SHIFT_LEFT, SHIFT_RIGHT, XOR_REGISTER,
};
use std::io;
use std::os::fd::OwnedFd;
use wire::headers::{TCP, UDP, be16, be32};

const PROG_TYPE_SOCKET_FILTER: u32 = 1;
/// 2⁶⁴ divided by the golden ratio, odd.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of an IP packet's addresses, and of its ports if they are available: TCP and UDP, but
/// not in fragments or behind IPv6 extension headers. Equal for both directions of a flow. 0 for
/// anything but an IP packet.
#[inline]
#[must_use]
pub fn flow_hash(packet: &[u8]) -> u32 {
    endpoints(packet).map_or(0, |(source, target)| {
        let sum = source.wrapping_add(target);
        (sum.wrapping_mul(MULTIPLIER) >> 32) as u32
    })
}

#[inline]
fn endpoints(packet: &[u8]) -> Option<(u64, u64)> {
    let (addresses, (source, target)) = match packet.first()? >> 4 {
        4 => {
            let header = packet.first_chunk::<20>()?;
            // More fragments or an offset: later fragments have no ports, and all of a packet
            // must have one hash.
            let has_ports = be16(header, 6) & 0x3fff == 0 && matches!(header[9], TCP | UDP);
            let at = usize::from(header[0] & 15) * 4;
            (&packet[12..20], ports(packet, has_ports, at)?)
        }
        6 => {
            let header = packet.first_chunk::<40>()?;
            let has_ports = matches!(header[6], TCP | UDP);
            (&packet[8..40], ports(packet, has_ports, 40)?)
        }
        _ => return None,
    };
    let (from, to) = addresses.split_at(addresses.len() / 2);
    let mix = |port: u16, address: &[u8]| {
        address.chunks_exact(4).fold(u64::from(port), |hash, word| {
            // A product moves entropy upwards only, so the upper half is folded back.
            let hash = (hash ^ u64::from(be32(word, 0))).wrapping_mul(MULTIPLIER);
            hash ^ hash >> 32
        })
    };
    Some((mix(source, from), mix(target, to)))
}

#[inline]
fn ports(packet: &[u8], has_ports: bool, at: usize) -> Option<(u16, u16)> {
    if !has_ports {
        return Some((0, 0));
    }
    let ports = packet.get(at..at + 4)?;
    Some((be16(ports, 0), be16(ports, 2)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Ipv4,
    Ipv4Ports,
    Ipv4Addresses,
    Ipv6,
    Ipv6Ports,
    Ipv6Addresses,
    Mixed,
}

/// The program that computes [`flow_hash`] of a packet on a TUN device.
///
/// # Errors
/// EPERM without CAP_BPF, as in a user namespace.
pub(crate) fn program() -> io::Result<OwnedFd> {
    bpf::load(PROG_TYPE_SOCKET_FILTER, 0, &assemble().finish())
}

/// Registers: the context in r6, source and target in r7 and r8.
fn assemble() -> Assembly<Place> {
    let mut code = Assembly::new();
    code.add(COPY, 6, 1, 0, 0);
    code.add(SET, 7, 0, 0, 0);
    code.add(SET, 8, 0, 0, 0);
    code.add(PACKET_U8, 0, 0, 0, 0);
    code.add(COPY, 9, 0, 0, 0);
    code.add(SHIFT_RIGHT, 0, 0, 0, 4);
    code.jump(IF_EQUAL, 0, 0, 4, Place::Ipv4);
    code.jump(IF_EQUAL, 0, 0, 6, Place::Ipv6);
    code.add(SET, 0, 0, 0, 0);
    code.add(EXIT, 0, 0, 0, 0);

    code.place(Place::Ipv4);
    code.add(PACKET_U16, 0, 0, 0, 6);
    code.add(AND, 0, 0, 0, 0x3fff);
    code.jump(IF_NOT_EQUAL, 0, 0, 0, Place::Ipv4Addresses);
    code.add(PACKET_U8, 0, 0, 0, 9);
    code.jump(IF_EQUAL, 0, 0, TCP.into(), Place::Ipv4Ports);
    code.jump(IF_NOT_EQUAL, 0, 0, UDP.into(), Place::Ipv4Addresses);
    code.place(Place::Ipv4Ports);
    code.add(AND, 9, 0, 0, 15);
    code.add(SHIFT_LEFT, 9, 0, 0, 2);
    for (port, offset) in [(7, 0), (8, 2)] {
        code.add(PACKET_U16_AT, 0, 9, 0, offset);
        code.add(COPY, port, 0, 0, 0);
    }
    code.place(Place::Ipv4Addresses);
    mix_in(&mut code, 7, 12);
    mix_in(&mut code, 8, 16);
    code.jump(JUMP, 0, 0, 0, Place::Mixed);

    code.place(Place::Ipv6);
    code.add(PACKET_U8, 0, 0, 0, 6);
    code.jump(IF_EQUAL, 0, 0, TCP.into(), Place::Ipv6Ports);
    code.jump(IF_NOT_EQUAL, 0, 0, UDP.into(), Place::Ipv6Addresses);
    code.place(Place::Ipv6Ports);
    for (port, offset) in [(7, 40), (8, 42)] {
        code.add(PACKET_U16, 0, 0, 0, offset);
        code.add(COPY, port, 0, 0, 0);
    }
    code.place(Place::Ipv6Addresses);
    for word in 0..4 {
        mix_in(&mut code, 7, 8 + 4 * word);
        mix_in(&mut code, 8, 24 + 4 * word);
    }

    code.place(Place::Mixed);
    code.add(ADD_REGISTER, 7, 8, 0, 0);
    code.set_64(1, MULTIPLIER);
    code.add(MULTIPLY_REGISTER, 7, 1, 0, 0);
    code.add(SHIFT_RIGHT, 7, 0, 0, 32);
    code.add(COPY, 0, 7, 0, 0);
    code.add(EXIT, 0, 0, 0, 0);
    code
}

/// Mixes the packet's word at `offset` into a register.
fn mix_in(code: &mut Assembly<Place>, target: u8, offset: i32) {
    code.add(PACKET_U32, 0, 0, 0, offset);
    code.add(XOR_REGISTER, target, 0, 0, 0);
    code.set_64(1, MULTIPLIER);
    code.add(MULTIPLY_REGISTER, target, 1, 0, 0);
    code.add(COPY, 1, target, 0, 0);
    code.add(SHIFT_RIGHT, 1, 0, 0, 32);
    code.add(XOR_REGISTER, target, 1, 0, 0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    const A: ([u8; 4], [u8; 16], u16) = ([10, 0, 0, 7], [0xfd; 16], 4711);
    const B: ([u8; 4], [u8; 16], u16) = ([10, 1, 0, 7], [0x20; 16], 443);

    fn packet(
        ipv6: bool,
        tcp: bool,
        from: ([u8; 4], [u8; 16], u16),
        to: ([u8; 4], [u8; 16], u16),
    ) -> Vec<u8> {
        let ip = if ipv6 {
            PacketBuilder::ipv6(from.1, to.1, 64)
        } else {
            PacketBuilder::ipv4(from.0, to.0, 64)
        };
        let mut packet = Vec::new();
        if tcp {
            let tcp = ip.tcp(from.2, to.2, 1, 1000);
            tcp.write(&mut packet, &[1; 30]).unwrap();
        } else {
            ip.udp(from.2, to.2).write(&mut packet, &[1; 30]).unwrap();
        }
        packet
    }

    /// Packets of every kind, some with changed or missing bytes.
    fn packets() -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        for (ipv6, tcp) in [(false, false), (false, true), (true, false), (true, true)] {
            let whole = packet(ipv6, tcp, A, B);
            for end in 0..whole.len() {
                packets.push(whole[..end].to_vec());
            }
            for at in 0..44 {
                for value in [0, 1, 6, 17, 44, 0x46, 0x4f, 0x60, 0xff] {
                    let mut changed = whole.clone();
                    changed[at] = value;
                    packets.push(changed);
                }
            }
            packets.push(whole);
        }
        packets
    }

    #[test]
    fn the_kernels_program_computes_the_same_hash() {
        let program = match program() {
            Ok(program) => program,
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                eprintln!("SKIPPED: no program may be loaded here ({error}): run as root");
                return;
            }
            Err(error) => panic!("the kernel refuses the program: {error}"),
        };
        let (mut same, mut zero) = (0, 0);
        for packet in packets() {
            // The kernel removes the Ethernet header before the program sees the packet.
            let frame = [&[0; 14], &packet[..]].concat();
            // It does not run on a frame without payload.
            let Ok(result) = bpf::run(&program, &frame) else {
                assert!(packet.is_empty(), "not run on {packet:02x?}");
                continue;
            };
            assert_eq!(result, flow_hash(&packet), "{packet:02x?}");
            same += 1;
            zero += u32::from(result == 0);
        }
        assert!(same > 1500 && zero < same / 4, "{zero} of {same} are zero");
    }

    #[test]
    fn both_directions_of_a_flow_are_equal_and_flows_differ() {
        let mut seen = std::collections::HashSet::new();
        for (ipv6, tcp) in [(false, false), (true, true)] {
            for port in 1..500 {
                let from = (A.0, A.1, port);
                let hash = flow_hash(&packet(ipv6, tcp, from, B));
                assert_eq!(hash, flow_hash(&packet(ipv6, tcp, B, from)));
                assert!(seen.insert(hash), "two flows share {hash:08x}");
            }
        }
    }

    #[test]
    fn flows_of_adjacent_addresses_are_spread_evenly_over_lanes() {
        for lanes in [2, 3, 8] {
            let mut counts = vec![0u32; lanes];
            for host in 0..250 {
                for port in 0..16 {
                    let (mut from, mut to) = (A, B);
                    from.0[3] = host;
                    // The same host number on both sides: a hash of the XOR would not distinguish
                    // these.
                    to.0[3] = host;
                    from.2 = 32_768 + 2 * port;
                    let hash = flow_hash(&packet(false, true, from, to)) as usize;
                    counts[hash % lanes] += 1;
                }
            }
            let fair = 4000 / lanes as u32;
            let even = counts.iter().all(|count| count.abs_diff(fair) < fair / 5);
            assert!(even, "{counts:?}");
        }
    }

    #[test]
    fn fragments_are_hashed_by_their_addresses() {
        let whole = packet(false, false, A, B);
        let fragment = |flags: u16, port: u16| {
            let mut packet = packet(false, false, (A.0, A.1, port), B);
            packet[6..8].copy_from_slice(&flags.to_be_bytes());
            flow_hash(&packet)
        };
        assert_eq!(
            fragment(0x2000, 1),
            fragment(0x0001, 2),
            "first and later fragment"
        );
        assert_ne!(fragment(0x2000, 4711), flow_hash(&whole));
        assert_eq!(
            fragment(0x4000, 4711),
            flow_hash(&whole),
            "that is no fragment"
        );
    }
}
