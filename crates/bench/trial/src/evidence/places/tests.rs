//! Packets that vanish are found where they vanish, and only there.

use super::*;
use crate::evidence::tests::fixture::encrypting;
use journal::record::{Cpu, PathSettings};
use plan::{Adapter, Cell, Dut, Measurement, Stations};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use testbed::Links;

const SENT: u64 = 20_000;
const LOST: u64 = 199;
const BACK: u64 = 7_000;

/// A path over which [`SENT`] packets went from A to B and [`BACK`] from B to A.
struct Path {
    cell: Cell,
    links: Links,
    link_ends: Vec<String>,
    counters: BTreeMap<String, InterfaceCounters>,
    dut_counters: BTreeMap<String, u64>,
    settings: PathSettings,
}

/// The counters that packets from A to B cross, in order: interfaces by their name and verb.
const FORWARD: [&str; 10] = [
    "a/a0 sent",
    "gw1/a1 received",
    "gw1/clear_rx_packets",
    "gw1/cipher_tx_packets",
    "gw1/w0 sent",
    "gw2/w1 received",
    "gw2/cipher_rx_packets",
    "gw2/clear_tx_packets",
    "gw2/b1 sent",
    "b/b0 received",
];
const BACKWARD: [&str; 10] = [
    "b/b0 sent",
    "gw2/b1 received",
    "gw2/clear_rx_packets",
    "gw2/cipher_tx_packets",
    "gw2/w1 sent",
    "gw1/w0 received",
    "gw1/cipher_rx_packets",
    "gw1/clear_tx_packets",
    "gw1/a1 sent",
    "a/a0 received",
];

impl Path {
    fn new(adapter: Adapter) -> Self {
        let has_counters = adapter.encryptor().is_some();
        let mut path = Self {
            cell: Cell {
                id: "cell".into(),
                group: "group".into(),
                coordinates: Vec::new(),
                dut: Dut::new("dut", adapter),
                stations: Some(Stations {
                    mtu: 1500,
                    cores: 1,
                    offloads: false,
                    overlay: plan::Overlay::None,
                    dscp: None,
                }),
                measurement: Measurement::Ping {
                    count: 1,
                    interval_ns: 1,
                    payload_bytes: 56,
                    loaded: false,
                    route: false,
                    load_dscp: Vec::new(),
                },
                impair: None,
                tune: false,
                estimate_ns: 0,
                calibration: false,
            },
            links: Links {
                mtu: 1500,
                cipher_mtu: 1564,
                offloads: false,
                rate_bps: None,
            },
            link_ends: testbed::path_interfaces().to_vec(),
            counters: BTreeMap::new(),
            dut_counters: BTreeMap::new(),
            settings: PathSettings::default(),
        };
        for (line, packets) in [(FORWARD, SENT), (BACKWARD, BACK)] {
            for name in line {
                if has_counters || name.contains(' ') {
                    *path.at(name) = packets;
                }
            }
        }
        path
    }

    fn at(&mut self, name: &str) -> &mut u64 {
        match name.split_once(' ') {
            None => self.dut_counters.entry(name.to_owned()).or_default(),
            Some((interface, verb)) => {
                let counters = self.counters.entry(interface.to_owned()).or_default();
                match verb {
                    "sent" => &mut counters.tx_packets,
                    _ => &mut counters.rx_packets,
                }
            }
        }
    }

    /// Takes packets away from the counter with that name and from all behind it.
    fn lose(&mut self, line: [&str; 10], from: &str, packets: u64) {
        let place = line.iter().position(|name| *name == from).unwrap();
        for name in &line[place..] {
            if name.contains(' ') || self.dut_counters.contains_key(*name) {
                *self.at(name) -= packets;
            }
        }
    }

    fn observed(&self) -> ObservedPath<'_> {
        static NOTHING: LazyLock<BTreeMap<String, String>> = LazyLock::new(BTreeMap::new);
        static OFFLOADS: LazyLock<BTreeMap<String, BTreeMap<String, String>>> =
            LazyLock::new(BTreeMap::new);
        static DRIVERS: LazyLock<BTreeMap<String, BTreeMap<String, u64>>> =
            LazyLock::new(BTreeMap::new);
        static CPU: LazyLock<Cpu> = LazyLock::new(Cpu::default);
        ObservedPath {
            settings: Some(&self.settings),
            impaired: None,
            cell: &self.cell,
            links: self.links,
            link_ends: &self.link_ends,
            counters: &self.counters,
            drivers: &DRIVERS,
            offloads: &OFFLOADS,
            dut_counters: &self.dut_counters,
            resets: Vec::new(),
            dut_facts: &NOTHING,
            cipher: None,
            received_dscp: None,
            elapsed_ns: 1_000_000_000,
            cpu: &CPU,
        }
    }

    fn lost(&self) -> Vec<(Vec<PathPlace>, u64)> {
        let lost = self.observed().lost_at(&tools());
        lost.into_iter()
            .map(|lost| (lost.places.clone(), lost.packets()))
            .collect()
    }

    fn check(&self) -> Check {
        let observed = self.observed();
        links_lossless(&observed, &observed.lost_at(&tools())).unwrap()
    }
}

/// Tools at the ends of the path.
fn tools() -> Ends<'static> {
    static ENDS: LazyLock<Interfaces> = LazyLock::new(|| Interfaces {
        a: "a/a0".into(),
        cipher: None,
        b: "b/b0".into(),
    });
    Ends::Tools(&ENDS)
}

#[test]
fn a_whole_path_lost_nothing() {
    for adapter in [encrypting(), Adapter::Direct] {
        let path = Path::new(adapter);
        assert_eq!(path.lost(), []);
        assert!(path.check().passed);
    }
}

#[test]
fn loss_is_named_by_the_two_counters_that_it_lies_between() {
    use PathPlace::{CipherLink, Gw1, Gw2, LinkA, LinkB, StationA};
    let forward = [
        ("gw1/a1 received", LinkA),
        ("gw1/clear_rx_packets", Gw1),
        ("gw1/cipher_tx_packets", Gw1),
        ("gw1/w0 sent", CipherLink),
        ("gw2/w1 received", CipherLink),
        ("gw2/cipher_rx_packets", Gw2),
        ("gw2/clear_tx_packets", Gw2),
        ("gw2/b1 sent", LinkB),
        ("b/b0 received", LinkB),
    ];
    let backward = [
        ("gw2/clear_rx_packets", Gw2),
        ("gw2/w1 sent", CipherLink),
        ("gw1/cipher_rx_packets", Gw1),
        ("a/a0 received", LinkA),
    ];
    let both = [(FORWARD, &forward[..]), (BACKWARD, &backward[..])];
    for (line, cases) in both {
        for &(name, place) in cases {
            let mut path = Path::new(encrypting());
            path.lose(line, name, LOST);
            assert_eq!(path.lost(), [(vec![place], LOST)], "{name}");
            // What a device loses is its own.
            assert_eq!(path.check().passed, !place.is_link(), "{name}");
            assert_ne!(place, StationA);
        }
    }
}

#[test]
fn without_counters_of_the_device_its_interfaces_tell_what_they_can() {
    use PathPlace::{CipherLink, Gw1};
    let mut path = Path::new(Adapter::Direct);
    path.lose(FORWARD, "gw1/w0 sent", LOST);
    assert_eq!(path.lost(), [(vec![Gw1, CipherLink], LOST)]);
    assert!(path.check().passed, "the device may have lost them");
}

#[test]
fn with_super_packets_the_device_counts_alone() {
    use PathPlace::{CipherLink, Gw2};
    let mut path = Path::new(encrypting());
    path.links.offloads = true;
    for name in ["gw1/w0 sent", "gw2/w1 received", "a/a0 sent"] {
        *path.at(name) = 500;
    }
    assert_eq!(path.lost(), []);
    path.lose(FORWARD, "gw2/cipher_rx_packets", LOST);
    // The link, or the sockets of gw2.
    assert_eq!(path.lost(), [(vec![CipherLink, Gw2], LOST)]);
    assert!(path.check().passed);
}

#[test]
fn packets_that_share_esp_packets_or_are_fragmented_are_not_missing() {
    let mut path = Path::new(encrypting());
    if let Adapter::Cipherbench(encryptor) = &mut path.cell.dut.adapter {
        encryptor.aggregate = true;
    }
    for name in [
        "gw1/cipher_tx_packets",
        "gw1/w0 sent",
        "gw2/w1 received",
        "gw2/cipher_rx_packets",
    ] {
        *path.at(name) = SENT / 10;
    }
    assert_eq!(path.lost(), []);

    let mut path = Path::new(encrypting());
    path.links.cipher_mtu = 1400;
    for name in ["gw1/w0 sent", "gw2/w1 received"] {
        *path.at(name) = 2 * SENT;
    }
    assert_eq!(path.lost(), []);
}

#[test]
fn what_an_interface_dropped_did_not_vanish() {
    let mut path = Path::new(encrypting());
    path.lose(FORWARD, "gw1/w0 sent", LOST);
    assert!(!path.check().passed);
    path.counters.get_mut("gw1/w0").unwrap().tx_dropped = LOST;
    assert!(path.check().passed);
    let words = path.observed().lost_at(&tools())[0].words();
    assert_eq!(
        words,
        "between gw1 and gw2: 199 of 20000 (20000 by gw1/cipher_tx_packets, 19801 by \
         gw1/w0 sent; interfaces there dropped 199)"
    );
}

#[test]
fn a_shaped_link_and_an_element_may_lose() {
    let mut path = Path::new(encrypting());
    path.lose(FORWARD, "gw2/w1 received", LOST);
    assert!(!path.check().passed);
    path.link_ends.push("bridge1/p0".into());
    assert!(path.check().passed);
    path.links.rate_bps = Some(1_000_000_000);
    let check = path.check();
    assert!(check.passed);
    let words = "; packets were lost between gw1 and gw2: 199 of 20000 (";
    assert!(check.detail.contains(words), "{}", check.detail);
}

#[test]
fn a_few_packets_apart_are_two_readings() {
    let mut path = Path::new(encrypting());
    // 16 packets, and one in a thousand of the 20 000 that were sent.
    path.lose(FORWARD, "gw2/w1 received", 36);
    assert_eq!(path.lost(), []);
    path.lose(FORWARD, "gw2/w1 received", 1);
    assert_eq!(path.lost().len(), 1);
}

#[test]
fn generator_and_analyser_stand_at_the_ends_of_a_frame_test() {
    use PathPlace::{LinkA, StationB};
    let path = Path::new(encrypting());
    let trial = FrameTrial {
        sent: SENT + LOST,
        received: SENT - LOST,
        ..FrameTrial::default()
    };
    let places = |sink: &str, duplex: bool| -> Vec<Vec<PathPlace>> {
        let ends = Ends::Frames(FrameEnds {
            source: "a/a0".into(),
            sink: sink.into(),
            trial: Some(&trial),
            duplex,
        });
        let lost = path.observed().lost_at(&ends);
        lost.into_iter().map(|lost| lost.places).collect()
    };
    assert_eq!(places("b/b0", false), [[LinkA], [StationB]]);
    let of_both = places("b/b0", true);
    assert!(of_both.is_empty(), "its counts are of both directions");
    // A station in gw2's place has no analyser at B.
    assert_eq!(places("gw2/w1", false), [[LinkA]]);
}

#[test]
fn the_link_past_the_gateways_has_its_own_ends() {
    let mut path = Path::new(Adapter::STRAIGHT);
    path.counters.clear();
    *path.at("a/c0 sent") = SENT;
    *path.at("b/c1 received") = SENT - LOST;
    let trial = FrameTrial {
        sent: SENT,
        received: SENT - LOST,
        ..FrameTrial::default()
    };
    let ends = Ends::Frames(FrameEnds {
        source: "a/c0".into(),
        sink: "b/c1".into(),
        trial: Some(&trial),
        duplex: false,
    });
    let lost = path.observed().lost_at(&ends);
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0].places, [PathPlace::DirectLink]);
}

#[test]
fn the_kernels_of_the_stations_stand_at_the_ends_of_a_trial_by_tools() {
    use PathPlace::{Gw1, LinkA, LinkB, StationB};
    let mut path = Path::new(encrypting());
    path.links.offloads = true;
    let stack = [
        ("a/OutSegs", 50),
        ("a/OutDatagrams", SENT - 50),
        ("b/InNoECTPkts", SENT - 50),
        ("b/InECT0Pkts", 50),
        ("b/OutSegs", BACK),
        ("a/InNoECTPkts", BACK),
    ];
    path.settings.stack = stack.map(|(name, count)| (name.to_owned(), count)).into();
    assert_eq!(path.lost(), []);
    *path.settings.stack.get_mut("a/OutDatagrams").unwrap() += LOST;
    assert_eq!(path.lost(), [(vec![LinkA, Gw1], LOST)]);
    *path.settings.stack.get_mut("a/OutDatagrams").unwrap() -= LOST;
    *path.settings.stack.get_mut("b/InNoECTPkts").unwrap() -= LOST;
    assert_eq!(path.lost(), [(vec![LinkB, StationB], LOST)]);

    // Without a counter between them they do not tell where.
    path.dut_counters.clear();
    assert_eq!(path.lost(), []);
    path.links.offloads = false;
    assert_eq!(path.lost(), [(vec![StationB], LOST)]);
}
