//! Cost of the bridge of an impaired path on one core: alone, between ports in memory, and between
//! two virtual links.
//!
//! ```text
//! cargo run --release -p cipherbench-traffic --example impair    # as root
//! ```
//!
//! Alone: frames of memory that is lent again and again, and dropped where they leave. Between
//! links: a generator on another core sends at a rate, or as fast as it can, then so that the
//! bridge always finds full batches; frames per second of the CPU time of the bridge's thread, its
//! loss, and its delay beyond the model at the 99th percentile. No bridge is better at that than
//! its core, which may be a virtual one: for how long that stops a thread which only reads the
//! clock comes first. The last line is the first one's by the packet socket alone. The links are in
//! a network namespace of their own.

#[path = "aid/output.rs"]
mod output;

use impair::{Counts, Impaired, Impairment, Loss, Profile};
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, unshare};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use output::Output;
use port::{CLEAR_ROOM_BYTES, ClearPort, LinkOffloads, LinkPort, Stop};
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::os::fd::BorrowedFd;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use traffic::{Bridge, BridgePort, serve, serve_bridge};
use traffic_spec::{Addresses, BridgeSpec, Monotonic, Role, Send, Spec};
use wire::coalesce::Joinable;
use wire::mix::{Contents, FrameMix, TestFrames};
use wire::vnet::{VNET_HEADER_BYTES, VnetHeader};

const ROUND: Duration = Duration::from_secs(1);
const DURATION_NS: u64 = 2_000_000_000;
const MTU: usize = 9000;
/// A saturated bridge, which may be faster than the generator, waits for this long,
const GATHER: Duration = Duration::from_millis(1);
/// and then carries this many batches: fewer frames than came.
const GATHERED_BATCHES: usize = 8;
/// A thread between whose readings of the clock more than this passes was stopped.
const STOPPED: Duration = Duration::from_micros(5);
/// Frames between two answers that there is none, as a port in memory.
const BATCH_FRAMES: usize = 64;

fn main() {
    let profiles = [
        ("none", Impairment::default()),
        (
            "loss 1 %",
            Impairment {
                loss: Some(Loss::Random { ppm: 10_000 }),
                ..Impairment::default()
            },
        ),
        (
            "delay 1 ms",
            Impairment {
                delay_ns: 1_000_000,
                ..Impairment::default()
            },
        ),
    ];
    println!("alone, one direction, M frames/s and Gbit/s of frames:");
    for (name, impairment) in &profiles {
        for bytes in [60, 1514, 9014] {
            let per_s = alone(impairment, bytes);
            let gbits = per_s * (bytes * 8) as f64 / 1e9;
            println!("  {name:12} {bytes:>5} B {:>8.2} {gbits:>8.1}", per_s / 1e6);
        }
    }
    unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace needs root");
    for arguments in [
        "link add name a type veth peer name p0",
        "link add name b type veth peer name p1",
    ] {
        ip(arguments);
    }
    for name in ["a", "b", "p0", "p1"] {
        ip(&format!("link set dev {name} mtu {MTU} up"));
    }
    stops();
    println!(
        "between links: load, frames/s sent; M frames/s and Gbit/s of CPU time; lost by the bridge; added us at p99"
    );
    for (name, impairment) in &profiles {
        for (bytes, load) in [(64, None), (64, Some(200_000)), (1518, None), (9018, None)] {
            between_links(name, impairment, bytes, load, saturated);
        }
    }
    let (_, unimpaired) = &profiles[0];
    let saturated_by_socket = |spec: &BridgeSpec, ready: &_, stop: &_| {
        let ports = spec.interfaces.each_ref().map(|name| by_socket(name));
        let clock = Monotonic::new();
        let bridge = Bridge::new(&spec.profile, spec.frame_bytes, ports, clock);
        saturate(bridge, ready, stop)
    };
    between_links("none, socket", unimpaired, 64, None, saturated_by_socket);
}

/// Prints for how long the bridge's core stops a thread.
fn stops() {
    let reader = thread::spawn(|| {
        on_core(1);
        let since = Instant::now();
        let (mut last, mut stopped, mut longest) = (since, Duration::ZERO, Duration::ZERO);
        while since.elapsed() < ROUND {
            let now = Instant::now();
            let gap = now - last;
            if gap > STOPPED {
                stopped += gap;
                longest = longest.max(gap);
            }
            last = now;
        }
        let share = 100.0 * stopped.as_secs_f64() / ROUND.as_secs_f64();
        println!(
            "the bridge's core stops a thread for {share:.1} % of its time, and {} us at most",
            longest.as_micros()
        );
    });
    reader.join().expect("a clock can be read");
}

/// A port that sends frame after frame.
fn by_socket(interface: &str) -> LinkPort {
    let none = LinkOffloads {
        tso: false,
        uso: false,
    };
    let ports = LinkPort::open(interface, 1, none);
    let mut port = ports.unwrap_or_else(|error| panic!("{error}")).remove(0);
    port.keep_times();
    port
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "ip {arguments}"
    );
}

fn profile(a_to_b: &Impairment) -> Profile {
    Profile {
        a_to_b: a_to_b.clone(),
        ..Profile::none()
    }
}

/// A port that lends the same frame, in batches, or has none; and drops what it sends.
struct Endless {
    frame: Vec<u8>,
    bytes: usize,
    left: usize,
}

impl BridgePort for Endless {
    fn recv_timed(&mut self) -> io::Result<(&mut [u8], usize, Option<u64>)> {
        if self.bytes == 0 || self.left == 0 {
            self.left = BATCH_FRAMES;
            return Err(ErrorKind::WouldBlock.into());
        }
        self.left -= 1;
        Ok((&mut self.frame, VNET_HEADER_BYTES + self.bytes, None))
    }
}

impl ClearPort for Endless {
    fn recv<'a>(&'a mut self, _: &'a mut [u8]) -> io::Result<(&'a mut [u8], usize)> {
        let (frame, bytes, _) = self.recv_timed()?;
        Ok((frame, bytes))
    }

    fn send(&mut self, _: &VnetHeader, headers: &[u8], _: &[&[u8]]) -> io::Result<()> {
        std::hint::black_box(headers);
        Ok(())
    }

    fn joinable(&self) -> Joinable {
        Joinable::NONE
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// Frames per second through the bridge alone.
fn alone(impairment: &Impairment, bytes: usize) -> f64 {
    let port = |bytes| Endless {
        frame: vec![0; VNET_HEADER_BYTES + MTU + 14 + CLEAR_ROOM_BYTES],
        bytes,
        left: BATCH_FRAMES,
    };
    let ports = [port(bytes), port(0)];
    let mut bridge = Bridge::new(&profile(impairment), MTU + 14, ports, Monotonic::new());
    let since = Instant::now();
    while since.elapsed() < ROUND {
        for _ in 0..100 {
            bridge.step().expect("memory has no errors");
        }
    }
    let elapsed = since.elapsed().as_secs_f64();
    bridge.end().a_to_b.received as f64 / elapsed
}

fn on_core(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core).expect("the set has room");
    sched_setaffinity(Pid::from_raw(0), &cores).expect("the machine has two cores");
}

fn between_links(
    name: &str,
    impairment: &Impairment,
    frame_bytes: u16,
    load: Option<u64>,
    saturated: fn(&BridgeSpec, &Sender<()>, &Stop) -> Impaired,
) {
    let stop = Stop::new().expect("there are descriptors");
    let spec = BridgeSpec {
        interfaces: ["p0", "p1"].map(str::to_owned),
        frame_bytes: MTU + 22,
        profile: profile(impairment),
    };
    let (ready, is_ready) = channel();
    let stopped = stop.clone();
    let bridge = thread::spawn(move || {
        on_core(1);
        let impaired = match load {
            None => saturated(&spec, &ready, &stopped),
            Some(_) => as_program(&spec, ready, &stopped),
        };
        let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every thread has one");
        (impaired.a_to_b, Duration::from(cpu).as_secs_f64())
    });
    is_ready.recv().expect("the bridge opens its ports");
    let never = Stop::new().expect("there are descriptors");
    let sender = thread::spawn(move || {
        on_core(0);
        let text = serde_json::to_string(&send(frame_bytes, load)).expect("plain data");
        let mut output = Output::new(None);
        serve(&text, &mut output, &never).unwrap_or_else(|error| panic!("{error}"));
        let report: traffic_spec::Report = output.report();
        report.sent.expect("a sender reports what it sent")
    });
    let sent = sender.join().expect("the sender does not panic");
    thread::sleep(Duration::from_millis(100));
    stop.raise();
    let (counts, cpu_s): (Counts, f64) = bridge.join().expect("the bridge does not panic");
    let per_s = (counts.received - counts.lost_by_tester) as f64 / cpu_s;
    let gbits = per_s * f64::from(frame_bytes - 4) * 8.0 / 1e9;
    let load = load.map_or("most".to_owned(), |load| load.to_string());
    println!(
        "  {name:12} {frame_bytes:>5} B {load:>8} {:>9} {:>8.2} {gbits:>8.1} {:>9} {:>8.1}",
        sent.frames * 1_000_000_000 / sent.elapsed_ns.max(1),
        per_s / 1e6,
        counts.lost_by_tester,
        counts.added_ns_p99 as f64 / 1e3
    );
}

/// The bridge as `cipherbench impair` runs it.
fn as_program(spec: &BridgeSpec, ready: Sender<()>, stop: &Stop) -> Impaired {
    let text = serde_json::to_string(spec).expect("a specification is plain data");
    let mut output = Output::new(Some(ready));
    serve_bridge(&text, &mut output, stop).unwrap_or_else(|error| panic!("{error}"));
    output.report()
}

/// The same bridge with full batches.
fn saturated(spec: &BridgeSpec, ready: &Sender<()>, stop: &Stop) -> Impaired {
    let bridge = Bridge::open(spec).unwrap_or_else(|error| panic!("{error}"));
    saturate(bridge, ready, stop)
}

fn saturate(mut bridge: Bridge<LinkPort, Monotonic>, ready: &Sender<()>, stop: &Stop) -> Impaired {
    ready.send(()).expect("the test waits for it");
    while !stop.is_raised() {
        thread::sleep(GATHER);
        for _ in 0..GATHERED_BATCHES {
            bridge.step().unwrap_or_else(|error| panic!("{error}"));
        }
    }
    bridge.end()
}

fn send(frame_bytes: u16, frames_per_s: Option<u64>) -> Spec {
    let send = Send {
        addresses: Addresses {
            source_mac: [2, 0, 0, 0, 0, 1],
            target_mac: [2, 0, 0, 0, 0, 2],
            source: Ipv4Addr::new(10, 1, 0, 1).into(),
            target: Ipv4Addr::new(10, 2, 0, 1).into(),
        },
        frames: TestFrames {
            mix: FrameMix::fixed(frame_bytes),
            flows: 100,
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
    };
    Spec {
        interface: "a".to_owned(),
        port: None,
        threads: 1,
        tag: 1,
        role: Role::Send(send),
    }
}
