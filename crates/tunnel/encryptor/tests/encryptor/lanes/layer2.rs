//! Ethernet frames, in ESP and in pseudowires.

use crate::clear_link::{MemoryClearPort, memory_clear_pair};
use crate::lanes::bench::*;
use encryptor::counters::DropReason;
use encryptor::payload::{IpRules, Payload};
use port::{ClearPort, memory_cipher_pair};
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use wire::coalesce::Joinable;
use wire::l2tp::{Cookie, Encapsulation, IpSession, Session};
use wire::vnet::{Gso, NEEDS_CSUM, VnetHeader};

const LEFT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const RIGHT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

fn frame(tags: &[u8], ethertype: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let macs = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    [&macs, tags, &ethertype, payload].concat()
}

fn frames() -> Vec<Vec<u8>> {
    let vlan = [0x81, 0, 0, 42];
    let double = [0x88, 0xa8, 0, 7, 0x81, 0, 0, 42];
    let ip = udp([10, 0, 0, 1], &[5; 300]);
    vec![
        frame(&[], [8, 6], &[1; 46]),
        frame(&[], [8, 0], &ip),
        frame(&vlan, [8, 0], &ip),
        frame(&double, [0x86, 0xdd], &tcp(true, 9, 1, &[3; 1000])),
        // LLC, an unknown EtherType, a jumbo frame.
        frame(&[], [0, 20], &[0xaa; 46]),
        frame(&vlan, [0x99, 0x99], &[8; 100]),
        frame(&[], [0x99, 0x99], &[9; 9000]),
    ]
}

fn session(encapsulation: Encapsulation, id: u32, cookie: &[u8]) -> Session {
    Session {
        encapsulation,
        id,
        cookie: Cookie::new(cookie).unwrap(),
    }
}

/// A pseudowire from left to right; its right end expects `cookie`.
fn pseudowire(plain: bool, cookie: &[u8]) -> Setup {
    let encapsulation = if plain {
        Encapsulation::Udp
    } else {
        Encapsulation::Ip
    };
    let to_right = session(encapsulation, 7, b"cookie 8");
    let at_right = session(encapsulation, 7, cookie);
    let to_left = session(encapsulation, 9, b"");
    if plain {
        let left = Payload::PlainPseudowire {
            outbound: to_right,
            inbound: to_left,
        };
        let right = Payload::PlainPseudowire {
            outbound: to_left,
            inbound: at_right,
        };
        return Setup::of(left, right);
    }
    let ip = |source, target, session| IpSession::new(source, target, session).unwrap();
    let left = Payload::Pseudowire {
        outbound: ip(LEFT, RIGHT, to_right),
        inbound: ip(RIGHT, LEFT, to_left),
    };
    let right = Payload::Pseudowire {
        outbound: ip(RIGHT, LEFT, to_left),
        inbound: ip(LEFT, RIGHT, at_right),
    };
    Setup::of(left, right)
}

fn setups() -> [Setup; 3] {
    [
        Setup::of(Payload::Ethernet, Payload::Ethernet),
        pseudowire(false, b"cookie 8"),
        pseudowire(true, b"cookie 8"),
    ]
}

#[test]
fn frames_of_every_kind_cross_unchanged() {
    for setup in setups() {
        let mut bench = Bench::new(&setup);
        frames().iter().for_each(|frame| bench.send(frame));
        assert_eq!(bench.cross(), frames());
    }
}

#[test]
fn super_packets_cross_as_their_frames() {
    for setup in setups() {
        let mut bench = Bench::new(&setup);
        let payload: Vec<u8> = (0..40_000u32).map(|at| (at / 3) as u8).collect();
        let packet = frame(&[0x81, 0, 0, 42], [8, 0], &tcp(false, 4, 1, &payload));
        let vnet = VnetHeader {
            flags: NEEDS_CSUM,
            gso: Gso::Tcp4,
            gso_size: 1448,
            ..VnetHeader::PLAIN
        };
        let expected = wire_packets(&vnet, &mut packet.clone(), true);
        bench.a.send(&vnet, &packet, &[]).unwrap();
        assert_eq!(bench.cross(), expected);
    }
}

#[test]
fn a_frame_shorter_than_its_header_is_dropped_and_counted() {
    for setup in setups() {
        let mut bench = Bench::new(&setup);
        bench.send(&[2; 13]);
        assert!(bench.cross().is_empty());
        let dropped = bench.left_tally().dropped;
        assert_eq!(dropped[DropReason::Malformed as usize], 1);
    }
}

#[test]
fn a_pseudowire_accepts_only_frames_with_its_cookie() {
    for plain in [false, true] {
        let mut bench = Bench::new(&pseudowire(plain, b"another8"));
        bench.send(&frames()[0]);
        assert!(bench.cross().is_empty());
        let dropped = bench.right_tally().dropped;
        assert_eq!(dropped[DropReason::BadCookie as usize], 1);
    }
}

#[test]
fn a_plain_pseudowire_drops_foreign_datagrams() {
    let mut bench = Bench::new(&pseudowire(true, b"cookie 8"));
    bench.send(&frames()[0]);
    let good = bench.seal();
    let mut control = good[0].clone();
    control.bytes[0] |= 0x80;
    let runt = good[0].bytes[..6].to_vec().into();
    let empty = good[0].bytes[..16].to_vec().into();
    assert_eq!(
        bench.open(&[control, runt, good[0].clone(), empty]),
        [frames()[0].clone()]
    );
    let dropped = bench.right_tally().dropped;
    assert_eq!(dropped[DropReason::BadPayload as usize], 2);
    assert_eq!(dropped[DropReason::L2tpRunt as usize], 1);
}

#[test]
fn frame_and_packet_tunnels_reject_each_others_payloads() {
    let ip = || Payload::Ip(IpRules::NONE);
    for (left, right) in [(Payload::Ethernet, ip()), (ip(), Payload::Ethernet)] {
        let sends_frames = matches!(left, Payload::Ethernet);
        let mut bench = Bench::new(&Setup::of(left, right));
        if sends_frames {
            bench.send(&frames()[1]);
        } else {
            bench.send(&udp([10, 0, 0, 1], b"an IP packet"));
        }
        assert!(bench.cross().is_empty());
        let dropped = bench.right_tally().dropped;
        assert_eq!(dropped[DropReason::BadPayload as usize], 1);
    }
}

/// A packet of the pseudowire as from another implementation: with an option in its IPv4 header.
#[test]
fn a_pseudowires_packet_may_have_ip_options() {
    let pseudowire = pseudowire(false, b"cookie 8");
    let Payload::Pseudowire { outbound, .. } = &pseudowire.left else {
        panic!()
    };
    let frame = &frames()[1];
    let mut packet = vec![0; outbound.header_bytes() + 4];
    outbound
        .write_headers(frame.len() + 4, 0, &mut packet)
        .unwrap();
    packet.truncate(outbound.header_bytes());
    packet.splice(20..20, [1, 1, 1, 0]);
    packet[0] = 0x46;
    packet[10..12].fill(0);
    let sum = wire::checksum::finish(wire::checksum::portable(&packet[..24], 0));
    packet[10..12].copy_from_slice(&sum);
    packet.extend_from_slice(frame);
    let mut bench = Bench::new(&pseudowire);
    let sealed = bench.seal_as_it_is(&packet);
    assert_eq!(bench.open(&[sealed]), std::slice::from_ref(frame));
}

#[test]
fn a_packet_that_ends_within_the_l2tp_header_has_its_own_reason() {
    let pseudowire = pseudowire(false, b"cookie 8");
    let Payload::Pseudowire { outbound, .. } = &pseudowire.left else {
        panic!()
    };
    let mut bench = Bench::new(&pseudowire);
    for (count, bytes) in (1..).zip([20, 22, 24, outbound.header_bytes() - 1]) {
        let mut packet = vec![0; outbound.header_bytes()];
        outbound.write_headers(0, 0, &mut packet).unwrap();
        packet.truncate(bytes);
        packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
        packet[10..12].fill(0);
        let sum = wire::checksum::finish(wire::checksum::portable(&packet[..20], 0));
        packet[10..12].copy_from_slice(&sum);
        let sealed = bench.seal_as_number(&packet, count);
        assert!(bench.open(&[sealed]).is_empty());
        let dropped = bench.right_tally().dropped;
        assert_eq!(dropped[DropReason::L2tpRunt as usize], count);
        assert_eq!(dropped[DropReason::Runt as usize], 0);
    }
}

/// A port that has lost three frames before `recv`, and loses one of those sent in each batch.
struct Overrun(MemoryClearPort);

impl ClearPort for Overrun {
    fn recv<'a>(&'a mut self, buffer: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)> {
        self.0.recv(buffer)
    }

    fn send(&mut self, vnet: &VnetHeader, headers: &[u8], payload: &[&[u8]]) -> io::Result<()> {
        self.0.send(vnet, headers, payload)
    }

    fn flush(&mut self) -> io::Result<u64> {
        Ok(1)
    }

    fn missed(&self) -> u64 {
        3
    }

    fn joinable(&self) -> Joinable {
        self.0.joinable()
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.0.readable()
    }
}

#[test]
fn the_clear_ports_losses_are_reported_beside_its_receptions() {
    let setup = Setup::of(Payload::Ethernet, Payload::Ethernet);
    let (mut station, clear) = memory_clear_pair(SINGLE);
    let (cipher, _peer) = memory_cipher_pair();
    let mut left = setup.worker((Overrun(clear), cipher), LEFT_SPI, RIGHT_SPI);
    for _ in 0..2 {
        let frame = frame(&[], [8, 6], &[1; 46]);
        station.send(&VnetHeader::PLAIN, &frame, &[]).unwrap();
        assert!(left.step().unwrap());
    }
    let tally = tally(&left);
    assert_eq!((tally.clear_rx.packets, tally.clear_missed), (2, 3));
}

#[test]
fn frames_that_a_port_gathers_and_loses_are_in_no_count_of_sent_ones() {
    let setup = Setup::of(Payload::Ethernet, Payload::Ethernet);
    let (mut station, from_station) = memory_clear_pair(SINGLE);
    let (clear, _to_station) = memory_clear_pair(SINGLE);
    let (left_cipher, right_cipher) = memory_cipher_pair();
    let mut left = setup.worker((from_station, left_cipher), LEFT_SPI, RIGHT_SPI);
    let mut right = setup.worker((Overrun(clear), right_cipher), RIGHT_SPI, LEFT_SPI);
    let frame = frame(&[], [8, 6], &[1; 46]);
    for _ in 0..3 {
        station.send(&VnetHeader::PLAIN, &frame, &[]).unwrap();
    }
    while left.step().unwrap() {}
    while right.step().unwrap() {}
    let tally = tally(&right);
    let lost = tally.dropped[DropReason::WriteFailed as usize];
    assert!((1..=3).contains(&lost), "{lost}");
    assert_eq!(tally.clear_tx.packets, 3 - lost);
    assert_eq!(tally.clear_tx.bytes, (3 - lost) * frame.len() as u64);
}
