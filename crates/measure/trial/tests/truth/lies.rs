//! Devices that are not what they seem, with what links, filter and counters show of them.
//!
//! Frames pass two gateways: what the first takes in it seals, and the second opens. Each trial has
//! the readings of a lab of stations: the counters of the cipher link, the kernel filter on it, and
//! the device's own counters where it is our encryptor. The filter is taken to see every frame, as
//! its own tests show.

use crate::bench::{carried_out, device_cell, frame_test, plan_of, results};
use crate::device::{Model, Simulated, Tester};
use campaign::plan::{Adapter, Cell, Plan};
use journal::record::{
    Check, CipherLink, CipherWatch, Cpu, DutWork, InterfaceCounters, LinkTraffic, OpenedPackets,
    PathSettings, TrialReadings,
};
use lab::{FrameEnd, FramePath, Interrupt, Links, NodeId};
use stats::WarningKind;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use trial::evidence::{CipherSeen, FrameObserved, FramesSeen, ObservedPath, frame_checks};
use trial::frames::{Found, FrameRun, Rig, RigLoad};
use trial::{Cores, TrialError};
use wire::mix::Contents;

const ETHERNET_BYTES: u64 = 14;
const AROUND_IP_BYTES: u64 = 14 + 4;
/// Frames of ARP that cross the cipher link in a trial, at most, and their length.
const ARP_FRAMES: f64 = 8.0;
const ARP_BYTES: u64 = 42;
/// Packets that two counters differ by, at most, since they are not read at one instant.
const IN_FLIGHT: f64 = 32.0;
/// Frames in the samples of the cipher link.
const SAMPLED: u64 = 300;

/// What a device does beside, or pretends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lie {
    /// Nothing.
    None,
    /// One frame in this many leaves in clear, at random. It counts them as sealed.
    ClearOneIn(f64),
    /// One flow of this many leaves in clear. It counts them as sealed.
    ClearFlowOf(f64),
    /// One frame in this many takes another way than the cipher link. It counts them as sealed.
    PastTheLinkOneIn(f64),
    /// The same, and it counts only what it seals.
    PastTheLinkUncountedOneIn(f64),
    /// Payload that repeats is shorter on the cipher link by this share, and costs as much less.
    Compresses(f64),
    /// Payload that repeats costs this share less, and is as long as ever on the cipher link.
    Remembers(f64),
    /// It counts this many per cent more than the frames that were sent.
    CountsMore(f64),
    /// It counts this many per cent less than the frames that it carried.
    CountsLess(f64),
    /// It counts every frame that was sent as put out, also those that it lost.
    CountsTheLost,
}

/// A simulated device with its evidence.
#[derive(Debug)]
pub(crate) struct Watched {
    rig: Simulated,
    lie: Lie,
    adapter: Adapter,
    ip_bytes: u64,
    /// Counters of the last trial.
    last: Passed,
    /// Counters of the last trial with samples.
    sampled: Passed,
    watch: CipherWatch,
}

/// Frames of a trial at the places of the path.
#[derive(Debug, Clone, Copy, Default)]
struct Passed {
    sent: u64,
    crossed: u64,
    clear: u64,
    put_out: u64,
    /// As the device counts them.
    counted_in: u64,
    counted_out: u64,
}

impl Watched {
    pub(crate) fn new(cell: &Cell, (model, tester): (Model, Tester), lie: Lie, seed: u64) -> Self {
        let frames = &frame_test(cell).traffic.frames;
        let is_constant = frames.contents == Contents::Fixed;
        let saved = match lie {
            Lie::Compresses(share) | Lie::Remembers(share) if is_constant => share,
            _ => 0.0,
        };
        let model = Model {
            capacity: model.capacity / (1.0 - saved),
            ..model
        };
        let lie = match lie {
            Lie::Compresses(_) if !is_constant => Lie::None,
            lie => lie,
        };
        let mut rig = Simulated::new(model, tester, seed);
        rig.frame_bytes = frames.mix.mean_bytes() as u64;
        Self {
            ip_bytes: rig.frame_bytes - AROUND_IP_BYTES,
            rig,
            lie,
            adapter: cell.dut.adapter.clone(),
            last: Passed::default(),
            sampled: Passed::default(),
            watch: CipherWatch::default(),
        }
    }

    /// How many of these frames an event of this probability takes (normal beyond a few dozen).
    fn some(&mut self, of: u64, share: f64) -> u64 {
        let mean = of as f64 * share;
        if mean < 50.0 {
            // Poisson, by the product of uniform numbers (Knuth).
            let (mut product, mut count) = (self.rig.random.uniform(), 0);
            while product > (-mean).exp() {
                product *= self.rig.random.uniform();
                count += 1;
            }
            return count.min(of);
        }
        let deviation = (mean * (1.0 - share)).sqrt();
        let drawn = mean + deviation * self.rig.random.normal();
        (drawn.round().max(0.0) as u64).min(of)
    }

    /// Follows the frames of a trial through the device.
    fn follow(&mut self, run: &FrameRun) -> Passed {
        let trial = &run.trial;
        let arrived = trial.received + trial.receiver_dropped;
        let lost = trial.sent - arrived;
        // Part of what it loses is lost before it is sealed.
        let taken_in = trial.sent - (lost as f64 * self.rig.random.uniform()) as u64;
        let (mut crossed, mut clear) = (taken_in, 0);
        let (mut counted_in, mut counted_out) = (taken_in, arrived);
        match self.lie {
            Lie::ClearOneIn(one_in) => clear = self.some(taken_in, 1.0 / one_in),
            Lie::ClearFlowOf(flows) => clear = (taken_in as f64 / flows) as u64,
            Lie::PastTheLinkOneIn(one_in) => crossed -= self.some(taken_in, 1.0 / one_in),
            Lie::PastTheLinkUncountedOneIn(one_in) => {
                let past = self.some(taken_in, 1.0 / one_in);
                crossed -= past;
                counted_in -= past;
                counted_out = counted_out.saturating_sub(past);
            }
            Lie::CountsMore(percent) => {
                counted_in = (trial.sent as f64 * (1.0 + percent / 100.0)) as u64;
                counted_out = counted_in;
            }
            Lie::CountsLess(percent) => {
                counted_in = (taken_in as f64 * (1.0 - percent / 100.0)) as u64;
                counted_out = (arrived as f64 * (1.0 - percent / 100.0)) as u64;
            }
            Lie::CountsTheLost => (counted_in, counted_out) = (trial.sent, trial.sent),
            Lie::None | Lie::Compresses(_) | Lie::Remembers(_) => {}
        }
        Passed {
            sent: trial.sent,
            crossed,
            clear,
            put_out: arrived,
            counted_in,
            counted_out,
        }
    }

    fn readings(&mut self, run: &FrameRun, passed: Passed) -> TrialReadings {
        let profile = self.adapter.profile();
        let sealed_bytes = profile.cipher_packet_bytes(self.ip_bytes as usize) as f64;
        let shorter = match self.lie {
            Lie::Compresses(share) => 1.0 - share,
            _ => 1.0,
        };
        let sealed_bytes = ETHERNET_BYTES + (sealed_bytes * shorter) as u64;
        let clear_bytes = ETHERNET_BYTES + self.ip_bytes;
        let arp = (ARP_FRAMES * self.rig.random.uniform()) as u64;
        let sealed = passed.crossed - passed.clear;
        let watch = CipherWatch {
            foreign_frames: passed.clear,
            marker_frames: passed.clear.min(64),
            ..CipherWatch::default()
        };
        self.watch.foreign_frames += watch.foreign_frames;
        self.watch.marker_frames += watch.marker_frames;
        TrialReadings {
            wall_ns: run.took_ns,
            cipher: Some(LinkTraffic {
                packets: passed.crossed + arp,
                bytes: sealed * sealed_bytes + passed.clear * clear_bytes + arp * ARP_BYTES,
            }),
            watch: Some(watch),
            dut: self.adapter.encryptor().map(|_| DutWork {
                lost_between_packets: None,
                taken_in_bytes: Some(passed.counted_in * self.ip_bytes),
                put_out_bytes: Some(passed.counted_out * self.ip_bytes),
                unaccounted_packets: (IN_FLIGHT * self.rig.random.uniform()) as u64,
            }),
            ..TrialReadings::default()
        }
    }
}

impl Rig for Watched {
    fn run(&mut self, load: &RigLoad, interrupt: &Interrupt) -> Result<FrameRun, TrialError> {
        let mut run = self.rig.run(load, interrupt)?;
        let passed = self.follow(&run);
        run.trial.readings = Some(Box::new(self.readings(&run, passed)));
        self.last = passed;
        if load.sampled {
            self.sampled = passed;
        }
        Ok(run)
    }

    fn line_rate(&self) -> Option<u64> {
        None
    }
}

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

/// The counters of the path's interfaces in the last trial, from A to B.
fn interfaces(passed: &Passed) -> BTreeMap<String, InterfaceCounters> {
    let places = [
        passed.sent,
        passed.sent,
        passed.crossed,
        passed.crossed,
        passed.put_out,
        passed.put_out,
    ];
    let counters = places.into_iter().enumerate().map(|(place, packets)| {
        let mut counters = InterfaceCounters::default();
        match place % 2 {
            0 => counters.tx_packets = packets,
            _ => counters.rx_packets = packets,
        }
        counters
    });
    lab::path_interfaces().into_iter().zip(counters).collect()
}

/// Our encryptor's counters in the last trial.
fn dut_counters(passed: &Passed, ip_bytes: u64) -> BTreeMap<String, u64> {
    let counters = [
        ("gw1/clear_rx_packets", passed.counted_in),
        ("gw1/clear_rx_bytes", passed.counted_in * ip_bytes),
        ("gw1/cipher_tx_packets", passed.counted_in),
        ("gw2/cipher_rx_packets", passed.counted_out),
        ("gw2/clear_tx_packets", passed.counted_out),
        ("gw2/clear_tx_bytes", passed.counted_out * ip_bytes),
    ];
    let counters = counters.into_iter();
    counters
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

/// The checks of a result. `last` is the trial whose evidence is read.
fn checks(cell: &Cell, found: &Found, rig: &Watched, last: &Passed) -> Vec<Check> {
    let profile = rig.adapter.profile();
    let facts = profile.reported.iter().flat_map(|(key, value)| {
        ["gw1", "gw2"].map(|gateway| (format!("{gateway}/{key}"), value.clone()))
    });
    let mut facts: BTreeMap<String, String> = facts.collect();
    for gateway in ["gw1", "gw2"] {
        facts.insert(format!("{gateway}/engine"), "ipsec-mb".to_owned());
    }
    let counters = interfaces(last);
    let link_ends: Vec<String> = counters.keys().cloned().collect();
    let features = [
        "tcp-segmentation-offload",
        "generic-segmentation-offload",
        "tx-udp-segmentation",
        "generic-receive-offload",
    ];
    let off = features.map(|name| (name.to_owned(), "off".to_owned()));
    let off = |end: &String| (end.clone(), BTreeMap::from(off.clone()));
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
        Some(_) => dut_counters(last, rig.ip_bytes),
        None => BTreeMap::new(),
    };
    frame_checks(&FrameObserved {
        test: frame_test(cell),
        result: &found.result,
        strays: &found.strays,
        seen: Some(FramesSeen {
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
                cipher: Some(CipherSeen {
                    link: &link,
                    watch: &rig.watch,
                    markers: &[vec![198, 18, 0, 1]],
                    counters: InterfaceCounters::default(),
                    sampling_ns: 300_000_000,
                }),
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
    let results = results(plan, vec![(cell.id.clone(), 1, found, Vec::new())]);
    let mut warnings = results.warnings.iter();
    Judged {
        failed,
        warned: warnings.any(|found| found.kind == WarningKind::CountersDisagree),
        figure: figure.map(|load| load as f64),
    }
}

/// A lie with its expected outcome.
pub(crate) struct LieCase {
    pub(crate) name: &'static str,
    pub(crate) dut: &'static str,
    pub(crate) contents: &'static str,
    pub(crate) lie: Lie,
    /// What finds it; `None`: nothing does.
    pub(crate) found_by: Option<&'static str>,
}

/// Name of the finding that is no check.
pub(crate) const WARNING: &str = "counters-disagree";

/// The lies.
pub(crate) fn cases() -> Vec<LieCase> {
    let case = |name, dut, contents, lie, found_by| LieCase {
        name,
        dut,
        contents,
        lie,
        found_by,
    };
    let (ours, others) = ("cipherbench", "xfrm");
    let (watched, amount) = (Some("trials-watched"), Some("cipher-link-amount"));
    let sealed = Some("trials-sealed");
    let past = |one_in| Lie::PastTheLinkOneIn(one_in);
    vec![
        case("none", ours, "fixed", Lie::None, None),
        case("none", others, "random", Lie::None, None),
        case(
            "one frame in 100 in clear",
            ours,
            "fixed",
            Lie::ClearOneIn(100.0),
            watched,
        ),
        case(
            "one frame in 100 000 in clear",
            ours,
            "fixed",
            Lie::ClearOneIn(100_000.0),
            watched,
        ),
        case(
            "one frame in 100 000 in clear",
            others,
            "fixed",
            Lie::ClearOneIn(100_000.0),
            watched,
        ),
        case(
            "one flow of eight in clear",
            ours,
            "fixed",
            Lie::ClearFlowOf(8.0),
            watched,
        ),
        case(
            "one frame in 50 past the link",
            ours,
            "fixed",
            past(50.0),
            amount,
        ),
        case(
            "one frame in 50 past the link",
            others,
            "fixed",
            past(50.0),
            amount,
        ),
        case(
            "one frame in 10 000 past the link, and not counted",
            ours,
            "fixed",
            Lie::PastTheLinkUncountedOneIn(10_000.0),
            sealed,
        ),
        case(
            "one frame in 10 000 past the link",
            ours,
            "fixed",
            past(10_000.0),
            amount,
        ),
        case(
            "one frame in 10 000 past the link",
            others,
            "fixed",
            past(10_000.0),
            amount,
        ),
        case(
            "compresses by a third",
            ours,
            "fixed",
            Lie::Compresses(1.0 / 3.0),
            amount,
        ),
        case(
            "compresses by 2 %",
            others,
            "fixed",
            Lie::Compresses(0.02),
            amount,
        ),
        case(
            "compresses by a third",
            ours,
            "random",
            Lie::Compresses(1.0 / 3.0),
            None,
        ),
        case(
            "remembers payload, pads it to its length",
            ours,
            "fixed",
            Lie::Remembers(1.0 / 3.0),
            None,
        ),
        case(
            "remembers payload, pads it to its length",
            ours,
            "random",
            Lie::Remembers(1.0 / 3.0),
            None,
        ),
        case(
            "counts 10 % more than was sent",
            ours,
            "fixed",
            Lie::CountsMore(10.0),
            sealed,
        ),
        case(
            "counts 1 % less than it carries",
            ours,
            "fixed",
            Lie::CountsLess(1.0),
            sealed,
        ),
        case(
            "counts what it lost as put out",
            ours,
            "fixed",
            Lie::CountsTheLost,
            Some(WARNING),
        ),
    ]
}

/// The campaign of a lie. Packets of 491 B have the most padding, in which something could hide.
pub(crate) fn lie_plan(case: &LieCase) -> Plan {
    plan_of(
        case.dut,
        &format!(
            "throughput: {{ frame: 509 B, profile: fast, contents: {} }}",
            case.contents
        ),
    )
}
