//! IP packets, one tunnel.

use crate::clear_link::memory_clear_pair;
use crate::lanes::bench::*;
use encryptor::counters::{DropReason, Tally};
use encryptor::outbound::{Outbound, OutboundTunnel};
use encryptor::payload::{IpRules, Payload};
use encryptor::policy::Policy;
use esp::OutboundSa;
use port::{CipherPort, ClearPort, Train};
use proptest::prelude::*;
use std::sync::Arc;
use wire::Suite;
use wire::checksum;
use wire::coalesce::Joinable;
use wire::vnet::{Gso, NEEDS_CSUM, VnetHeader};

#[test]
fn a_packet_crosses_sealed_and_arrives_unchanged() {
    let mut bench = Bench::new(&Setup::ip(IpRules::NONE));
    let packet = udp([10, 0, 0, 1], b"the marker of the stations");
    bench.send(&packet);
    let sealed = bench.seal();
    assert_eq!(sealed.len(), 1);
    assert_eq!(
        sealed[0].bytes.len(),
        wire::overhead::esp_bytes(Suite::Aes256Gcm, packet.len())
    );
    assert!(
        !sealed[0]
            .bytes
            .windows(10)
            .any(|bytes| bytes == b"the marker")
    );
    assert_eq!(bench.open(&sealed), [packet]);
}

#[test]
fn a_super_packet_crosses_as_wire_packets() {
    for ipv6 in [false, true] {
        let mut bench = Bench::new(&Setup::ip(IpRules::NONE));
        let payload: Vec<u8> = (0..60_000u32).map(|at| (at / 7) as u8).collect();
        let packet = tcp(ipv6, 40_000, 1, &payload);
        let gso = if ipv6 { Gso::Tcp6 } else { Gso::Tcp4 };
        let vnet = VnetHeader {
            flags: NEEDS_CSUM,
            gso,
            gso_size: 1360,
            ..VnetHeader::PLAIN
        };
        let expected = wire_packets(&vnet, &mut packet.clone(), false);
        bench.a.send(&vnet, &packet, &[]).unwrap();
        let sealed = bench.seal();
        assert_eq!(sealed.len(), expected.len());
        assert_eq!(bench.open(&sealed), expected);
    }
}

#[test]
fn every_attack_has_its_own_drop_reason() {
    let mut bench = Bench::new(&Setup {
        joinable: SINGLE,
        ..Setup::ip(IpRules::NONE)
    });
    for at in 0..3u8 {
        bench.send(&udp([10, 0, 0, 1], &[at; 100]));
    }
    bench.send(&udp([192, 168, 0, 1], &[9; 10]));
    let sealed = bench.seal();
    assert_eq!(sealed.len(), 4);
    let mut forged = sealed[1].clone();
    *forged.bytes.last_mut().unwrap() ^= 1;
    let mut unknown = sealed[1].clone();
    unknown.bytes[..4].copy_from_slice(&0xdead_beef_u32.to_be_bytes());
    let mut wrong_epoch = sealed[1].clone();
    wrong_epoch.bytes[..4].copy_from_slice(&(LEFT_SPI + NEXT_EPOCH).to_be_bytes());
    let attack = [
        sealed[0].clone(),
        sealed[0].clone(),
        forged,
        unknown,
        wrong_epoch,
        sealed[2].bytes[..30].to_vec().into(),
        vec![1, 2].into(),
        vec![0xff].into(),
        sealed[3].clone(),
        sealed[1].clone(),
    ];
    // One at a time: a batch derives keys for only a few unknown SPIs.
    let out: Vec<_> = attack
        .into_iter()
        .flat_map(|datagram| bench.open(&[datagram]))
        .collect();
    assert_eq!(
        out,
        [udp([10, 0, 0, 1], &[0; 100]), udp([10, 0, 0, 1], &[1; 100])]
    );
    let tally = bench.right_tally();
    let mut expected = Tally::default();
    for (reason, count) in [
        (DropReason::Replayed, 1),
        (DropReason::IntegrityFailed, 2),
        (DropReason::NoSa, 1),
        (DropReason::Runt, 2),
        (DropReason::Keepalive, 1),
        (DropReason::Policy, 1),
    ] {
        expected.drop(reason, count);
    }
    assert_eq!(tally.dropped, expected.dropped);
}

#[test]
fn a_packet_that_contradicts_its_header_is_dropped_and_counted() {
    let mut bench = Bench::new(&Setup::ip(IpRules::NONE));
    let vnet = VnetHeader {
        gso: Gso::Tcp4,
        gso_size: 100,
        ..VnetHeader::PLAIN
    };
    bench
        .a
        .send(&vnet, &udp([10, 0, 0, 1], &[1; 500]), &[])
        .unwrap();
    bench.send(&[0x45, 0, 0]);
    assert!(bench.seal().is_empty());
    let dropped = bench.left_tally().dropped;
    assert_eq!(dropped[DropReason::Malformed as usize], 2);
}

#[test]
fn an_epoch_ends_when_the_next_is_proven() {
    let mut bench = Bench::new(&Setup::ip(IpRules::NONE));
    let packet = udp([10, 0, 0, 1], &[1; 50]);
    for _ in 0..3 {
        bench.send(&packet);
    }
    let old = bench.seal();
    assert_eq!(bench.open(&old[..1]).len(), 1);
    // The peer has restarted: its next epoch.
    let spi = LEFT_SPI + NEXT_EPOCH;
    let mut sa = OutboundSa::new(spi, transform(Suite::Aes256Gcm, spi));
    let mut new = vec![0; sa.sealed_len(packet.len())];
    let mut src = [packet.as_slice(), &[0; esp::TRAILER_ROOM]].concat();
    sa.seal(&mut src, packet.len(), 4, &mut new).unwrap();
    assert_eq!(bench.open(&[new.into()]).len(), 1);
    assert!(bench.open(&old[1..]).is_empty());
    assert_eq!(bench.right_tally().dropped[DropReason::NoSa as usize], 2);
}

#[test]
fn an_empty_datagram_is_counted() {
    let mut bench = Bench::new(&Setup::ip(IpRules::NONE));
    assert!(bench.open(&[Vec::new().into()]).is_empty());
    assert_eq!(bench.right_tally().dropped[DropReason::Runt as usize], 1);
}

#[test]
fn an_unknown_spi_costs_few_derivations_per_batch() {
    let mut bench = Bench::new(&Setup::ip(IpRules::NONE));
    bench.send(&udp([10, 0, 0, 1], &[1; 50]));
    let sealed = bench.seal();
    let mut forged = sealed[0].clone();
    forged.bytes[20] ^= 1;
    // Two forgeries use up the batch's candidates, so the genuine packet of that batch is dropped.
    let flood = [forged.clone(), forged, sealed[0].clone()];
    assert!(bench.open(&flood).is_empty());
    let dropped = bench.right_tally().dropped;
    assert_eq!(dropped[DropReason::IntegrityFailed as usize], 2);
    assert_eq!(dropped[DropReason::NoSa as usize], 1);
    // It passes in the next batch: the refusal is not remembered.
    assert_eq!(bench.open(&sealed).len(), 1);
}

/// One packet or super-packet of a station.
fn traffic() -> impl Strategy<Value = (bool, u16, bool, usize, usize)> {
    (
        any::<bool>(),
        1u16..4,
        any::<bool>(),
        1usize..20_000,
        200usize..2000,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_packets_arrive_in_order_within_their_flow(
        traffic in prop::collection::vec(traffic(), 1..40),
        join_tcp: bool,
        join_udp: bool,
    ) {
        let mut bench = Bench::new(&Setup {
            joinable: Joinable { tcp: join_tcp, udp: join_udp, tunnel: true },
            ..Setup::ip(IpRules::NONE)
        });
        let mut expected = Vec::new();
        let mut sequences = [0u32; 8];
        for (ipv6, port, single, bytes, segment) in traffic {
            let sequence = &mut sequences[usize::from(port) * 2 + usize::from(ipv6)];
            let bytes = if single { bytes.min(1400) } else { bytes };
            let payload: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
            let mut packet = tcp(ipv6, port, *sequence, &payload);
            *sequence += bytes as u32;
            let gso = if ipv6 { Gso::Tcp6 } else { Gso::Tcp4 };
            let vnet = if single {
                VnetHeader::PLAIN
            } else {
                VnetHeader { flags: NEEDS_CSUM, gso, gso_size: segment as u16, ..VnetHeader::PLAIN }
            };
            bench.a.send(&vnet, &packet, &[]).unwrap();
            expected.extend(wire_packets(&vnet, &mut packet, false));
        }
        let mut out = bench.cross();
        // Flows may overtake one another; a segmenter renumbers the IPv4 packets of a run.
        let flow = |packet: &Vec<u8>| {
            let at = if packet[0] >> 4 == 4 { 20 } else { 40 };
            (packet[0] >> 4, packet[at..at + 2].to_vec())
        };
        let without_id = |mut packet: Vec<u8>| {
            if packet[0] >> 4 == 4 {
                packet[4..6].fill(0);
                packet[10..12].fill(0);
            }
            packet
        };
        out.sort_by_key(flow);
        expected.sort_by_key(flow);
        let out: Vec<_> = out.into_iter().map(without_id).collect();
        let expected: Vec<_> = expected.into_iter().map(without_id).collect();
        prop_assert_eq!(out, expected);
    }
}

#[test]
fn trains_hold_datagrams_of_one_length_and_a_shorter_last_one() {
    /// A cipher port that keeps sent trains.
    struct Recorder(Vec<Vec<(usize, usize)>>);
    impl CipherPort for Recorder {
        fn send(&mut self, batch: &mut port::Batch) -> port::Sent {
            let trains = std::mem::take(&mut *batch.trains);
            self.0.push(
                trains
                    .iter()
                    .map(|train| (train.bytes, train.datagram_bytes))
                    .collect(),
            );
            let datagrams = trains.iter().map(Train::datagrams).sum();
            port::Sent {
                datagrams,
                ..port::Sent::default()
            }
        }
        fn recv(&mut self, _: &mut port::Batch) -> std::io::Result<()> {
            Err(std::io::ErrorKind::WouldBlock.into())
        }
        fn train_max(&self) -> usize {
            64
        }
        fn readable(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
            None
        }
    }
    let (mut station, mut clear) = memory_clear_pair(JOINABLE);
    for bytes in [1000, 1000, 400, 1000, 200, 300] {
        station
            .send(
                &VnetHeader::PLAIN,
                &udp([10, 0, 0, 1], &vec![0; bytes]),
                &[],
            )
            .unwrap();
    }
    let sealed = |payload: usize| wire::overhead::esp_bytes(Suite::Aes256Gcm, payload + 28);
    let (long, middle, short) = (sealed(1000), sealed(400), sealed(200));
    let tunnel = OutboundTunnel {
        sa: Some(OutboundSa::new(
            LEFT_SPI,
            transform(Suite::Aes256Gcm, LEFT_SPI),
        )),
        peer: 0,
        inner_bytes_max: 1500,
        payload_bytes_max: 1500,
        mss_max: [u16::MAX; 2],
    };
    let policy = Arc::new(Policy::new(&[selectors(0)]));
    let payload = Payload::Ip(IpRules::NONE);
    let mut outbound = Outbound::new(vec![tunnel], payload, policy, checksum::portable);
    let mut recorder = Recorder(Vec::new());
    outbound
        .run(&mut clear, &mut recorder, &mut Tally::default())
        .unwrap();
    let expected = vec![
        (2 * long + middle, long),
        (long + short, long),
        (sealed(300), sealed(300)),
    ];
    assert_eq!(recorder.0, [expected]);
}
