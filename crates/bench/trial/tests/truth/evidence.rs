//! The evidence of a search on a simulated device, and what the checks make of it.

use crate::bench::{carried_out, device_cell, frame_test, results};
use crate::device::{Model, Tester};
use crate::watched::{Lie, Passed, Watched};
use journal::record::{Check, CipherLink, Cpu, InterfaceCounters, OpenedPackets, PathSettings};
use plan::{Cell, Plan};
use stats::WarningKind;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use testbed::{FrameEnd, FramePath, Links, NodeId};
use trial::Cores;
use trial::evidence::{CipherTraffic, ObservedPath};
use trial::frames::{FrameObserved, FrameReadings, ProcedureResult, frame_checks};

/// Frames in the samples of the cipher link.
const SAMPLED: u64 = 300;

/// Name of the finding that is no check.
pub(crate) const WARNING: &str = "counters-disagree";

fn end(node: NodeId, interface: &str) -> FrameEnd {
    let address = Ipv4Addr::new(198, 18, 0, 1);
    FrameEnd {
        node,
        interface: interface.to_owned(),
        mac: [2; 6],
        next_hop_mac: [4; 6],
        address,
        test_address: address,
        test_address_v6: address.to_ipv6_mapped(),
        peer: None,
    }
}

/// The checks of a result. `last` is the trial whose evidence is read.
fn checks(cell: &Cell, found: &ProcedureResult, rig: &Watched, last: &Passed) -> Vec<Check> {
    let profile = rig.adapter.profile();
    let facts = profile.reported.iter().flat_map(|(key, value)| {
        ["gw1", "gw2"].map(|gateway| (format!("{gateway}/{key}"), value.clone()))
    });
    let mut facts: BTreeMap<String, String> = facts.collect();
    for gateway in ["gw1", "gw2"] {
        facts.insert(format!("{gateway}/engine"), "ipsec-mb".to_owned());
    }
    let counters = last.interfaces();
    let link_ends: Vec<String> = counters.keys().cloned().collect();
    let features = [
        "tcp-segmentation-offload",
        "generic-segmentation-offload",
        "tx-udp-segmentation",
        "generic-receive-offload",
    ];
    let off = features.map(|name| (name.to_owned(), "off".to_owned()));
    let off = |end: &String| (end.clone(), BTreeMap::from(off.clone()));
    // The samples have the same share in clear as the trial, and none if no frame crossed.
    let in_clear = (SAMPLED * last.clear)
        .checked_div(last.crossed)
        .unwrap_or(0);
    let link = CipherLink {
        frames: SAMPLED,
        esp_frames: SAMPLED - in_clear,
        marker_frames: in_clear,
        other_frames: in_clear,
        spis: vec!["c0ffee01".to_owned()],
        opened: Some(OpenedPackets {
            packets: 8,
            opened: 8,
            between_stations: 8,
            ..OpenedPackets::default()
        }),
        ..CipherLink::default()
    };
    let dut_counters = match rig.adapter.encryptor() {
        Some(_) => last.dut_counters(rig.ip_bytes),
        None => BTreeMap::new(),
    };
    frame_checks(&FrameObserved {
        test: frame_test(cell),
        result: &found.result,
        strays: &found.strays,
        seen: Some(FrameReadings {
            path: ObservedPath {
                cell,
                links: Links {
                    mtu: 1500,
                    cipher_mtu: 1600,
                    offloads: false,
                    rate_bps: None,
                },
                link_ends: &link_ends,
                counters: &counters,
                drivers: &BTreeMap::new(),
                offloads: &link_ends.iter().map(off).collect(),
                dut_counters: &dut_counters,
                dut_facts: &facts,
                resets: Vec::new(),
                cipher: Some(CipherTraffic {
                    link: &link,
                    watch: &rig.watch,
                    markers: &[vec![198, 18, 0, 1]],
                    counters: InterfaceCounters::default(),
                    sampling_ns: 300_000_000,
                }),
                received_dscp: None,
                elapsed_ns: 1_100_000_000,
                cpu: &Cpu {
                    wall_ns: 1_000_000_000,
                    ..Cpu::default()
                },
                settings: Some(&PathSettings::default()),
                impaired: None,
            },
            ends: &FramePath {
                source: end(NodeId::A, "a0"),
                sink: end(NodeId::B, "b0"),
            },
            cores: &Cores::assign(1, 2).expect("two cores"),
        }),
    })
}

/// What the instrument says of a device.
#[derive(Debug)]
pub(crate) struct Judged {
    /// The checks that failed: the cell is invalid then.
    pub(crate) failed: Vec<String>,
    /// Whether a warning says that counters disagree.
    pub(crate) warned: bool,
    /// The figure, valid or not.
    pub(crate) figure: Option<f64>,
}

/// A check of the figure, not of what the device pretends.
const CONFIRMED: &str = "throughput-confirmed";

impl Judged {
    /// Whether the evidence speaks against the device.
    pub(crate) fn suspects(&self) -> bool {
        self.warned || self.failed.iter().any(|name| name != CONFIRMED)
    }

    /// Whether the cell is invalid, or a warning says what is wrong.
    pub(crate) fn found(&self) -> bool {
        self.warned || !self.failed.is_empty()
    }

    pub(crate) fn is_found_by(&self, name: &str) -> bool {
        name == WARNING && self.warned || self.failed.iter().any(|failed| failed == name)
    }
}

/// A search on a device, with all of its evidence.
pub(crate) fn judge(plan: &Plan, (model, tester): (Model, Tester), lie: Lie, seed: u64) -> Judged {
    let cell = device_cell(plan);
    let mut rig = Watched::new(cell, (model, tester), lie, seed);
    let found = carried_out(cell, 1, &mut rig);
    let failed = checks(cell, &found, &rig, &rig.sampled).into_iter();
    let failed = failed.filter(|check| !check.passed).map(|check| check.name);
    let failed: Vec<String> = failed.collect();
    let throughput = found.result.throughput.as_ref();
    let figure = throughput.and_then(|found| found.goals.first()?.lower);
    // Recorded as valid even if a check failed: the warning is looked for independently of them.
    let results = results(plan, vec![(cell.id.clone(), 1, found, Vec::new())]);
    let mut warnings = results.warnings.iter();
    Judged {
        failed,
        warned: warnings.any(|found| found.kind == WarningKind::CountersDisagree),
        figure: figure.map(|load| load as f64),
    }
}
