//! Segmentation and coalescing against the slow, obvious oracle, and against each other.

use proptest::prelude::*;
use wire::checksum;
use wire::coalesce::{Coalescer, Joinable};
use wire::ethernet::EthernetView;
use wire::headers::IpView;
use wire::oracle::Fields;
use wire::segment::{Malformed, Segmenter, complete_checksum};
use wire::vnet::{Gso, NEEDS_CSUM, VnetHeader};

pub(crate) const BOTH: Joinable = Joinable {
    tcp: true,
    udp: true,
    tunnel: true,
};

pub(crate) fn fields(payload: std::ops::Range<usize>) -> impl Strategy<Value = Fields> {
    let numbers = (
        any::<u32>(),
        any::<u32>(),
        any::<u16>(),
        any::<u16>(),
        any::<u16>(),
    );
    let options = prop::sample::select(vec![0usize, 12, 40]);
    (
        any::<(bool, bool, u8, u8)>(),
        1u8..4,
        numbers,
        any::<u8>(),
        options,
        payload,
    )
        .prop_flat_map(
            |(
                (ipv6, tcp, tos, ttl),
                host,
                (sequence, ack, port, id, window),
                flags,
                options,
                len,
            )| {
                (
                    prop::collection::vec(any::<u8>(), len),
                    prop::collection::vec(any::<u8>(), options),
                )
                    .prop_map(move |(payload, options)| Fields {
                        ipv6,
                        tcp,
                        unchecked: false,
                        host,
                        port,
                        tos,
                        ttl,
                        id,
                        sequence,
                        acknowledgement: ack,
                        flags,
                        window,
                        options,
                        payload,
                    })
            },
        )
}

pub(crate) fn super_packet_header(fields: &Fields, segment_bytes: usize) -> VnetHeader {
    let gso = match (fields.tcp, fields.ipv6) {
        (true, false) => Gso::Tcp4,
        (true, true) => Gso::Tcp6,
        (false, _) => Gso::UdpL4,
    };
    VnetHeader {
        flags: NEEDS_CSUM,
        gso,
        gso_size: segment_bytes as u16,
        ..VnetHeader::PLAIN
    }
}

/// A link header for packets of these fields: no, one or two VLAN tags.
pub(crate) fn link_header(fields: &Fields, tags: usize) -> Vec<u8> {
    let mut link = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2];
    for tag in [[0x88, 0xa8, 0x60, 9], [0x81, 0, 0, 7]]
        .iter()
        .skip(2 - tags)
    {
        link.extend(tag);
    }
    link.extend(if fields.ipv6 { [0x86, 0xdd] } else { [8, 0] });
    link
}

pub(crate) fn with_link(link: &[u8], packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let frame = |packet: Vec<u8>| [link, &packet].concat();
    packets.into_iter().map(frame).collect()
}

pub(crate) fn cut(vnet: &VnetHeader, packet: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
    cut_frame(vnet, packet, 0)
}

/// Segments as the data path does: in place, each segment used before the next is built, the bytes
/// behind it changed and restored.
pub(crate) fn cut_frame(
    vnet: &VnetHeader,
    packet: &[u8],
    link_bytes: usize,
) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut segmenter = Segmenter::with_link(vnet, packet, link_bytes)?;
    let mut buffer = packet.to_vec();
    buffer.extend([0; 8]);
    let mut packets = Vec::new();
    let expected = segmenter.remaining();
    while let Some(range) = segmenter.next(&mut buffer, checksum::portable) {
        packets.push(buffer[range.clone()].to_vec());
        buffer[range].fill(0xee);
    }
    assert_eq!(packets.len(), expected);
    Ok(packets)
}

/// (Super-)packets as their virtio headers and bytes.
pub(crate) type Joined = Vec<(VnetHeader, Vec<u8>)>;

fn collect(out: &mut Joined) -> impl FnMut(&VnetHeader, &[u8], &[&[u8]], usize) {
    |vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]], segments: usize| {
        assert_eq!(segments, payload.len());
        out.push((*vnet, [headers, &payload.concat()].concat()));
    }
}

pub(crate) fn join(packets: &[Vec<u8>], joinable: Joinable) -> Joined {
    let mut out = Vec::new();
    let mut sink = collect(&mut out);
    let mut coalescer = Coalescer::new(joinable, checksum::portable);
    for packet in packets {
        coalescer.push(packet, IpView::parse(packet).unwrap(), &mut sink);
    }
    coalescer.flush(&mut sink);
    drop(sink);
    out
}

pub(crate) fn join_frames(frames: &[Vec<u8>]) -> Joined {
    let mut out = Vec::new();
    let mut sink = collect(&mut out);
    let mut coalescer = Coalescer::new(BOTH, checksum::portable);
    for frame in frames {
        let view = EthernetView::parse(frame).unwrap();
        coalescer.push_frame(frame, &view, &mut sink);
    }
    coalescer.flush(&mut sink);
    drop(sink);
    out
}

/// The wire packets that joined ones represent.
pub(crate) fn recut(joined: &[(VnetHeader, Vec<u8>)]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for (vnet, packet) in joined {
        match vnet.gso {
            Gso::None => packets.push(packet.clone()),
            _ => packets.extend(cut(vnet, packet).unwrap()),
        }
    }
    packets
}

proptest! {
    #[test]
    fn segments_equal_those_of_the_oracle(fields in fields(1..6000), segment_bytes in 1usize..3000) {
        let packet = fields.packet();
        let packets = cut(&super_packet_header(&fields, segment_bytes), &packet).unwrap();
        prop_assert_eq!(packets, fields.cut(segment_bytes));
    }

    #[test]
    fn joining_reverses_segmentation(fields in fields(2..6000), parts in 2usize..20) {
        let fields = Fields { flags: 0x10 | fields.flags & 0x08, ..fields };
        let segment_bytes = fields.payload.len().div_ceil(parts);
        let packets = fields.cut(segment_bytes);
        let joined = join(&packets, BOTH);
        prop_assert_eq!(joined.len(), 1);
        prop_assert_eq!(recut(&joined), packets);
    }

    #[test]
    fn frames_are_segmented_like_their_packets(
        fields in fields(1..6000),
        segment_bytes in 1usize..3000,
        tags in 0usize..3,
    ) {
        let link = link_header(&fields, tags);
        let vnet = super_packet_header(&fields, segment_bytes);
        let frame = [&link[..], &fields.packet()].concat();
        let frames = cut_frame(&vnet, &frame, link.len()).unwrap();
        prop_assert_eq!(frames, with_link(&link, fields.cut(segment_bytes)));
    }

    #[test]
    fn joining_frames_reverses_segmentation(
        fields in fields(2..6000),
        parts in 2usize..20,
        tags in 0usize..3,
    ) {
        let fields = Fields { flags: 0x10 | fields.flags & 0x08, ..fields };
        let link = link_header(&fields, tags);
        let frames = with_link(&link, fields.cut(fields.payload.len().div_ceil(parts)));
        let joined = join_frames(&frames);
        prop_assert_eq!(joined.len(), 1);
        let (vnet, mut frame) = joined[0].clone();
        prop_assert_eq!(cut_frame(&vnet, &frame, link.len()).unwrap(), frames);
        // The virtio header locates the checksum, which lacks only the payload.
        complete_checksum(&vnet, &mut frame, checksum::portable).unwrap();
        prop_assert_eq!(frame, [link, fields.packet()].concat());
    }

    #[test]
    fn a_super_packet_without_a_checksum_is_cut_as_by_the_oracle(
        fields in fields(1..6000),
        segment_bytes in 1usize..3000,
        tags in 0usize..3,
    ) {
        let fields = Fields { ipv6: false, tcp: false, unchecked: true, ..fields };
        let vnet = VnetHeader { flags: 0, ..super_packet_header(&fields, segment_bytes) };
        prop_assert_eq!(cut(&vnet, &fields.packet()).unwrap(), fields.cut(segment_bytes));
        let link = link_header(&fields, tags);
        let frame = [&link[..], &fields.packet()].concat();
        let frames = cut_frame(&vnet, &frame, link.len()).unwrap();
        prop_assert_eq!(frames, with_link(&link, fields.cut(segment_bytes)));
        // IPv6 forbids it, so the segments have one.
        let fields = Fields { ipv6: true, ..fields };
        let expected = Fields { unchecked: false, ..fields.clone() }.cut(segment_bytes);
        prop_assert_eq!(cut(&vnet, &fields.packet()).unwrap(), expected);
    }

    #[test]
    fn datagrams_without_a_checksum_join(
        fields in fields(2..6000),
        parts in 2usize..20,
        tags in 0usize..3,
    ) {
        let fields = Fields { ipv6: false, tcp: false, unchecked: true, ..fields };
        let segment_bytes = fields.payload.len().div_ceil(parts);
        let joined = join(&fields.cut(segment_bytes), BOTH);
        prop_assert_eq!(joined.len(), 1);
        // The kernel completes a checksum; by any other byte the datagrams are as before.
        let whole = Fields { unchecked: false, ..fields.clone() };
        prop_assert_eq!(joined[0].0.flags, NEEDS_CSUM);
        prop_assert_eq!(recut(&joined), whole.cut(segment_bytes));
        let link = link_header(&fields, tags);
        let frames = join_frames(&with_link(&link, fields.cut(segment_bytes)));
        prop_assert_eq!(frames.len(), 1);
        let (vnet, mut frame) = frames[0].clone();
        complete_checksum(&vnet, &mut frame, checksum::portable).unwrap();
        prop_assert_eq!(frame, [link, whole.packet()].concat());
        // IPv6 forbids it: each passes alone and unchanged.
        let packets = Fields { ipv6: true, ..fields }.cut(segment_bytes);
        let joined = join(&packets, BOTH);
        prop_assert!(joined.iter().all(|(vnet, _)| vnet.gso == Gso::None));
        prop_assert_eq!(recut(&joined), packets);
    }

    #[test]
    fn datagrams_with_and_without_a_checksum_do_not_join(
        fields in fields(20..6000),
        unchecked in prop::collection::vec(any::<bool>(), 2..20),
    ) {
        let segment_bytes = fields.payload.len().div_ceil(unchecked.len());
        let parts: Vec<_> = fields.payload.chunks(segment_bytes).enumerate().map(|(at, payload)| {
            Fields {
                ipv6: false,
                tcp: false,
                unchecked: unchecked[at],
                id: fields.id.wrapping_add(at as u16),
                payload: payload.to_vec(),
                ..fields.clone()
            }
        }).collect();
        let packets: Vec<_> = parts.iter().map(Fields::packet).collect();
        let joined = join(&packets, BOTH);
        let runs = parts.chunk_by(|a, b| a.unchecked == b.unchecked);
        prop_assert_eq!(joined.len(), runs.clone().count());
        // Datagrams that joined have a checksum, and one that did not is unchanged.
        let expected: Vec<_> = runs
            .flat_map(|run| run.iter().map(|part| Fields {
                unchecked: part.unchecked && run.len() == 1,
                ..part.clone()
            }.packet()))
            .collect();
        prop_assert_eq!(recut(&joined), expected);
    }

    #[test]
    fn no_packet_of_mixed_flows_is_lost_or_changed(
        flows in prop::collection::vec(fields(1..4000), 1..12),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        tcp: bool,
        udp: bool,
    ) {
        let mut queues: Vec<_> = flows
            .iter()
            .map(|flow| {
                let mut packets = flow.cut(500);
                packets.reverse();
                packets
            })
            .collect();
        let mut packets = Vec::new();
        for index in order {
            let queue = index.get(&queues);
            let at = queues.iter().position(|other| other == queue).unwrap();
            packets.extend(queues[at].pop());
        }
        let mut out = recut(&join(&packets, Joinable { tcp, udp, tunnel: tcp }));
        // Order within a flow is kept; flows may overtake each other.
        let flow_of = |packet: &Vec<u8>| {
            let view = IpView::parse(packet).unwrap();
            let at = view.header_bytes;
            (view.version, view.protocol, packet[at..at + 4].to_vec(), packet[12..20].to_vec())
        };
        out.sort_by_key(flow_of);
        let mut expected = packets;
        expected.sort_by_key(flow_of);
        // A segmenter renumbers IPv4 packets from the first of a run.
        let without_id = |packet: Vec<u8>| {
            let mut packet = packet;
            if packet[0] >> 4 == 4 {
                packet[4..6].fill(0);
                packet[10..12].fill(0);
            }
            packet
        };
        let out: Vec<_> = out.into_iter().map(without_id).collect();
        let expected: Vec<_> = expected.into_iter().map(without_id).collect();
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn never_panics_on_garbage(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        vnet: [u8; 10],
    ) {
        if let Some(vnet) = VnetHeader::parse(&vnet) {
            let _ = cut(&vnet, &bytes);
            for link_bytes in [14, 18, 22, 23] {
                let _ = cut_frame(&vnet, &bytes, link_bytes);
            }
            let _ = complete_checksum(&vnet, &mut bytes.clone(), checksum::portable);
        }
        if let Some(view) = IpView::parse(&bytes) {
            let mut coalescer = Coalescer::new(BOTH, checksum::portable);
            let mut sink = |_: &VnetHeader, _: &[u8], _: &[&[u8]], _: usize| {};
            coalescer.push(&bytes, view, &mut sink);
            coalescer.push(&bytes, view, &mut sink);
            coalescer.flush(&mut sink);
        }
        if EthernetView::parse(&bytes).is_some() {
            let joined = join_frames(std::slice::from_ref(&bytes));
            prop_assert_eq!(&joined[0].1, &bytes);
        }
    }
}

#[test]
fn a_packet_with_a_wrong_checksum_is_passed_on_alone_and_unchanged() {
    let mut packets = Fields::sample(3000).cut(1000);
    packets[1][60] ^= 1;
    let joined = join(&packets, BOTH);
    assert_eq!(joined.len(), 3);
    assert_eq!(recut(&joined), packets);
}

#[test]
fn a_change_of_the_accurate_ecn_flag_ends_a_run() {
    let mut packets = Fields::sample(3000).cut(1000);
    packets[1][32] |= 1;
    // Both bytes of the flag's word count in the checksum, which is made valid again.
    let sum = u16::from_be_bytes([packets[1][36], packets[1][37]]);
    let (less, borrow) = sum.overflowing_sub(0x0100);
    packets[1][36..38].copy_from_slice(&(less - u16::from(borrow)).to_be_bytes());
    let view = IpView::parse(&packets[1]).unwrap();
    assert!(view.transport_checksum_is_valid(&packets[1], checksum::portable));
    let joined = join(&packets, BOTH);
    assert_eq!(joined.len(), 3);
    assert_eq!(recut(&joined), packets);
}

#[test]
fn a_gap_in_the_sequence_ends_a_run() {
    let mut packets = Fields::sample(4000).cut(1000);
    packets.remove(1);
    assert_eq!(join(&packets, BOTH).len(), 2);
}

#[test]
fn numbers_of_packets_that_may_be_fragmented_are_kept() {
    let mut packets = Fields::sample(3000).cut(1000);
    for packet in &mut packets {
        // May be fragmented, and numbered in steps of two.
        packet[6] = 0;
        let id = u16::from_be_bytes([packet[4], packet[5]]) * 2;
        packet[4..6].copy_from_slice(&id.to_be_bytes());
    }
    assert_eq!(recut(&join(&packets, BOTH)), packets);
}

#[test]
fn a_pure_acknowledgement_does_not_overtake_data_of_its_flow() {
    let data = Fields::sample(2000).cut(1000);
    let ack = Fields {
        payload: Vec::new(),
        ..Fields::sample(0)
    }
    .packet();
    let packets = vec![data[0].clone(), data[1].clone(), ack.clone()];
    let joined = join(&packets, BOTH);
    assert_eq!(joined.len(), 2);
    assert_eq!(joined[1], (VnetHeader::PLAIN, ack));
}

#[test]
fn super_packets_stay_within_an_ip_packet() {
    let packets: Vec<_> = (0..100u32)
        .map(|i| {
            let start = Fields::sample(1400);
            Fields {
                sequence: start.sequence.wrapping_add(i * 1400),
                ..start
            }
            .packet()
        })
        .collect();
    let joined = join(&packets, BOTH);
    assert!(joined.iter().all(|(_, packet)| packet.len() <= 65_535));
    assert_eq!(joined.len(), 3);
}

#[test]
fn completes_the_kernels_partial_checksum() {
    let whole = Fields::sample(100).packet();
    let mut open = whole.clone();
    let pseudo = IpView::parse(&whole).unwrap().pseudo_sum(&whole) + checksum::word(132);
    open[36..38].copy_from_slice(&checksum::fold(pseudo).to_ne_bytes());
    let vnet = VnetHeader {
        flags: NEEDS_CSUM,
        csum_start: 20,
        csum_offset: 16,
        ..VnetHeader::PLAIN
    };
    complete_checksum(&vnet, &mut open, checksum::portable).unwrap();
    assert_eq!(open, whole);
}

#[test]
fn frames_with_other_link_headers_do_not_join() {
    let fields = Fields::sample(3000);
    let mut frames = with_link(&link_header(&fields, 1), fields.cut(1000));
    // Another priority in the tag.
    frames[1][14] = 0x20;
    let joined: Vec<_> = join_frames(&frames)
        .into_iter()
        .map(|(_, frame)| frame)
        .collect();
    assert_eq!(joined, frames);
}

#[test]
fn a_frame_with_trailing_bytes_keeps_them_and_its_order() {
    let fields = Fields::sample(3000);
    let mut frames = with_link(&link_header(&fields, 0), fields.cut(1000));
    frames[2].extend([1, 2, 3, 4, 0x88, 0xfb]);
    let joined = join_frames(&frames);
    assert_eq!(joined.len(), 2);
    assert_eq!(
        cut_frame(&joined[0].0, &joined[0].1, 14).unwrap(),
        frames[..2]
    );
    assert_eq!(joined[1], (VnetHeader::PLAIN, frames[2].clone()));
}

#[test]
fn a_frame_that_is_not_ip_does_not_overtake_earlier_frames() {
    let fields = Fields::sample(2000);
    let mut frames = with_link(&link_header(&fields, 0), fields.cut(1000));
    let arp = [&[0xff; 12][..], &[8, 6], &[0; 28]].concat();
    frames.push(arp.clone());
    let joined = join_frames(&frames);
    assert_eq!(joined.len(), 2);
    assert_eq!(joined[1], (VnetHeader::PLAIN, arp));
}
