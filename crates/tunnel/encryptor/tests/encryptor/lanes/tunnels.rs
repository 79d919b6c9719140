//! Many tunnels in one lane, and packets that share ESP packets.

use crate::clear_link::memory_clear_pair;
use crate::lanes::bench::*;
use encryptor::counters::DropReason;
use encryptor::payload::IpRules;
use esp::{InboundSa, OutboundSa, WindowSize};
use port::{ClearPort as _, memory_cipher_pair};
use proptest::prelude::*;
use wire::Suite;
use wire::aggfrag::AGGFRAG;
use wire::headers::be32;
use wire::overhead::esp_bytes;
use wire::vnet::VnetHeader;

const AGGREGATE: IpRules = IpRules {
    aggregate: true,
    ..IpRules::NONE
};

fn many(rules: IpRules, tunnels: u16) -> Setup {
    Setup {
        tunnels,
        joinable: SINGLE,
        ..Setup::ip(rules)
    }
}

/// A packet between two hosts of a tunnel's networks.
fn packet(tunnel: u8, number: u8, bytes: usize) -> Vec<u8> {
    udp_between([10, tunnel, 0, 1], [10, tunnel, 0, 2], &vec![number; bytes])
}

#[test]
fn each_packet_takes_the_tunnel_of_its_destination() {
    let mut bench = Bench::new(&many(IpRules::NONE, 200));
    let sent: Vec<_> = (0..200).map(|tunnel| packet(tunnel, 7, 30)).collect();
    sent.iter().for_each(|packet| bench.send(packet));
    let sealed = bench.seal();
    for (number, datagram) in sealed.iter().enumerate() {
        assert_eq!(be32(&datagram.bytes, 0), LEFT_SPI + number as u32);
        assert_eq!(usize::from(datagram.peer), number);
    }
    // All of them start together, and none is lost.
    assert_eq!(bench.open(&sealed), sent);
    sent.iter().for_each(|packet| bench.send(packet));
    assert_eq!(bench.cross(), sent);
}

#[test]
fn a_packet_without_a_tunnel_is_dropped_and_counted() {
    let mut bench = Bench::new(&many(IpRules::NONE, 2));
    bench.send(&packet(2, 0, 10));
    assert!(bench.seal().is_empty());
    assert_eq!(bench.left_tally().dropped[DropReason::NoTunnel as usize], 1);
}

#[test]
fn a_tunnel_delivers_no_packets_of_another() {
    let mut bench = Bench::new(&many(IpRules::NONE, 2));
    // To tunnel 0, but with the source of a host behind tunnel 1.
    bench.send(&udp_between([10, 1, 0, 1], [10, 0, 0, 2], b"not mine"));
    assert!(bench.cross().is_empty());
    assert_eq!(bench.right_tally().dropped[DropReason::Policy as usize], 1);
}

#[test]
fn small_packets_share_esp_packets_and_one_that_fits_none_is_divided() {
    let mut bench = Bench::new(&Setup {
        inner_bytes_max: 1400,
        ..many(AGGREGATE, 1)
    });
    let mut sent: Vec<_> = (0..40).map(|number| packet(0, number, 18)).collect();
    sent.push(packet(0, 99, 1372));
    sent.push(packet(0, 100, 18));
    sent.iter().for_each(|packet| bench.send(packet));
    let sealed = bench.seal();
    let lengths: Vec<_> = sealed.iter().map(|datagram| datagram.bytes.len()).collect();
    // 30 packets of 46 bytes fit 1400 with the header. The long one of 1400 bytes fits none: its
    // first 936 bytes fill the second ESP packet, and the last small one joins the rest.
    let esp = |inner| esp_bytes(Suite::Aes256Gcm, inner);
    assert_eq!(lengths, [esp(4 + 30 * 46), esp(1400), esp(4 + 464 + 46)]);
    let tally = bench.left_tally();
    assert_eq!((tally.joined, tally.continued), (40, 1));
    for datagram in &sealed {
        assert_eq!(next_header(datagram), AGGFRAG);
    }
    assert_eq!(bench.open(&sealed), sent);
    assert_eq!(bench.right_tally().split, 39);
}

/// The next header of an ESP packet of the left encryptor.
fn next_header(datagram: &Datagram) -> u8 {
    let transform = transform(Suite::Aes256Gcm, LEFT_SPI);
    let mut sa = InboundSa::new(LEFT_SPI, transform, WindowSize::DEFAULT);
    let mut bytes = datagram.bytes.clone();
    sa.open(&mut bytes).unwrap().next_header
}

#[test]
fn a_full_packet_is_divided_and_every_esp_packet_is_of_one_kind() {
    let mut bench = Bench::new(&Setup {
        inner_bytes_max: 1400,
        ..many(AGGREGATE, 1)
    });
    let sent: Vec<_> = (0..50).map(|number| packet(0, number, 1372)).collect();
    sent.iter().for_each(|packet| bench.send(packet));
    let sealed = bench.seal();
    // 50 packets of 1400 bytes in payloads of 1396 without the header; one of these is sent before
    // it is full, since the batch is.
    assert_eq!(sealed.len(), 52);
    for datagram in &sealed {
        assert_eq!(next_header(datagram), AGGFRAG);
    }
    let opened = bench.open(&sealed);
    let tally = bench.right_tally();
    assert_eq!((tally.incomplete, tally.split, tally.absorbed), (0, 0, 2));
    assert_eq!(opened.len(), sent.len());
    assert!(opened == sent, "in order");
}

#[test]
fn no_packet_waits_beyond_its_own_turn() {
    let (mut station, clear) = memory_clear_pair(SINGLE);
    let (cipher, _peer) = memory_cipher_pair();
    let setup = Setup {
        inner_bytes_max: 9000,
        ..many(AGGREGATE, 1)
    };
    let mut left = setup.worker((clear, cipher), LEFT_SPI, RIGHT_SPI);
    let mut before = (0, 0);
    // All of them fit one ESP packet. A turn has 64 reads.
    for (packets, turns) in [(1, 1), (2, 1), (64, 1), (65, 2)] {
        for number in 0..packets {
            let packet = packet(0, number, 18);
            station.send(&VnetHeader::PLAIN, &packet, &[]).unwrap();
        }
        for _ in 0..turns {
            let sent = tally(&left).cipher_tx.packets;
            assert!(left.step().unwrap());
            // One ESP packet with all packets read in the turn: the tally balances, so none is
            // held.
            assert_eq!(tally(&left).cipher_tx.packets, sent + 1, "{packets}");
        }
        let tally = tally(&left);
        let now = (tally.clear_rx.packets, tally.joined);
        assert_eq!(now.0, before.0 + u64::from(packets));
        assert_eq!(now.1, before.1 + u64::from(packets) - turns, "{packets}");
        before = now;
    }
}

#[test]
fn an_aggregate_delivers_no_packets_of_another_tunnel() {
    let mut bench = Bench::new(&many(AGGREGATE, 2));
    bench.send(&packet(0, 1, 18));
    bench.send(&udp_between([10, 1, 0, 1], [10, 0, 0, 2], b"not mine"));
    bench.send(&packet(0, 2, 18));
    let out = bench.cross();
    assert_eq!(out, [packet(0, 1, 18), packet(0, 2, 18)]);
    assert_eq!(bench.right_tally().dropped[DropReason::Policy as usize], 1);
}

#[test]
fn a_split_packet_is_reassembled_or_counted_as_incomplete() {
    let mut bench = Bench::new(&many(AGGREGATE, 1));
    let (long, next) = (packet(0, 1, 272), packet(0, 2, 18));
    assert_eq!(long.len(), 300);
    // Sub-type 0, and the distance to the next packet (RFC 9347 §6.1.1).
    let parts = [
        [&[0, 0, 0, 0], &long[..100]].concat(),
        [&[0, 0, 0, 200], &long[100..200]].concat(),
        [&[0, 0, 0, 100], &long[200..], &next].concat(),
    ];
    let mut sa = OutboundSa::new(LEFT_SPI, transform(Suite::Aes256Gcm, LEFT_SPI));
    let mut seal = |part: &Vec<u8>| {
        let mut src = [part.as_slice(), &[0; esp::TRAILER_ROOM]].concat();
        let mut sealed = vec![0; sa.sealed_len(part.len())];
        sa.seal(&mut src, part.len(), AGGFRAG, &mut sealed).unwrap();
        Datagram::from(sealed)
    };
    let sealed: Vec<_> = parts.iter().chain(&parts).map(&mut seal).collect();
    assert_eq!(bench.open(&sealed[..3]), [long, next.clone()]);
    let tally = bench.right_tally();
    assert_eq!((tally.absorbed, tally.incomplete), (2, 0));
    // Without the middle one.
    assert_eq!(bench.open(&[sealed[3].clone(), sealed[5].clone()]), [next]);
    let tally = bench.right_tally();
    assert_eq!((tally.absorbed, tally.incomplete), (3, 1));
}

#[test]
fn every_suite_crosses() {
    for suite in Suite::ALL {
        for rules in [IpRules::NONE, AGGREGATE] {
            let mut bench = Bench::new(&Setup {
                suite,
                ..many(rules, 3)
            });
            let lengths = [0, 1, 7, 8, 15, 16, 17, 100, 511, 512, 600, 1371, 1400, 1472];
            let sent: Vec<_> = lengths
                .iter()
                .map(|bytes| packet(*bytes as u8 % 2, *bytes as u8, *bytes))
                .collect();
            sent.iter().for_each(|packet| bench.send(packet));
            assert_eq!(bench.cross(), sent, "{suite}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn aggregated_packets_arrive_unchanged(
        sizes in prop::collection::vec((0u8..4, 0usize..1500), 1..200),
        room in 576usize..1500,
    ) {
        let mut bench = Bench::new(&Setup { inner_bytes_max: room, ..many(AGGREGATE, 4) });
        let sent: Vec<_> = sizes
            .iter()
            .enumerate()
            .map(|(number, (tunnel, bytes))| packet(*tunnel, number as u8, *bytes))
            .collect();
        sent.iter().for_each(|packet| bench.send(packet));
        let fits: Vec<_> = sent.into_iter().filter(|packet| packet.len() <= room).collect();
        prop_assert_eq!(bench.cross(), fits);
        let _ = (bench.left_tally(), bench.right_tally());
    }
}
