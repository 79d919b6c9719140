//! UDP lanes over loopback: trains arrive whole, singles where trains are off.

use port::{Batch, CipherPort, Sent, Train, UdpLane, UdpOffloads, wait_readable};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

const ON: UdpOffloads = UdpOffloads {
    gso: true,
    gro: true,
};
const OFF: UdpOffloads = UdpOffloads {
    gso: false,
    gro: false,
};

/// Two unused addresses: 127.0.0.0/8 has room for a pair per process and test.
fn addresses() -> (SocketAddr, SocketAddr) {
    static NEXT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    let address = || SocketAddr::from(([127, high | 1, low, NEXT.fetch_add(1, Relaxed)], 4500));
    (address(), address())
}

fn pair(a_offloads: UdpOffloads, b_offloads: UdpOffloads) -> (UdpLane, UdpLane) {
    let (a, b) = addresses();
    let one = UdpLane::connect(a, b, a_offloads).unwrap();
    (one, UdpLane::connect(b, a, b_offloads).unwrap())
}

/// All datagrams of at least `count`, without the probes' keepalives.
fn receive(lane: &mut UdpLane, count: usize) -> Vec<Vec<u8>> {
    let mut batch = Batch::for_trains(4);
    let mut datagrams = Vec::new();
    while datagrams.len() < count {
        let fd = lane.readable().unwrap();
        assert!(
            wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap(),
            "nothing arrived"
        );
        match lane.recv(&mut batch) {
            Ok(()) => {
                let payload = batch.datagrams().filter(|datagram| **datagram != [0xff]);
                datagrams.extend(payload.map(|datagram| datagram.to_vec()));
            }
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused),
        }
    }
    datagrams
}

/// Datagrams that form one train.
fn numbered(count: usize, bytes: usize, last: usize) -> Vec<Vec<u8>> {
    let mut datagrams: Vec<_> = (0..count).map(|at| vec![at as u8; bytes]).collect();
    datagrams[count - 1].truncate(last);
    datagrams
}

/// A batch with one train of each list.
fn batch(trains: &[&[Vec<u8>]]) -> Batch {
    let mut batch = Batch::for_trains(trains.len());
    let mut start = 0;
    for datagrams in trains {
        let bytes = datagrams.concat();
        batch.buffer[start..start + bytes.len()].copy_from_slice(&bytes);
        batch.trains.push(Train {
            start,
            bytes: bytes.len(),
            datagram_bytes: datagrams[0].len(),
            ..Train::default()
        });
        start += bytes.len();
    }
    batch
}

#[test]
fn a_train_arrives_as_its_datagrams_with_and_without_offloads() {
    for (a, b) in [(ON, ON), (ON, OFF), (OFF, ON), (OFF, OFF)] {
        let (mut one, mut two) = pair(a, b);
        let datagrams = numbered(44, 1400, 77);
        let bytes = datagrams.concat().len() as u64;
        let sent = one.send(&mut batch(&[&datagrams]));
        assert_eq!(
            sent,
            Sent {
                datagrams: 44,
                bytes,
                too_big: 0,
                failed: 0
            },
            "{a:?} {b:?}"
        );
        assert_eq!(receive(&mut two, 44), datagrams, "{a:?} {b:?}");
    }
}

#[test]
fn several_trains_are_sent_in_one_call() {
    let (mut one, mut two) = pair(ON, ON);
    let (a, b) = (numbered(10, 500, 500), numbered(100, 60, 20));
    let mut batch = batch(&[&a, &b]);
    let sent = one.send(&mut batch);
    assert_eq!((sent.datagrams, batch.trains.len()), (110, 0));
    assert_eq!(receive(&mut two, 110), [a, b].concat());
}

#[test]
fn trains_are_found_to_work_on_linux_with_udp_segment() {
    let (one, _two) = pair(ON, ON);
    assert_eq!(one.offloads(), ON);
    assert!(one.train_max() >= 64);
}

#[test]
fn switched_off_offloads_stay_off() {
    let (one, _two) = pair(OFF, OFF);
    assert_eq!(one.offloads(), OFF);
    assert_eq!(one.train_max(), 1);
}

#[test]
fn a_peer_that_is_not_up_yet_does_not_break_the_lane() {
    let (a, b) = addresses();
    let mut one = UdpLane::connect(a, b, ON).unwrap();
    let datagrams = numbered(3, 100, 100);
    for _ in 0..3 {
        // Whether or not the previous refusal is reported here, the lane continues.
        let sent = one.send(&mut batch(&[&datagrams]));
        assert_eq!(sent.datagrams + sent.failed, 3);
    }
    let mut two = UdpLane::connect(b, a, ON).unwrap();
    let sent = one.send(&mut batch(&[&datagrams]));
    assert_eq!(sent.datagrams, 3);
    assert_eq!(receive(&mut two, 3), datagrams);
}

#[test]
fn an_address_in_use_is_refused() {
    let (a, b) = addresses();
    let _holder = UdpLane::connect(a, b, ON).unwrap();
    let error = UdpLane::connect(a, b, ON).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

/// An ICMP message about a datagram from `from` to `to`, as sent by a router on the path, or
/// forged.
fn icmp(kind: u8, code: u8, rest: u32, from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let octets = |address: SocketAddr| match address.ip() {
        std::net::IpAddr::V4(address) => address.octets(),
        std::net::IpAddr::V6(_) => unreachable!("the tests' lanes are IPv4"),
    };
    let mut message = vec![kind, code, 0, 0];
    message.extend(rest.to_be_bytes());
    message.extend([0x45, 0, 0, 128, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    message.extend(octets(from));
    message.extend(octets(to));
    for field in [from.port(), to.port(), 108, 0] {
        message.extend(field.to_be_bytes());
    }
    let sum = wire::checksum::finish(wire::checksum::portable(&message, 0));
    message[2..4].copy_from_slice(&sum);
    message
}

#[test]
fn no_icmp_message_ends_a_lane_or_shrinks_its_path() {
    use socket2::{Domain, Protocol, Socket, Type};
    let Ok(raw) = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)) else {
        eprintln!("SKIPPED: no raw socket here: run as root");
        return;
    };
    let (a, b) = addresses();
    let mut lane = UdpLane::connect(a, b, OFF).unwrap();
    let path_mtu = lane.path_mtu(0).unwrap();
    let mut batch = Batch::for_trains(4);
    // Host, network, protocol unreachable; fragmentation needed; prohibited; parameter problem.
    for (kind, code, rest) in [
        (3, 1, 0),
        (3, 0, 0),
        (3, 2, 0),
        (3, 4, 552),
        (3, 13, 0),
        (12, 0, 0),
    ] {
        let message = icmp(kind, code, rest, a, b);
        raw.send_to(&message, &a.into()).unwrap();
        let error = lane.recv(&mut batch).unwrap_err();
        assert_eq!(
            error.kind(),
            io::ErrorKind::WouldBlock,
            "ICMP {kind}/{code}"
        );
        raw.send_to(&message, &a.into()).unwrap();
        let sent = lane.send(&mut self::batch(&[&numbered(2, 1400, 1400)]));
        assert_eq!(sent.too_big, 0, "ICMP {kind}/{code}");
    }
    assert_eq!(lane.path_mtu(0).unwrap(), path_mtu);
}
