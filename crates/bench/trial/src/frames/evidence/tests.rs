//! Every check of the path passes on what a good frame test reads, and fails on what it is there to
//! catch.

use super::*;
use crate::evidence::CipherTraffic;
use crate::evidence::tests::fixture::{failing, reported_facts, tunnels};
use crate::links::interfaces_between;
use journal::record::{
    CipherLink, CipherWatch, Cpu, DutWork, EndTraffic, InterfaceCounters, LinkTraffic,
    OpenedPackets, PathSettings, SealedContents, TrialReadings,
};
use plan::{
    Adapter, Cell, Direction, Dut, Encryptor, IpVersion, Load, Measurement, Ports, Procedure,
    Traffic,
};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use testbed::{FrameEnd, Links, NodeId, StationPeer};
use wire::Suite;
use wire::mix::{Contents, FrameMix, TestFrames};

const MS: u64 = 1_000_000;
const FRAMES: u64 = 100_000;
const FRAME_BYTES: u64 = 128;

/// What a good frame test reads; tests spoil one thing each.
struct Fixture {
    cell: Cell,
    test: FrameTest,
    result: FrameResult,
    path: FramePath,
    counters: BTreeMap<String, InterfaceCounters>,
    dut_counters: BTreeMap<String, u64>,
    link: CipherLink,
    watch: CipherWatch,
}

fn encrypting(engine: &str) -> Adapter {
    Adapter::Cipherbench(Encryptor {
        engine: engine.parse().unwrap(),
        ..Encryptor::new(Suite::Aes256Gcm)
    })
}

fn end(node: NodeId, interface: &str, stands_in: bool) -> FrameEnd {
    let address = Ipv4Addr::new(198, 18, 0, 1);
    FrameEnd {
        node,
        interface: interface.to_owned(),
        mac: [2; 6],
        next_hop_mac: [4; 6],
        address,
        test_address: address,
        test_address_v6: address.to_ipv6_mapped(),
        peer: stands_in.then(|| StationPeer {
            keys: testbed::StationKeys::File(String::new()),
            suite: Suite::Aes256Gcm,
            local: address,
            remote: address,
            port: Some(4500),
            lanes: 1,
            tunnels: 1,
        }),
    }
}

/// Packets at the interfaces of the path when all frames came through.
fn on_links(path: &FramePath, duplex: bool) -> BTreeMap<String, EndTraffic> {
    let back = if duplex { FRAMES } else { 0 };
    let names = interfaces_between(path).into_iter().enumerate();
    let counted = names.map(|(place, name)| {
        let [received, sent] = match place % 2 {
            0 => [back, FRAMES],
            _ => [FRAMES, back],
        };
        (name, EndTraffic { received, sent })
    });
    counted.collect()
}

/// Sealed packets by the counters of the gateways that are in the path.
fn sealed_both_ways(path: &FramePath, duplex: bool) -> BTreeMap<String, u64> {
    let back = if duplex { FRAMES } else { 0 };
    let mut counted = BTreeMap::new();
    let mut count = |gateway: &str, sent: u64, received: u64| {
        counted.insert(format!("{gateway}/cipher_tx_packets"), sent);
        counted.insert(format!("{gateway}/cipher_rx_packets"), received);
    };
    if path.source.node == NodeId::A {
        count("gw1", FRAMES, back);
    }
    if path.sink.node == NodeId::B {
        count("gw2", back, FRAMES);
    }
    counted
}

impl Fixture {
    /// A load of which all frames come through.
    fn new(adapter: Adapter, direction: Direction, duplex: bool) -> Self {
        let test = FrameTest {
            traffic: Traffic {
                frames: TestFrames {
                    mix: FrameMix::fixed(128),
                    flows: 1,
                    tunnels: 1,
                    contents: Contents::Fixed,
                },
                ip: IpVersion::V4,
                direction,
                duplex,
                ports: Ports::default(),
            },
            procedure: Procedure::Load(Load {
                frames_per_s: Some(FRAMES),
                duration_ns: 1000 * MS,
            }),
        };
        let encrypts = adapter.encrypts();
        let (source, sink) = match direction {
            Direction::Encrypt => ((NodeId::A, "a0"), (NodeId::Gw2, "w1")),
            Direction::Decrypt => ((NodeId::Gw1, "w0"), (NodeId::B, "b0")),
            Direction::Both => ((NodeId::A, "a0"), (NodeId::B, "b0")),
        };
        let stands_in = |node| encrypts && matches!(node, NodeId::Gw1 | NodeId::Gw2);
        let path = FramePath {
            source: end(source.0, source.1, stands_in(source.0)),
            sink: end(sink.0, sink.1, stands_in(sink.0)),
        };
        let ways = if duplex { 2 } else { 1 };
        let frames = ways * FRAMES;
        let of = |frames| FrameTrial {
            load: FRAMES,
            duration_ns: 1000 * MS,
            elapsed_ns: 1000 * MS,
            intended: frames,
            sent: frames,
            sent_bytes: frames * FRAME_BYTES,
            received: frames,
            received_bytes: frames * FRAME_BYTES,
            ..FrameTrial::default()
        };
        let trial = FrameTrial {
            directions: if duplex {
                vec![of(FRAMES); 2]
            } else {
                Vec::new()
            },
            ..of(frames)
        };
        let stands_beside = |node| path.source.node == node || path.sink.node == node;
        let ip_bytes = frames * (FRAME_BYTES - 18);
        let profile = adapter.profile();
        let crossed = frames * (14 + profile.cipher_packet_bytes(FRAME_BYTES as usize - 18) as u64);
        let is_straight = adapter.is_straight();
        let work = DutWork {
            lost_between_packets: Some(0),
            taken_in_bytes: (duplex || stands_beside(NodeId::A)).then_some(ip_bytes),
            put_out_bytes: (path.source.node == NodeId::A && path.sink.node == NodeId::B
                || !duplex && stands_beside(NodeId::B))
            .then_some(ip_bytes),
            unaccounted_packets: 0,
        };
        let readings = TrialReadings {
            wall_ns: 1100 * MS,
            cipher: (!is_straight).then_some(LinkTraffic {
                packets: frames,
                bytes: crossed,
            }),
            watch: (!is_straight).then(|| CipherWatch {
                foreign_frames: if encrypts { 0 } else { frames },
                ..CipherWatch::default()
            }),
            dut: adapter.encryptor().map(|_| work),
            dut_packets: match adapter.encryptor() {
                Some(_) => sealed_both_ways(&path, duplex),
                None => BTreeMap::new(),
            },
            links: on_links(&path, duplex),
            ..TrialReadings::default()
        };
        let trial = FrameTrial {
            readings: Some(Box::new(readings)),
            ..trial
        };
        let mut fixture = Self {
            cell: Cell {
                id: "cell".to_owned(),
                group: "group".to_owned(),
                coordinates: Vec::new(),
                dut: Dut::new("dut", adapter),
                stations: Some(plan::Stations {
                    mtu: 1500,
                    cores: 1,
                    offloads: false,
                    overlay: plan::Overlay::None,
                    dscp: None,
                }),
                measurement: Measurement::Frames(test.clone()),
                impair: None,
                tune: false,
                estimate_ns: 0,
                calibration: false,
            },
            test,
            result: FrameResult {
                trials: vec![trial.clone(), trial],
                evidence_trial: Some(1),
                ..FrameResult::default()
            },
            path,
            counters: BTreeMap::new(),
            dut_counters: BTreeMap::new(),
            link: CipherLink {
                frames: 300,
                ..CipherLink::default()
            },
            watch: CipherWatch::default(),
        };
        fixture.count(encrypts, duplex);
        fixture
    }

    fn count(&mut self, encrypts: bool, duplex: bool) {
        let back = if duplex { FRAMES } else { 0 };
        let packets = |tx_packets, rx_packets| InterfaceCounters {
            tx_packets,
            rx_packets,
            ..InterfaceCounters::default()
        };
        let name = |end: &FrameEnd| format!("{}/{}", end.node.name(), end.interface);
        let (source, sink) = (name(&self.path.source), name(&self.path.sink));
        self.counters.insert(source, packets(FRAMES, back));
        self.counters.insert(sink, packets(back, FRAMES));
        if !encrypts {
            self.link.marker_frames = 300;
            self.watch.foreign_frames = FRAMES;
            return;
        }
        self.link.esp_frames = 300;
        let readable = self.cell.dut.adapter.encryptor();
        if readable.is_some_and(Encryptor::is_readable) {
            self.link.marker_frames = 300;
        }
        self.link.spis = vec!["c0ffee01".to_owned()];
        self.link.opened = Some(OpenedPackets {
            packets: 24,
            opened: 24,
            between_stations: 24,
            ..OpenedPackets::default()
        });
        self.link.contents = Some(SealedContents {
            packets: 300,
            bytes: 36_000,
            chi_square_milli: 251_700,
            ..SealedContents::default()
        });
        let ip_bytes = FRAMES * (FRAME_BYTES - 18);
        let back_bytes = back * (FRAME_BYTES - 18);
        if self.path.source.node == NodeId::A {
            self.gateway("gw1", (FRAMES, ip_bytes), (back, back_bytes));
        }
        if self.path.sink.node == NodeId::B {
            self.gateway("gw2", (back, back_bytes), (FRAMES, ip_bytes));
        }
    }

    /// Counters of a gateway that took in and put out so much in clear.
    fn gateway(&mut self, name: &str, into: (u64, u64), out: (u64, u64)) {
        for (counter, value) in [
            ("clear_rx_packets", into.0),
            ("clear_rx_bytes", into.1),
            ("cipher_tx_packets", into.0),
            ("cipher_rx_packets", out.0),
            ("clear_tx_packets", out.0),
            ("clear_tx_bytes", out.1),
        ] {
            self.dut_counters.insert(format!("{name}/{counter}"), value);
        }
    }

    fn checks(&self) -> Vec<Check> {
        let link_ends: Vec<String> = self.counters.keys().cloned().collect();
        let features = [
            "tcp-segmentation-offload",
            "generic-segmentation-offload",
            "tx-udp-segmentation",
            "generic-receive-offload",
        ];
        let off = || {
            features
                .map(|name| (name.to_owned(), "off".to_owned()))
                .into()
        };
        let offloads = link_ends.iter().map(|end| (end.clone(), off())).collect();
        let cipher = CipherTraffic {
            link: &self.link,
            watch: &self.watch,
            markers: &[vec![198, 18, 0, 1]],
            counters: InterfaceCounters::default(),
            sampling_ns: 300 * MS,
        };
        let is_straight = self.cell.dut.adapter.is_straight();
        frame_checks(&FrameObserved {
            test: &self.test,
            result: &self.result,
            strays: &Strays::default(),
            seen: Some(FrameReadings {
                path: ObservedPath {
                    cell: &self.cell,
                    links: Links {
                        mtu: 1500,
                        cipher_mtu: 1564,
                        offloads: false,
                        rate_bps: None,
                    },
                    link_ends: &link_ends,
                    counters: &self.counters,
                    drivers: &BTreeMap::new(),
                    offloads: &offloads,
                    dut_counters: &self.dut_counters,
                    resets: Vec::new(),
                    dut_facts: &reported_facts(&self.cell.dut.adapter),
                    cipher: (!is_straight).then_some(cipher),
                    received_dscp: None,
                    elapsed_ns: 1100 * MS,
                    cpu: &Cpu {
                        wall_ns: 1000 * MS,
                        ..Cpu::default()
                    },
                    settings: Some(&PathSettings::default()),
                    impaired: None,
                },
                ends: &self.path,
                cores: &Cores::assign(1, 2).unwrap(),
            }),
        })
    }

    fn failing(&self) -> Vec<String> {
        failing(self.checks())
    }

    fn explanation(&self, name: &str) -> Explanation {
        let mut checks = self.checks().into_iter();
        let check = checks.find(|check| check.name == name).unwrap();
        check.explanation.unwrap()
    }

    fn detail(&self, name: &str) -> String {
        let mut checks = self.checks().into_iter();
        checks.find(|check| check.name == name).unwrap().detail
    }

    fn counter(&mut self, name: &str) -> &mut InterfaceCounters {
        self.counters.get_mut(name).unwrap()
    }
}

mod empty;
mod every;
mod on_links;

const ALWAYS: [&str; 10] = [
    "offered-as-intended",
    "frames-arrived",
    "receiver-kept-up",
    "frames-intact",
    "only-test-frames",
    "offloads-as-asked",
    "path-unchanged",
    "cores-of-stations",
    "machine-was-ours",
    "interfaces-agree",
];

#[test]
fn a_good_frame_test_passes_every_check_that_applies() {
    let clear: &[&str] = &[
        "clear-text-visible",
        "foreign-frames-visible",
        "links-lossless",
    ];
    let encrypted: &[&str] = &[
        "cipher-link-encrypted",
        "samples-opened",
        "sealed-looks-random",
        "no-clear-text",
        "no-foreign-frames",
        "links-lossless",
        "dut-counters",
        "dut-as-asked",
    ];
    // Nothing is sealed with the keys that the lab created.
    let unsealed = &[&encrypted[..1], &encrypted[3..]].concat();
    // Others have no counters of what crossed them in clear.
    let others: &[&str] = &[
        "cipher-link-encrypted",
        "sealed-looks-random",
        "no-clear-text",
        "no-foreign-frames",
        "links-lossless",
        "dut-as-asked",
    ];
    for (adapter, beyond) in [
        (Adapter::Direct, clear),
        (Adapter::STRAIGHT, &["links-lossless"]),
        (Adapter::Bridge, clear),
        (Adapter::Router { nat: true }, clear),
        (encrypting("auto"), encrypted),
        (encrypting("null"), unsealed),
    ]
    .into_iter()
    .chain(tunnels().map(|tunnel| (tunnel, others)))
    {
        for &direction in adapter.profile().directions {
            for duplex in [false, true] {
                let fixture = Fixture::new(adapter.clone(), direction, duplex);
                assert_eq!(
                    fixture.failing(),
                    Vec::<String>::new(),
                    "{adapter:?} {direction:?}"
                );
                let checks = fixture.checks();
                let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
                let seen: &[&str] = if adapter.is_straight() {
                    &[]
                } else {
                    &["cipher-link-amount", "trials-watched"]
                };
                let sealed: &[&str] = match adapter.encryptor() {
                    Some(_) => &["trials-sealed"],
                    None => &[],
                };
                let every = ["losses-attributed", "machine-in-trials"];
                let two_gateways = adapter.encryptor().is_some() && direction == Direction::Both;
                let on_links: &[&str] = if two_gateways {
                    &["sealed-as-sent", "links-carried-the-load"]
                } else {
                    &["links-carried-the-load"]
                };
                assert_eq!(
                    names,
                    [&ALWAYS[..], beyond, seen, sealed, &every, on_links].concat(),
                    "{adapter:?} {direction:?}"
                );
            }
        }
    }
}

#[test]
fn frames_that_only_one_side_counted_are_found_out() {
    let fixture = || Fixture::new(Adapter::Direct, Direction::Both, false);
    // A thousandth, and what others may send.
    let slack = FRAMES / 1000 + 64;
    let mut few = fixture();
    few.counter("a/a0").tx_packets += slack;
    few.counter("b/b0").rx_packets -= slack;
    assert_eq!(few.failing(), Vec::<String>::new());
    for spoil in [
        |fixture: &mut Fixture, by: u64| fixture.counter("a/a0").tx_packets += by,
        |fixture: &mut Fixture, by: u64| fixture.counter("a/a0").tx_packets -= by,
        |fixture: &mut Fixture, by: u64| fixture.counter("b/b0").rx_packets += by,
        |fixture: &mut Fixture, by: u64| fixture.counter("b/b0").rx_packets -= by,
    ] {
        let mut fixture = fixture();
        spoil(&mut fixture, slack + 1);
        // Frames that never reached the wire vanished there, too.
        assert_eq!(fixture.failing()[0], "interfaces-agree");
    }
    let mut fixture = fixture();
    fixture.counters.remove("b/b0");
    assert_eq!(fixture.failing(), ["interfaces-agree"]);
    assert!(
        fixture
            .detail("interfaces-agree")
            .contains("b/b0 has no counters")
    );
}

#[test]
fn a_load_that_left_in_bursts_is_refused_on_stations_and_not_in_memory() {
    let mut fixture = Fixture::new(Adapter::Direct, Direction::Both, false);
    let trial = &mut fixture.result.trials[0];
    trial.late_frames = trial.sent / 5;
    assert_eq!(fixture.failing(), ["offered-as-intended"]);
    let in_memory = frame_checks(&FrameObserved {
        test: &fixture.test,
        result: &fixture.result,
        strays: &Strays::default(),
        seen: None,
    });
    let offered = in_memory
        .iter()
        .find(|check| check.name == "offered-as-intended");
    assert!(offered.unwrap().passed, "{offered:?}");
}

#[test]
fn the_place_that_dropped_frames_is_named() {
    let mut fixture = Fixture::new(Adapter::Direct, Direction::Both, false);
    let lost = InterfaceCounters {
        tx_dropped: 7,
        ..InterfaceCounters::default()
    };
    fixture.counters.insert("gw2/b1".to_owned(), lost);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    assert!(
        fixture
            .detail("interfaces-agree")
            .ends_with("; gw2/b1 dropped 7")
    );
}

#[test]
fn addresses_in_clear_speak_against_an_encryptor_unless_it_is_the_null_engine() {
    let mut fixture = Fixture::new(encrypting("auto"), Direction::Encrypt, false);
    fixture.link.marker_frames = 1;
    assert_eq!(fixture.failing(), ["no-clear-text"]);
    assert!(
        fixture
            .detail("no-clear-text")
            .contains("marker c6120001 in clear")
    );
    let mut fixture = Fixture::new(encrypting("null"), Direction::Encrypt, false);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    assert!(
        fixture
            .detail("no-clear-text")
            .contains("as asked, the engine neither encrypts")
    );
    // A watch that misses them here would miss them behind an encryptor that fails.
    fixture.link.marker_frames = 0;
    assert_eq!(fixture.failing(), ["no-clear-text"]);
}

#[test]
fn what_is_not_esp_speaks_against_an_encryptor_and_nothing_at_all_against_none() {
    let mut fixture = Fixture::new(encrypting("null"), Direction::Both, false);
    fixture.watch.foreign_frames = 1;
    assert_eq!(fixture.failing(), ["no-foreign-frames"]);
    let mut fixture = Fixture::new(encrypting("auto"), Direction::Decrypt, false);
    fixture.link.esp_frames = 0;
    assert_eq!(fixture.failing(), ["cipher-link-encrypted"]);
    let mut fixture = Fixture::new(Adapter::Bridge, Direction::Both, false);
    fixture.link.marker_frames = 0;
    fixture.watch.foreign_frames = 0;
    assert_eq!(
        fixture.failing(),
        ["clear-text-visible", "foreign-frames-visible"]
    );
}

#[test]
fn a_device_that_counts_less_than_was_received_is_found_out_in_each_direction() {
    for (direction, duplex, counter) in [
        (Direction::Encrypt, false, "gw1/clear_rx_bytes"),
        (Direction::Decrypt, false, "gw2/clear_tx_bytes"),
        (Direction::Both, false, "gw1/clear_rx_bytes"),
        (Direction::Both, false, "gw2/clear_tx_bytes"),
        (Direction::Both, true, "gw1/clear_rx_bytes"),
        (Direction::Both, true, "gw1/clear_tx_bytes"),
        (Direction::Both, true, "gw2/clear_rx_bytes"),
        (Direction::Encrypt, true, "gw1/clear_tx_bytes"),
    ] {
        let mut fixture = Fixture::new(encrypting("auto"), direction, duplex);
        *fixture.dut_counters.get_mut(counter).unwrap() -= 1;
        assert_eq!(
            fixture.failing(),
            ["dut-counters"],
            "{direction:?} {duplex} {counter}"
        );
    }
}

#[test]
fn packets_that_a_device_lost_without_a_reason_speak_against_it() {
    let mut fixture = Fixture::new(encrypting("auto"), Direction::Both, false);
    *fixture
        .dut_counters
        .get_mut("gw1/cipher_tx_packets")
        .unwrap() -= 100;
    assert_eq!(fixture.failing(), ["dut-counters"]);
    let dropped = "gw1/dropped_packets.send_failed".to_owned();
    fixture.dut_counters.insert(dropped, 100);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    fixture
        .dut_counters
        .retain(|name, _| name.starts_with("gw2"));
    assert_eq!(fixture.failing(), ["dut-counters"]);
    assert_eq!(fixture.detail("dut-counters"), "gw1 shows no counters");
}
