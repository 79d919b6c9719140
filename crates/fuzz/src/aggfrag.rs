//! AGGFRAG payloads: from our sender, from a peer that fragments packets, and arbitrary bytes.

use crate::packets;
use arbitrary::{Result, Unstructured};
use wire::aggfrag::{Aggregator, Blocks, HEADER_BYTES, Reassembler, is_block};
use wire::oracle;

const PACKETS_MAX: usize = 20;

pub(crate) fn body(data: &[u8]) {
    let mut u = Unstructured::new(data);
    // An exhausted input ends the run.
    let _ = match u.int_in_range(0..=3).unwrap_or(0) {
        0 => whole(&mut u),
        1 => cut(&mut u),
        2 => divided(&mut u),
        _ => arbitrary(&mut u),
    };
}

/// IP packets with consistent lengths.
fn inner_packets(u: &mut Unstructured<'_>) -> Result<Vec<Vec<u8>>> {
    let mut packets = Vec::new();
    for _ in 0..u.int_in_range(1..=PACKETS_MAX)? {
        let packet = packets::ip_packet(u)?;
        if is_block(&packet) {
            packets.push(packet);
        }
    }
    Ok(packets)
}

/// Packed packets are unpacked unchanged, with or without padding by the peer.
fn whole(u: &mut Unstructured<'_>) -> Result<()> {
    let packets = inner_packets(u)?;
    let room = u.int_in_range(HEADER_BYTES..=9000)?;
    let mut buffer = vec![0xee; room];
    let mut aggregator = Aggregator::begin(room);
    let mut used = HEADER_BYTES;
    let mut packed = Vec::new();
    for packet in &packets {
        let fits = used + packet.len() <= room;
        assert_eq!(aggregator.push(&mut buffer, packet), fits);
        if fits {
            used += packet.len();
            packed.push(&packet[..]);
        }
    }
    assert_eq!(aggregator.finish(&mut buffer), used);
    let padding = u.int_in_range(0..=room)?;
    let payload = &[&buffer[..used], &vec![0; padding]].concat();
    let blocks: Vec<_> = Blocks::parse(payload).expect("of our own making").collect();
    assert_eq!(blocks, packed);
    let mut reassembler = Reassembler::new();
    let received = reassembler.receive(1, payload).expect("of our own making");
    assert_eq!(
        (received.completed, received.lost, received.malformed),
        (None, 0, None)
    );
    assert_eq!(received.blocks.collect::<Vec<_>>(), packed);
    Ok(())
}

/// Our sender divides packets: its payloads equal the ones of a slow sender that splits the stream
/// of all packets at the same places.
fn divided(u: &mut Unstructured<'_>) -> Result<()> {
    let room = u.int_in_range(HEADER_BYTES + 1..=3000)?;
    let divides: u64 = u.arbitrary()?;
    let packets = inner_packets(u)?;
    let divides: Vec<bool> = (0..u64::BITS).map(|bit| divides >> bit & 1 == 1).collect();
    let payloads = oracle::pack(&packets, room, &divides);
    let mut sizes = payloads.iter().map(|payload| payload.len() - HEADER_BYTES);
    let expected = split_stream(&packets, || Ok((sizes.next().unwrap_or(0), false)))?;
    // Without packets there is one payload, which is empty.
    assert!(payloads == expected || packets.is_empty());
    Ok(())
}

/// A peer may fragment packets anywhere (RFC 9347 §2.2.3). When all payloads arrive, so do all
/// packets, in order; when some are lost or late, only packets that were sent come out.
fn cut(u: &mut Unstructured<'_>) -> Result<()> {
    // Drawn first: packets may exhaust the input.
    let loses: bool = u.arbitrary()?;
    let moves: [(u8, Option<u8>); 3] = u.arbitrary()?;
    let packets = inner_packets(u)?;
    let payloads = cut_payloads(u, &packets)?;
    let mut delivery: Vec<usize> = (0..payloads.len()).collect();
    for (from, to) in moves.into_iter().filter(|_| loses) {
        if delivery.is_empty() {
            break;
        }
        let payload = delivery.remove(usize::from(from) % delivery.len());
        if let Some(to) = to {
            delivery.insert(usize::from(to) % (delivery.len() + 1), payload);
        }
    }
    let mut reassembler = Reassembler::new();
    let mut out: Vec<Vec<u8>> = Vec::new();
    for at in delivery {
        let received = reassembler
            .receive(at as u64 + 1, &payloads[at])
            .expect("a right header");
        assert_eq!(received.malformed, None);
        assert!(loses || received.lost == 0);
        out.extend(received.completed.map(<[u8]>::to_vec));
        out.extend(received.blocks.map(<[u8]>::to_vec));
    }
    if loses {
        let mut sent = packets;
        for packet in out {
            let at = sent.iter().position(|other| *other == packet);
            sent.swap_remove(at.expect("a packet came that was not sent, or came twice"));
        }
    } else {
        assert_eq!(out, packets);
        assert!(!reassembler.is_waiting());
    }
    Ok(())
}

/// The packets in sequence, split into payloads of any length, some of them padded.
fn cut_payloads(u: &mut Unstructured<'_>, packets: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    split_stream(packets, || Ok((u.int_in_range(1..=2000)?, u.arbitrary()?)))
}

/// The packets in sequence, split into payloads of the next lengths. The block offset follows its
/// definition: the rest of the packet that the payload begins in (§6.1.1). A payload that ends with
/// a whole packet is padded if requested.
fn split_stream(
    packets: &[Vec<u8>],
    mut next_payload: impl FnMut() -> Result<(usize, bool)>,
) -> Result<Vec<Vec<u8>>> {
    let stream = packets.concat();
    let mut begins: Vec<usize> = Vec::new();
    let mut end = 0;
    for packet in packets {
        begins.push(end);
        end += packet.len();
    }
    begins.push(end);
    let mut payloads = Vec::new();
    let mut at = 0;
    while at < stream.len() {
        let (bytes, is_padded) = next_payload()?;
        let bytes = bytes.min(stream.len() - at);
        let next = begins
            .iter()
            .find(|&&begin| begin >= at)
            .expect("the last is the end");
        let offset = (next - at) as u16;
        let mut payload = vec![0, 0];
        payload.extend(offset.to_be_bytes());
        payload.extend(&stream[at..at + bytes]);
        at += bytes;
        // Padding may end a payload, but only after a whole packet.
        if begins.contains(&at) && is_padded {
            payload.resize(payload.len() + 5, 0);
        }
        payloads.push(payload);
    }
    Ok(payloads)
}

/// For arbitrary payloads: every packet found is within the payload, and consistent with its
/// header.
fn arbitrary(u: &mut Unstructured<'_>) -> Result<()> {
    let mut reassembler = Reassembler::new();
    while !u.is_empty() {
        let bytes = u.int_in_range(0..=200)?;
        let payload = u.bytes(bytes.min(u.len()))?;
        // Few numbers, so that payloads are late, repeated and consecutive.
        let sequence = u.int_in_range(1..=8)?;
        let Ok(received) = reassembler.receive(sequence, payload) else {
            assert!(Blocks::parse(payload).is_err());
            continue;
        };
        assert!(received.completed.is_none_or(is_block));
        assert!(received.blocks.clone().all(is_block));
        let total: usize = received.blocks.map(<[u8]>::len).sum();
        assert!(total + HEADER_BYTES <= payload.len());
    }
    Ok(())
}
