//! Super-packets in UDP tunnels against the oracle: segmentation and joining of VXLAN and Geneve.

use crate::segmentation::{
    BOTH, cut, cut_frame, fields, join, join_frames, link_header, recut, super_packet_header,
    with_link,
};
use proptest::prelude::*;
use wire::checksum;
use wire::coalesce::Joinable;
use wire::headers::{IpView, UDP};
use wire::oracle::{Fields, Tunnel};
use wire::overlay::{GENEVE_PORT, Inner, OLD_VXLAN_PORT, VXLAN_PORT};
use wire::segment::complete_checksum;
use wire::vnet::{Gso, Outer, VnetHeader};

fn tunnel() -> impl Strategy<Value = Tunnel> {
    let port = prop::sample::select(vec![VXLAN_PORT, OLD_VXLAN_PORT, GENEVE_PORT]);
    let flags = any::<(bool, bool, bool)>();
    let fields = any::<(u16, u8, u8, u16, u8)>();
    let options = prop::sample::select(vec![0u8, 1, 63]);
    (port, flags, fields, options).prop_map(|(port, flags, fields, options)| {
        let (ipv6, tag, checked) = flags;
        let (source, tos, ttl, id, network) = fields;
        Tunnel {
            ipv6,
            port,
            source,
            options,
            tag,
            checked,
            tos,
            ttl,
            id,
            network,
        }
    })
}

/// The virtio header of a super-packet in a tunnel, behind a link header.
fn header(tunnel: &Tunnel, fields: &Fields, segment_bytes: usize, link_bytes: usize) -> VnetHeader {
    let packet = tunnel.wrap(fields, 0);
    let outer = IpView::parse(&packet).unwrap();
    let inner = Inner::find(&packet, &outer).unwrap();
    VnetHeader {
        outer: if tunnel.ipv6 { Outer::V6 } else { Outer::V4 },
        csum_start: (link_bytes + inner.at + inner.view.header_bytes) as u16,
        csum_offset: if fields.tcp { 16 } else { 6 },
        ..super_packet_header(fields, segment_bytes)
    }
}

/// A tunnel without a checksum over IPv4, the only one whose packets join.
fn joining(tunnel: Tunnel) -> Tunnel {
    Tunnel {
        ipv6: false,
        checked: false,
        ..tunnel
    }
}

proptest! {
    #[test]
    fn segments_equal_those_of_the_oracle(
        tunnel in tunnel(),
        fields in fields(1..6000),
        segment_bytes in 1usize..3000,
        tags in 0usize..3,
        marked: bool,
    ) {
        let expected = tunnel.cut(&fields, segment_bytes);
        let mut vnet = header(&tunnel, &fields, segment_bytes, 0);
        // Packet sockets do not mark it.
        if !marked {
            vnet.outer = Outer::None;
        }
        prop_assert_eq!(cut(&vnet, &tunnel.wrap(&fields, 0)).unwrap(), expected.clone());
        let outer = Fields { ipv6: tunnel.ipv6, ..fields.clone() };
        let link = link_header(&outer, tags);
        let vnet = header(&tunnel, &fields, segment_bytes, link.len());
        let frame = [&link[..], &tunnel.wrap(&fields, 0)].concat();
        let frames = cut_frame(&vnet, &frame, link.len()).unwrap();
        prop_assert_eq!(frames, with_link(&link, expected));
    }

    #[test]
    fn joining_reverses_segmentation(
        tunnel in tunnel(),
        fields in fields(2..6000),
        parts in 2usize..20,
        tags in 0usize..3,
    ) {
        let tunnel = joining(tunnel);
        let fields = Fields { tcp: true, flags: 0x10 | fields.flags & 0x08, ..fields };
        let segment_bytes = fields.payload.len().div_ceil(parts);
        let packets = tunnel.cut(&fields, segment_bytes);
        let joined = join(&packets, BOTH);
        prop_assert_eq!(joined.len(), 1);
        let expected = header(&tunnel, &fields, segment_bytes, 0);
        let (vnet, mut packet) = joined[0].clone();
        prop_assert_eq!(vnet, VnetHeader { hdr_len: vnet.hdr_len, ..expected });
        prop_assert_eq!(usize::from(vnet.hdr_len), packet.len() - fields.payload.len());
        prop_assert_eq!(recut(&joined), packets.clone());
        // The virtio header locates the inner checksum, which lacks only the payload.
        complete_checksum(&vnet, &mut packet, checksum::portable).unwrap();
        prop_assert_eq!(packet, tunnel.wrap(&fields, 0));

        let outer = Fields { ipv6: false, ..fields.clone() };
        let link = link_header(&outer, tags);
        let frames = with_link(&link, packets);
        let joined = join_frames(&frames);
        prop_assert_eq!(joined.len(), 1);
        prop_assert_eq!(cut_frame(&joined[0].0, &joined[0].1, link.len()).unwrap(), frames);
    }

    #[test]
    fn every_packet_of_a_tunnel_comes_out_in_order(
        tunnel in tunnel(),
        flows in prop::collection::vec(fields(1..3000), 1..4),
        joinable in any::<(bool, bool, bool)>(),
    ) {
        // One outer flow: the kernel's choice of its port may put several inner flows into it.
        let packets: Vec<_> = flows.iter().flat_map(|flow| tunnel.cut(flow, 700)).collect();
        let (tcp, udp, tunnel) = joinable;
        let joined = join(&packets, Joinable { tcp, udp, tunnel });
        prop_assert!(tunnel || joined.iter().all(|(vnet, _)| vnet.outer == Outer::None));
        let without_numbers = |packets: Vec<Vec<u8>>| -> Vec<Vec<u8>> {
            packets.into_iter().map(without_numbers).collect()
        };
        prop_assert_eq!(without_numbers(recut(&joined)), without_numbers(packets));
    }
}

/// Without the fields that a segmenter writes anew: identifications of IPv4, and a UDP checksum,
/// which datagrams without one get when they join as such.
fn without_numbers(mut packet: Vec<u8>) -> Vec<u8> {
    let outer = IpView::parse(&packet).unwrap();
    let inner_at = Inner::find(&packet, &outer).map(|inner| inner.at);
    for at in [Some(0), inner_at].into_iter().flatten() {
        if packet[at] >> 4 == 4 {
            packet[at + 4..at + 6].fill(0);
            packet[at + 10..at + 12].fill(0);
        }
    }
    let checksum_at = outer.header_bytes + 6;
    if outer.protocol == UDP && outer.version == 4 {
        packet[checksum_at..checksum_at + 2].fill(0);
    }
    packet
}

/// Packets of a transfer in VXLAN.
fn transfer() -> Vec<Vec<u8>> {
    Tunnel::sample().cut(&Fields::sample(3000), 1000)
}

#[test]
fn packets_that_differ_around_the_inner_one_do_not_join() {
    assert_eq!(join(&transfer(), BOTH).len(), 1);
    // DSCP, TTL, the network's identifier, an inner MAC address, and inner TTL. A change of an IPv4
    // header makes its checksum wrong, so both bytes that cancel each other change.
    for changes in [
        &[(1, 4), (11, 4)][..],
        &[(8, 1), (10, 1)],
        &[(34, 1)],
        &[(41, 1)],
        &[(58, 1), (60, 1)],
    ] {
        let mut packets = transfer();
        for (at, bit) in changes {
            packets[1][*at] ^= bit;
        }
        let joined = join(&packets, BOTH);
        assert_eq!(recut(&joined), packets, "{changes:?}");
        let tunnels = joined.iter().filter(|(vnet, _)| vnet.outer != Outer::None);
        assert_eq!(tunnels.count(), 0, "{changes:?}");
    }
}

#[test]
fn a_corrupted_inner_packet_joins_neither_way() {
    let mut packets = transfer();
    packets[1][200] ^= 1;
    let joined = join(&packets, Joinable { udp: false, ..BOTH });
    assert_eq!(joined.len(), 3);
    assert_eq!(recut(&joined), packets);
}

#[test]
fn numbers_of_outer_packets_that_may_be_fragmented_are_kept() {
    let numbered = |step: u16| {
        let mut packets = transfer();
        for (packet, index) in packets.iter_mut().zip(0..) {
            packet[6] = 0;
            packet[4..6].copy_from_slice(&(70 + step * index).to_be_bytes());
            packet[10..12].fill(0);
            let sum = checksum::finish(checksum::portable(&packet[..20], 0));
            packet[10..12].copy_from_slice(&sum);
        }
        packets
    };
    assert_eq!(join(&numbered(1), BOTH).len(), 1);
    assert_eq!(recut(&join(&numbered(1), BOTH)), numbered(1));
    assert_eq!(join(&numbered(2), BOTH).len(), 3);
    assert_eq!(recut(&join(&numbered(2), BOTH)), numbered(2));
}

#[test]
fn acknowledgements_in_a_tunnel_do_not_overtake_data() {
    let ack = Fields {
        payload: Vec::new(),
        ..Fields::sample(0)
    };
    let mut packets = transfer();
    packets.push(Tunnel::sample().wrap(&ack, 3));
    let joined = join(&packets, BOTH);
    assert_eq!(joined.len(), 2);
    assert_eq!(joined[0].0.gso, Gso::Tcp4);
    assert_eq!(joined[1], (VnetHeader::PLAIN, packets[3].clone()));
}

#[test]
fn a_super_packet_in_a_tunnel_stays_within_an_ip_packet() {
    let whole = Fields::sample(60_000);
    let packets: Vec<_> = Tunnel::sample().cut(&whole, 1348);
    let more = Fields {
        sequence: whole.sequence.wrapping_add(60_000),
        payload: vec![1; 30_000],
        ..whole
    };
    let tunnel = Tunnel {
        id: 48,
        ..Tunnel::sample()
    };
    let packets = [packets, tunnel.cut(&more, 1348)].concat();
    let joined = join(&packets, BOTH);
    assert!(joined.iter().all(|(_, packet)| packet.len() <= 65_535));
    assert_eq!(joined.len(), 2);
}
