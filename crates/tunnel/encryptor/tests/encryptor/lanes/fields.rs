//! Fields copied between headers (DSCP, ECN, the MSS), and messages about packets that do not fit.

use crate::lanes::bench::*;
use encryptor::config::Dscp;
use encryptor::counters::DropReason;
use encryptor::payload::IpRules;
use etherparse::{Icmpv4Type, SlicedPacket, TcpOptionElement, TransportSlice};

const ECN: IpRules = IpRules {
    ecn: true,
    ..IpRules::NONE
};

/// A packet with this second byte in its IPv4 header.
fn with_tos(tos: u8) -> Vec<u8> {
    let mut packet = udp([10, 0, 0, 1], b"marked");
    packet[1] = tos;
    packet[10..12].fill(0);
    let sum = wire::checksum::finish(wire::checksum::portable(&packet[..20], 0));
    packet[10..12].copy_from_slice(&sum);
    packet
}

#[test]
fn the_outer_header_has_the_ecn_and_dscp_that_are_configured() {
    let copy = IpRules {
        dscp: Dscp::Copy,
        ..ECN
    };
    let fixed = IpRules {
        dscp: Dscp::Fixed(10),
        ..IpRules::NONE
    };
    for (rules, inner, outer) in [
        (IpRules::NONE, 0xba, 0),
        (ECN, 0xba, 0x02),
        (copy, 0xba, 0xba),
        (fixed, 0xba, 10 << 2),
    ] {
        let mut bench = Bench::new(&Setup::ip(rules));
        bench.send(&with_tos(inner));
        let sealed = bench.seal();
        assert_eq!(sealed[0].tos, outer);
        assert_eq!(bench.open(&sealed), [with_tos(inner)]);
    }
}

#[test]
fn congestion_marks_reach_the_inner_packet() {
    let mut bench = Bench::new(&Setup::ip(ECN));
    bench.send(&with_tos(2));
    bench.send(&with_tos(0));
    let mut sealed = bench.seal();
    sealed.iter_mut().for_each(|datagram| datagram.tos = 3);
    // A sender without ECN support is notified by a loss (RFC 6040 §4.2).
    assert_eq!(bench.open(&sealed), [with_tos(3)]);
    let dropped = bench.right_tally().dropped;
    assert_eq!(dropped[DropReason::Congestion as usize], 1);
}

#[test]
fn packets_of_different_ecn_do_not_share_a_train() {
    let mut bench = Bench::new(&Setup::ip(ECN));
    for tos in [0, 2, 2, 0] {
        bench.send(&with_tos(tos));
    }
    let outer: Vec<_> = bench.seal().iter().map(|datagram| datagram.tos).collect();
    assert_eq!(outer, [0, 2, 2, 0]);
}

#[test]
fn the_mss_of_connections_is_lowered_to_what_fits() {
    let mut bench = Bench::new(&Setup {
        mss_max: [1360, 1340],
        ..Setup::ip(IpRules::NONE)
    });
    let mut syn = Vec::new();
    etherparse::PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(1, 2, 3, 4)
        .syn()
        .options(&[TcpOptionElement::MaximumSegmentSize(1460)])
        .unwrap()
        .write(&mut syn, &[])
        .unwrap();
    bench.send(&syn);
    let out = bench.cross();
    let sliced = SlicedPacket::from_ip(&out[0]).unwrap();
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else {
        panic!("{sliced:?}");
    };
    let mss = tcp.options_iterator().next().unwrap().unwrap();
    assert_eq!(mss, TcpOptionElement::MaximumSegmentSize(1360));
    let expected = tcp.calc_checksum_ipv4([10, 0, 0, 1], [10, 0, 0, 2]);
    assert_eq!(tcp.checksum(), expected.unwrap());
}

#[test]
fn the_sender_of_a_packet_that_does_not_fit_is_notified() {
    let rules = IpRules {
        icmp_source: [Some([192, 0, 2, 1].into()), None],
        ..IpRules::NONE
    };
    let mut bench = Bench::new(&Setup {
        inner_bytes_max: 1000,
        ..Setup::ip(rules)
    });
    let mut large = udp([10, 0, 0, 1], &[0; 1200]);
    large[6] |= 0x40;
    large[10..12].fill(0);
    let sum = wire::checksum::finish(wire::checksum::portable(&large[..20], 0));
    large[10..12].copy_from_slice(&sum);
    // IPv6 has nobody here to answer.
    for packet in [&large, &tcp(true, 1, 1, &[0; 1200])] {
        bench.send(packet);
    }
    assert!(bench.cross().is_empty());
    let answers = bench.back_at_a();
    let sliced = SlicedPacket::from_ip(&answers[0]).unwrap();
    let Some(TransportSlice::Icmpv4(icmp)) = sliced.transport else {
        panic!("{sliced:?}");
    };
    let Icmpv4Type::DestinationUnreachable(
        etherparse::icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu },
    ) = icmp.icmp_type()
    else {
        panic!("{:?}", icmp.icmp_type());
    };
    assert_eq!((answers.len(), next_hop_mtu), (1, 1000));
    let tally = bench.left_tally();
    assert_eq!(
        (tally.icmp_sent, tally.dropped[DropReason::TooBig as usize]),
        (1, 2)
    );
}

#[test]
fn a_flood_of_oversized_packets_causes_no_flood_of_answers() {
    let rules = IpRules {
        icmp_source: [Some([192, 0, 2, 1].into()), None],
        ..IpRules::NONE
    };
    let mut bench = Bench::new(&Setup {
        inner_bytes_max: 600,
        ..Setup::ip(rules)
    });
    let mut large = udp([10, 0, 0, 1], &[0; 700]);
    large[6] |= 0x40;
    large[10..12].fill(0);
    let sum = wire::checksum::finish(wire::checksum::portable(&large[..20], 0));
    large[10..12].copy_from_slice(&sum);
    for _ in 0..64 {
        bench.send(&large);
    }
    bench.left.step().unwrap();
    assert_eq!(bench.back_at_a().len(), 2);
}
