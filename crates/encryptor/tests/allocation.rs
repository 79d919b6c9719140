//! Nothing is allocated on the packet path. A test program of its own, since its allocator counts.

use encryptor::inbound::{Inbound, InboundKeys};
use encryptor::outbound::{Outbound, OutboundTunnel};
use encryptor::payload::{IpRules, Payload};
use encryptor::policy::{Policy, Selectors};
use encryptor::worker::Worker;
use engine::{Choice, Transform};
use esp::{InboundSa, OutboundSa, WindowSize};
use port::{
    CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, ClearPort, MemoryClearPort, memory_cipher_pair,
    memory_clear_pair,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::Arc;
use wire::coalesce::Joinable;
use wire::vnet::VnetHeader;
use wire::{Suite, checksum};
use yaml::Prefix;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const TUNNELS: u16 = 3;

fn transform(suite: Suite, spi: u32) -> Box<dyn Transform> {
    let selection = engine::select(&Choice::Auto, suite).unwrap();
    let bytes = spi.to_be_bytes();
    let keymat: Vec<u8> = bytes
        .into_iter()
        .cycle()
        .take(suite.keymat_bytes())
        .collect();
    selection.transform(&keymat)
}

struct Keys(Suite, u32);

impl InboundKeys for Keys {
    fn tunnel(&self, spi: u32) -> Option<u16> {
        u16::try_from(spi.checked_sub(self.1)?)
            .ok()
            .filter(|tunnel| *tunnel < TUNNELS)
    }

    fn candidate(&mut self, _: u16, spi: u32) -> Option<InboundSa> {
        let transform = transform(self.0, spi);
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

#[test]
fn packets_cross_a_lane_without_an_allocation() {
    for suite in Suite::ALL {
        for aggregate in [false, true] {
            let single = Joinable {
                tcp: false,
                udp: false,
            };
            let (mut a, left_clear) = memory_clear_pair(single);
            let (right_clear, mut b) = memory_clear_pair(single);
            let (left_cipher, right_cipher) = memory_cipher_pair();
            let network = |tunnel| Prefix::new([10, tunnel as u8, 0, 0].into(), 16).unwrap();
            let selectors: Vec<_> = (0..TUNNELS)
                .map(|tunnel| Selectors::to(vec![network(tunnel)]))
                .collect();
            let policy = Arc::new(Policy::new(&selectors));
            let payload = Payload::Ip(IpRules {
                aggregate,
                ecn: true,
                ..IpRules::NONE
            });
            let worker = |clear, cipher, own: u32, peer: u32| {
                let tunnel = |tunnel: u16| {
                    let spi = own + u32::from(tunnel);
                    OutboundTunnel {
                        sa: Some(OutboundSa::new(spi, transform(suite, spi))),
                        peer: 0,
                        inner_bytes_max: 1500,
                        mss_max: [1300; 2],
                    }
                };
                let (sum, policy) = (checksum::portable, || Arc::clone(&policy));
                let tunnels = (0..TUNNELS).map(tunnel).collect();
                let outbound = Outbound::new(tunnels, payload.clone(), policy(), sum);
                let keys = Keys(suite, peer);
                let count = usize::from(TUNNELS);
                let inbound = Inbound::new(keys, count, payload.clone(), policy(), sum);
                Worker::new(clear, cipher, outbound, inbound)
            };
            let mut left = worker(left_clear, left_cipher, 0x1000, 0x2000);
            let mut right = worker(right_clear, right_cipher, 0x2000, 0x1000);
            let mut buffer = vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES];
            let packets: Vec<_> = [46, 64, 300, 511, 512, 1000, 1500]
                .into_iter()
                .flat_map(|bytes| (0..TUNNELS).map(move |tunnel| packet(tunnel, bytes)))
                .collect();
            let mut cross = || {
                for packet in &packets {
                    a.send(&VnetHeader::PLAIN, packet, &[]).unwrap();
                }
                while left.step().unwrap() {}
                while right.step().unwrap() {}
                drain(&mut b, &mut buffer)
            };
            // Epochs are proven, two a batch, and batches make their first round.
            for _ in 0..20 {
                cross();
            }
            let region = Region::new(ALLOCATOR);
            let crossed = cross();
            let change = region.change();
            assert_eq!(crossed, packets.len());
            let counts = (
                change.allocations,
                change.reallocations,
                change.deallocations,
            );
            assert_eq!(counts, (0, 0, 0), "{suite}, aggregate {aggregate}");
        }
    }
}
