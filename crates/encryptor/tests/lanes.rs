//! Two encryptors joined in memory: what goes in comes out, and what an attacker adds is counted and dropped.
//!
//! ```text
//! station a = clear link = left worker = cipher link = right worker = clear link = station b
//! ```

use encryptor::counters::{DropReason, Tally};
use encryptor::inbound::{Inbound, InboundKeys};
use encryptor::outbound::{Outbound, OutboundTunnel};
use encryptor::payload::{IpRules, Payload};
use encryptor::policy::{Policy, Selectors};
use encryptor::worker::Worker;
use engine::Choice;
use esp::{InboundSa, OutboundSa, WindowSize};
use etherparse::PacketBuilder;
use port::{
    CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, CipherPort, ClearPort, MemoryCipherPort, MemoryClearPort,
    Train, memory_cipher_pair, memory_clear_pair,
};
use proptest::prelude::*;
use std::sync::Arc;
use wire::Suite;
use wire::checksum;
use wire::coalesce::Joinable;
use wire::segment::Segmenter;
use wire::vnet::{Gso, NEEDS_CSUM, VNET_HEADER_BYTES, VnetHeader};
use yaml::Prefix;

const JOINABLE: Joinable = Joinable {
    tcp: true,
    udp: true,
};
const LEFT_SPI: u32 = 0x1000;
const RIGHT_SPI: u32 = 0x2000;

/// Knows two SPIs; their keys are the SPI's bytes repeated.
struct TestKeys {
    known: [u32; 2],
    confirmed: Vec<u32>,
}

fn transform(spi: u32) -> Box<dyn engine::Transform> {
    let selection = engine::select(&Choice::Auto, Suite::Aes256Gcm).unwrap();
    selection.transform(&spi.to_be_bytes().repeat(9))
}

impl InboundKeys for TestKeys {
    fn tunnel(&self, spi: u32) -> Option<u16> {
        self.known.contains(&spi).then_some(0)
    }

    fn candidate(&mut self, _: u16, spi: u32) -> Option<InboundSa> {
        let over = self.confirmed.iter().any(|confirmed| spi < *confirmed);
        (self.known.contains(&spi) && !over)
            .then(|| InboundSa::new(spi, transform(spi), WindowSize::DEFAULT))
    }

    fn confirmed(&mut self, _: u16, spi: u32) {
        self.confirmed.push(spi);
    }
}

fn everything() -> Prefix {
    Prefix::new([0, 0, 0, 0].into(), 0).unwrap()
}

fn outbound(spi: u32, policy: Arc<Policy>) -> Outbound {
    let tunnel = OutboundTunnel {
        sa: Some(OutboundSa::new(spi, transform(spi))),
        peer: 0,
        inner_bytes_max: 65_535,
        mss_max: [u16::MAX; 2],
    };
    let payload = Payload::Ip(IpRules::NONE);
    Outbound::new(vec![tunnel], payload, policy, checksum::portable)
}

type TestWorker = Worker<MemoryClearPort, MemoryCipherPort, TestKeys>;

fn worker(clear: MemoryClearPort, cipher: MemoryCipherPort, spi: u32, peer: u32) -> TestWorker {
    let keys = TestKeys {
        known: [peer, peer + 1],
        confirmed: Vec::new(),
    };
    let networks = [("10.0.0.0", 8), ("2001:db8::", 32)]
        .map(|(address, length)| Prefix::new(address.parse().unwrap(), length).unwrap());
    let policy = Arc::new(Policy::new(&[Selectors::to(networks.to_vec())]));
    let inbound = Inbound::new(
        keys,
        1,
        Payload::Ip(IpRules::NONE),
        Arc::clone(&policy),
        checksum::portable,
    );
    Worker::new(clear, cipher, outbound(spi, policy), inbound)
}

/// Both stations, both encryptors, and a tap on the cipher link in front of the right one.
struct Bench {
    a: MemoryClearPort,
    b: MemoryClearPort,
    left: TestWorker,
    right: TestWorker,
    /// The left encryptor's peer, and the right one's: datagrams pass through the test's hands.
    from_left: MemoryCipherPort,
    to_right: MemoryCipherPort,
}

impl Bench {
    fn new(joinable: Joinable) -> Self {
        let (a, left_clear) = memory_clear_pair(joinable);
        let (right_clear, b) = memory_clear_pair(joinable);
        let (left_cipher, from_left) = memory_cipher_pair();
        let (to_right, right_cipher) = memory_cipher_pair();
        Self {
            a,
            b,
            left: worker(left_clear, left_cipher, LEFT_SPI, RIGHT_SPI),
            right: worker(right_clear, right_cipher, RIGHT_SPI, LEFT_SPI),
            from_left,
            to_right,
        }
    }

    /// Seals what A has sent; the datagrams on the cipher link.
    fn seal(&mut self) -> Vec<Vec<u8>> {
        self.left.step().unwrap();
        drain_cipher(&mut self.from_left)
    }

    /// Lets the right encryptor open datagrams; what B receives, super-packets cut again.
    fn open(&mut self, datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
        datagrams
            .iter()
            .for_each(|datagram| self.to_right.inject(datagram));
        while self.right.step().unwrap() {}
        drain_clear(&mut self.b)
    }

    fn right_tally(&self) -> Tally {
        self.right.counters().read()
    }
}

fn drain_cipher(port: &mut MemoryCipherPort) -> Vec<Vec<u8>> {
    let mut batch = port::Batch::for_trains(64);
    let mut datagrams = Vec::new();
    while port.recv(&mut batch).is_ok() {
        datagrams.extend(batch.datagrams().map(|datagram| datagram.to_vec()));
    }
    datagrams
}

fn drain_clear(port: &mut MemoryClearPort) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES];
    let mut packets = Vec::new();
    while let Ok((packet, bytes)) = port.recv(&mut buffer) {
        let (header, packet) = packet[..bytes]
            .split_first_chunk_mut::<VNET_HEADER_BYTES>()
            .unwrap();
        let vnet = VnetHeader::parse(header).unwrap();
        packets.extend(wire_packets(&vnet, packet));
    }
    packets
}

fn wire_packets(vnet: &VnetHeader, packet: &mut [u8]) -> Vec<Vec<u8>> {
    if vnet.gso == Gso::None {
        return vec![packet.to_vec()];
    }
    let mut segmenter = Segmenter::new(vnet, packet).unwrap();
    let mut packets = Vec::new();
    while let Some(range) = segmenter.next(packet, checksum::portable) {
        packets.push(packet[range].to_vec());
    }
    packets
}

fn udp(source: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ipv4(source, [10, 2, 0, 2], 64).udp(4000, 5201);
    let mut packet = Vec::new();
    builder.write(&mut packet, payload).unwrap();
    packet
}

fn tcp(ipv6: bool, port: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let address = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    if ipv6 {
        let builder = PacketBuilder::ipv6(address, address, 64).tcp(port, 5201, sequence, 999);
        builder.ack(77).write(&mut packet, payload).unwrap();
    } else {
        let builder = PacketBuilder::ipv4([10, 1, 0, 2], [10, 2, 0, 2], 64);
        let builder = builder.tcp(port, 5201, sequence, 999);
        builder.ack(77).write(&mut packet, payload).unwrap();
    }
    packet
}

#[test]
fn a_packet_crosses_sealed_and_comes_out_unchanged() {
    let mut bench = Bench::new(JOINABLE);
    let packet = udp([10, 1, 0, 2], b"the marker of the stations");
    bench.a.send(&VnetHeader::PLAIN, &packet, &[]).unwrap();
    let sealed = bench.seal();
    assert_eq!(sealed.len(), 1);
    assert_eq!(
        sealed[0].len(),
        wire::overhead::esp_bytes(Suite::Aes256Gcm, packet.len())
    );
    assert!(!sealed[0].windows(10).any(|bytes| bytes == b"the marker"));
    assert_eq!(bench.open(&sealed), [packet]);
}

#[test]
fn a_super_packet_crosses_as_wire_packets() {
    for ipv6 in [false, true] {
        let mut bench = Bench::new(JOINABLE);
        let payload: Vec<u8> = (0..60_000u32).map(|at| (at / 7) as u8).collect();
        let packet = tcp(ipv6, 40_000, 1, &payload);
        let gso = if ipv6 { Gso::Tcp6 } else { Gso::Tcp4 };
        let vnet = VnetHeader {
            flags: NEEDS_CSUM,
            gso,
            gso_size: 1360,
            ..VnetHeader::PLAIN
        };
        let expected = wire_packets(&vnet, &mut packet.clone());
        bench.a.send(&vnet, &packet, &[]).unwrap();
        let sealed = bench.seal();
        assert_eq!(sealed.len(), expected.len());
        assert_eq!(bench.open(&sealed), expected);
    }
}

#[test]
fn every_attack_has_its_own_drop_reason() {
    let mut bench = Bench::new(Joinable {
        tcp: false,
        udp: false,
    });
    for at in 0..3u8 {
        bench
            .a
            .send(&VnetHeader::PLAIN, &udp([10, 1, 0, 2], &[at; 100]), &[])
            .unwrap();
    }
    bench
        .a
        .send(&VnetHeader::PLAIN, &udp([192, 168, 0, 1], &[9; 10]), &[])
        .unwrap();
    let sealed = bench.seal();
    assert_eq!(sealed.len(), 4);
    let mut forged = sealed[1].clone();
    *forged.last_mut().unwrap() ^= 1;
    let mut unknown = sealed[1].clone();
    unknown[..4].copy_from_slice(&0xdead_beef_u32.to_be_bytes());
    let mut wrong_epoch = sealed[1].clone();
    wrong_epoch[..4].copy_from_slice(&(LEFT_SPI + 1).to_be_bytes());
    let attack = [
        sealed[0].clone(),
        sealed[0].clone(),
        forged,
        unknown,
        wrong_epoch,
        sealed[2][..30].to_vec(),
        vec![1, 2],
        vec![0xff],
        sealed[3].clone(),
        sealed[1].clone(),
    ];
    // One at a time: a batch derives keys for few unknown SPIs only.
    let out: Vec<_> = attack
        .into_iter()
        .flat_map(|datagram| bench.open(&[datagram]))
        .collect();
    assert_eq!(
        out,
        [udp([10, 1, 0, 2], &[0; 100]), udp([10, 1, 0, 2], &[1; 100])]
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
    assert!(tally.balances());
}

#[test]
fn a_packet_that_contradicts_its_header_is_dropped_and_counted() {
    let mut bench = Bench::new(JOINABLE);
    let vnet = VnetHeader {
        gso: Gso::Tcp4,
        gso_size: 100,
        ..VnetHeader::PLAIN
    };
    bench
        .a
        .send(&vnet, &udp([10, 1, 0, 2], &[1; 500]), &[])
        .unwrap();
    bench
        .a
        .send(&VnetHeader::PLAIN, &[0x45, 0, 0], &[])
        .unwrap();
    assert!(bench.seal().is_empty());
    let tally = bench.left.counters().read();
    assert_eq!(tally.dropped[DropReason::Malformed as usize], 2);
    assert!(tally.balances());
}

#[test]
fn an_epoch_is_over_when_the_next_is_proven() {
    let mut bench = Bench::new(JOINABLE);
    let packet = udp([10, 1, 0, 2], &[1; 50]);
    for _ in 0..3 {
        bench.a.send(&VnetHeader::PLAIN, &packet, &[]).unwrap();
    }
    let old = bench.seal();
    assert_eq!(bench.open(&old[..1]).len(), 1);
    // The peer has restarted: its next epoch.
    let spi = LEFT_SPI + 1;
    let mut sa = OutboundSa::new(spi, transform(spi));
    let mut new = vec![0; sa.sealed_len(packet.len())];
    let mut src = [packet.as_slice(), &[0; esp::TRAILER_ROOM]].concat();
    sa.seal(&mut src, packet.len(), 4, &mut new).unwrap();
    assert_eq!(bench.open(&[new]).len(), 1);
    assert!(bench.open(&old[1..]).is_empty());
    assert_eq!(bench.right_tally().dropped[DropReason::NoSa as usize], 2);
}

#[test]
fn an_empty_datagram_is_counted() {
    let mut bench = Bench::new(JOINABLE);
    assert!(bench.open(&[Vec::new()]).is_empty());
    assert_eq!(bench.right_tally().dropped[DropReason::Runt as usize], 1);
}

#[test]
fn an_unknown_spi_costs_few_derivations_per_batch() {
    let mut bench = Bench::new(JOINABLE);
    bench
        .a
        .send(&VnetHeader::PLAIN, &udp([10, 1, 0, 2], &[1; 50]), &[])
        .unwrap();
    let sealed = bench.seal();
    let mut forged = sealed[0].clone();
    forged[20] ^= 1;
    // Two forgeries use up the batch's candidates; the genuine packet of that batch pays for it.
    let flood = [forged.clone(), forged, sealed[0].clone()];
    assert!(bench.open(&flood).is_empty());
    let dropped = bench.right_tally().dropped;
    assert_eq!(dropped[DropReason::IntegrityFailed as usize], 2);
    assert_eq!(dropped[DropReason::NoSa as usize], 1);
    // In the next batch it gets through: nothing was remembered of it.
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
    fn everything_sent_arrives_in_order_of_its_flow(
        traffic in prop::collection::vec(traffic(), 1..40),
        join_tcp: bool,
        join_udp: bool,
    ) {
        let mut bench = Bench::new(Joinable { tcp: join_tcp, udp: join_udp });
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
            expected.extend(wire_packets(&vnet, &mut packet));
        }
        let mut sealed = Vec::new();
        while bench.left.step().unwrap() {
            sealed.extend(drain_cipher(&mut bench.from_left));
        }
        let mut out = bench.open(&sealed);
        prop_assert!(bench.left.counters().read().balances());
        prop_assert!(bench.right_tally().balances());
        // Flows may overtake one another; a segmenter numbers the IPv4 packets of a run anew.
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
    /// A cipher port that keeps the trains it is given.
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
                &udp([10, 1, 0, 2], &vec![0; bytes]),
                &[],
            )
            .unwrap();
    }
    let sealed = |payload: usize| wire::overhead::esp_bytes(Suite::Aes256Gcm, payload + 28);
    let (long, middle, short) = (sealed(1000), sealed(400), sealed(200));
    let policy = Arc::new(Policy::new(&[Selectors::to(vec![everything()])]));
    let mut outbound = outbound(LEFT_SPI, policy);
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
