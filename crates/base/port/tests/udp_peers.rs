//! One lane with many peers: each train reaches its own peer, with its own DSCP and ECN, whole or
//! in fragments.

mod veth;

use port::{Batch, CipherPort, Train, UdpLane, UdpOffloads, wait_readable};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

const ON: UdpOffloads = UdpOffloads {
    gso: true,
    gro: true,
};
const OFF: UdpOffloads = UdpOffloads {
    gso: false,
    gro: false,
};

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A train of `count` datagrams of `bytes` that contain their peer's number.
fn push(batch: &mut Batch, peer: u16, tos: u8, count: usize, bytes: usize) {
    let start = batch
        .trains
        .last()
        .map_or(0, |last| last.start + last.bytes);
    batch.buffer[start..start + count * bytes].fill(peer as u8);
    batch.trains.push(Train {
        start,
        bytes: count * bytes,
        datagram_bytes: bytes,
        peer,
        tos,
    });
}

/// All datagrams of at least `count`, each with its received DSCP and ECN, without the probes'
/// keepalives.
fn receive(lane: &mut UdpLane, count: usize) -> Vec<(Vec<u8>, u8)> {
    let mut batch = Batch::for_trains(4);
    let mut datagrams = Vec::new();
    while datagrams.len() < count {
        let fd = lane.readable().unwrap();
        let came = wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap();
        assert!(came, "{} of {count} datagrams arrived", datagrams.len());
        match lane.recv(&mut batch) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => panic!("{error}"),
        }
        for train in &*batch.trains {
            let ranges = train.ranges().map(|range| batch.buffer[range].to_vec());
            let payload = ranges.filter(|datagram| *datagram != [0xff]);
            datagrams.extend(payload.map(|datagram| (datagram, train.tos)));
        }
    }
    datagrams
}

/// In its own namespace, a thousand sockets do not disturb other tests.
#[test]
fn each_of_a_thousand_peers_gets_its_own_trains() {
    veth::with_pair(veth::Ip::Both, |_| {
        let local = address("127.0.0.1:4500");
        let peers: Vec<_> = (0..1000u16)
            .map(|number| SocketAddr::from(([127, 1, (number >> 8) as u8, number as u8], 4500)))
            .collect();
        let mut hub = UdpLane::open(local, &peers, ON).unwrap();
        assert_eq!(hub.offloads(), ON);
        let numbers = [0u16, 1, 255, 256, 999];
        let lanes =
            numbers.map(|number| UdpLane::connect(peers[usize::from(number)], local, ON).unwrap());
        let mut batch = Batch::for_trains(4);
        for number in numbers {
            push(&mut batch, number, 0, usize::from(number % 7) + 2, 600);
            push(&mut batch, number, 0, 1, 77);
        }
        let sent = hub.send(&mut batch);
        assert_eq!((sent.failed, sent.too_big, batch.trains.len()), (0, 0, 0));
        for (number, mut lane) in numbers.into_iter().zip(lanes) {
            let count = usize::from(number % 7) + 2;
            let mut expected = vec![(vec![number as u8; 600], 0); count];
            expected.push((vec![number as u8; 77], 0));
            assert_eq!(receive(&mut lane, count + 1), expected, "peer {number}");
            let mut back = Batch::for_trains(1);
            push(&mut back, 0, 0, 1, 99);
            assert_eq!(lane.send(&mut back).datagrams, 1);
            assert_eq!(receive(&mut hub, 1).pop().unwrap().0.len(), 99);
        }
    });
}

#[test]
fn only_trains_without_a_receiver_or_a_route_are_lost() {
    veth::with_pair(veth::Ip::Both, |_| {
        let peers = [address("10.8.0.2:4500"), address("192.0.2.1:4500")];
        let mut lane = UdpLane::open(address("10.8.0.1:4500"), &peers, ON).unwrap();
        let mut batch = Batch::for_trains(1);
        push(&mut batch, 1, 0, 3, 100);
        push(&mut batch, 0, 0, 4, 100);
        push(&mut batch, 2, 0, 5, 100);
        push(&mut batch, 0, 0, 6, 100);
        let sent = lane.send(&mut batch);
        assert_eq!((sent.datagrams, sent.failed, sent.too_big), (10, 8, 0));
        assert!(lane.path_mtu(1).is_err() && lane.path_mtu(2).is_err());
    });
}

#[test]
fn dscp_and_ecn_cross_in_both_families_and_only_where_they_are_set() {
    veth::with_pair(veth::Ip::Both, |pair| {
        for (a, b, mixed) in [
            ("10.8.0.1:4500", "10.8.0.2:4500", false),
            ("[fd00:8::1]:4501", "[fd00:8::2]:4501", false),
            ("[::]:4502", "10.8.0.2:4502", true),
            ("[::]:4503", "[fd00:8::2]:4503", true),
        ] {
            let peers = [address(b), address("10.8.0.2:9"), address("[fd00:8::2]:9")];
            // Two more peers make the socket an unconnected one for both families.
            let peers = if mixed { &peers[..] } else { &peers[..1] };
            let mut one = UdpLane::open(address(a), peers, ON).unwrap();
            let back = a.replace(
                "[::]",
                if b.starts_with('[') {
                    "[fd00:8::1]"
                } else {
                    "10.8.0.1"
                },
            );
            let mut two = pair.in_b(|| UdpLane::connect(address(b), address(&back), ON).unwrap());
            let mut batch = Batch::for_trains(2);
            for tos in [0, 0xb8, 1, 2, 3, 0xff] {
                push(&mut batch, 0, tos, 3, 500);
            }
            assert_eq!(one.send(&mut batch).datagrams, 18, "{a} to {b}");
            let got: Vec<_> = receive(&mut two, 18).iter().map(|(_, tos)| *tos).collect();
            let expected = [0, 0xb8, 1, 2, 3, 0xff].map(|tos| [tos; 3]).concat();
            assert_eq!(got, expected, "{a} to {b}");
            push(&mut batch, 0, 0x2e, 1, 50);
            two.send(&mut batch);
            assert_eq!(receive(&mut one, 1)[0].1, 0x2e, "{b} to {a}");
        }
    });
}

#[test]
fn each_peer_has_its_routes_mtu() {
    veth::with_pair(veth::Ip::Both, |_| {
        veth::ip("link set v0 mtu 1500");
        veth::ip("route add 10.8.1.0/24 via 10.8.0.2 mtu 1300");
        veth::ip("route add 2001:db8::/64 via fd00:8::2 mtu 1290");
        let peers = [
            "10.8.0.2:1",
            "10.8.1.1:1",
            "[fd00:8::2]:1",
            "[2001:db8::1]:1",
        ]
        .map(address);
        let lane = UdpLane::open(address("[::]:4500"), &peers, OFF).unwrap();
        let mtus = [0, 1, 2, 3].map(|peer| lane.path_mtu(peer).unwrap());
        assert_eq!(mtus, [1500, 1300, 1500, 1290]);
        let lane = UdpLane::open(address("10.8.0.1:4501"), &peers[1..2], OFF).unwrap();
        assert_eq!(lane.path_mtu(0).unwrap(), 1300);
    });
}

#[test]
fn datagrams_beyond_the_routes_mtu_are_refused_or_fragmented_as_configured() {
    veth::with_pair(veth::Ip::Both, |pair| {
        veth::ip("link set v0 mtu 1500");
        pair.in_b(|| veth::ip("link set v1 mtu 1500"));
        for (a, b) in [
            ("10.8.0.1:4500", "10.8.0.2:4500"),
            ("[fd00:8::1]:4500", "[fd00:8::2]:4500"),
        ] {
            let mut one = UdpLane::connect(address(a), address(b), ON).unwrap();
            let mut two = pair.in_b(|| UdpLane::connect(address(b), address(a), ON).unwrap());
            let mut batch = Batch::for_trains(1);
            let fill = |batch: &mut Batch| {
                push(batch, 0, 0, 4, 1400);
                push(batch, 0, 0, 1, 1600);
                push(batch, 0, 0, 3, 9000);
            };
            fill(&mut batch);
            let sent = one.send(&mut batch);
            assert_eq!(
                (sent.datagrams, sent.too_big, sent.failed),
                (4, 4, 0),
                "{a}"
            );
            assert_eq!(receive(&mut two, 4).len(), 4);
            one.set_fragment(true).unwrap();
            for _ in 0..2 {
                fill(&mut batch);
                let sent = one.send(&mut batch);
                assert_eq!(
                    (sent.datagrams, sent.too_big, sent.failed),
                    (8, 0, 0),
                    "{a}"
                );
                let got: Vec<_> = receive(&mut two, 8)
                    .iter()
                    .map(|(one, _)| one.len())
                    .collect();
                assert_eq!(got, [1400, 1400, 1400, 1400, 1600, 9000, 9000, 9000], "{a}");
            }
            assert_eq!(one.offloads(), ON, "short ones still go in trains");
            one.set_fragment(false).unwrap();
            fill(&mut batch);
            assert_eq!(one.send(&mut batch).too_big, 4, "{a}");
        }
    });
}

#[test]
fn mixed_address_families_and_empty_lists_are_refused() {
    let (v4, v6) = (address("127.0.0.1:0"), address("[::1]:0"));
    let too_many = vec![v4; 65_537];
    for (local, peers) in [(v4, &[v6][..]), (v6, &[v4]), (v4, &[]), (v4, &too_many)] {
        let error = UdpLane::open(local, peers, OFF).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
    }
}
