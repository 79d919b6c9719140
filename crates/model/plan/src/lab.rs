//! The lab that the cells of a plan are measured in.

use crate::{Cables, Cell, Hosts};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use strum::IntoStaticStr;

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
    /// The interfaces that lead to boxes which Cipherbench does not run, for
    /// [`Adapter::External`](crate::Adapter::External).
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
    /// ([`Traffic::line_rate`](crate::Traffic::line_rate)); `None` if the lab sets no line rate, or
    /// a tool generates the load.
    #[must_use]
    pub fn line_rate(&self, cell: &Cell) -> Option<u64> {
        let test = cell.measurement.frames()?;
        let bps = self.link_bps?;
        Some(test.traffic.line_rate(bps, &cell.dut.adapter))
    }
}

/// A box between the gateways that is no DUT of the campaign.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, IntoStaticStr, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
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
    pub station_a: Ipv4Addr,
    /// `/24` between gw1 (host .1) and gw2 (host .2).
    pub cipher: Ipv4Addr,
    /// `/24` of B (host .2) and gw2 (host .1).
    pub station_b: Ipv4Addr,
}

/// The addresses of a lab file that names none.
impl Default for Addresses {
    fn default() -> Self {
        Self {
            // Private networks for the stations (RFC 1918), and one for documentation between the
            // gateways (RFC 5737).
            station_a: [10, 1, 0, 0].into(),
            cipher: [192, 0, 2, 0].into(),
            station_b: [10, 2, 0, 0].into(),
        }
    }
}

impl Addresses {
    /// Station B's address, the target of A's traffic.
    #[must_use]
    pub const fn target(&self) -> Ipv4Addr {
        let [a, b, c, _] = self.station_b.octets();
        Ipv4Addr::new(a, b, c, 2)
    }
}
