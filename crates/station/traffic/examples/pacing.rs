//! A sender's cost and accuracy of keeping its schedule.
//!
//! ```text
//! cargo run --release -p cipherbench-traffic --example pacing    # as root
//! ```
//!
//! Frames of 64 B onto a veth pair, by the fastest port of this host, in bursts of 50 µs: CPU time
//! of the sending thread by wall time, and how late it woke up for each burst that it waited for.
//! The pair is in its own network namespace.

use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use port::{FrameSender, OpenFrames, Packets, Stop, open_senders};
use std::net::Ipv4Addr;
use std::process::Command;
use traffic::{Generator, Step};
use traffic_spec::{Addresses, Clock, Monotonic, Part, Send};
use wire::mix::{Contents, FrameMix, TestFrames};

const DURATION_NS: u64 = 2_000_000_000;
const RATES: [u64; 5] = [10_000, 50_000, 200_000, 500_000, 1_000_000];

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
    let mut cores = CpuSet::new();
    cores.set(0).expect("the set has room");
    sched_setaffinity(Pid::from_raw(0), &cores).expect("every machine has a first core");
    println!(
        "{:>10} {:>7} {:>9} {:>11} {:>11} {:>11} {:>11}",
        "intended/s", "CPU %", "waits", "p50 ns", "p99 ns", "max ns", "late ns max"
    );
    for rate in RATES {
        trial(rate);
    }
}

/// Runs one trial and prints its line.
fn trial(frames_per_s: u64) {
    let send = send(frames_per_s);
    let wanted = OpenFrames {
        interface: "p0",
        kind: None,
        max_frame_bytes: 60,
        threads: 1,
        packets: Packets::Udp(&[]),
    };
    let (mut ports, _) = open_senders(&wanted).unwrap_or_else(|error| panic!("{error}"));
    let port = &mut ports[0];
    let mut generator = Generator::new(&send, 1, Part::WHOLE, None).expect("such frames can be");
    let (clock, stop) = (
        Monotonic::new(),
        Stop::new().expect("there are descriptors"),
    );
    clock.settle();
    let (start_ns, cpu_ns) = (clock.now_ns(), cpu_time_ns());
    generator.begin_at(start_ns);
    let mut late_ns = Vec::new();
    loop {
        match generator
            .step(port, clock.now_ns())
            .expect("the port stays")
        {
            Step::Sent => {}
            Step::Full => std::thread::yield_now(),
            Step::Early(time_ns) => {
                clock.wait_until(time_ns, &stop);
                late_ns.push(clock.now_ns() - time_ns);
            }
            Step::Done => break,
        }
    }
    port.flush().expect("the port stays");
    let end_ns = clock.now_ns();
    let cpu_percent = (cpu_time_ns() - cpu_ns) * 100 / (end_ns - start_ns);
    late_ns.sort_unstable();
    let share = |percent: usize| late_ns[(late_ns.len() - 1) * percent / 100];
    println!(
        "{frames_per_s:>10} {cpu_percent:>7} {:>9} {:>11} {:>11} {:>11} {:>11}",
        late_ns.len(),
        share(50),
        share(99),
        share(100),
        generator.finish(end_ns).late_ns_max,
    );
}

/// CPU time of this thread.
fn cpu_time_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every thread has a clock");
    (time.tv_sec() * 1_000_000_000 + time.tv_nsec()).cast_unsigned()
}

fn send(frames_per_s: u64) -> Send {
    Send {
        addresses: Addresses {
            source_mac: [2, 0, 0, 0, 0, 1],
            target_mac: [2, 0, 0, 0, 0, 2],
            source: Ipv4Addr::new(10, 1, 0, 1).into(),
            target: Ipv4Addr::new(10, 2, 0, 1).into(),
        },
        frames: TestFrames {
            mix: FrameMix::fixed(64),
            flows: 100,
            tunnels: 1,
            contents: Contents::Fixed,
        },
        frames_per_s: Some(frames_per_s),
        duration_ns: DURATION_NS,
        burst_ns: 50_000,
        peer: None,
        keep_rate: false,
        then: None,
        start_ns: None,
    }
}
