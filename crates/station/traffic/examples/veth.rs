//! Throughput of one generating and one receiving core over a veth pair, with every frame stamped
//! and checked.
//!
//! ```text
//! cargo run --release -p cipherbench-traffic --example veth    # as root
//! ```
//!
//! Frames of 64 B of 100 flows, by the fastest ports of this host: sent without a receiver, sent as
//! fast as possible, and at given rates, of which the highest without loss is the result. The pair
//! is in its own network namespace.

#[path = "aid/output.rs"]
mod output;

use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::unistd::Pid;
use output::Output;
use port::Stop;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use traffic::serve;
use traffic_spec::{Addresses, Receive, Report, Role, Send, Spec};
use wire::mix::{Contents, FrameMix, TestFrames};

const FLOWS: u32 = 100;
const DURATION_NS: u64 = 2_000_000_000;
const RATES: [u64; 6] = [600_000, 800_000, 1_000_000, 1_200_000, 1_400_000, 1_600_000];

fn main() {
    unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace needs root");
    for arguments in [
        "link add p0 type veth peer name p1",
        "link set p0 up",
        "link set p1 up",
    ] {
        let status = Command::new("ip").args(arguments.split(' ')).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "ip {arguments}"
        );
    }
    println!(
        "{:>10} {:>11} {:>11} {:>11} {:>9} {:>11} {:>9}",
        "intended/s", "sent/s", "received/s", "lost", "dropped", "late ns max", "p99 ns"
    );
    trial(None, false);
    trial(None, true);
    for rate in RATES {
        trial(Some(rate), true);
    }
}

/// Runs one trial and prints its line.
fn trial(frames_per_s: Option<u64>, with_receiver: bool) {
    let stop = Stop::new().expect("there are descriptors");
    let receiver = with_receiver.then(|| {
        let (ready, is_ready) = channel();
        let (role, stop) = (Role::Receive(receive(frames_per_s)), stop.clone());
        let thread = thread::spawn(move || station("p1", 1, role, Some(ready), &stop));
        is_ready.recv().expect("the receiver opens its port");
        thread
    });
    let send = Role::Send(send(frames_per_s));
    let never = Stop::new().expect("there are descriptors");
    let sender = thread::spawn(move || station("p0", 0, send, None, &never));
    let sender = sender.join().expect("the sender does not panic");
    stop.raise();
    let receiver = receiver.map(|thread| thread.join().expect("the receiver does not panic"));

    let sent = sender.sent.expect("a sender reports what it sent");
    let per_s = |frames: u64| frames * 1_000_000_000 / sent.elapsed_ns.max(1);
    let received = receiver.as_ref().and_then(|report| report.received.clone());
    let received = received.unwrap_or_default();
    let dropped = receiver.map_or(0, |report| report.port_stats.receive_dropped);
    let intended = frames_per_s.map_or("most".to_owned(), |rate| rate.to_string());
    println!(
        "{intended:>10} {:>11} {:>11} {:>11} {dropped:>9} {:>11} {:>9}",
        per_s(sent.frames),
        per_s(received.frames),
        sent.frames - received.frames,
        sent.late_ns_max,
        percentile(&received.latency, 99),
    );
}

/// A station on its own core.
fn station(
    interface: &str,
    core: usize,
    role: Role,
    ready: Option<Sender<()>>,
    stop: &Stop,
) -> Report {
    let mut cores = CpuSet::new();
    cores.set(core).expect("the set has room");
    sched_setaffinity(Pid::from_raw(0), &cores).expect("the machine has two cores");
    let spec = Spec {
        interface: interface.to_owned(),
        port: None,
        threads: 1,
        tag: 1,
        role,
    };
    let input = serde_json::to_string(&spec).expect("a specification is plain data");
    let mut output = Output::new(ready);
    serve(&input, &mut output, stop).unwrap_or_else(|error| panic!("{error}"));
    output.report()
}

fn send(frames_per_s: Option<u64>) -> Send {
    Send {
        addresses: Addresses {
            source_mac: [2, 0, 0, 0, 0, 1],
            target_mac: [2, 0, 0, 0, 0, 2],
            source: Ipv4Addr::new(10, 1, 0, 1).into(),
            target: Ipv4Addr::new(10, 2, 0, 1).into(),
        },
        frames: TestFrames {
            mix: FrameMix::fixed(64),
            flows: FLOWS,
            tunnels: 1,
            contents: Contents::Fixed,
        },
        frames_per_s,
        duration_ns: DURATION_NS,
        burst_ns: 50_000,
        peer: None,
        keep_rate: false,
        then: None,
        start_ns: None,
    }
}

fn receive(frames_per_s: Option<u64>) -> Receive {
    Receive {
        expected: frames_per_s.map(|rate| rate * DURATION_NS / 1_000_000_000),
        ..Receive::new(send(frames_per_s).frames)
    }
}

/// The latency at this percentile of the frames.
fn percentile(latency: &[(u64, u64)], percent: u64) -> u64 {
    let all: u64 = latency.iter().map(|(_, frames)| frames).sum();
    let mut seen = 0;
    let bucket = latency.iter().find(|(_, frames)| {
        seen += frames;
        seen * 100 >= all * percent
    });
    bucket.map_or(0, |(upto_ns, _)| *upto_ns)
}
