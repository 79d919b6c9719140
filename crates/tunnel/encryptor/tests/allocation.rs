//! The packet path never allocates. A separate test program with one test, since its allocator
//! counts for all threads.

#[path = "encryptor/clear_link.rs"]
mod clear_link;

use clear_link::{MemoryClearPort, memory_clear_pair};
use dispatch::{Choice, Dispatch};
use encryptor::inbound::{Inbound, InboundKeys};
use encryptor::outbound::{Outbound, OutboundTunnel};
use encryptor::payload::{IpRules, Payload};
use encryptor::policy::{Policy, Selectors};
use encryptor::worker::Worker;
use engine::Transform;
use esp::{InboundSa, OutboundSa, WindowSize};
use port::{CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, ClearPort, MemoryCipherPort, memory_cipher_pair};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use wire::coalesce::Joinable;
use wire::l2tp::{Cookie, Encapsulation, IpSession, Session};
use wire::vnet::VnetHeader;
use wire::{Suite, checksum};
use yaml::Prefix;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const TUNNELS: u16 = 3;
const SINGLE: Joinable = Joinable::NONE;
const LEFT: (u32, IpAddr) = (0x1000, IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
const RIGHT: (u32, IpAddr) = (0x2000, IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)));

/// Settings of both sides.
struct Case {
    what: String,
    dispatch: Dispatch,
    /// Those of the left side and of the right one.
    payloads: [Payload; 2],
}

/// Keying material that is the SPI's bytes repeated.
fn keymat(suite: Suite, spi: u32) -> Vec<u8> {
    let bytes = spi.to_be_bytes().into_iter().cycle();
    bytes.take(suite.keymat_bytes()).collect()
}

impl Case {
    /// As created by the service.
    fn sealing(&self, spi: u32) -> Box<dyn Transform> {
        self.dispatch.sealing(&keymat(self.dispatch.suite(), spi))
    }

    fn has_frames(&self) -> bool {
        !matches!(self.payloads[0], Payload::Ip(_))
    }

    fn worker(
        &self,
        side: usize,
        ends: (MemoryClearPort, MemoryCipherPort),
    ) -> Worker<MemoryClearPort, MemoryCipherPort, Keys> {
        let [(own, _), (peer, _)] = [[LEFT, RIGHT], [RIGHT, LEFT]][side];
        let payload = &self.payloads[side];
        let protected = !matches!(payload, Payload::PlainPseudowire { .. });
        let tunnel = |tunnel: u16| {
            let spi = own + u32::from(tunnel);
            OutboundTunnel {
                sa: protected.then(|| OutboundSa::new(spi, self.sealing(spi))),
                peer: 0,
                inner_bytes_max: 1600,
                payload_bytes_max: 1600,
                mss_max: [1300; 2],
            }
        };
        let network = |tunnel| Prefix::new([10, tunnel as u8, 0, 0].into(), 16).unwrap();
        let selectors: Vec<_> = (0..TUNNELS)
            .map(|tunnel| Selectors::to(vec![network(tunnel)]))
            .collect();
        let policy = Arc::new(Policy::new(&selectors));
        let sum = checksum::portable;
        let tunnels = (0..TUNNELS).map(tunnel).collect();
        let outbound = Outbound::new(tunnels, payload.clone(), Arc::clone(&policy), sum);
        let keys = Keys(self.dispatch.clone(), peer);
        let inbound = Inbound::new(keys, TUNNELS.into(), payload.clone(), policy, sum);
        Worker::new(ends.0, ends.1, outbound, inbound)
    }

    /// Packets or frames of many lengths, through all tunnels; a path of frames has one.
    fn packets(&self) -> Vec<Vec<u8>> {
        let lengths = [46, 64, 300, 511, 512, 1000, 1500].into_iter();
        let packets = lengths.flat_map(|bytes| (0..TUNNELS).map(move |to| packet(to, bytes)));
        let framed = |packet: Vec<u8>| {
            if self.has_frames() {
                [&[2; 12][..], &[8, 0], &packet].concat()
            } else {
                packet
            }
        };
        packets.map(framed).collect()
    }

    /// Fails if anything is allocated between reading the first packet and writing the last.
    fn crosses_without_an_allocation(&self) {
        let (mut a, left_clear) = memory_clear_pair(SINGLE);
        let (right_clear, mut b) = memory_clear_pair(SINGLE);
        let (left_cipher, right_cipher) = memory_cipher_pair();
        let mut left = self.worker(0, (left_clear, left_cipher));
        let mut right = self.worker(1, (right_clear, right_cipher));
        let mut buffer = vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES];
        let packets = self.packets();
        let mut cross = || {
            for packet in &packets {
                a.send(&VnetHeader::PLAIN, packet, &[]).unwrap();
            }
            while left.step().unwrap() {}
            while right.step().unwrap() {}
            drain(&mut b, &mut buffer)
        };
        // Epochs are proven, and batches complete their first round.
        for _ in 0..20 {
            cross();
        }
        let region = Region::new(ALLOCATOR);
        let crossed = cross();
        let change = region.change();
        assert_eq!(crossed, packets.len(), "{}", self.what);
        let counts = (
            change.allocations,
            change.reallocations,
            change.deallocations,
        );
        assert_eq!(counts, (0, 0, 0), "{}", self.what);
    }
}

/// Creates SAs of a peer as the service does.
struct Keys(Dispatch, u32);

impl InboundKeys for Keys {
    fn tunnel(&self, spi: u32) -> Option<u16> {
        u16::try_from(spi.checked_sub(self.1)?)
            .ok()
            .filter(|tunnel| *tunnel < TUNNELS)
    }

    fn candidate(&mut self, _: u16, spi: u32) -> Option<InboundSa> {
        let transform = self.0.opening(&keymat(self.0.suite(), spi));
        Some(InboundSa::new(spi, transform, WindowSize::DEFAULT))
    }

    fn confirmed(&mut self, _: u16, _: u32) {}
}

fn packet(tunnel: u16, bytes: usize) -> Vec<u8> {
    let mut packet = vec![0; bytes];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
    packet[9] = 17;
    for at in [12, 16] {
        packet[at..at + 4].copy_from_slice(&[10, tunnel as u8, 0, 1]);
    }
    packet
}

fn drain(port: &mut MemoryClearPort, buffer: &mut [u8]) -> usize {
    let mut packets = 0;
    while port.recv(buffer).is_ok() {
        packets += 1;
    }
    packets
}

/// IP packets in every suite, on the fastest engine.
fn suites() -> impl Iterator<Item = Case> {
    let fastest = |suite| {
        let selection = engine::select(&engine::CpuChoice::Auto, suite).unwrap();
        let choice = Choice::Named(selection.engine().to_owned());
        Dispatch::prepare(&choice, suite).unwrap()
    };
    let case = move |(suite, aggregate)| Case {
        what: format!("{suite}, aggregate {aggregate}"),
        dispatch: fastest(suite),
        payloads: [(); 2].map(|()| packets(aggregate)),
    };
    Suite::ALL
        .into_iter()
        .flat_map(|suite| [(suite, false), (suite, true)])
        .map(case)
}

fn packets(aggregate: bool) -> Payload {
    Payload::Ip(IpRules {
        aggregate,
        ecn: true,
        ..IpRules::NONE
    })
}

/// IP packets where several engines take turns: by a threshold in the middle of the lengths that
/// cross, and by cost.
fn choices() -> impl Iterator<Item = Case> {
    let threshold = Choice::Threshold {
        below: 512,
        small: "rustcrypto".to_owned(),
        large: "aws-lc".to_owned(),
    };
    let case = |(choice, suite): (Choice, Suite)| Case {
        what: format!("{suite}, engine {choice}"),
        dispatch: Dispatch::prepare(&choice, suite).unwrap(),
        payloads: [(); 2].map(|()| packets(false)),
    };
    let cbc = Suite::from_name("aes-128-cbc-hmac-sha256").unwrap();
    [
        (threshold.clone(), Suite::Aes256Gcm),
        (threshold, cbc),
        (Choice::Auto, Suite::Aes256Gcm),
        (Choice::Auto, cbc),
    ]
    .into_iter()
    .map(case)
}

/// Frames, and frames in pseudowires with and without ESP.
fn frames() -> impl Iterator<Item = Case> {
    let cookie = Cookie::new(b"cookie 8").unwrap();
    let session = |id, encapsulation| Session {
        encapsulation,
        id,
        cookie,
    };
    let in_esp = |[(_, own), (_, peer)]: [(u32, IpAddr); 2], ids: [u32; 2]| {
        let [outbound, inbound] = ids.map(|id| session(id, Encapsulation::Ip));
        Payload::Pseudowire {
            outbound: IpSession::new(own, peer, outbound).unwrap(),
            inbound: IpSession::new(peer, own, inbound).unwrap(),
        }
    };
    let plain = |ids: [u32; 2]| {
        let [outbound, inbound] = ids.map(|id| session(id, Encapsulation::Udp));
        Payload::PlainPseudowire { outbound, inbound }
    };
    let kinds = [
        ("Ethernet", [Payload::Ethernet, Payload::Ethernet]),
        (
            "a pseudowire in ESP",
            [in_esp([LEFT, RIGHT], [7, 9]), in_esp([RIGHT, LEFT], [9, 7])],
        ),
        ("a pseudowire in UDP", [plain([7, 9]), plain([9, 7])]),
    ];
    kinds.into_iter().map(|(what, payloads)| Case {
        what: what.to_owned(),
        dispatch: Dispatch::prepare(&Choice::Auto, Suite::Aes256Gcm).unwrap(),
        payloads,
    })
}

#[test]
fn packets_cross_a_lane_without_an_allocation() {
    for case in suites().chain(choices()).chain(frames()) {
        case.crosses_without_an_allocation();
    }
}
