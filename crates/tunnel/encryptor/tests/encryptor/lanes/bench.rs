//! The bench: two encryptors in memory, with the cipher link between them under the test's control.
//!
//! ```text
//! station a = clear link = left worker = cipher link = right worker = clear link = station b
//! ```

use crate::clear_link::{MemoryClearPort, memory_clear_pair};
use encryptor::counters::Tally;
use encryptor::inbound::{Inbound, InboundKeys};
use encryptor::outbound::{Outbound, OutboundTunnel};
use encryptor::payload::{IpRules, Payload};
use encryptor::policy::{Policy, Selectors};
use encryptor::worker::Worker;
use engine::{CpuChoice, Transform};
use esp::{InboundSa, OutboundSa, WindowSize};
use etherparse::PacketBuilder;
use port::{
    Batch, CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, CipherPort, ClearPort, MemoryCipherPort, Train,
    memory_cipher_pair,
};
use std::sync::Arc;
use wire::Suite;
use wire::checksum;
use wire::coalesce::Joinable;
use wire::ethernet::EthernetView;
use wire::segment::Segmenter;
use wire::vnet::{Gso, VNET_HEADER_BYTES, VnetHeader};
use yaml::Prefix;

pub(crate) const JOINABLE: Joinable = Joinable {
    tcp: true,
    udp: true,
    tunnel: true,
};
pub(crate) const SINGLE: Joinable = Joinable::NONE;
/// SPIs of tunnel 0; tunnel n's are n higher, and the next epoch's 0x100 higher.
pub(crate) const LEFT_SPI: u32 = 0x1000;
pub(crate) const RIGHT_SPI: u32 = 0x2000;
pub(crate) const NEXT_EPOCH: u32 = 0x100;

/// As over IPv4.
const PAYLOAD_BYTES_MAX: usize = 65_000;

/// Settings of a bench. Tunnel n leads to the networks 10.n.0.0/16 and 2001:db8:n::/48.
pub(crate) struct Setup {
    pub suite: Suite,
    pub tunnels: u16,
    pub joinable: Joinable,
    pub left: Payload,
    pub right: Payload,
    pub inner_bytes_max: usize,
    pub mss_max: [u16; 2],
    /// Prepares the keying material of an SPI for use.
    pub transform: fn(Suite, u32) -> Box<dyn Transform>,
}

impl Setup {
    pub(crate) fn ip(rules: IpRules) -> Self {
        Self::of(Payload::Ip(rules), Payload::Ip(rules))
    }

    pub(crate) fn of(left: Payload, right: Payload) -> Self {
        Self {
            suite: Suite::Aes256Gcm,
            tunnels: 1,
            joinable: JOINABLE,
            left,
            right,
            inner_bytes_max: 65_535,
            mss_max: [u16::MAX; 2],
            transform,
        }
    }

    /// The left or the right encryptor.
    pub(crate) fn worker<C: ClearPort, P: CipherPort>(
        &self,
        ends: (C, P),
        own: u32,
        peer: u32,
    ) -> Worker<C, P, TestKeys> {
        let payload = if own == LEFT_SPI {
            &self.left
        } else {
            &self.right
        };
        let protected = !matches!(payload, Payload::PlainPseudowire { .. });
        let tunnel = |number: u16| {
            let spi = own + u32::from(number);
            let sa = OutboundSa::new(spi, (self.transform)(self.suite, spi));
            OutboundTunnel {
                sa: protected.then_some(sa),
                peer: number,
                inner_bytes_max: self.inner_bytes_max,
                payload_bytes_max: self.inner_bytes_max.min(PAYLOAD_BYTES_MAX),
                mss_max: self.mss_max,
            }
        };
        let keys = TestKeys {
            suite: self.suite,
            transform: self.transform,
            peer,
            tunnels: self.tunnels,
            confirmed: vec![0; usize::from(self.tunnels)],
        };
        let behind: Vec<_> = (0..self.tunnels).map(selectors).collect();
        let policy = Arc::new(Policy::new(&behind));
        let tunnels = (0..self.tunnels).map(tunnel).collect();
        let sum = checksum::portable;
        let outbound = Outbound::new(tunnels, payload.clone(), Arc::clone(&policy), sum);
        let count = usize::from(self.tunnels);
        let inbound = Inbound::new(keys, count, payload.clone(), policy, sum);
        Worker::new(ends.0, ends.1, outbound, inbound)
    }
}

/// The networks of a tunnel.
pub(crate) fn selectors(tunnel: u16) -> Selectors {
    let v4 = [10, tunnel as u8, 0, 0];
    let v6 = [0x2001, 0xdb8, tunnel, 0, 0, 0, 0, 0];
    let networks = [
        Prefix::new(v4.into(), 16).unwrap(),
        Prefix::new(v6.into(), 48).unwrap(),
    ];
    Selectors::to(networks.to_vec())
}

/// Keying material that is the SPI's bytes repeated, on the best engine.
pub(crate) fn transform(suite: Suite, spi: u32) -> Box<dyn Transform> {
    let selection = engine::select(&CpuChoice::Auto, suite).unwrap();
    let bytes = spi.to_be_bytes();
    let keymat: Vec<u8> = bytes
        .into_iter()
        .cycle()
        .take(suite.keymat_bytes())
        .collect();
    selection.transform(&keymat)
}

/// Keys for two epochs of each tunnel of a peer.
pub(crate) struct TestKeys {
    suite: Suite,
    transform: fn(Suite, u32) -> Box<dyn Transform>,
    peer: u32,
    tunnels: u16,
    confirmed: Vec<u32>,
}

impl InboundKeys for TestKeys {
    fn tunnel(&self, spi: u32) -> Option<u16> {
        let number = spi.checked_sub(self.peer)? & !NEXT_EPOCH;
        u16::try_from(number)
            .ok()
            .filter(|number| *number < self.tunnels)
    }

    fn candidate(&mut self, tunnel: u16, spi: u32) -> Option<InboundSa> {
        let newer = spi >= self.confirmed[usize::from(tunnel)];
        let make = || InboundSa::new(spi, (self.transform)(self.suite, spi), WindowSize::DEFAULT);
        newer.then(make)
    }

    fn confirmed(&mut self, tunnel: u16, spi: u32) {
        self.confirmed[usize::from(tunnel)] = spi;
    }
}

pub(crate) type TestWorker = Worker<MemoryClearPort, MemoryCipherPort, TestKeys>;

/// A datagram on the cipher link, unchanged, from the first peer.
impl From<Vec<u8>> for Datagram {
    fn from(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            tos: 0,
            peer: 0,
        }
    }
}

/// A datagram on the cipher link, with the second byte of its IP header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub bytes: Vec<u8>,
    pub tos: u8,
    pub peer: u16,
}

/// Both stations, both encryptors, and a tap on the cipher link in front of the right one.
pub(crate) struct Bench {
    pub a: MemoryClearPort,
    pub b: MemoryClearPort,
    pub left: TestWorker,
    pub right: TestWorker,
    /// The left encryptor's peer, and the right one's: datagrams pass through the test's control.
    from_left: MemoryCipherPort,
    to_right: MemoryCipherPort,
    frames: bool,
}

impl Bench {
    pub(crate) fn new(setup: &Setup) -> Self {
        let (a, left_clear) = memory_clear_pair(setup.joinable);
        let (right_clear, b) = memory_clear_pair(setup.joinable);
        let (left_cipher, from_left) = memory_cipher_pair();
        let (to_right, right_cipher) = memory_cipher_pair();
        Self {
            a,
            b,
            left: setup.worker((left_clear, left_cipher), LEFT_SPI, RIGHT_SPI),
            right: setup.worker((right_clear, right_cipher), RIGHT_SPI, LEFT_SPI),
            from_left,
            to_right,
            frames: !matches!(setup.left, Payload::Ip(_)),
        }
    }

    /// Sends a packet or frame from A.
    pub(crate) fn send(&mut self, packet: &[u8]) {
        self.a.send(&VnetHeader::PLAIN, packet, &[]).unwrap();
    }

    /// Seals A's packets; returns the datagrams on the cipher link.
    pub(crate) fn seal(&mut self) -> Vec<Datagram> {
        while self.left.step().unwrap() {}
        drain_cipher(&mut self.from_left)
    }

    /// Opens datagrams with the right encryptor; returns the packets at B, with super-packets
    /// segmented.
    pub(crate) fn open(&mut self, datagrams: &[Datagram]) -> Vec<Vec<u8>> {
        for some in datagrams.chunks(port::TRAINS_MAX) {
            let mut batch = Batch::for_trains(4);
            let mut start = 0;
            for Datagram { bytes, tos, .. } in some {
                batch.buffer[start..start + bytes.len()].copy_from_slice(bytes);
                batch.trains.push(Train {
                    start,
                    bytes: bytes.len(),
                    datagram_bytes: bytes.len(),
                    peer: 0,
                    tos: *tos,
                });
                start += bytes.len();
            }
            let sent = self.to_right.send(&mut batch).datagrams;
            assert_eq!(sent, some.len() as u64, "the link has room");
        }
        while self.right.step().unwrap() {}
        drain_clear(&mut self.b, self.frames)
    }

    /// An arbitrary packet sealed with the left encryptor's keys.
    pub(crate) fn seal_as_it_is(&self, packet: &[u8]) -> Datagram {
        self.seal_as_number(packet, 1)
    }

    /// The same with this sequence number.
    pub(crate) fn seal_as_number(&self, packet: &[u8], number: u64) -> Datagram {
        let mut sa = OutboundSa::new(LEFT_SPI, transform(Suite::Aes256Gcm, LEFT_SPI));
        let mut sealed = vec![0; sa.sealed_len(packet.len())];
        for _ in 0..number {
            let mut src = [packet, &[0; esp::TRAILER_ROOM]].concat();
            sa.seal(&mut src, packet.len(), 4, &mut sealed).unwrap();
        }
        sealed.into()
    }

    /// Seals and opens A's packets.
    pub(crate) fn cross(&mut self) -> Vec<Vec<u8>> {
        let sealed = self.seal();
        self.open(&sealed)
    }

    /// The packets received at A, with super-packets segmented.
    pub(crate) fn back_at_a(&mut self) -> Vec<Vec<u8>> {
        drain_clear(&mut self.a, self.frames)
    }

    pub(crate) fn left_tally(&self) -> Tally {
        tally(&self.left)
    }

    pub(crate) fn right_tally(&self) -> Tally {
        tally(&self.right)
    }
}

pub(crate) fn tally<C: ClearPort, P: CipherPort>(worker: &Worker<C, P, TestKeys>) -> Tally {
    let tally = worker.counters().read();
    assert!(tally.balances(), "{tally:?}");
    tally
}

fn drain_cipher(port: &mut MemoryCipherPort) -> Vec<Datagram> {
    let mut batch = Batch::for_trains(64);
    let mut datagrams = Vec::new();
    while port.recv(&mut batch).is_ok() {
        for train in &*batch.trains {
            datagrams.extend(train.ranges().map(|range| Datagram {
                bytes: batch.buffer[range].to_vec(),
                tos: train.tos,
                peer: train.peer,
            }));
        }
    }
    datagrams
}

pub(crate) fn drain_clear(port: &mut MemoryClearPort, frames: bool) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES];
    let mut packets = Vec::new();
    while let Ok((packet, bytes)) = port.recv(&mut buffer) {
        let (header, packet) = packet[..bytes]
            .split_first_chunk_mut::<VNET_HEADER_BYTES>()
            .unwrap();
        let vnet = VnetHeader::parse(header).unwrap();
        packets.extend(wire_packets(&vnet, packet, frames));
    }
    packets
}

/// The wire packets of a super-packet.
pub(crate) fn wire_packets(vnet: &VnetHeader, packet: &mut [u8], frames: bool) -> Vec<Vec<u8>> {
    if vnet.gso == Gso::None {
        return vec![packet.to_vec()];
    }
    let link_bytes = if frames {
        EthernetView::parse(packet).unwrap().header_bytes
    } else {
        0
    };
    let mut segmenter = Segmenter::with_link(vnet, packet, link_bytes).unwrap();
    let mut packets = Vec::new();
    while let Some(range) = segmenter.next(packet, checksum::portable) {
        packets.push(packet[range].to_vec());
    }
    packets
}

/// A packet between two hosts of tunnel 0's networks.
pub(crate) fn udp(source: [u8; 4], payload: &[u8]) -> Vec<u8> {
    udp_between(source, [10, 0, 0, 2], payload)
}

pub(crate) fn udp_between(source: [u8; 4], target: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ipv4(source, target, 64).udp(4000, 5201);
    let mut packet = Vec::new();
    builder.write(&mut packet, payload).unwrap();
    packet
}

pub(crate) fn tcp(ipv6: bool, port: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let address = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    if ipv6 {
        let builder = PacketBuilder::ipv6(address, address, 64).tcp(port, 5201, sequence, 999);
        builder.ack(77).write(&mut packet, payload).unwrap();
    } else {
        let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        let builder = builder.tcp(port, 5201, sequence, 999);
        builder.ack(77).write(&mut packet, payload).unwrap();
    }
    packet
}
