//! Known faults of offloads, rebuilt in a user-space forwarder between namespaces, and found.
//!
//! ```text
//! A a0 ── a1 gw1 ─ r0 (TUN: the replica) ─ w0 ── w1 gw2 b1 ── b0 B
//! ```
//!
//! Packets from A to B pass the replica, which reads and writes super-packets as a tunnel in user
//! space does. Each fault is there only while the kernel hands it super-packets, or while GRO is on
//! at `a1`: the offload decides.
//!
//! This executable is also the program that the nodes start: `probe` and `replica FAULT`.

#![forbid(unsafe_code)]

mod place;

use crate::place::Place as Namespace;
use libtest_mimic::{Arguments, Completion, Trial};
use offloads::{
    DirectedQuestion, Examination, OnNodes, PathUnderTest, Place, Question, Report, Setting,
    Subject, examine,
};
use port::{
    CLEAR_BUFFER_BYTES, CLEAR_ROOM_BYTES, ClearPort, Tun, TunOffloads, TunSettings, wait_readable,
};
use probe::{Check, Datagrams, Direction};
use std::io::Read;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testbed::ethtool::{Feature, features};
use testbed::protocol::{Program, Ready, THIS_PROGRAM};
use testbed::{Node, NodeId};
use wire::checksum;
use wire::headers::{IpView, UDP, put16};
use wire::segment::Segmenter;
use wire::vnet::{Gso, VNET_HEADER_BYTES, VnetHeader};

/// Time of one examination; it ends as soon as all is explained.
const TIME: Duration = Duration::from_secs(300);
const LIMIT: Duration = Duration::from_secs(10);
/// MTU of the replica.
const MTU_BYTES: usize = 1500;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["probe"] => {
            let mut spec = String::new();
            std::io::stdin().read_to_string(&mut spec).unwrap();
            let played = probe::play(&spec, std::io::stdout());
            return exit(played.map_err(|error| error.to_string()));
        }
        ["replica", fault] => {
            replica(Fault::named(fault));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let lacks =
        (!nix::unistd::geteuid().is_root()).then(|| "namespaces are made by root only".to_owned());
    if let Some(reason) = &lacks {
        eprintln!("SKIPPED: the replicas of known faults: {reason}");
    }
    let trials = TESTS.iter().map(|&(name, test)| {
        let lacks = lacks.clone();
        Trial::ignorable_test(name, move || {
            if let Some(reason) = lacks {
                return Ok(Completion::ignored_with(reason));
            }
            test();
            Ok(Completion::Completed)
        })
        // Each takes two minutes: `make replicas`.
        .with_ignored_flag(true)
    });
    let mut arguments = Arguments::from_args();
    // Rates are compared, so that labs must not run side by side.
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn exit(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(3)
        }
    }
}

const TESTS: [(&str, fn()); 7] = [
    (
        "a_healthy_path_has_no_finding_and_is_restored",
        a_healthy_path_has_no_finding_and_is_restored,
    ),
    ("oversized_segments_are_found", oversized_segments_are_found),
    (
        "merging_across_ecn_and_ttl_is_found",
        merging_across_ecn_and_ttl_is_found,
    ),
    ("lost_super_packets_are_found", lost_super_packets_are_found),
    ("a_wrong_udp_length_is_found", a_wrong_udp_length_is_found),
    (
        "datagrams_without_checksums_that_do_not_join_are_found",
        datagrams_without_checksums_that_do_not_join_are_found,
    ),
    (
        "a_black_hole_of_path_mtu_is_found",
        a_black_hole_of_path_mtu_is_found,
    ),
];

/// The known faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// TSO over a tunnel: segments longer than the link's MTU.
    Oversized,
    /// GRO that merges datagrams of other ECN or TTL into the first one's run.
    Merging,
    /// A bridge that drops packets longer than its MTU, super-packets among them.
    DropsLong,
    /// USO that leaves a super-packet's segment length in the shorter last one.
    WrongLength,
    /// With GRO, datagrams without checksums take a slow path each.
    SlowUnchecked,
}

impl Fault {
    const ALL: [(&str, Self); 6] = [
        ("none", Self::None),
        ("oversized", Self::Oversized),
        ("merging", Self::Merging),
        ("drops-long", Self::DropsLong),
        ("wrong-length", Self::WrongLength),
        ("slow-unchecked", Self::SlowUnchecked),
    ];

    fn named(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.expect("a fault's name").1
    }

    fn name(self) -> &'static str {
        let found = Self::ALL.into_iter().find(|(_, known)| *known == self);
        found.expect("every fault has a name").0
    }
}

/// The forwarder: reads packets that came over a1, and gives them back for w0.
fn replica(fault: Fault) {
    let ip = |words: &str| {
        let status = Command::new("ip").args(words.split(' ')).status().unwrap();
        assert!(status.success(), "ip {words}");
    };
    let settings = TunSettings {
        name: "r0",
        queues: 1,
    };
    let mut tun = Tun::create(&settings).unwrap().remove(0);
    ip(&format!("link set r0 mtu {MTU_BYTES} up"));
    let all = TunOffloads {
        tunnel: false,
        ..TunOffloads::ALL
    };
    assert_eq!(
        tun.enable_offloads(all),
        all,
        "this kernel lacks an offload"
    );
    ip("route add default dev r0 table 100");
    ip("rule add iif a1 lookup 100");
    println!("ready");
    let gro = Arc::new(AtomicBool::new(false));
    if matches!(fault, Fault::Merging | Fault::SlowUnchecked) {
        let gro = Arc::clone(&gro);
        std::thread::spawn(move || watch_gro(&gro));
    }
    let mut forwarder = Forwarder { fault, run: None };
    let mut buffer = vec![0; CLEAR_BUFFER_BYTES + CLEAR_ROOM_BYTES];
    loop {
        let fd = tun.readable().unwrap();
        wait_readable(&[fd], None).unwrap();
        while let Ok((bytes, length)) = tun.recv(&mut buffer) {
            let bytes = bytes[..length].to_vec();
            let (header, packet) = bytes.split_first_chunk::<VNET_HEADER_BYTES>().unwrap();
            let Some(vnet) = VnetHeader::parse(header) else {
                continue;
            };
            let on = gro.load(Ordering::Relaxed);
            for (vnet, packet) in forwarder.pass(vnet, packet.to_vec(), on) {
                // Router solicitations of the interface itself among others.
                let _ = tun.send(&vnet, &packet, &[]);
            }
        }
    }
}

/// Follows whether GRO is on at a1.
fn watch_gro(gro: &AtomicBool) {
    loop {
        let printed = Command::new("ethtool").args(["-k", "a1"]).output().unwrap();
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        let gro_is_on =
            |(name, feature): (&str, Feature)| name == "generic-receive-offload" && feature.on;
        let on = features(&text).any(gro_is_on);
        gro.store(on, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(20));
    }
}

struct Forwarder {
    fault: Fault,
    /// Ports, TOS and TTL of the run that a merging GRO would continue, and when it began.
    run: Option<([u8; 4], u8, u8, Instant)>,
}

impl Forwarder {
    fn pass(
        &mut self,
        vnet: VnetHeader,
        mut packet: Vec<u8>,
        gro: bool,
    ) -> Vec<(VnetHeader, Vec<u8>)> {
        let Some(view) = IpView::parse(&packet).filter(|view| view.version == 4) else {
            return vec![(vnet, packet)];
        };
        match self.fault {
            Fault::Oversized if vnet.gso == Gso::Tcp4 => {
                // More payload per segment than the sender asked for.
                let longer = VnetHeader {
                    gso_size: vnet.gso_size + 160,
                    ..vnet
                };
                singles(cut(&longer, &packet))
            }
            // TCP adapts to a bridge that drops the longest super-packets only, by shorter ones.
            Fault::DropsLong if packet.len() > MTU_BYTES => Vec::new(),
            Fault::WrongLength if vnet.gso == Gso::UdpL4 => {
                let mut segments = cut(&vnet, &packet);
                if let Some(last) = segments.last_mut() {
                    put16(last, view.header_bytes + 4, vnet.gso_size + 8);
                }
                singles(segments)
            }
            Fault::Merging if gro && view.protocol == UDP => {
                self.merge(&view, &mut packet);
                vec![(vnet, packet)]
            }
            Fault::SlowUnchecked if gro && view.has_no_checksum(&packet) => {
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_micros(400) {
                    std::hint::spin_loop();
                }
                vec![(vnet, packet)]
            }
            _ => vec![(vnet, packet)],
        }
    }

    /// Gives a datagram the TOS and TTL of the one that began its run, as segments of a merged
    /// packet have.
    fn merge(&mut self, view: &IpView, packet: &mut [u8]) {
        let ports: [u8; 4] = packet[view.header_bytes..][..4].try_into().unwrap();
        let continues = self.run.filter(|(known, _, _, began)| {
            *known == ports && began.elapsed() < Duration::from_millis(2)
        });
        match continues {
            Some((_, tos, ttl, _)) => {
                (packet[1], packet[8]) = (tos, ttl);
                packet[10..12].fill(0);
                let header = &packet[..view.header_bytes];
                let sum = checksum::finish(checksum::portable(header, 0));
                packet[10..12].copy_from_slice(&sum);
            }
            None => self.run = Some((ports, packet[1], packet[8], Instant::now())),
        }
    }
}

fn cut(vnet: &VnetHeader, packet: &[u8]) -> Vec<Vec<u8>> {
    let Ok(mut segmenter) = Segmenter::new(vnet, packet) else {
        return Vec::new();
    };
    let mut buffer = packet.to_vec();
    let mut segments = Vec::new();
    while let Some(range) = segmenter.next(&mut buffer, checksum::portable) {
        segments.push(buffer[range].to_vec());
    }
    segments
}

fn singles(packets: Vec<Vec<u8>>) -> Vec<(VnetHeader, Vec<u8>)> {
    packets
        .into_iter()
        .map(|packet| (VnetHeader::PLAIN, packet))
        .collect()
}

/// A path with the replica in it.
struct Replicated {
    places: [Namespace; 4],
}

impl Replicated {
    fn new(fault: Fault) -> Self {
        let ids = [NodeId::A, NodeId::Gw1, NodeId::Gw2, NodeId::B];
        let places = ids.map(Namespace::new);
        let [a, gw1, gw2, b] = &places;
        for (near, far, [one, other], net) in [
            (a, gw1, ["a0", "a1"], "10.1.0"),
            (gw1, gw2, ["w0", "w1"], "10.3.0"),
            (b, gw2, ["b0", "b1"], "10.2.0"),
        ] {
            let pid = far.pid();
            near.succeed(&format!(
                "ip link add {one} type veth peer name {other} netns {pid}"
            ));
            for (place, interface, host) in [(near, one, 2), (far, other, 1)] {
                place.succeed(&format!("ip address add {net}.{host}/24 dev {interface}"));
                place.succeed(&format!("ip link set {interface} up"));
            }
        }
        a.succeed("ip route add default via 10.1.0.1");
        b.succeed("ip route add default via 10.2.0.1");
        gw1.succeed("ip route add 10.2.0.0/24 via 10.3.0.1");
        gw2.succeed("ip route add 10.1.0.0/24 via 10.3.0.2");
        for gateway in [gw1, gw2] {
            gateway.succeed("sysctl -qw net.ipv4.ip_forward=1");
        }
        let replica = Program {
            ready: Ready::Line("ready".to_owned()),
            ..Program::new([THIS_PROGRAM, "replica", fault.name()])
        };
        let node: &dyn Node = gw1;
        node.start(replica, LIMIT).unwrap();
        // Neighbours are known before anything is counted.
        a.succeed("ping -c 1 -w 10 10.2.0.2");
        Self { places }
    }

    fn place(&self, id: NodeId) -> &Namespace {
        let mut places = self.places.iter();
        places.find(|place| place.id() == id).unwrap()
    }

    fn run(&self, node: NodeId, words: &str) -> String {
        self.place(node).succeed(words)
    }

    /// Examines the path; the interfaces of gw2, and w0, are left as they are.
    fn examine(&self, links: Vec<[Place; 2]>) -> Examined {
        let place = |(node, interface): (NodeId, &str)| Place {
            node,
            interface: interface.to_owned(),
        };
        let others = [
            (NodeId::Gw1, "w0"),
            (NodeId::Gw2, "w1"),
            (NodeId::Gw2, "b1"),
            (NodeId::B, "b0"),
        ];
        let path = PathUnderTest {
            target: [10, 2, 0, 2].into(),
            beside: others.map(place).to_vec(),
            links,
        };
        let nodes = self.places.iter().map(|place| place as &dyn Node);
        let mut subject = OnNodes::new(nodes.collect(), path).unwrap();
        let begin = Instant::now();
        let result = examine(&mut subject, TIME, &mut |line| eprintln!("{line}")).unwrap();
        let report = Report {
            path: "replica",
            settings: subject.settings(),
            refused: subject.refused(),
            result: &result,
            took: begin.elapsed(),
        };
        let text = report.text();
        eprintln!("{text}");
        assert!(serde_json::from_str::<serde_json::Value>(&report.json()).is_ok());
        assert_eq!(result.pairs_covered, result.pairs);
        Examined {
            settings: subject.settings().to_vec(),
            result,
            text,
        }
    }

    fn features(&self) -> Vec<String> {
        let places = [(NodeId::A, "a0"), (NodeId::Gw1, "a1"), (NodeId::Gw1, "r0")];
        let each = places.iter();
        each.map(|(node, interface)| self.run(*node, &format!("ethtool -k {interface}")))
            .collect()
    }
}

struct Examined {
    settings: Vec<Setting>,
    result: Examination,
    text: String,
}

impl Examined {
    /// Asserts that a symptom in force is explained by one or two settings, and that each of them
    /// is one of the named.
    fn names(&self, asked: DirectedQuestion, fault: &str, settings: &[&str]) {
        let about = self.result.findings.iter().filter(|finding| {
            let mut symptoms = finding.symptoms.iter();
            symptoms.any(|symptom| symptom.asked == asked && symptom.words.starts_with(fault))
        });
        let about: Vec<_> = about.filter(|finding| finding.in_force).collect();
        assert!(!about.is_empty(), "{asked} {fault}:\n{}", self.text);
        for finding in about {
            let names: Vec<_> = finding
                .causes
                .iter()
                .map(|cause| self.settings[cause.factor].name())
                .collect();
            assert!((1..=2).contains(&names.len()), "{names:?}");
            assert!(
                names.iter().all(|name| settings.contains(&&**name)),
                "{names:?}"
            );
            assert!(finding.confirmed, "{names:?}");
        }
    }
}

const fn up(check: Check) -> DirectedQuestion {
    DirectedQuestion {
        question: Question::Probe(check),
        direction: Direction::Up,
    }
}

fn a_healthy_path_has_no_finding_and_is_restored() {
    let lab = Replicated::new(Fault::None);
    let before = lab.features();
    let examined = lab.examine(Vec::new());
    // What segmentation gains is no fault; nothing breaks.
    for finding in &examined.result.findings {
        assert!(!finding.in_force, "{}", examined.text);
        // The kernel lowers the TTL of the first datagram of a forwarded list only.
        let mut causes = finding.causes.iter();
        let lists = causes.any(|cause| {
            let name = examined.settings[cause.factor].name();
            name.starts_with("rx-gro-list ")
        });
        let is_known = |words: &str| lists && words.ends_with("with another TTL");
        let mut symptoms = finding.symptoms.iter();
        let harmless = symptoms.all(|it| it.words.starts_with("slow") || is_known(&it.words));
        assert!(harmless, "{}", examined.text);
    }
    assert_eq!(lab.features(), before);
}

fn oversized_segments_are_found() {
    let examined = Replicated::new(Fault::Oversized).examine(Vec::new());
    examined.names(
        up(Check::Tcp),
        "",
        &["tso of gw1/r0", "tso of a/a0", "gso of a/a0"],
    );
    assert!(
        examined.text.contains("ethtool -K r0 tso off"),
        "{}",
        examined.text
    );
}

fn merging_across_ecn_and_ttl_is_found() {
    let lab = Replicated::new(Fault::Merging);
    lab.run(NodeId::Gw1, "ethtool -K a1 gro on");
    let examined = lab.examine(Vec::new());
    let marked = up(Check::Udp(Datagrams::Marked));
    examined.names(marked, "corrupted", &["gro of gw1/a1"]);
}

fn lost_super_packets_are_found() {
    let examined = Replicated::new(Fault::DropsLong).examine(Vec::new());
    examined.names(
        up(Check::Tcp),
        "",
        &["tso of gw1/r0", "tso of a/a0", "gso of a/a0"],
    );
}

fn a_wrong_udp_length_is_found() {
    let examined = Replicated::new(Fault::WrongLength).examine(Vec::new());
    let known = [
        "tx-udp-segmentation of gw1/r0",
        "tx-udp-segmentation of a/a0",
        "tx of a/a0",
    ];
    examined.names(up(Check::Udp(Datagrams::Trains)), "lost", &known);
}

fn datagrams_without_checksums_that_do_not_join_are_found() {
    let lab = Replicated::new(Fault::SlowUnchecked);
    lab.run(NodeId::Gw1, "ethtool -K a1 gro on");
    let examined = lab.examine(Vec::new());
    let unchecked = up(Check::Udp(Datagrams::Unchecked));
    examined.names(unchecked, "slow", &["gro of gw1/a1"]);
}

/// gw2 loses the reports of its routers: a filter that forbids ICMP.
fn a_black_hole_of_path_mtu_is_found() {
    let lab = Replicated::new(Fault::None);
    let rules = "table ip hole { chain out { type filter hook output priority 0; \
                 icmp type destination-unreachable drop; }; }";
    let filter = Program::new(["nft", "-f", "-"]).with_input(rules);
    let node: &dyn Node = lab.place(NodeId::Gw2);
    let ended = node.run(filter, LIMIT).unwrap();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let place = |(node, interface): (NodeId, &str)| Place {
        node,
        interface: interface.to_owned(),
    };
    let ends = [(NodeId::B, "b0"), (NodeId::Gw2, "b1")].map(place);
    let examined = lab.examine(vec![ends]);
    let mtu = DirectedQuestion {
        question: Question::Mtu,
        direction: Direction::Up,
    };
    let finding = examined.result.findings.iter().find(|finding| {
        let mut symptoms = finding.symptoms.iter();
        symptoms.any(|symptom| symptom.asked == mtu)
    });
    let finding = finding.unwrap_or_else(|| panic!("{}", examined.text));
    let names: Vec<_> = finding
        .causes
        .iter()
        .map(|cause| examined.settings[cause.factor].name())
        .collect();
    assert_eq!(names, ["MTU of b/b0 and gw2/b1"], "{}", examined.text);
    assert!(
        finding.symptoms[0].words.contains("black hole"),
        "{}",
        examined.text
    );
}
