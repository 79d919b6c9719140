//! "Too big" messages, read by an independent parser; and packets that must not be answered.

use etherparse::{
    Icmpv4Type, Icmpv6Type, IpSlice, Ipv6FlowLabel, PacketBuilder, SlicedPacket, TransportSlice,
    icmpv4, icmpv6,
};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::checksum;
use wire::icmp::{MESSAGE_BYTES_MAX, too_big};

const OWN_V4: Ipv4Addr = Ipv4Addr::new(10, 9, 9, 9);
const OWN_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9);

const HOST_V4: [u8; 4] = [10, 1, 0, 2];
const PEER_V4: [u8; 4] = [10, 2, 0, 2];
const HOST_V6: Ipv6Addr = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 2);
const PEER_V6: Ipv6Addr = Ipv6Addr::new(0xfd02, 0, 0, 0, 0, 0, 0, 2);

fn udp_v4(source: [u8; 4], target: [u8; 4], payload: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    PacketBuilder::ipv4(source, target, 64)
        .udp(1, 2)
        .write(&mut packet, &vec![0x5a; payload])
        .unwrap();
    packet
}

fn udp_v6(source: Ipv6Addr, target: Ipv6Addr, payload: usize) -> Vec<u8> {
    let mut packet = Vec::new();
    PacketBuilder::ipv6(source.octets(), target.octets(), 64)
        .udp(1, 2)
        .write(&mut packet, &vec![0x5a; payload])
        .unwrap();
    packet
}

/// The packet with other bits in the fourth word of its IPv4 header, and a valid header checksum.
fn with_fragment_word(mut packet: Vec<u8>, word: u16) -> Vec<u8> {
    packet[6..8].copy_from_slice(&word.to_be_bytes());
    packet[10..12].fill(0);
    let sum = checksum::finish(checksum::portable(&packet[..20], 0));
    packet[10..12].copy_from_slice(&sum);
    packet
}

fn message(packet: &[u8], mtu: u16) -> Option<Vec<u8>> {
    let own = if packet[0] >> 4 == 4 {
        IpAddr::V4(OWN_V4)
    } else {
        IpAddr::V6(OWN_V6)
    };
    let mut out = [0xee; MESSAGE_BYTES_MAX];
    let length = too_big(packet, mtu, own, &mut out)?;
    assert!(out[length..].iter().all(|&byte| byte == 0xee));
    Some(out[..length].to_vec())
}

proptest! {
    #[test]
    fn ipv4_senders_get_the_mtu(payload in 0usize..3000, mtu: u16) {
        let packet = udp_v4(HOST_V4, PEER_V4, payload);
        let message = message(&packet, mtu).unwrap();
        prop_assert!(message.len() <= 576);
        let sliced = SlicedPacket::from_ip(&message).unwrap();
        let IpSlice::Ipv4(ip) = IpSlice::from_slice(&message).unwrap() else { unreachable!() };
        let header = ip.header().to_header();
        prop_assert_eq!((header.source, header.destination), (OWN_V4.octets(), HOST_V4));
        prop_assert_eq!(header.calc_header_checksum(), header.header_checksum);
        let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else { panic!("no ICMP") };
        let expected = icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: mtu };
        prop_assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(expected));
        let sum = icmp.icmp_type().calc_checksum(icmp.payload());
        prop_assert_eq!(sum, icmp.checksum());
        prop_assert_eq!(icmp.payload(), &packet[..packet.len().min(548)]);
    }

    #[test]
    fn ipv6_senders_get_the_mtu(payload in 0usize..3000, mtu in 1280u16..) {
        let packet = udp_v6(HOST_V6, PEER_V6, payload);
        let message = message(&packet, mtu).unwrap();
        prop_assert!(message.len() <= 1280);
        let sliced = SlicedPacket::from_ip(&message).unwrap();
        let IpSlice::Ipv6(ip) = IpSlice::from_slice(&message).unwrap() else { unreachable!() };
        let header = ip.header().to_header();
        prop_assert_eq!((header.source, header.destination), (OWN_V6.octets(), HOST_V6.octets()));
        prop_assert_eq!(header.flow_label, Ipv6FlowLabel::ZERO);
        let Some(TransportSlice::Icmpv6(icmp)) = sliced.transport else { panic!("no ICMPv6") };
        prop_assert_eq!(icmp.icmp_type(), Icmpv6Type::PacketTooBig { mtu: u32::from(mtu) });
        prop_assert!(icmp.is_checksum_valid(OWN_V6.octets(), HOST_V6.octets()));
        prop_assert_eq!(icmp.payload(), &packet[..packet.len().min(1232)]);
    }

    #[test]
    fn never_panics_and_never_answers_itself(
        mut bytes in prop::collection::vec(any::<u8>(), 1..200),
        ipv6: bool,
    ) {
        // Yields a whole packet more often than chance would.
        let length = bytes.len() as u16;
        if ipv6 && length >= 40 {
            bytes[0] = 0x60;
            bytes[4..6].copy_from_slice(&(length - 40).to_be_bytes());
            bytes[6] = [0, 43, 44, 60, 58, 17][usize::from(bytes[6]) % 6];
        } else if length >= 20 {
            bytes[0] = 0x45 + (bytes[0] & 3);
            bytes[2..4].copy_from_slice(&length.to_be_bytes());
        }
        if let Some(answer) = message(&bytes, 1400) {
            prop_assert_eq!(message(&answer, 1400), None);
        }
    }
}

#[test]
fn ipv4_that_may_be_fragmented_is_not_answered() {
    let packet = udp_v4(HOST_V4, PEER_V4, 1480);
    assert!(message(&with_fragment_word(packet.clone(), 0x4000), 1400).is_some());
    assert_eq!(message(&with_fragment_word(packet, 0), 1400), None);
}

#[test]
fn only_the_first_fragment_is_answered() {
    let packet = udp_v4(HOST_V4, PEER_V4, 1480);
    assert!(message(&with_fragment_word(packet.clone(), 0x6000), 1400).is_some());
    assert_eq!(message(&with_fragment_word(packet, 0x6001), 1400), None);

    let mut packet = udp_v6(HOST_V6, PEER_V6, 1480);
    // A fragment header replaces UDP's.
    packet[6] = 44;
    packet[40..48].copy_from_slice(&[17, 0, 0, 1, 0, 0, 0, 7]);
    assert!(message(&packet, 1400).is_some());
    packet[43] = 9;
    assert_eq!(message(&packet, 1400), None);
}

#[test]
fn a_wrong_header_checksum_is_not_answered() {
    let mut packet = udp_v4(HOST_V4, PEER_V4, 1480);
    packet[8] ^= 1;
    assert_eq!(message(&packet, 1400), None);
}

#[test]
fn sources_that_are_not_a_single_host_are_not_answered() {
    for source in [
        [0, 0, 0, 0],
        [0, 1, 2, 3],
        [127, 0, 0, 1],
        [224, 0, 0, 1],
        [240, 0, 0, 1],
        [255; 4],
    ] {
        assert_eq!(
            message(&udp_v4(source, PEER_V4, 1480), 1400),
            None,
            "{source:?}"
        );
    }
    for target in [[224, 0, 0, 5], [239, 1, 1, 1], [255; 4]] {
        assert_eq!(
            message(&udp_v4(HOST_V4, target, 1480), 1400),
            None,
            "{target:?}"
        );
    }
    let group: Ipv6Addr = "ff0e::1".parse().unwrap();
    for source in [Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST, group] {
        assert_eq!(
            message(&udp_v6(source, PEER_V6, 1480), 1400),
            None,
            "{source}"
        );
    }
}

#[test]
fn senders_to_ipv6_groups_are_notified() {
    let group = "ff0e::1".parse().unwrap();
    assert!(message(&udp_v6(HOST_V6, group, 1480), 1400).is_some());
}

#[test]
fn icmp_errors_are_not_answered_but_echo_requests_are() {
    let icmp_v4 = |kind: Icmpv4Type| {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv4(HOST_V4, PEER_V4, 64).icmpv4(kind);
        builder.write(&mut packet, &[0; 1480]).unwrap();
        packet
    };
    let echo = etherparse::IcmpEchoHeader { id: 1, seq: 1 };
    assert!(message(&icmp_v4(Icmpv4Type::EchoRequest(echo)), 1400).is_some());
    let unreachable = icmpv4::DestUnreachableHeader::Port;
    let exceeded = icmpv4::TimeExceededCode::TtlExceededInTransit;
    for kind in [
        Icmpv4Type::DestinationUnreachable(unreachable),
        Icmpv4Type::TimeExceeded(exceeded),
    ] {
        assert_eq!(message(&icmp_v4(kind.clone()), 1400), None, "{kind:?}");
    }

    let icmp_v6 = |kind: Icmpv6Type| {
        let mut packet = Vec::new();
        let builder = PacketBuilder::ipv6(HOST_V6.octets(), PEER_V6.octets(), 64).icmpv6(kind);
        builder.write(&mut packet, &[0; 1480]).unwrap();
        packet
    };
    assert!(message(&icmp_v6(Icmpv6Type::EchoRequest(echo)), 1400).is_some());
    let code = icmpv6::DestUnreachableCode::Port;
    assert_eq!(
        message(&icmp_v6(Icmpv6Type::DestinationUnreachable(code)), 1400),
        None
    );
}

#[test]
fn an_icmpv6_error_behind_extension_headers_is_found() {
    let mut packet = udp_v6(HOST_V6, PEER_V6, 1480);
    // Destination options of 16 bytes, then ICMPv6 "time exceeded" or an echo request.
    packet[6] = 60;
    packet[40..56].fill(0);
    packet[40..42].copy_from_slice(&[58, 1]);
    packet[56] = 3;
    assert_eq!(message(&packet, 1400), None);
    packet[56] = 128;
    assert!(message(&packet, 1400).is_some());
    // An endless chain of extensions.
    packet[40..].fill(0);
    assert_eq!(message(&packet, 1400), None);
}

#[test]
fn no_message_is_built_where_it_would_be_useless() {
    let packet = udp_v6(HOST_V6, PEER_V6, 1480);
    assert_eq!(message(&packet, 1279), None);
    let mut out = [0; MESSAGE_BYTES_MAX];
    assert_eq!(too_big(&packet, 1400, IpAddr::V4(OWN_V4), &mut out), None);
    assert_eq!(
        too_big(&packet, 1400, IpAddr::V6(OWN_V6), &mut out[..1279]),
        None
    );
    assert_eq!(
        too_big(&packet[..100], 1400, IpAddr::V6(OWN_V6), &mut out),
        None
    );
}
