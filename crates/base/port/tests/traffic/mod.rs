//! Test frames and ports to carry them over the pair.

use crate::veth::{A_MAC, B_MAC};
use etherparse::PacketBuilder;
use port::{
    AnyReceiver, AnySender, FramePortKind, FrameReceiver, OpenFrames, Packets, open_receivers,
    open_senders, wait_readable,
};
use std::io;
use std::time::Duration;

pub(crate) const UDP_PORT: u16 = 5000;
pub(crate) const SOURCE_PORT: u16 = 40_000;
pub(crate) fn wanted(
    interface: &str,
    kind: Option<FramePortKind>,
    max_frame_bytes: usize,
) -> OpenFrames<'_> {
    OpenFrames {
        interface,
        kind,
        max_frame_bytes,
        threads: 1,
        packets: Packets::Udp(&[UDP_PORT]),
    }
}

pub(crate) fn sender(interface: &str, kind: FramePortKind, max: usize) -> AnySender {
    let (mut ports, _) = open_senders(&wanted(interface, Some(kind), max)).unwrap();
    assert_eq!((ports.len(), ports[0].kind()), (1, kind));
    ports.remove(0)
}

pub(crate) fn receiver(interface: &str, kind: FramePortKind, max: usize) -> AnyReceiver {
    let (mut ports, _) = open_receivers(&wanted(interface, Some(kind), max)).unwrap();
    assert_eq!((ports.len(), ports[0].kind()), (1, kind));
    ports.remove(0)
}

/// Whether programs may be loaded here; prints a note where not: never in a user namespace.
pub(crate) fn bpf_is_allowed() -> bool {
    let Err(error) = open_receivers(&wanted("v0", Some(FramePortKind::Xdp), 60)) else {
        return true;
    };
    let refused = error.to_string().contains("CAP_BPF");
    if refused {
        eprintln!("SKIPPED: {error}");
    }
    !refused
}

/// A frame from A to B, or back, with the same headers as the kernel's.
pub(crate) fn frame_of(ipv6: bool, bytes: usize, source_port: u16, back: bool) -> Vec<u8> {
    let (source_mac, target_mac, source, target) = if back {
        (B_MAC, A_MAC, 2, 1)
    } else {
        (A_MAC, B_MAC, 1, 2)
    };
    let ethernet = PacketBuilder::ethernet2(source_mac, target_mac);
    let payload: Vec<u8> = (0..bytes - if ipv6 { 62 } else { 42 })
        .map(|at| (at * 7 + bytes) as u8)
        .collect();
    let mut frame = Vec::with_capacity(bytes);
    if ipv6 {
        let address = |last| [0xfd, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        let udp = ethernet.ipv6(address(source), address(target), 64);
        udp.udp(source_port, UDP_PORT)
            .write(&mut frame, &payload)
            .unwrap();
    } else {
        let udp = ethernet.ipv4([10, 8, 0, source], [10, 8, 0, target], 64);
        udp.udp(source_port, UDP_PORT)
            .write(&mut frame, &payload)
            .unwrap();
    }
    frame
}

/// An IPv4 frame from A to B.
pub(crate) fn frame(bytes: usize, source_port: u16) -> Vec<u8> {
    frame_of(false, bytes, source_port, false)
}

/// Whether it is a test frame rather than the kernel's own traffic.
pub(crate) fn is_test_frame(frame: &[u8]) -> bool {
    let port = match frame[12..14] {
        [0x08, 0x00] if frame[23] == 17 => &frame[36..38],
        [0x86, 0xdd] if frame[20] == 17 => &frame[56..58],
        _ => return false,
    };
    *port == UDP_PORT.to_be_bytes()
}

/// The test frames of at least `count`.
pub(crate) fn receive(receiver: &mut AnyReceiver, count: usize) -> Vec<Vec<u8>> {
    receive_those(receiver, count, is_test_frame)
}

/// At least `count` frames that `is_it` accepts.
pub(crate) fn receive_those(
    receiver: &mut AnyReceiver,
    count: usize,
    is_it: impl Fn(&[u8]) -> bool,
) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while frames.len() < count {
        let read = |frame: &mut [u8]| {
            if is_it(frame) {
                frames.push(frame.to_vec());
            }
        };
        if let Err(error) = receiver.recv(read) {
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
            let fd = receiver.readable().unwrap();
            let came = wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap();
            assert!(came, "{} of {count} frames arrived", frames.len());
        }
    }
    frames
}
