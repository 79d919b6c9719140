//! Frame ports over a real veth pair (`veth/mod.rs`): bytes, counts, waiting.

mod traffic;
mod veth;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use port::{
    AnyReceiver, AnySender, Batch, CipherPort, FramePortError, FramePortKind, FrameReceiver,
    FrameSender, OpenFrames, OutgoingReceiver, Swallow, Train, UdpLane, UdpOffloads, open_outgoing,
    open_prompt_receivers, open_receivers, wait_readable,
};
use std::io;
use std::net::UdpSocket;
use std::time::Duration;
use traffic::{
    SOURCE_PORT, UDP_PORT, bpf_is_allowed, frame, frame_of, is_test_frame, receive, receiver,
    sender, wanted,
};
use veth::{Ip, ip, with_pair};

const KINDS: [FramePortKind; 3] = [
    FramePortKind::Xdp,
    FramePortKind::Packet,
    FramePortKind::Socket,
];

/// The longest frame that both ends support.
fn longest(sender: FramePortKind, receiver: FramePortKind) -> usize {
    match (sender, receiver) {
        (_, FramePortKind::Xdp) => 3840,
        (FramePortKind::Xdp, _) => 4096,
        _ => 9212,
    }
}

fn send(sender: &mut AnySender, frames: &[Vec<u8>]) {
    let mut next = 0;
    while next < frames.len() {
        let count = frames.len() - next;
        let fill = |slot: &mut [u8]| {
            let frame = &frames[next];
            slot[..frame.len()].copy_from_slice(frame);
            next += 1;
            frame.len()
        };
        sender.send(count, fill).unwrap();
    }
    sender.flush().unwrap();
}

/// Zeroes the fields that the kernel fills in.
fn mask(frame: &mut [u8], sender: FramePortKind, receiver: FramePortKind) {
    if receiver == FramePortKind::Socket {
        frame[..12].fill(0);
    }
    // The checksum is left to the interface, which for a veth pair never computes it.
    if sender == FramePortKind::Socket && receiver != FramePortKind::Socket {
        let at = if frame[12..14] == [0x08, 0x00] {
            40
        } else {
            60
        };
        frame[at..at + 2].fill(0);
    }
}

fn carries_every_size(
    sender: &mut AnySender,
    receiver: &mut AnyReceiver,
    back: bool,
    longest: usize,
) {
    let kinds = (sender.kind(), receiver.kind());
    let mut total = 0;
    for ipv6 in [false, true] {
        let sizes: Vec<usize> = (if ipv6 { 62 } else { 60 }..=longest).collect();
        for sizes in sizes.chunks(32) {
            let make = |bytes: &usize| frame_of(ipv6, *bytes, SOURCE_PORT, back);
            let mut sent: Vec<_> = sizes.iter().map(make).collect();
            send(sender, &sent);
            total += sent.len() as u64;
            let mut received = receive(receiver, sent.len());
            for frame in sent.iter_mut().chain(&mut received) {
                mask(frame, kinds.0, kinds.1);
            }
            for (sent, received) in sent.iter().zip(&received) {
                let bytes = sent.len();
                assert!(
                    sent == received,
                    "{bytes} B by {kinds:?}:\n{sent:x?}\n{received:x?}"
                );
            }
            assert_eq!(received.len(), sent.len(), "{kinds:?}");
        }
    }
    let stats = (sender.stats(), receiver.stats());
    assert_eq!((stats.0.sent, stats.0.send_failed), (total, 0), "{kinds:?}");
    assert_eq!(stats.1.receive_dropped, 0, "{kinds:?}");
}

#[test]
fn every_kind_carries_frames_of_every_size_unchanged_both_ways() {
    for from in KINDS {
        for to in KINDS {
            with_pair(Ip::Both, move |pair| {
                if [from, to].contains(&FramePortKind::Xdp) && !bpf_is_allowed() {
                    return;
                }
                let max = longest(from, to);
                let mut there = (
                    sender("v0", from, max),
                    pair.in_b(|| receiver("v1", to, max)),
                );
                carries_every_size(&mut there.0, &mut there.1, false, max);
                drop(there);
                let mut back = (
                    pair.in_b(|| sender("v1", from, max)),
                    receiver("v0", to, max),
                );
                // Sockets are opened at their first use.
                pair.in_b(|| carries_every_size(&mut back.0, &mut back.1, true, max));
            });
        }
    }
}

#[test]
fn af_xdp_works_in_the_driver_where_the_mtu_allows() {
    with_pair(Ip::Both, |pair| {
        if !bpf_is_allowed() {
            return;
        }
        ip("link set v0 mtu 1500");
        let mut to = pair.in_b(|| {
            ip("link set v1 mtu 1500");
            // No frame is longer than the MTU, whatever limit is requested.
            receiver("v1", FramePortKind::Xdp, port::FRAME_SLOT_BYTES)
        });
        let shown = pair.in_b(|| veth::output("link show dev v1"));
        assert!(
            shown.contains(" xdp ") && !shown.contains("xdpgeneric"),
            "{shown}"
        );
        let mut from = sender("v0", FramePortKind::Xdp, 1514);
        carries_every_size(&mut from, &mut to, false, 1514);
    });
}

#[test]
fn every_frame_is_received_or_counted_as_dropped() {
    for (kind, count, bytes) in [
        (FramePortKind::Xdp, 6000, 60),
        (FramePortKind::Packet, 8000, 9212),
        (FramePortKind::Socket, 8000, 9212),
    ] {
        with_pair(Ip::V4, move |pair| {
            if kind == FramePortKind::Xdp && !bpf_is_allowed() {
                return;
            }
            let mut to = pair.in_b(|| receiver("v1", kind, bytes));
            let mut from = sender("v0", FramePortKind::Packet, bytes);
            send(&mut from, &vec![frame(bytes, SOURCE_PORT); count]);
            assert_eq!(from.stats().sent, count as u64);
            let mut received = 0;
            let dropped = loop {
                match to.recv(|_| received += 1) {
                    Ok(_) => {}
                    Err(_) if received + to.stats().receive_dropped == count as u64 => {
                        break to.stats().receive_dropped;
                    }
                    Err(_) => {
                        let fd = to.readable().unwrap();
                        let came = wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap();
                        assert!(came, "{kind}: {received} received, {:?}", to.stats());
                    }
                }
            };
            assert!(dropped > 0, "{kind}: {count} frames did not fill it");
            assert_eq!(
                to.stats().receive_dropped,
                dropped,
                "counts stay when they are read"
            );
        });
    }
}

#[test]
fn a_receiver_reports_that_no_frame_waits_and_can_be_waited_for() {
    for kind in KINDS {
        with_pair(Ip::V4, move |pair| {
            if kind == FramePortKind::Xdp && !bpf_is_allowed() {
                return;
            }
            let mut to = pair.in_b(|| receiver("v1", kind, 1514));
            let mut from = sender("v0", FramePortKind::Packet, 1514);
            for _ in 0..3 {
                let error = to.recv(|_| panic!("nothing was sent")).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{kind}");
                let fd = to.readable().unwrap();
                assert!(
                    !wait_readable(&[fd], Some(Duration::ZERO)).unwrap(),
                    "{kind}"
                );
                send(&mut from, &[frame(60, SOURCE_PORT)]);
                assert_eq!(receive(&mut to, 1).len(), 1);
            }
        });
    }
}

fn now_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC).unwrap();
    (now.tv_sec() * 1_000_000_000 + now.tv_nsec()) as u64
}

#[test]
fn the_kernel_notes_arrival_times() {
    for kind in [FramePortKind::Packet, FramePortKind::Socket] {
        with_pair(Ip::V4, move |pair| {
            let mut to = pair.in_b(|| receiver("v1", kind, 1514));
            let mut from = sender("v0", FramePortKind::Packet, 1514);
            let before_ns = now_ns();
            send(&mut from, &[frame(60, SOURCE_PORT)]);
            let fd = to.readable().unwrap();
            assert!(wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap());
            let mut came = None;
            to.recv_timed(|_, came_ns| came = came_ns).unwrap();
            let came_ns = came.unwrap();
            // 100 µs: the distance of the two clocks changes a little.
            let range = before_ns - 100_000..now_ns() + 100_000;
            assert!(
                range.contains(&came_ns),
                "{kind}: {came_ns} is not in {range:?}"
            );
        });
    }
}

#[test]
fn several_receivers_divide_the_flows() {
    for kind in [FramePortKind::Packet, FramePortKind::Socket] {
        with_pair(Ip::Both, move |pair| {
            let wanted = OpenFrames {
                threads: 2,
                ..wanted("v1", Some(kind), 1514)
            };
            let (mut receivers, _) = pair.in_b(|| open_receivers(&wanted)).unwrap();
            assert_eq!(receivers.len(), 2);
            let mut from = sender("v0", FramePortKind::Packet, 1514);
            let flows = 64;
            let frames: Vec<_> = (0..640)
                .map(|at| frame(60, SOURCE_PORT + at % flows))
                .collect();
            send(&mut from, &frames);
            let mut seen = [vec![0; flows.into()], vec![0; flows.into()]];
            while seen.iter().flatten().sum::<usize>() < frames.len() {
                let fds: Vec<_> = receivers
                    .iter()
                    .map(|port| port.readable().unwrap())
                    .collect();
                assert!(wait_readable(&fds, Some(Duration::from_secs(10))).unwrap());
                for (receiver, seen) in receivers.iter_mut().zip(&mut seen) {
                    let result = receiver.recv(|frame| {
                        if is_test_frame(frame) {
                            let port = u16::from_be_bytes([frame[34], frame[35]]);
                            seen[usize::from(port - SOURCE_PORT)] += 1;
                        }
                    });
                    if let Err(error) = result {
                        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                    }
                }
            }
            for (one, two) in seen[0].iter().zip(&seen[1]) {
                assert!(matches!((one, two), (10, 0) | (0, 10)), "{kind}: {seen:?}");
            }
            assert!(
                seen.iter()
                    .all(|seen| seen.iter().any(|frames| *frames > 0))
            );
        });
    }
}

/// Payloads of the UDP frames to the test port captured so far, each with valid checksums.
fn captured(captures: &mut OutgoingReceiver) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    let read = |frame: &mut [u8]| {
        if !is_test_frame(frame) {
            return;
        }
        let packet = SlicedPacket::from_ethernet(frame).unwrap();
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) =
            (packet.net, packet.transport)
        else {
            panic!("{frame:x?}")
        };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        let expected = udp.to_header().calc_checksum_ipv4(&header, udp.payload());
        assert_eq!(udp.checksum(), expected.unwrap());
        payloads.push(udp.payload().to_vec());
    };
    match captures.recv(read) {
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}"),
        Ok(frames) => assert!(frames > 0),
    }
    payloads
}

#[test]
fn outgoing_frames_are_captured_as_on_the_wire_except_a_ports_own() {
    with_pair(Ip::Both, |pair| {
        let _swallow = pair.in_b(|| Swallow::bind("v1", &[UDP_PORT])).unwrap();
        let mut captures = open_outgoing("v0").unwrap();
        let on = UdpOffloads {
            gso: true,
            gro: false,
        };
        let own = "10.8.0.1:4500".parse().unwrap();
        let peer = format!("10.8.0.2:{UDP_PORT}").parse().unwrap();
        let mut lane = UdpLane::connect(own, peer, on).unwrap();
        // The lane's probes for its offloads.
        captured(&mut captures);
        let mut batch = Batch::for_trains(1);
        for (bytes, datagram_bytes) in [(100, 100), (30_001, 1200)] {
            let payload: Vec<u8> = (0..bytes).map(|at| (at / 7) as u8).collect();
            batch.buffer[..bytes].copy_from_slice(&payload);
            batch.trains.push(Train {
                start: 0,
                bytes,
                datagram_bytes,
                ..Train::default()
            });
            let sent = lane.send(&mut batch);
            assert_eq!((sent.too_big, sent.failed), (0, 0));
            // One system call, or several without trains: the first result is that of the first
            // datagram.
            let first = &captured(&mut captures)[0];
            assert_eq!(first[..], payload[..datagram_bytes]);
        }
        // Received frames are not captured, nor are frames that bypass the kernel's capture.
        let kinds = [FramePortKind::Packet, FramePortKind::Xdp];
        for kind in kinds {
            if kind == FramePortKind::Xdp && !bpf_is_allowed() {
                continue;
            }
            let mut from = sender("v0", kind, 1514);
            let mut to = pair.in_b(|| receiver("v1", FramePortKind::Packet, 1514));
            send(&mut from, &vec![frame(200, SOURCE_PORT); 10]);
            assert_eq!(receive(&mut to, 10).len(), 10);
            let mut there = receiver("v0", FramePortKind::Packet, 1514);
            let mut back = pair.in_b(|| sender("v1", FramePortKind::Packet, 1514));
            send(&mut back, &[frame_of(false, 200, SOURCE_PORT, true)]);
            receive(&mut there, 1);
            assert_eq!(captured(&mut captures), Vec::<Vec<u8>>::new(), "{kind}");
        }
    });
}

#[test]
fn an_unread_capture_keeps_only_a_few_frames() {
    with_pair(Ip::Both, |_| {
        let mut captures = open_outgoing("v0").unwrap();
        let from = UdpSocket::bind("10.8.0.1:0").unwrap();
        for _ in 0..10_000 {
            // The port is closed, which the socket learns by ICMP.
            let _ = from.send_to(&[7; 1000], ("10.8.0.2", UDP_PORT));
        }
        let kept = captured(&mut captures).len();
        assert!((2..100).contains(&kept), "{kept}");
        assert!(captured(&mut captures).is_empty());
    });
}

#[test]
fn a_capture_of_a_missing_interface_is_refused() {
    with_pair(Ip::Both, |_| {
        let error = open_outgoing("v7").unwrap_err();
        assert!(
            matches!(error, FramePortError::NoInterface { .. }),
            "{error}"
        );
    });
}

fn prompt(interface: &str, max: usize) -> AnyReceiver {
    let wanted = wanted(interface, Some(FramePortKind::Packet), max);
    let (mut ports, _) = open_prompt_receivers(&wanted).unwrap();
    assert_eq!((ports.len(), ports[0].kind()), (1, FramePortKind::Packet));
    ports.remove(0)
}

#[test]
fn a_prompt_receiver_returns_frames_of_every_size_with_their_times() {
    with_pair(Ip::Both, |pair| {
        let mut to = pair.in_b(|| prompt("v1", 9212));
        let mut from = sender("v0", FramePortKind::Packet, 9212);
        for ipv6 in [false, true] {
            let sizes: Vec<usize> = (62..=9212).collect();
            for sizes in sizes.chunks(32) {
                let frames = sizes
                    .iter()
                    .map(|bytes| frame_of(ipv6, *bytes, SOURCE_PORT, false));
                let frames: Vec<_> = frames.collect();
                send(&mut from, &frames);
                assert!(receive(&mut to, frames.len()) == frames, "{sizes:?}");
            }
        }
        assert_eq!(to.stats().receive_dropped, 0);
        let before_ns = now_ns();
        send(&mut from, &[frame(60, SOURCE_PORT)]);
        let mut came = Vec::new();
        while came.is_empty() {
            let fd = to.readable().unwrap();
            assert!(wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap());
            let _ = to.recv_timed(|frame, came_ns| {
                if is_test_frame(frame) {
                    came.push(came_ns.expect("the kernel notes it"));
                }
            });
        }
        // 100 µs: the distance of the two clocks changes a little.
        let range = before_ns - 100_000..now_ns() + 100_000;
        assert!(range.contains(&came[0]), "{came:?} is not in {range:?}");
    });
}

/// A ring of blocks delivers no frame before its block is full or old, so one that is alone is
/// readable at once by this receiver only.
#[test]
fn a_prompt_receiver_delivers_a_single_frame_at_once() {
    with_pair(Ip::V4, |pair| {
        let mut from = sender("v0", FramePortKind::Packet, 60);
        let mut prompt = pair.in_b(|| prompt("v1", 60));
        let mut in_blocks = pair.in_b(|| receiver("v1", FramePortKind::Packet, 60));
        // A busy machine may let a block grow old before it is looked at: the prompt one is first
        // at least once.
        let was_first = (0..100).any(|_| {
            send(&mut from, &[frame(60, SOURCE_PORT)]);
            let waiting = |port: &mut AnyReceiver| port.recv(|_| {}).is_ok();
            let (is_prompt, is_delivered) = (waiting(&mut prompt), waiting(&mut in_blocks));
            assert!(is_prompt, "a veth pair delivers before the sender returns");
            if !is_delivered {
                receive(&mut in_blocks, 1);
            }
            !is_delivered
        });
        assert!(was_first);
    });
}

#[test]
fn a_prompt_receiver_counts_what_it_drops() {
    with_pair(Ip::V4, |pair| {
        const COUNT: u64 = 8000;
        let mut to = pair.in_b(|| prompt("v1", 9212));
        let mut from = sender("v0", FramePortKind::Packet, 9212);
        send(&mut from, &vec![frame(9212, SOURCE_PORT); COUNT as usize]);
        let mut received = 0;
        while to
            .recv(|frame| received += u64::from(is_test_frame(frame)))
            .is_ok()
        {}
        let dropped = to.stats().receive_dropped;
        assert!(dropped > 0, "{COUNT} frames did not fill it");
        assert_eq!(received + dropped, COUNT);
        assert_eq!(to.stats().receive_dropped, dropped);
    });
}
