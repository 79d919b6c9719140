//! Lab files, which describe the environment of a measurement.

pub(crate) mod cables;
mod declared;
pub(crate) mod hosts;

pub use declared::LAB_KEYS;

use crate::axis;
use crate::shipped::{self, LABS};
use declared::{ADDRESSES, EXTERNAL, HOSTS};
use plan::{Addresses, Cables, Element, Hosts, LabKind, LabPlan, TEST_RANGES, is_test_network};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use units::BitRate;
use yaml::{Document, Map, Mistakes, Node, Prefix, Reported, Spanned};

/// The largest MTU of a campaign with room for any encapsulation.
const CIPHER_MTU_MAX: u64 = 9600;

const KINDS: [(&str, LabKind); 4] = [
    ("namespaces", LabKind::Namespaces),
    ("hosts", LabKind::Hosts),
    ("memory", LabKind::Memory),
    ("device", LabKind::Device),
];

/// The labs that a campaign can name, because they need nothing outside this machine; the first is
/// the default.
const NAMEABLE: [&str; 3] = ["namespaces", "memory", "device"];

/// A lab without mistakes.
#[derive(Debug, Clone, PartialEq)]
pub struct LabFile {
    plan: LabPlan,
    file: String,
}

/// Reads and checks a lab file.
///
/// # Errors
/// All its mistakes.
pub fn load_lab(path: &Path) -> Result<LabFile, Mistakes> {
    read(&yaml::load(path)?)
}

/// Checks a lab given as text; `file` is its name in messages.
///
/// # Errors
/// All its mistakes.
pub fn lab_from_text(file: &str, text: &str) -> Result<LabFile, Mistakes> {
    read(&yaml::parse(file, text)?)
}

impl LabFile {
    /// The built-in lab that is used when none is named: four network namespaces on this machine.
    ///
    /// # Panics
    /// Never: the file is part of the program, and tests read it.
    #[must_use]
    pub fn built_in() -> Self {
        Self::built_in_named(NAMEABLE[0]).expect("it is shipped")
    }

    /// The names of the labs that a campaign can name.
    #[must_use]
    pub const fn built_in_names() -> [&'static str; 3] {
        NAMEABLE
    }

    /// The shipped lab of that name; all are built into the program.
    ///
    /// # Panics
    /// Never: tests read these files.
    #[must_use]
    pub fn built_in_named(name: &str) -> Option<Self> {
        let shipped = shipped::named(LABS, name)?;
        Some(lab_from_text(shipped.file, shipped.text).expect("a shipped lab has no mistakes"))
    }

    /// The lab as plans have it.
    #[must_use]
    pub fn plan(&self) -> &LabPlan {
        &self.plan
    }

    /// The file as the user named it.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }
}

pub(crate) fn read(document: &Document) -> Result<LabFile, Mistakes> {
    let plan = document.decode(|root| root.keys(LAB_KEYS, read_map))?;
    Ok(LabFile {
        plan,
        file: document.file().to_owned(),
    })
}

fn read_map(map: &Map<'_>) -> Result<LabPlan, Reported> {
    let name = map.get("lab");
    let kind = map.read("kind", |node| node.one_of("lab kind", &KINDS));
    let cipher_mtu = map.read("cipher_mtu", |node| {
        node.word_or("auto", |node| axis::mtu(node, CIPHER_MTU_MAX))
    });
    let link_rate = map.get::<Option<BitRate>>("link_rate");
    let path = map.with_default("path", Vec::new(), read_path);
    let addresses = match map.optional("addresses") {
        Some(node) => node.keys(ADDRESSES, read_addresses),
        None => Ok(yaml::defaults(ADDRESSES, read_addresses)),
    };
    let between_hosts = matches!(kind, Ok(LabKind::Hosts));
    let external = map.with_default("external", None, |node| {
        node.keys(EXTERNAL, |external| {
            let given = cables::read(external, between_hosts);
            match &addresses {
                Ok(addresses) => given?.in_networks(external, addresses).map(Some),
                // Cables are read for their mistakes, and their addresses compared with nothing.
                Err(_) => given.map(|_| None),
            }
        })
    });
    let hosts = map.with_default("hosts", None, |node| {
        node.keys(HOSTS, hosts::read).map(Some)
    });
    // Keys that a kind does not have are requested above, so each is refused with its reason, not
    // as unknown.
    let kind = kind?;
    match kind {
        LabKind::Namespaces => no_hosts(map)?,
        LabKind::Hosts => only_cables(map)?,
        LabKind::Memory => no_links(map, "a lab in memory has none")?,
        LabKind::Device => no_links(map, "crypto devices need none")?,
    }
    // Both are needed to see that an interface is not given twice.
    let (external, hosts) = (external?, hosts?);
    if let Some(hosts) = &hosts {
        expect_joined(map, hosts, external.as_ref())?;
    }
    Ok(LabPlan {
        name: name?,
        kind,
        cipher_mtu: cipher_mtu?,
        link_bps: link_rate?.map(BitRate::bps),
        path: path?,
        addresses: addresses?,
        external,
        hosts,
    })
}

/// The elements between the gateways, from gw1 to gw2.
fn read_path(node: Node<'_>) -> Result<Vec<Element>, Reported> {
    let path = node.list(|item| item.one_of("element", &Element::ALL))?;
    let most = LabPlan::ELEMENTS_MAX;
    if path.len() > most {
        let what = format!("the path has {} elements", path.len());
        return Err(node.mistake(what, format!("write {most} at most")));
    }
    let impaired = path.iter().filter(|element| **element == Element::Impair);
    if impaired.count() > 1 {
        let what = "the path has more than one element `impair`";
        return Err(node.mistake(what, "one profile describes the whole path: write it once"));
    }
    Ok(path)
}

/// Rings and crypto devices have no MTU, no rate and no addresses, and no elements between them.
fn no_links(map: &Map<'_>, why: &str) -> Result<(), Reported> {
    let keys = [
        "cipher_mtu",
        "link_rate",
        "path",
        "addresses",
        "external",
        "hosts",
    ];
    refuse(map, &keys, |key| format!("`{key}` is of links, and {why}"))
}

/// In a lab of namespaces all is on this machine.
fn no_hosts(map: &Map<'_>) -> Result<(), Reported> {
    let Some(node) = map.optional("hosts") else {
        return Ok(());
    };
    let what = "a lab of namespaces is all on this machine";
    Err(node.mistake(what, "write `kind: hosts`, or remove `hosts`"))
}

/// Two hosts are joined by their cables only, not by links that the lab makes.
fn only_cables(map: &Map<'_>) -> Result<(), Reported> {
    let hosts = map.required("hosts").map(drop);
    let keys = ["link_rate", "path"];
    let others = refuse(map, &keys, |key| {
        format!("`{key}` is of links that the lab makes, and cables join these hosts")
    });
    hosts.and(others)
}

/// Two hosts have a cable between them, or cables to external boxes, each at a separate interface.
fn expect_joined(map: &Map<'_>, hosts: &Hosts, external: Option<&Cables>) -> Result<(), Reported> {
    match external {
        Some(cables) => cables::expect_apart(map, cables, hosts),
        None if hosts.has_cable() => Ok(()),
        None => {
            let what = "nothing joins the hosts";
            let help = "write `interface` of both, at the cable between them, or `external` with the interfaces that \
                        lead to boxes";
            Err(map.node().mistake(what, help))
        }
    }
}

/// Reports every one of these keys that is given.
fn refuse(
    map: &Map<'_>,
    keys: &[&'static str],
    why: impl Fn(&str) -> String,
) -> Result<(), Reported> {
    let mut result = Ok(());
    for &key in keys {
        if let Some(node) = map.optional(key) {
            result = Err(node.mistake(why(key), "remove it, or write `kind: namespaces`"));
        }
    }
    result
}

fn read_addresses(map: &Map<'_>) -> Result<Addresses, Reported> {
    let read = |key| {
        let network = map.read(key, read_network);
        // A default has no place of its own.
        let is_given = map.optional(key).is_some();
        network.map(|it| {
            if is_given {
                it
            } else {
                map.node().spanned(it.value)
            }
        })
    };
    let (station_a, cipher, station_b) = (read("station_a"), read("cipher"), read("station_b"));
    let all = [
        ("station_a", station_a?),
        ("cipher", cipher?),
        ("station_b", station_b?),
    ];
    let mut result = Ok(());
    // Defaults count too: a given network may be the default of another key.
    for (index, (_, later)) in all.iter().enumerate() {
        if let Some((earlier, _)) = all[..index]
            .iter()
            .find(|(_, other)| other.value == later.value)
        {
            let what = format!("{}/24 is the network of `{earlier}` already", later.value);
            let help = "stations and gateways need three networks of their own";
            result = Err(map.node().mistake_at(&later.place, what, help));
        }
    }
    let [(_, station_a), (_, cipher), (_, station_b)] = all;
    result.map(|()| Addresses {
        station_a: station_a.value,
        cipher: cipher.value,
        station_b: station_b.value,
    })
}

/// A /24 out of [`TEST_RANGES`]; two of them are equal or have nothing in common.
fn read_network(node: Node<'_>) -> Result<Spanned<Ipv4Addr>, Reported> {
    let prefix = node.prefix()?;
    let IpAddr::V4(address) = prefix.address() else {
        let help = "write an IPv4 network, for example `10.1.0.0/24`";
        return Err(node.mistake(format!("{prefix} is an IPv6 network"), help));
    };
    if prefix.length() != 24 {
        let help = format!("a lab's networks are /24: write `{address}/24`");
        return Err(node.mistake(format!("{prefix} is not a /24"), help));
    }
    if !is_test_network(address) {
        let ranges: Vec<_> = ranges().map(|range| range.to_string()).collect();
        let help = format!(
            "test traffic must not look like anybody's: use {}",
            ranges.join(", ")
        );
        return Err(node.mistake(format!("{prefix} is not a test network"), help));
    }
    Ok(node.spanned(address))
}

fn ranges() -> impl Iterator<Item = Prefix> {
    let range = |(first, length): &(Ipv4Addr, u8)| Prefix::new((*first).into(), *length);
    TEST_RANGES.iter().filter_map(range)
}
