//! Stations as the binary runs them: from a specification to a report, over rings in memory and a
//! veth pair.

use crate::wire_tap::{KeyPair, esp, receive, send};
use nix::sched::{CloneFlags, setns, unshare};
use port::{
    FramePortKind, FramePortStats, FrameReceiver, FrameSender, OpenFrames, Packets, Stop,
    memory_frame_pair, open_receivers,
};
use std::fs::{File, read_to_string};
use std::io::{self, Write};
use std::net::UdpSocket;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use traffic::{
    KeyUse, Keys, ServeError, TrafficError, analysers, generators, receive_all, send_all,
    sender_threads, serve,
};
use traffic_spec::{
    Attack, AttackKind, Attacked, Bins, Peer, READY, Receive, Report, Role, SealedForm, Send, Spec,
    intended_by_bin,
};
use wire::mix::FrameMix;

const TAG: u16 = 500;
const BIN_NS: u64 = 1_000_000;

#[test]
fn several_threads_send_and_receive_over_memory() {
    let keys = KeyPair::new();
    for lanes in [None, Some(4)] {
        let mut send = send(true, FrameMix::fixed(100));
        send.frames.flows = 9;
        send.frames_per_s = Some(200_000);
        send.duration_ns = 100_000_000;
        send.peer = lanes.map(|lanes| esp(&keys.a, false, lanes));
        let receive = Receive {
            expected: Some(20_000),
            peer: lanes.map(|lanes| esp(&keys.b, false, lanes)),
            first_frames: Some(5000),
            bins: Some(Bins {
                width_ns: BIN_NS,
                most: 102,
            }),
            ..receive(9)
        };
        let threads = sender_threads(&send, 2);
        assert_eq!(threads, 2);
        let (mut senders, mut receivers): (Vec<_>, Vec<_>) =
            (0..threads).map(|_| memory_frame_pair(256)).unzip();
        let open = |esp: &Option<_>| {
            esp.as_ref()
                .map(|esp| Keys::open(esp, KeyUse::Seal).unwrap())
        };
        let (send_keys, receive_keys) = (open(&send.peer), open(&receive.peer));
        let generators = generators(&send, TAG, threads, send_keys.as_ref()).unwrap();
        let analysers = analysers(&receive, TAG, threads, receive_keys.as_ref()).unwrap();
        let stop = Stop::new().unwrap();
        let (sent, received) = thread::scope(|scope| {
            let sent = scope.spawn(|| send_all(generators, &mut senders, &stop).unwrap());
            let keys = receive_keys.as_ref();
            let received = receive_all(&receive, analysers, &mut receivers, keys, &stop).unwrap();
            (sent.join().unwrap(), received)
        });
        assert_eq!((sent.intended, sent.frames), (20_000, 20_000));
        assert_eq!((received.frames, received.then_frames), (20_000, 15_000));
        assert_eq!(received.frame_bytes, sent.frame_bytes);
        assert_eq!((received.reordered, received.duplicated), (0, 0));
        assert!(received.refused.is_empty());
        let (first, intended) = intended_by_bin(&send, 2, sent.start_ns, BIN_NS);
        let by_bin: Vec<u64> = received.bins.iter().map(|bin| bin.frames).collect();
        assert_eq!((received.first_bin, by_bin), (first, intended));
    }
}

/// The behaviour of an endless port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Works,
    Fails,
    Panics,
}

impl FrameSender for Fate {
    fn send(&mut self, count: usize, _: impl FnMut(&mut [u8]) -> usize) -> io::Result<usize> {
        match self {
            Self::Works => Ok(count),
            Self::Fails => Err(io::ErrorKind::NotConnected.into()),
            Self::Panics => panic!("as it should"),
        }
    }

    fn stats(&self) -> FramePortStats {
        FramePortStats::default()
    }
}

#[test]
fn a_sender_that_fails_or_panics_ends_the_others() {
    for fate in [Fate::Fails, Fate::Panics] {
        let mut send = send(false, FrameMix::fixed(100));
        send.frames.flows = 2;
        send.frames_per_s = None;
        send.duration_ns = u64::MAX / 2;
        let generators = generators(&send, TAG, 2, None).unwrap();
        let stop = Stop::new().unwrap();
        let (end, has_ended) = channel();
        let raised = stop.clone();
        let all = thread::spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| {
                send_all(generators, &mut [Fate::Works, fate], &raised)
            }));
            end.send(()).unwrap();
            result
        });
        let ended = has_ended.recv_timeout(Duration::from_secs(20));
        stop.raise();
        let result = all.join().unwrap();
        assert!(ended.is_ok(), "the other one goes on");
        match fate {
            Fate::Fails => assert!(matches!(result, Ok(Err(TrafficError::PortGone(_))))),
            _ => assert!(result.is_err(), "a panic goes on to the caller"),
        }
    }
}

/// A standard output whose lines a test reads.
struct Lines {
    line: Vec<u8>,
    lines: Sender<String>,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<_> = self.line.drain(..=end).collect();
            let line = String::from_utf8(line).unwrap().trim_end().to_owned();
            // If the receiver is gone, its thread has failed by itself.
            let _ = self.lines.send(line);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A station on a thread, and the lines that it prints.
pub(crate) struct Station {
    thread: thread::JoinHandle<Result<(), ServeError>>,
    lines: Receiver<String>,
    stop: Stop,
}

impl Station {
    pub(crate) fn start(
        interface: &str,
        port: Option<FramePortKind>,
        threads: u16,
        role: Role,
    ) -> Self {
        let spec = Spec {
            interface: interface.to_owned(),
            port,
            threads,
            tag: TAG,
            role,
        };
        let input = serde_json::to_string(&spec).unwrap();
        let (sender, lines) = channel();
        let stop = Stop::new().unwrap();
        let raised = stop.clone();
        let output = Lines {
            line: Vec::new(),
            lines: sender,
        };
        let thread = thread::spawn(move || serve(&input, output, &raised));
        Self {
            thread,
            lines,
            stop,
        }
    }

    pub(crate) fn line(&self) -> String {
        let line = self.lines.recv_timeout(Duration::from_secs(20));
        line.expect("the station says something")
    }

    pub(crate) fn report(self) -> Report {
        let report = serde_json::from_str(&self.line()).unwrap();
        self.thread.join().unwrap().unwrap();
        report
    }
}

/// Runs `test` on a thread in a new network namespace, which ends with the thread.
pub(crate) fn in_namespace(test: impl FnOnce() + std::marker::Send + 'static) {
    let test = move || match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => test(),
        Err(error) => eprintln!("SKIPPED: no network namespace here ({error}): run as root"),
    };
    if let Err(panic) = thread::spawn(test).join() {
        resume_unwind(panic);
    }
}

fn ip(arguments: &str) {
    let status = Command::new("ip")
        .args(arguments.split(' '))
        .status()
        .expect("ip is installed");
    assert!(status.success(), "ip {arguments}");
}

pub(crate) fn veth_pair() {
    ip("link add p0 type veth peer name p1");
    for end in ["p0", "p1"] {
        ip(&format!("link set {end} mtu 1600 up"));
    }
}

/// Waits until this many frames have arrived at an interface of this thread's namespace.
fn await_frames(interface: &str, frames: u64) {
    let come = || {
        let counters = read_to_string("/proc/thread-self/net/dev").unwrap();
        let (_, line) = counters.split_once(&format!("{interface}:")).unwrap();
        // Bytes, frames and more.
        let frames = line.split_whitespace().nth(1).unwrap();
        frames.parse::<u64>().unwrap()
    };
    let until = Instant::now() + Duration::from_secs(20);
    while come() < frames {
        assert!(Instant::now() < until, "no frames come to {interface}");
        thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn paced(frames_per_s: u64) -> Send {
    let mut spec = send(false, FrameMix::named("imix").unwrap());
    spec.frames.flows = 50;
    spec.frames.tunnels = 10;
    spec.frames_per_s = Some(frames_per_s);
    spec.duration_ns = 300_000_000;
    spec.burst_ns = 50_000;
    spec
}

#[test]
fn two_stations_agree_about_a_veth_pair() {
    in_namespace(|| {
        veth_pair();
        let keys = KeyPair::new();
        // In clear, sealed in UDP, and sealed bare.
        for carrier in [None, Some((Some(4500), 3)), Some((None, 1))] {
            let peer = |keys| {
                carrier.map(|(port, lanes)| Peer {
                    port,
                    ..esp(keys, false, lanes)
                })
            };
            let send = Send {
                peer: peer(&keys.a),
                ..paced(40_000)
            };
            let receive = Receive {
                expected: Some(12_000),
                peer: peer(&keys.b),
                ..receive(50)
            };
            let receiver = Station::start("p1", None, 1, Role::Receive(receive));
            assert_eq!(receiver.line(), READY);
            let sender = Station::start("p0", None, 2, Role::Send(send.clone()));
            assert_eq!(sender.line(), READY);
            let (sender, receiver) = (sender.report(), receiver.report());

            let sent = sender.sent.unwrap();
            let received = receiver.received.unwrap();
            assert_eq!((sent.intended, sent.frames), (12_000, 12_000));
            assert_eq!(sent.frame_bytes, 1000 * send.frames.mix.round_bytes());
            assert_eq!(received.frames, 12_000);
            assert_eq!(received.frame_bytes, sent.frame_bytes);
            assert_eq!(received.corrupted + received.duplicated + received.stale, 0);
            let timed: u64 = received.latency.iter().map(|(_, frames)| frames).sum();
            assert_eq!(timed, 12_000);
            assert!(sender.port.is_some() && receiver.port.is_some());
            // One thread where two cannot divide three lanes, or one.
            assert_eq!(sender.threads, if carrier.is_some() { 1 } else { 2 });
            assert_eq!(sender.engine.is_some(), carrier.is_some());
            assert_eq!(receiver.engine, sender.engine);
            assert_eq!(sender.port_stats.sent, 12_000);
        }
    });
}

#[test]
fn a_stopped_station_reports_its_counts() {
    in_namespace(|| {
        veth_pair();
        let receiver = Station::start("p1", None, 1, Role::Receive(receive(50)));
        assert_eq!(receiver.line(), READY);
        let endless = Send {
            duration_ns: u64::MAX / 2,
            frames_per_s: Some(10_000),
            ..paced(1)
        };
        let sender = Station::start("p0", None, 1, Role::Send(endless));
        assert_eq!(sender.line(), READY);
        await_frames("p1", 100);
        sender.stop.raise();
        let sent = sender.report().sent.unwrap();
        receiver.stop.raise();
        let received = receiver.report().received.unwrap();
        assert!((1..sent.intended).contains(&sent.frames));
        assert_eq!(received.frames, sent.frames);
    });
}

#[test]
fn af_xdp_receives_short_frames_where_the_mtu_allows_long_ones() {
    in_namespace(|| {
        veth_pair();
        ip("link set p1 mtu 9216");
        let receive = Receive {
            expected: Some(1000),
            ..receive(1)
        };
        let spec = |receive: &Receive| Spec {
            interface: "p1".to_owned(),
            port: Some(FramePortKind::Xdp),
            threads: 1,
            tag: TAG,
            role: Role::Receive(receive.clone()),
        };
        let stop = Stop::new().unwrap();
        let any = serde_json::to_string(&spec(&receive)).unwrap();
        let refused = serve(&any, Vec::new(), &stop).unwrap_err().to_string();
        assert!(refused.contains("`ip link set p1 mtu 3826`"), "{refused}");

        let short = Receive {
            frames: send(false, FrameMix::fixed(1518)).frames,
            ..receive
        };
        stop.raise();
        let input = serde_json::to_string(&spec(&short)).unwrap();
        let served = serve(&input, Vec::new(), &stop).map_err(|error| error.to_string());
        if served
            .as_ref()
            .is_err_and(|reason| reason.contains("CAP_BPF"))
        {
            eprintln!("SKIPPED: {served:?}");
            return;
        }
        served.unwrap();
        let receiver = Station::start("p1", Some(FramePortKind::Xdp), 1, Role::Receive(short));
        assert_eq!(receiver.line(), READY);
        let send = Send {
            frames_per_s: Some(10_000),
            duration_ns: 100_000_000,
            ..send(false, FrameMix::fixed(1518))
        };
        let sender = Station::start("p0", None, 1, Role::Send(send));
        assert_eq!(sender.line(), READY);
        assert_eq!(sender.report().sent.unwrap().frames, 1000);
        let report = receiver.report();
        assert_eq!(report.port, Some(FramePortKind::Xdp));
        assert_eq!(report.received.unwrap().frames, 1000);
    });
}

/// Sends sealed packets as a DUT does, by a UDP socket, until stopped.
fn seal_until(ended: &AtomicBool) {
    let dut = UdpSocket::bind("10.3.0.1:4500").unwrap();
    for number in 1u32.. {
        if ended.load(Relaxed) {
            return;
        }
        let mut packet = vec![0xda; 200];
        packet[..8].copy_from_slice(&(0xcafe_0000_u64 << 32 | u64::from(number)).to_be_bytes());
        dut.send_to(&packet, "10.3.0.2:4500").unwrap();
        thread::yield_now();
    }
}

/// Frames of the attack seen by a port on the receiving interface: ESP to port 4500, by whether
/// their sequence number is that of the latest or far ahead.
fn come_ahead(port: &mut impl FrameReceiver) -> (u64, u64) {
    let (mut ahead, mut others) = (0, 0);
    while let Ok(frames) = port.recv(|frame| {
        if frame.len() == 14 + 20 + 8 + 200 && frame[42..46] == [0xca, 0xfe, 0, 0] {
            let is_ahead = frame[47] != 0 && frame[241] == 0xdb;
            ahead += u64::from(is_ahead);
            others += u64::from(!is_ahead);
        }
    }) {
        assert!(frames > 0);
    }
    (ahead, others)
}

#[test]
fn an_attacker_sends_what_it_captured_and_captures_nothing_that_it_sent() {
    in_namespace(|| {
        veth_pair();
        // The other end is in this namespace too, where the address is not assigned.
        ip("address add 10.3.0.1/24 dev p0");
        ip("neighbour add 10.3.0.2 lladdr 02:00:00:00:00:07 dev p0");
        let attack = Attack {
            kind: AttackKind::BadIcv,
            form: SealedForm::Esp,
            ports: vec![4500],
            packets_per_s: 20_000,
            duration_ns: 200_000_000,
        };
        let wanted = OpenFrames {
            interface: "p1",
            kind: Some(FramePortKind::Packet),
            max_frame_bytes: 1514,
            threads: 1,
            packets: Packets::Udp(&[4500]),
        };
        let (mut sink, _) = open_receivers(&wanted).unwrap();
        let attacker = Station::start("p0", None, 1, Role::Attack(attack.clone()));
        assert_eq!(attacker.line(), READY);
        let ended = AtomicBool::new(false);
        let namespace = File::open("/proc/thread-self/ns/net").unwrap();
        let report = thread::scope(|scope| {
            scope.spawn(|| {
                setns(&namespace, CloneFlags::CLONE_NEWNET).unwrap();
                seal_until(&ended);
            });
            let report = attacker.report();
            ended.store(true, Relaxed);
            report
        });
        let attacked = report.attacked.unwrap();
        // All, unless the machine delayed it at the end.
        assert!((1..=4000).contains(&attacked.sent), "{attacked:?}");
        assert_eq!(report.port_stats.sent, attacked.sent);
        assert!(attacked.elapsed_ns <= 400_000_000, "{attacked:?}");
        let (mut ahead, mut others) = (0, 0);
        let until = Instant::now() + Duration::from_secs(20);
        while ahead < attacked.sent && Instant::now() < until {
            let (more, other) = come_ahead(&mut sink[0]);
            (ahead, others) = (ahead + more, others + other);
        }
        assert_eq!(ahead, attacked.sent);
        // Less than all sealed packets, and none of the attacker's own.
        assert!((1..=others).contains(&attacked.captured), "{attacked:?}");

        // Again without a sealing DUT.
        let silent = Attack {
            duration_ns: u64::MAX,
            ..attack
        };
        let attacker = Station::start("p0", None, 1, Role::Attack(silent));
        assert_eq!(attacker.line(), READY);
        attacker.stop.raise();
        assert_eq!(attacker.report().attacked, Some(Attacked::default()));
    });
}

#[test]
fn what_cannot_be_served_is_refused_with_a_reason() {
    in_namespace(|| {
        veth_pair();
        let stop = Stop::new().unwrap();
        let error = |spec: &Spec| {
            let input = serde_json::to_string(spec).unwrap();
            let mut output = Vec::new();
            let error = serve(&input, &mut output, &stop).unwrap_err();
            assert!(output.is_empty());
            error
        };
        let spec = |interface: &str, role| Spec {
            interface: interface.to_owned(),
            port: None,
            threads: 1,
            tag: TAG,
            role,
        };
        let gone = error(&spec("p7", Role::Send(paced(1))));
        assert!(gone.to_string().contains("`p7`"), "{gone}");
        let mut memory = spec("p0", Role::Receive(receive(1)));
        memory.port = Some(FramePortKind::Memory);
        assert!(matches!(error(&memory), ServeError::Port(_)));
        let mut long = paced(1);
        long.frames.mix = FrameMix::fixed(9000);
        assert!(matches!(
            error(&spec("p0", Role::Send(long))),
            ServeError::Port(_)
        ));
        let mut none = paced(1);
        none.frames.flows = 0;
        let none = error(&spec("p0", Role::Send(none)));
        assert!(
            matches!(none, ServeError::Traffic(TrafficError::Flows { .. })),
            "{none}"
        );
        let mut socket = spec(
            "p0",
            Role::Attack(Attack {
                kind: AttackKind::Replay,
                form: SealedForm::WireGuard,
                ports: vec![51820],
                packets_per_s: 1,
                duration_ns: 1,
            }),
        );
        socket.port = Some(FramePortKind::Socket);
        let socket = error(&socket).to_string();
        assert!(socket.contains("UDP socket cannot"), "{socket}");
        let text = serve("{", Vec::new(), &stop).unwrap_err();
        assert!(matches!(text, ServeError::Spec(_)));
    });
}
