//! AGGFRAG against hand-computed payloads, a slow and obvious sender that fragments packets, and
//! arbitrary bytes.

use proptest::prelude::*;
use wire::aggfrag::{
    Aggregator, BLOCK_BYTES_MAX, Blocks, CONGESTION_HEADER_BYTES, HEADER_BYTES, Malformed,
    Reassembler, block_of, is_block,
};
use wire::oracle::pack;

/// An IP packet of this length, or of the minimum; its bytes identify it.
fn ip(ipv6: bool, bytes: usize, number: u8) -> Vec<u8> {
    let bytes = bytes.max(if ipv6 { 40 } else { 20 });
    let mut packet: Vec<u8> = (0..bytes).map(|at| number.wrapping_add(at as u8)).collect();
    if ipv6 {
        packet[0] = 0x60;
        packet[4..6].copy_from_slice(&(bytes as u16 - 40).to_be_bytes());
    } else {
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
    }
    packet
}

fn packets(longest: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let packet = (any::<bool>(), 20..longest, any::<u8>())
        .prop_map(|(ipv6, bytes, number)| ip(ipv6, bytes, number));
    prop::collection::vec(packet, 1..30)
}

/// A sender that fragments: the stream of all packets, split into payloads of the given sizes, with
/// all-pad payloads between them where requested. Each payload has the numbers of the packets in
/// it.
fn cut(packets: &[Vec<u8>], sizes: &[(usize, bool)]) -> Vec<(Vec<u8>, Vec<usize>)> {
    let stream = packets.concat();
    let owner: Vec<usize> = (0..packets.len())
        .flat_map(|number| vec![number; packets[number].len()])
        .collect();
    let starts: Vec<usize> = (0..packets.len())
        .map(|number| packets[..number].concat().len())
        .collect();
    let mut payloads = Vec::new();
    let mut at = 0;
    for &(size, pad) in sizes.iter().cycle() {
        if at == stream.len() {
            break;
        }
        if pad {
            payloads.push((vec![0; HEADER_BYTES + size], vec![]));
        }
        let end = (at + size).min(stream.len());
        // To the first packet that starts here or later, perhaps beyond this payload.
        let next = starts.iter().find(|&&start| start >= at);
        let offset = next.copied().unwrap_or(stream.len()) - at;
        let header = [&[0, 0][..], &(offset as u16).to_be_bytes()].concat();
        let mut numbers = owner[at..end].to_vec();
        numbers.dedup();
        payloads.push(([header, stream[at..end].to_vec()].concat(), numbers));
        at = end;
    }
    payloads
}

fn sizes() -> impl Strategy<Value = Vec<(usize, bool)>> {
    let size = prop_oneof![1usize..8, 1usize..100, 1usize..3000];
    prop::collection::vec((size, prop::bool::weighted(0.1)), 1..20)
}

/// All packets of a payload, in order.
fn receive(reassembler: &mut Reassembler, sequence: u64, payload: &[u8]) -> (Vec<Vec<u8>>, u32) {
    let received = reassembler.receive(sequence, payload).unwrap();
    assert_eq!(received.malformed, None);
    let completed = received.completed.into_iter();
    let all = completed.chain(received.blocks).map(<[u8]>::to_vec);
    (all.collect(), received.lost)
}

/// The payloads that arrive: their numbers in order of arrival.
fn arrivals() -> impl Strategy<Value = Vec<(bool, usize)>> {
    prop::collection::vec((prop::bool::weighted(0.8), 0usize..3), 400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn packed_packets_are_unpacked_unchanged(
        packets in packets(700),
        room in 0usize..3000,
        padding in prop_oneof![Just(0), 1usize..1000],
    ) {
        let mut buffer = vec![0xee; room];
        let mut waiting = &packets[..];
        let mut reassembler = Reassembler::new();
        for sequence in 1.. {
            let mut aggregator = Aggregator::begin(room);
            let mut used = HEADER_BYTES;
            let mut packed = Vec::new();
            while let Some((first, rest)) = waiting.split_first() {
                let fits = used + first.len() <= room;
                prop_assert_eq!(aggregator.push(&mut buffer, first), fits);
                if !fits {
                    break;
                }
                used += first.len();
                packed.push(first.clone());
                waiting = rest;
            }
            if packed.is_empty() {
                break; // All are sent, or the next is too long for this room.
            }
            prop_assert_eq!(aggregator.finish(&mut buffer), used);
            // Our sender never pads; a peer may.
            let payload = [&buffer[..used], &vec![0; padding]].concat();
            let unpacked: Vec<_> = Blocks::parse(&payload).unwrap().map(<[u8]>::to_vec).collect();
            prop_assert_eq!(&unpacked, &packed);
            prop_assert_eq!(receive(&mut reassembler, sequence, &payload), (packed, 0));
            prop_assert!(!reassembler.is_waiting());
        }
    }

    #[test]
    fn divided_packets_are_those_of_the_slow_sender(
        packets in packets(3000),
        room in HEADER_BYTES + 1..2000,
        divides in prop::collection::vec(any::<bool>(), 30),
    ) {
        let payloads = pack(&packets, room, &divides);
        let sizes: Vec<_> = payloads.iter().map(|payload| (payload.len() - HEADER_BYTES, false)).collect();
        let expected: Vec<_> = cut(&packets, &sizes).into_iter().map(|(payload, _)| payload).collect();
        prop_assert_eq!(&payloads, &expected);
        let mut reassembler = Reassembler::new();
        let mut out = Vec::new();
        for (payload, sequence) in payloads.iter().zip(1..) {
            prop_assert!(payload.len() <= room);
            let (got, lost) = receive(&mut reassembler, sequence, payload);
            prop_assert_eq!(lost, 0);
            out.extend(got);
        }
        prop_assert_eq!(out, packets);
    }

    #[test]
    fn fragmented_packets_are_reassembled(
        packets in packets(3000),
        sizes in sizes(),
        first in prop_oneof![Just(1u64), Just((1 << 32) - 5), Just(u64::MAX - 100_000)],
    ) {
        let mut reassembler = Reassembler::new();
        let mut out = Vec::new();
        for ((payload, _), sequence) in cut(&packets, &sizes).iter().zip(first..) {
            let (got, lost) = receive(&mut reassembler, sequence, payload);
            prop_assert_eq!(lost, 0);
            out.extend(got);
        }
        prop_assert_eq!(out, packets);
        prop_assert!(!reassembler.is_waiting());
    }

    #[test]
    fn a_missing_payload_loses_only_the_packets_in_it(
        packets in packets(1000),
        sizes in sizes(),
        arrivals in arrivals(),
    ) {
        let payloads = cut(&packets, &sizes);
        let arrived: Vec<bool> =
            (0..payloads.len()).map(|at| arrivals[at % arrivals.len()].0).collect();
        let mut reassembler = Reassembler::new();
        let mut out = Vec::new();
        let mut lost = 0;
        for (at, (payload, _)) in payloads.iter().enumerate().filter(|(at, _)| arrived[*at]) {
            let (got, gone) = receive(&mut reassembler, at as u64 + 1, payload);
            out.extend(got);
            lost += gone;
        }
        let mut expected = Vec::new();
        let mut in_pieces = 0;
        for (number, packet) in packets.iter().enumerate() {
            let has = |at: &usize| payloads[*at].1.contains(&number);
            let first = (0..payloads.len()).find(has).unwrap();
            let last = (0..payloads.len()).rfind(has).unwrap();
            if (first..=last).all(|at| arrived[at]) {
                expected.push(packet.clone());
            } else if (first..=last).any(|at| arrived[at]) {
                in_pieces += 1;
            }
        }
        prop_assert_eq!(out, expected);
        prop_assert!(lost <= in_pieces);
    }

    #[test]
    fn reordering_never_yields_a_packet_that_was_not_sent(
        packets in packets(600),
        sizes in sizes(),
        arrivals in arrivals(),
    ) {
        let payloads = cut(&packets, &sizes);
        // Each may come up to two places late.
        let mut order: Vec<usize> = (0..payloads.len()).collect();
        order.sort_by_key(|&at| 2 * (at + arrivals[at % arrivals.len()].1) + 1);
        let mut reassembler = Reassembler::new();
        let mut left = packets.clone();
        for at in order {
            let (payload, _) = &payloads[at];
            let whole: Vec<_> = Blocks::parse(payload).unwrap().collect();
            let (got, _) = receive(&mut reassembler, at as u64 + 1, payload);
            // Packets that are whole in a payload always arrive.
            prop_assert!(got.iter().map(|packet| &packet[..]).rev().take(whole.len()).eq(whole.into_iter().rev()));
            for packet in got {
                let place = left.iter().position(|sent| *sent == packet);
                prop_assert!(place.is_some(), "{packet:?} was not sent, or comes twice");
                left.remove(place.unwrap());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_neither_panic_nor_yield_data_outside_the_payload(
        payloads in prop::collection::vec(hostile(), 1..40),
        sequences in prop::collection::vec(prop_oneof![4 => Just(1u64), 1 => any::<u64>()], 40),
    ) {
        let mut reassembler = Reassembler::new();
        let mut sequence = 0u64;
        for (payload, step) in payloads.iter().zip(sequences) {
            sequence = sequence.wrapping_add(step);
            let inside = payload.as_ptr_range();
            let Ok(received) = reassembler.receive(sequence, payload) else {
                prop_assert!(Blocks::parse(payload).is_err());
                continue;
            };
            let mut bytes = 0;
            for packet in received.blocks {
                let range = packet.as_ptr_range();
                prop_assert!(inside.start <= range.start && range.end <= inside.end);
                prop_assert!(is_block(packet));
                bytes += packet.len();
            }
            prop_assert!(bytes + HEADER_BYTES <= payload.len());
            if let Some(completed) = received.completed {
                prop_assert!(is_block(completed) && completed.len() <= BLOCK_BYTES_MAX);
            }
        }
    }
}

/// Bytes that have a chance to pass the first checks.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let header = prop_oneof![
        8 => (0u16..200).prop_map(|offset| {
            let [high, low] = offset.to_be_bytes();
            vec![0, 0, high, low]
        }),
        1 => prop::collection::vec(any::<u8>(), 0..6),
        1 => prop::collection::vec(0u8..2, CONGESTION_HEADER_BYTES),
    ];
    let block = prop_oneof![
        (any::<bool>(), 0usize..80, any::<u8>())
            .prop_map(|(ipv6, bytes, number)| ip(ipv6, bytes, number)),
        (0usize..60).prop_map(|bytes| ip(true, 100, 3)[..bytes].to_vec()),
        (0usize..60).prop_map(|bytes| ip(false, 100, 3)[..bytes].to_vec()),
        prop::collection::vec(any::<u8>(), 0..50),
    ];
    (header, prop::collection::vec(block, 0..5))
        .prop_map(|(header, blocks)| [header, blocks.concat()].concat())
}

/// The layout of RFC 9347 §6.1.1 and §6.1.3, byte by byte: an IPv4 packet of 20 bytes, an IPv6 one
/// of 41.
#[test]
fn the_payload_has_the_layout_of_the_rfc() {
    let ipv4 = [
        0x45, 0, 0, 20, 0, 1, 0, 0, 64, 59, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
    ];
    let mut ipv6 = [0; 41];
    ipv6[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 1, 59, 64]);
    ipv6[40] = 0xab;
    let mut buffer = [0xee; 80];
    let mut aggregator = Aggregator::begin(80);
    assert!(aggregator.push(&mut buffer, &ipv4));
    assert!(aggregator.push(&mut buffer, &ipv6));
    let length = aggregator.finish(&mut buffer);
    let expected = [&[0, 0, 0, 0], &ipv4[..], &ipv6[..]].concat();
    assert_eq!(buffer[..length], expected);
    assert_eq!(buffer[length..], [0xee; 15]);
}

/// Computed by hand: a packet of 100 bytes over three payloads of 40 bytes of blocks. The second
/// has the offset 60, which points beyond its end; the third 20, where the next packet begins.
#[test]
fn block_offsets_may_point_beyond_a_payload() {
    let long = ip(false, 100, 1);
    let next = ip(false, 20, 2);
    let payloads = [
        [&[0, 0, 0, 0], &long[..40]].concat(),
        [&[0, 0, 0, 60], &long[40..80]].concat(),
        [&[0, 0, 0, 20], &long[80..], &next].concat(),
    ];
    let mut reassembler = Reassembler::new();
    assert_eq!(receive(&mut reassembler, 7, &payloads[0]), (vec![], 0));
    assert_eq!(receive(&mut reassembler, 8, &payloads[1]), (vec![], 0));
    let (got, lost) = receive(&mut reassembler, 9, &payloads[2]);
    assert_eq!((got, lost), (vec![long.clone(), next.clone()], 0));

    // Without the second, the long packet is lost and counted, and the next is not.
    let mut reassembler = Reassembler::new();
    receive(&mut reassembler, 7, &payloads[0]);
    let (got, lost) = receive(&mut reassembler, 9, &payloads[2]);
    assert_eq!((got, lost), (vec![next.clone()], 1));

    // The same without the first.
    let mut reassembler = Reassembler::new();
    assert_eq!(receive(&mut reassembler, 8, &payloads[1]), (vec![], 0));
    let (got, lost) = receive(&mut reassembler, 9, &payloads[2]);
    assert_eq!((got, lost), (vec![next], 1));
}

#[test]
fn an_offset_that_contradicts_the_packets_own_length_loses_it() {
    let long = ip(true, 100, 1);
    for wrong in [59u8, 61, 200] {
        let mut reassembler = Reassembler::new();
        receive(&mut reassembler, 1, &[&[0, 0, 0, 0], &long[..40]].concat());
        let payload = [&[0, 0, 0, wrong], &long[40..]].concat();
        let received = reassembler.receive(2, &payload).unwrap();
        assert_eq!((received.completed, received.lost), (None, 1), "{wrong}");
        assert!(!reassembler.is_waiting() || wrong == 59);
    }
}

#[test]
fn the_header_with_congestion_control_is_skipped() {
    let packet = ip(true, 77, 9);
    let mut header = [0xff; CONGESTION_HEADER_BYTES];
    header[..4].copy_from_slice(&[1, 3, 0, 0]);
    let payload = [&header[..], &packet].concat();
    let mut reassembler = Reassembler::new();
    assert_eq!(receive(&mut reassembler, 1, &payload), (vec![packet], 0));
    for length in 1..CONGESTION_HEADER_BYTES {
        let short = reassembler.receive(2, &header[..length]).unwrap_err();
        assert_eq!(short, Malformed::Header);
    }
}

#[test]
fn malformed_payloads_are_refused_with_a_reason_after_their_valid_packets() {
    for length in 0..HEADER_BYTES {
        let error = Blocks::parse(&[0; HEADER_BYTES][..length]).unwrap_err();
        assert_eq!(error, Malformed::Header);
    }
    let error = Blocks::parse(&[2, 0, 0, 0]).unwrap_err();
    assert_eq!(error, Malformed::SubType);
    let good = ip(false, 33, 5);
    let mut too_short = ip(true, 60, 5);
    too_short[0] = 0x45;
    too_short[2..4].copy_from_slice(&19u16.to_be_bytes());
    for (bad, reason) in [
        (&[0x50, 0, 0, 20][..], Malformed::BlockType),
        (&[0xff], Malformed::BlockType),
        (&too_short, Malformed::BlockLength),
    ] {
        let payload = [&[0; HEADER_BYTES], &good[..], bad].concat();
        let mut reassembler = Reassembler::new();
        let received = reassembler.receive(1, &payload).unwrap();
        assert_eq!(received.malformed, Some(reason));
        assert_eq!(received.blocks.collect::<Vec<_>>(), [&good[..]]);
        assert!(!reassembler.is_waiting());
    }
}

#[test]
fn a_block_ends_where_its_header_says() {
    let packet = ip(true, 50, 1);
    let longer = [&packet[..], &[0; 3]].concat();
    assert_eq!(block_of(&longer), Some(&packet[..]));
    for bad in [&packet[..49], &[], &[0; 20], &[0x45], &[0x75; 40]] {
        assert_eq!(block_of(bad), None);
    }
}

#[test]
fn only_packets_with_a_consistent_length_are_packed() {
    let mut buffer = [0xee; 200];
    let mut aggregator = Aggregator::begin(200);
    let good = ip(false, 50, 1);
    let longer = [&good[..], &[0; 3]].concat();
    for bad in [&good[..49], &longer, &[], &[0; 20], &[0x45], &[0x75; 40]] {
        assert!(!aggregator.push(&mut buffer, bad), "{bad:?}");
    }
    assert_eq!(aggregator, Aggregator::begin(200));
    assert_eq!(buffer, [0xee; 200]);
    assert!(aggregator.push(&mut buffer, &good));
}
