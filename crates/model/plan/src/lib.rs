//! The plan of a run, with every default explicit.
//!
//! A [`Plan`] is made from a checked campaign and lab, shown by `cipherbench plan`, carried out by
//! `trial`, and written whole into the head of the journal, so that a journal needs no other file
//! to be understood. It is plain data: nothing in it depends on the machine that made it.

#![forbid(unsafe_code)]

mod adapter;
mod axis;
mod cables;
mod capture;
mod cell;
mod checked;
mod claim;
mod demand;
mod device;
pub mod estimate;
mod frames;
mod hosts;
mod http;
mod keys;
mod measurement;
mod names;
mod order;
mod procedure;
mod published;
mod search;
mod setting;
mod stations;
pub mod text;
mod tool;
mod value;
mod video;
mod words;

pub use adapter::*;
pub use axis::{Axis, Column, Coordinate};
pub use cables::Cables;
pub use capture::{Capture, CapturePoint, Keep};
pub use cell::{Cell, group_of};
pub use claim::{Bound, Claim, ClaimUnit, Percentile};
pub use demand::Demand;
pub use device::{
    Device, DeviceFault, DeviceKind, DeviceModel, DeviceSpeed, DeviceTest, Devices, Fatigue, Kat,
    Workers,
};
pub use hosts::{Host, HostName, Hosts};
pub use http::{HttpClient, HttpServer, HttpTest, HttpVersion, Store};
pub use impair::{Impairment, Profile as ImpairProfile};
pub use keys::KeySource;
pub use measurement::Measurement;
pub use names::{TEST_RANGES, is_congestion, is_interface, is_program_path, is_test_network};
pub use order::Order;
pub use procedure::*;
pub use published::{
    Published, PublishedAt, PublishedCell, PublishedChart, PublishedReport, PublishedRow,
    PublishedTable, PublishedUnit, RateBasis, RateDirection, RateKind, RateLayer,
};
pub use setting::{Common, Dimension, Setting};
pub use stations::Stations;
pub use text::{in_words, to_text};
pub use tool::{FlowDirection, Tool, TransferDirection};
pub use value::Value;
pub use video::{Picture, Player, VideoTest, VideoTransport};
pub use words::{compact, compact_time, nanos, on_off};

pub use self::search::{Criteria, Goal, Profile, ProfileTimes, ThroughputSearch};
pub use frames::{FrameTest, IpVersion, PortKind, Ports, Traffic};

use serde::{Deserialize, Serialize};

/// The plan of a run: cells, each measured `repeats` times, and the lab they are measured in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the campaign, fit for a folder name (`[a-z0-9-]+`).
    pub name: String,
    /// One line for people; may be empty.
    pub title: String,
    /// The lab that the cells are measured in.
    pub lab: LabPlan,
    /// Times that each cell is measured; at least 1.
    pub repeats: u32,
    /// The order of the trials in each repeat.
    #[serde(default)]
    pub order: Order,
    /// The cells, in the order of the campaign, the DUT varying fastest.
    pub cells: Vec<Cell>,
    /// Claims about the DUTs, printed next to the figures of their cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// Published figures of other systems, printed next to the figures of these cells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// The captures of each trial; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// The complete reports that published them: figures that no cell measures are printed with the
    /// reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reports: Vec<PublishedReport>,
}

impl Plan {
    /// Longest name in characters: it becomes part of a folder's name.
    pub const NAME_CHARS_MAX: usize = 64;
    /// Largest number of repeats.
    pub const REPEATS_MAX: u32 = 1000;

    /// Time that the whole run will take: the sum over its trials, in nanoseconds.
    #[must_use]
    pub fn estimate_ns(&self) -> u64 {
        let times = self.cells.iter().map(|cell| cell.estimate_ns);
        let once = times.fold(0, u64::saturating_add);
        once.saturating_mul(self.repeats.into())
    }

    /// The same plan with only the cells that [calibrate the tester](Cell::calibrates).
    #[must_use]
    pub fn calibration_only(mut self) -> Self {
        self.cells.retain(Cell::calibrates);
        // They are about devices, which this plan does not measure.
        self.claims.clear();
        self.published.clear();
        self.reports.clear();
        self
    }

    /// The trials in running order: all cells once per repeat, so that a drift of the machine
    /// affects DUT and baseline equally; within a repeat in the order of [`order`](Self::order).
    pub fn trials(&self) -> impl Iterator<Item = TrialRef<'_>> {
        (1..=self.repeats).flat_map(move |repeat| {
            let cells = self.order.cells(&self.cells, repeat);
            cells.into_iter().map(move |cell| TrialRef { cell, repeat })
        })
    }

    /// The number of trials.
    #[must_use]
    pub const fn trial_count(&self) -> usize {
        self.cells.len().saturating_mul(self.repeats as usize)
    }
}

impl LabPlan {
    /// Whether an element of the path impairs it.
    #[must_use]
    pub fn is_impaired(&self) -> bool {
        self.path.contains(&Element::Impair)
    }

    /// Whether an element of the path translates addresses.
    #[must_use]
    pub fn translates(&self) -> bool {
        self.path.contains(&Element::Nat)
    }

    /// Highest load of this cell that the links carry, in frames/s at the point of entry
    /// ([`Traffic::line_rate`]); `None` if the lab sets no line rate, or a tool generates the load.
    #[must_use]
    pub fn line_rate(&self, cell: &Cell) -> Option<u64> {
        let Measurement::Frames(test) = &cell.measurement else {
            return None;
        };
        let bps = self.link_bps?;
        Some(test.traffic.line_rate(bps, &cell.dut.adapter))
    }
}

/// One trial to run: a cell and the number of its repeat.
#[derive(Debug, Clone, Copy)]
pub struct TrialRef<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// From 1 to [`Plan::repeats`].
    pub repeat: u32,
}

/// The lab as a plan needs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabPlan {
    /// Name of the lab; two runs with one lab name exclude each other (`[a-z0-9-]{1,32}`).
    pub name: String,
    /// How it is built.
    pub kind: LabKind,
    /// IP MTU of the link between the gateways in bytes; `None`: as large as the largest cell
    /// needs.
    pub cipher_mtu: Option<u16>,
    /// The two gateways' and stations' addresses.
    pub addresses: Addresses,
    /// Line rate (L1, preamble and gap counted) of every link, in bit/s, which shapers enforce;
    /// `None`: as fast as the kernel passes frames on.
    #[serde(default)]
    pub link_bps: Option<u64>,
    /// The elements between the gateways, from gw1 to gw2, in every cell; empty: a link.
    #[serde(default)]
    pub path: Vec<Element>,
    /// The interfaces that lead to boxes which Cipherbench does not run, for [`Adapter::External`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<Cables>,
    /// The hosts that the stations are on; `None`: all are on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
}

impl LabPlan {
    /// Longest name in characters: it becomes part of names in the kernel.
    pub const NAME_CHARS_MAX: usize = 32;
    /// Most elements of a path.
    pub const ELEMENTS_MAX: usize = 4;

    /// The lab of a file that has only its name: namespaces of this machine, and links without a
    /// limit.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: LabKind::Namespaces,
            cipher_mtu: None,
            addresses: Addresses::default(),
            link_bps: None,
            path: Vec::new(),
            external: None,
            hosts: None,
        }
    }
}

/// A box between the gateways that is no DUT of the campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Element {
    /// A switch: a Linux bridge.
    Bridge,
    /// A router: IP forwarding by Linux, so that the gateways are in two networks.
    Router,
    /// A router that replaces the IPv4 source addresses of packets from gw1's side with its
    /// address.
    Nat,
    /// An impaired path: a bridge that applies the cell's profile to frames. At most one.
    Impair,
}

impl Element {
    /// All, by their names in lab files.
    pub const ALL: [(&'static str, Self); 4] = [
        ("bridge", Self::Bridge),
        ("router", Self::Router),
        ("nat", Self::Nat),
        ("impair", Self::Impair),
    ];

    /// Whether it forwards IP, and so is between two networks.
    #[must_use]
    pub const fn routes(self) -> bool {
        matches!(self, Self::Router | Self::Nat)
    }
}

/// How a lab is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabKind {
    /// Four network namespaces on this machine, A – gw1 – gw2 – B, joined by veth pairs.
    Namespaces,
    /// The same on two hosts: A – gw1 on one, gw2 – B on the other. A cable joins the gateways, or
    /// external boxes the stations.
    Hosts,
    /// Stations and encryptors in this process, joined by rings. Frame tests only; needs no
    /// privilege.
    Memory,
    /// Nothing is built: crypto devices that are worked on by processes of this machine. Needs no
    /// privilege.
    Device,
}

/// IPv4 prefixes of the lab. Station A and its gateway share `station_a`, the gateways share
/// `cipher`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// `/24` of A (host .2) and gw1 (host .1).
    pub station_a: std::net::Ipv4Addr,
    /// `/24` between gw1 (host .1) and gw2 (host .2).
    pub cipher: std::net::Ipv4Addr,
    /// `/24` of B (host .2) and gw2 (host .1).
    pub station_b: std::net::Ipv4Addr,
}

/// The addresses of a lab file that names none.
impl Default for Addresses {
    fn default() -> Self {
        Self {
            station_a: [10, 1, 0, 0].into(),
            cipher: [192, 0, 2, 0].into(),
            station_b: [10, 2, 0, 0].into(),
        }
    }
}

impl Addresses {
    /// Station B's address, the target of A's traffic.
    #[must_use]
    pub const fn target(&self) -> std::net::Ipv4Addr {
        let [a, b, c, _] = self.station_b.octets();
        std::net::Ipv4Addr::new(a, b, c, 2)
    }
}

/// A device under test with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dut {
    /// Name that tables print; unique among the DUTs of a campaign.
    pub name: String,
    /// The adapter that brings it up.
    pub adapter: Adapter,
}
