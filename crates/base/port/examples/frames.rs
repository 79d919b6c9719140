//! Measures each pair of frame ports over a veth pair: one sending and one receiving core.
//!
//! ```text
//! cargo run --release -p cipherbench-port --example frames -- [seconds] [frame bytes without FCS]
//! ```
//!
//! Needs root, or a user namespace (`unshare -r`). The frames are addressed as a station's are: to
//! the receiving interface, UDP, IPv4, eight flows.

#[path = "../tests/veth/mod.rs"]
mod veth;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use port::{
    AnyReceiver, AnySender, FramePortKind, FramePortStats, FrameReceiver, FrameSender, OpenFrames,
    Packets, memory_frame_pair, open_receivers, open_senders, wait_readable,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const UDP_PORT: u16 = 0xCB0E;
const BATCH: usize = 64;
const FLOWS: u64 = 8;
/// How long the receiver continues after the last frame.
const SETTLE: Duration = Duration::from_millis(200);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds: f64 = arguments
        .next()
        .map_or(2.0, |text| text.parse().expect("seconds"));
    let bytes: usize = arguments
        .next()
        .map_or(60, |text| text.parse().expect("bytes"));
    let time = Duration::from_secs_f64(seconds);
    println!("{bytes} B frames without FCS, {seconds} s each\n");
    println!("| sender | receiver | sent, M/s | received, M/s | lost in the receiver |");
    println!("|---|---|---:|---:|---:|");
    let kinds = [
        FramePortKind::Xdp,
        FramePortKind::Packet,
        FramePortKind::Socket,
    ];
    for sender in kinds {
        for receiver in [None].into_iter().chain(kinds.map(Some)) {
            veth::with_pair(veth::Ip::Both, move |pair| {
                over_veth(pair, sender, receiver, bytes, time)
            });
        }
    }
    in_memory(bytes, time);
}

fn over_veth(
    pair: &veth::Pair,
    sender_kind: FramePortKind,
    receiver_kind: Option<FramePortKind>,
    bytes: usize,
    time: Duration,
) {
    let wanted = |interface, kind| OpenFrames {
        interface,
        kind: Some(kind),
        max_frame_bytes: bytes,
        threads: 1,
        packets: Packets::Udp(&[UDP_PORT]),
    };
    if bytes <= 1514 {
        // In the driver, XDP accepts only frames that fit a page.
        veth::ip("link set v0 mtu 1500");
        pair.in_b(|| veth::ip("link set v1 mtu 1500"));
    }
    let receiver = receiver_kind.map(|kind| {
        let opened = pair.in_b(|| open_receivers(&wanted("v1", kind)));
        opened.map(|(mut ports, _)| ports.remove(0))
    });
    let sender = open_senders(&wanted("v0", sender_kind)).map(|(mut ports, _)| ports.remove(0));
    let name = receiver_kind.map_or("none".to_owned(), |kind| kind.to_string());
    let (mut sender, receiver) = match (sender, receiver.transpose()) {
        (Ok(sender), Ok(receiver)) => (sender, receiver),
        (Err(error), _) | (_, Err(error)) => {
            println!("| {sender_kind} | {name} | {error} |");
            return;
        }
    };
    let done = AtomicBool::new(false);
    let (sent, elapsed, received, stats) = std::thread::scope(|scope| {
        let reading =
            scope.spawn(|| receiver.map_or_else(Default::default, |port| count(port, &done)));
        pin(0);
        // No receiver: frames for another host are dropped at once.
        let target = if receiver_kind.is_some() {
            veth::B_MAC
        } else {
            [2, 0, 0, 0, 0, 0x99]
        };
        let (sent, elapsed) = generate(&mut sender, &template(bytes, target), time);
        std::thread::sleep(SETTLE);
        done.store(true, Ordering::Release);
        let (received, stats) = reading.join().expect("the receiver ends");
        (sent, elapsed, received, stats)
    });
    let rate = |frames: u64| frames as f64 / elapsed.as_secs_f64() / 1e6;
    println!(
        "| {sender_kind} | {name} | {:.3} | {:.3} | {} |",
        rate(sent),
        rate(received),
        stats.receive_dropped
    );
}

/// Sends as fast as possible; returns the number of frames accepted, and the time.
fn generate(sender: &mut AnySender, template: &[u8], time: Duration) -> (u64, Duration) {
    let started = Instant::now();
    let mut number = 0u64;
    while started.elapsed() < time {
        let fill = |slot: &mut [u8]| {
            slot[..template.len()].copy_from_slice(template);
            slot[35] = (number % FLOWS) as u8;
            slot[42..50].copy_from_slice(&number.to_be_bytes());
            number += 1;
            template.len()
        };
        sender.send(BATCH, fill).expect("the interface is up");
    }
    sender.flush().expect("the interface is up");
    (sender.stats().sent, started.elapsed())
}

fn count(mut receiver: AnyReceiver, done: &AtomicBool) -> (u64, FramePortStats) {
    pin(1);
    let mut received = 0;
    let mut last = 0;
    while !done.load(Ordering::Acquire) {
        let read = |frame: &mut [u8]| {
            if frame[12..14] == [8, 0] {
                last = u64::from_be_bytes(*frame[42..].first_chunk().expect("60 bytes"));
                received += 1;
            }
        };
        if receiver.recv(read).is_err() {
            let fd = receiver.readable().expect("it can be waited for");
            wait_readable(&[fd], Some(Duration::from_millis(50))).expect("poll works");
        }
    }
    std::hint::black_box(last);
    (received, receiver.stats())
}

/// One thread alternates between sending and receiving.
fn in_memory(bytes: usize, time: Duration) {
    pin(0);
    let (mut sender, mut receiver) = memory_frame_pair(1024);
    let template = template(bytes, veth::B_MAC);
    let started = Instant::now();
    let (mut number, mut received, mut sum) = (0u64, 0u64, 0u64);
    while started.elapsed() < time {
        let fill = |slot: &mut [u8]| {
            slot[..template.len()].copy_from_slice(&template);
            slot[42..50].copy_from_slice(&number.to_be_bytes());
            number += 1;
            template.len()
        };
        sender.send(BATCH, fill).expect("memory has no errors");
        let read = |frame: &mut [u8]| {
            sum += u64::from_be_bytes(*frame[42..].first_chunk().expect("60 bytes"));
            received += 1;
        };
        receiver.recv(read).expect("frames were just sent");
    }
    assert_eq!(sum, number * (number - 1) / 2, "every frame came through");
    let rate = |frames: u64| frames as f64 / started.elapsed().as_secs_f64() / 1e6;
    println!(
        "| memory | memory, same core | {:.3} | {:.3} | 0 |",
        rate(number),
        rate(received)
    );
}

/// Ethernet, IPv4 and UDP headers with valid checksums (none for UDP).
fn template(bytes: usize, target_mac: [u8; 6]) -> Vec<u8> {
    let udp = etherparse::PacketBuilder::ethernet2(veth::A_MAC, target_mac)
        .ipv4([10, 8, 0, 1], [10, 8, 0, 2], 64)
        .udp(40_000, UDP_PORT);
    let mut frame = Vec::new();
    udp.write(&mut frame, &vec![0; bytes - 42])
        .expect("a vector takes everything");
    frame[40..42].fill(0);
    frame
}

fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core).expect("a core's number");
    if let Err(error) = sched_setaffinity(Pid::from_raw(0), &cores) {
        eprintln!("not pinned to core {core}: {error}");
    }
}
