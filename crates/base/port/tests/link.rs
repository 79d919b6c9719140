//! A link between two network namespaces, with a port on one end and a station or a port on the
//! other: whole frames, including tags and super-packets.

mod veth;

use port::{
    Batch, CipherPort, ClearPort, LinkOffloads, LinkPort, Train, UdpLane, UdpOffloads,
    wait_readable,
};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;
use veth::{A_MAC, B_MAC, Ip, Pair, ip, with_pair};
use wire::vnet::{Gso, NEEDS_CSUM, VNET_HEADER_BYTES, VnetHeader};

const ALL: LinkOffloads = LinkOffloads {
    tso: true,
    uso: true,
};
/// IEEE 802 local experimental EtherType.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];

fn open(interface: &str) -> LinkPort {
    LinkPort::open(interface, 1, ALL).unwrap().remove(0)
}

fn both(pair: &Pair) -> (LinkPort, LinkPort) {
    (open("v0"), pair.in_b(|| open("v1")))
}

fn wait(fd: BorrowedFd<'_>) {
    let came = wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap();
    assert!(came, "nothing arrived");
}

/// The next frame accepted by `wanted`: the kernel sends its own, too.
fn receive(port: &mut LinkPort, wanted: impl Fn(&[u8]) -> bool) -> (VnetHeader, Vec<u8>) {
    loop {
        match port.recv(&mut []) {
            Ok((lent, bytes)) => {
                assert!(lent.len() >= bytes + port::CLEAR_ROOM_BYTES);
                let (vnet, frame) = lent[..bytes]
                    .split_first_chunk::<VNET_HEADER_BYTES>()
                    .unwrap();
                if wanted(frame) {
                    return (VnetHeader::parse(vnet).unwrap(), frame.to_vec());
                }
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
                wait(port.readable().unwrap());
            }
        }
    }
}

/// A frame between two unknown addresses: tags, EtherType, and a unique payload.
fn frame(tags: &[[u8; 4]], bytes: usize, number: u8) -> Vec<u8> {
    let mut frame = vec![2, 9, 9, 9, 9, 9, 2, 8, 8, 8, 8, 8];
    frame.extend(tags.concat());
    frame.extend(EXPERIMENTAL);
    let filler = (frame.len()..bytes).map(|at| (at * 7) as u8 ^ number);
    frame.extend(filler);
    frame
}

fn send(port: &mut LinkPort, frame: &[u8]) {
    let (headers, payload) = frame.split_at(14);
    let (one, two) = payload.split_at(payload.len() / 2);
    port.send(&VnetHeader::PLAIN, headers, &[one, two]).unwrap();
}

/// As `both`; the first sends by a program in the kernel, where one may be loaded.
fn both_by_program(pair: &Pair) -> Option<(LinkPort, LinkPort)> {
    let (mut a, b) = both(pair);
    if !a.send_by_program() {
        eprintln!("SKIPPED: no program may be loaded here: run as root");
        return None;
    }
    Some((a, b))
}

#[test]
fn frames_of_any_kind_and_length_cross_unchanged_and_in_order() {
    with_pair(Ip::Both, |pair| {
        let (a, b) = both(pair);
        cross_unchanged_and_in_order(a, b);
        if let Some((a, b)) = both_by_program(pair) {
            cross_unchanged_and_in_order(a, b);
        }
    });
}

fn cross_unchanged_and_in_order(mut a: LinkPort, mut b: LinkPort) {
    let tags: [&[[u8; 4]]; 4] = [
        &[],
        &[[0x81, 0, 0x20, 0x64]],
        &[[0x88, 0xa8, 0, 7], [0x81, 0, 0xef, 0xff]],
        &[[0x81, 0, 0, 1], [0x81, 0, 0, 2], [0x81, 0, 0, 3]],
    ];
    let mut frames = Vec::new();
    for bytes in [60, 61, 64, 500, 1514, 2047, 2049, 9000, 9222] {
        for tags in tags {
            frames.push(frame(tags, bytes, frames.len() as u8));
        }
    }
    // Also more than the port gathers.
    frames.extend((0..200).map(|number| frame(&[], 60, number)));
    // Several times round the ring.
    for _ in 0..4 {
        for frame in &frames {
            send(&mut a, frame);
        }
        assert_eq!(a.flush().unwrap(), 0);
        for (number, frame) in frames.iter().enumerate() {
            let (vnet, got) = receive(&mut b, |frame| frame[..6] == [2, 9, 9, 9, 9, 9]);
            assert_eq!(vnet, VnetHeader::PLAIN);
            assert!(
                got == *frame,
                "frame {number} of {} B is another",
                frame.len()
            );
        }
    }
    assert_eq!(b.missed(), 0);
}

#[test]
fn only_a_frame_beyond_the_mtu_is_lost_and_it_is_counted() {
    with_pair(Ip::Both, |pair| {
        let (mut a, mut b) = both(pair);
        ip("link set v0 mtu 1500");
        only_frames_beyond_the_mtu_are_lost(&mut a, &mut b);
        let long = frame(&[], 5000, 0);
        let error = a.send(&VnetHeader::PLAIN, &long, &[]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc_emsgsize()));
    });
}

/// The program sends complete frames alone.
#[test]
fn checksums_are_completed_for_the_program_and_frames_stay_in_order() {
    with_pair(Ip::Both, |pair| {
        let Some((mut a, mut b)) = both_by_program(pair) else {
            return;
        };
        let udp = etherparse::PacketBuilder::ethernet2(A_MAC, B_MAC)
            .ipv4([10, 8, 0, 1], [10, 8, 0, 2], 64)
            .udp(5, 6);
        let mut complete = Vec::new();
        udp.write(&mut complete, &[7; 100]).unwrap();
        // The kernel leaves the sum of the pseudo-header there.
        let mut incomplete = complete.clone();
        let pseudo_header = [&complete[26..34], &[0, 17], &complete[38..40]].concat();
        let sum = wire::checksum::fold(wire::checksum::portable(&pseudo_header, 0));
        incomplete[40..42].copy_from_slice(&sum.to_ne_bytes());
        assert_ne!(incomplete, complete);
        let vnet = VnetHeader {
            flags: NEEDS_CSUM,
            csum_start: 34,
            csum_offset: 6,
            ..VnetHeader::PLAIN
        };
        for number in 0..40 {
            send(&mut a, &frame(&[], 60, number));
            if number % 10 == 9 {
                a.send(&vnet, &incomplete, &[]).unwrap();
            }
        }
        assert_eq!(a.flush().unwrap(), 0);
        let ours = |frame: &[u8]| frame[..6] == [2, 9, 9, 9, 9, 9] || frame[..6] == B_MAC;
        for number in 0..40 {
            assert_eq!(receive(&mut b, ours).1, frame(&[], 60, number));
            if number % 10 == 9 {
                assert_eq!(receive(&mut b, ours), (VnetHeader::PLAIN, complete.clone()));
            }
        }
    });
}

#[test]
fn a_program_counts_the_frames_that_the_interface_drops() {
    with_pair(Ip::Both, |pair| {
        let Some((mut a, mut b)) = both_by_program(pair) else {
            return;
        };
        // The port knows of no shorter MTU: the device itself drops the long ones.
        pair.in_b(|| ip("link set v1 mtu 1500"));
        for _ in 0..3 {
            only_frames_beyond_the_mtu_are_lost(&mut a, &mut b);
        }
        pair.in_b(|| ip("link set v1 down"));
        for number in 0..150 {
            send(&mut a, &frame(&[], 60, number));
        }
        assert_eq!(a.flush().unwrap(), 150);
    });
}

fn only_frames_beyond_the_mtu_are_lost(a: &mut LinkPort, b: &mut LinkPort) {
    for bytes in [100, 1600, 200, 300, 1700] {
        send(a, &frame(&[], bytes, 3));
    }
    assert_eq!(a.flush().unwrap(), 2);
    assert_eq!(a.flush().unwrap(), 0);
    let stranger = |frame: &[u8]| frame[..6] == [2, 9, 9, 9, 9, 9];
    for bytes in [100, 200, 300] {
        assert_eq!(receive(b, stranger).1.len(), bytes);
    }
}

/// Frames that left the interface so far, the kernel's own ones too.
fn left(interface: &str) -> u64 {
    let counters = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let find = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        let count = counters.split_whitespace().nth(9)?;
        (name.trim() == interface).then(|| count.parse().unwrap())
    };
    counters.lines().find_map(find).unwrap()
}

/// Without IPv6: a missed frame of the kernel would be counted, too.
#[test]
fn frames_without_a_free_slot_are_counted_as_missed() {
    with_pair(Ip::V4, |pair| {
        let (mut a, mut b) = both(pair);
        let stranger = |frame: &[u8]| frame[..6] == [2, 9, 9, 9, 9, 9];
        let frame = frame(&[], 60, 1);
        let before = left("v0");
        // More than the ring has slots for frames of this MTU.
        let (mut sent, mut received) = (0, 0);
        while sent < 4000 {
            send(&mut a, &frame);
            sent += 1;
        }
        // Losses are reported with the frames that arrive after them.
        while received + b.missed() < sent {
            send(&mut a, &frame);
            assert_eq!(a.flush().unwrap(), 0);
            sent += 1;
            assert!(sent < 5000, "{received} received, {} missed", b.missed());
            receive(&mut b, stranger);
            received += 1;
            while let Ok((lent, bytes)) = b.recv(&mut []) {
                received += u64::from(stranger(&lent[VNET_HEADER_BYTES..bytes]));
            }
        }
        assert_eq!(left("v0") - before, sent, "the kernel sent frames, too");
        assert_eq!(received + b.missed(), sent);
        assert!(b.missed() > 1000, "{}", b.missed());
    });
}

fn libc_emsgsize() -> i32 {
    nix::errno::Errno::EMSGSIZE as i32
}

#[test]
fn sent_frames_do_not_return_and_the_host_does_not_answer() {
    with_pair(Ip::Both, |pair| {
        let (mut a, mut b) = both(pair);
        if !a.host_is_deaf() {
            eprintln!("SKIPPED: no program may be loaded here: run as root");
            return;
        }
        let mut request = [[0xff; 6], B_MAC].concat();
        request.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
        request.extend([&B_MAC[..], &[10, 8, 0, 2], &[0; 6], &[10, 8, 0, 1]].concat());
        request.resize(60, 0);
        send(&mut b, &request);
        send(&mut b, &frame(&[], 60, 1));
        b.flush().unwrap();
        let arp = |frame: &[u8]| frame[12..14] == [8, 6];
        let marker = |frame: &[u8]| frame[12..14] == EXPERIMENTAL;
        let (_, first) = receive(&mut a, |frame| arp(frame) || marker(frame));
        assert_eq!(first, request);
        receive(&mut a, marker);
        send(&mut a, &frame(&[], 60, 2));
        a.flush().unwrap();
        // An answer, or the port's own frame, would arrive before the other end's.
        let (_, first) = receive(&mut b, |frame| arp(frame) || marker(frame));
        assert_eq!(first, frame(&[], 60, 2));
        send(&mut b, &frame(&[], 60, 3));
        b.flush().unwrap();
        let (_, first) = receive(&mut a, |frame| arp(frame) || marker(frame));
        assert_eq!(first, frame(&[], 60, 3));
    });
}

/// A station's UDP train arrives as one super-packet, and returns to it as one.
#[test]
fn a_super_packet_passes_whole_in_both_directions() {
    with_pair(Ip::Both, |pair| {
        let mut port = open("v0");
        assert!(
            port.joinable().tcp && port.joinable().udp,
            "this kernel lacks an offload"
        );
        let on = UdpOffloads {
            gso: true,
            gro: true,
        };
        let (own, other) = (
            "10.8.0.2:7000".parse().unwrap(),
            "10.8.0.1:7000".parse().unwrap(),
        );
        let mut lane = pair.in_b(|| UdpLane::connect(own, other, on).unwrap());
        let payload: Vec<u8> = (0..60_000u32).map(|at| (at / 3) as u8).collect();
        let mut batch = Batch::for_trains(2);
        batch.buffer[..60_000].copy_from_slice(&payload);
        batch.trains.push(Train {
            bytes: 60_000,
            datagram_bytes: 1200,
            ..Train::default()
        });
        assert_eq!(lane.send(&mut batch).datagrams, 50);
        let (vnet, mut frame) = receive(&mut port, |frame| frame.len() > 60_000);
        assert_eq!(
            (vnet.gso, vnet.gso_size, vnet.flags, vnet.csum_start),
            (Gso::UdpL4, 1200, NEEDS_CSUM, 34)
        );
        assert_eq!(frame[42..], payload);
        // Returns it: swapped addresses and ports keep every checksum valid.
        for (at, bytes) in [(0, 6), (26, 4), (34, 2)] {
            let (one, two) = frame[at..at + 2 * bytes].split_at_mut(bytes);
            one.swap_with_slice(two);
        }
        let (headers, parts) = frame.split_at(42);
        let parts: Vec<&[u8]> = parts.chunks(1200).collect();
        port.send(&vnet, headers, &parts).unwrap();
        let mut echoed = Vec::new();
        while echoed.len() < 60_000 {
            wait(lane.readable().unwrap());
            match lane.recv(&mut batch) {
                Ok(()) => echoed.extend(batch.datagrams().flatten().copied()),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        assert_eq!(echoed, payload);
    });
}

#[test]
fn a_super_packet_of_a_vlan_keeps_its_tags_and_offsets() {
    with_pair(Ip::Both, |pair| {
        let (mut a, mut b) = both(pair);
        let segments = vec![9; 30_000];
        let builder = etherparse::PacketBuilder::ethernet2(A_MAC, B_MAC)
            .ipv4([10, 8, 0, 1], [10, 8, 0, 2], 64)
            .udp(5, 6);
        let mut frame = Vec::new();
        builder.write(&mut frame, &segments).unwrap();
        for tags in [
            &[[0x81, 0, 0x20, 0x64]][..],
            &[[0x88, 0xa8, 0, 7], [0x81, 0, 0, 1]],
        ] {
            let mut frame = frame.clone();
            frame.splice(12..12, tags.concat());
            let offset = 14 + 4 * tags.len() as u16;
            let vnet = VnetHeader {
                flags: NEEDS_CSUM,
                gso: Gso::UdpL4,
                hdr_len: offset + 28,
                gso_size: 1000,
                csum_start: offset + 20,
                csum_offset: 6,
                ..VnetHeader::PLAIN
            };
            let (headers, payload) = frame.split_at(usize::from(offset) + 28);
            a.send(&vnet, headers, &[payload]).unwrap();
            let (got_vnet, got) = receive(&mut b, |frame| frame.len() > 30_000);
            assert!(got == frame, "{} tags", tags.len());
            // The kernel sets it to the length of its first piece, which is a hint only.
            let got_vnet = VnetHeader {
                hdr_len: vnet.hdr_len,
                ..got_vnet
            };
            assert_eq!(got_vnet, vnet, "{} tags", tags.len());
        }
    });
}

#[test]
fn queues_share_the_frames_and_a_flow_stays_in_one() {
    with_pair(Ip::Both, |pair| {
        let mut queues = LinkPort::open("v0", 3, ALL).unwrap();
        let mut station = pair.in_b(|| open("v1"));
        const FLOWS: u16 = 40;
        for round in 0..3 {
            for flow in 0..FLOWS {
                let udp = etherparse::PacketBuilder::ethernet2(B_MAC, A_MAC)
                    .ipv4([10, 8, 0, 2], [10, 8, 0, 1], 64)
                    .udp(1000 + flow, 9);
                let mut frame = Vec::new();
                udp.write(&mut frame, &[round; 30]).unwrap();
                send(&mut station, &frame);
            }
        }
        station.flush().unwrap();
        let mut queue_of = vec![None; usize::from(FLOWS)];
        let mut left = 3 * u32::from(FLOWS);
        while left > 0 {
            let fds: Vec<_> = queues
                .iter()
                .map(|queue| queue.readable().unwrap())
                .collect();
            assert!(wait_readable(&fds, Some(Duration::from_secs(10))).unwrap());
            for (number, queue) in queues.iter_mut().enumerate() {
                while let Ok((lent, bytes)) = queue.recv(&mut []) {
                    let frame = &lent[VNET_HEADER_BYTES..bytes];
                    if frame[6..12] != B_MAC || frame[12..14] != [8, 0] {
                        continue;
                    }
                    let port = u16::from_be_bytes([frame[34], frame[35]]);
                    let seen = &mut queue_of[usize::from(port - 1000)];
                    assert_eq!(*seen.get_or_insert(number), number, "flow {port} has moved");
                    left -= 1;
                }
            }
        }
        for number in 0..3 {
            assert!(
                queue_of.contains(&Some(number)),
                "queue {number} got no flow"
            );
        }
    });
}

#[test]
fn unusable_interfaces_are_refused_with_advice() {
    with_pair(Ip::Both, |_| {
        ip("link add d0 type veth peer name d1");
        for (name, remedy) in [
            ("nothing0", "ip link"),
            ("d0", "set INTERFACE up"),
            ("", "ip link"),
        ] {
            let error = LinkPort::open(name, 1, ALL).unwrap_err().to_string();
            assert!(error.contains(remedy), "{error}");
        }
    });
}
