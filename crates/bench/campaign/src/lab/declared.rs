//! The keys of a lab, in the order of `docs/lab.md`.

use super::{CIPHER_MTU_MAX, KINDS};
use crate::axis::MTU_MIN;
use plan::{Element, HostName, LabPlan};
use std::time::Duration;
use units::Layer;
use yaml::Absent::{Default, Depends, Required};
use yaml::{Key, Value};

/// The highest number of a CPU that an affinity has room for (`CPU_SETSIZE`).
pub(super) const CPU_MAX: u16 = 1023;

/// Keys at the top of the file.
#[rustfmt::skip]
pub const LAB_KEYS: &[Key] = &[
    Key::new("lab", Value::Identifier(LabPlan::NAME_CHARS_MAX), Required,
        "Name of the lab. Only one run at a time can use a lab of this name"),
    Key::new("kind", Value::Name(|| Value::names(&KINDS)), Default("namespaces"),
        "Kind of lab, see below"),
    Key::new("cipher_mtu",
        Value::Or("auto", &Value::Size(MTU_MIN, CIPHER_MTU_MAX)), Default("auto"),
        "IP MTU of the link between the gateways; `auto`: large enough for the campaign's longest \
         packet after encapsulation"),
    Key::new("link_rate",
        Value::Or("auto", &Value::BitRate(Layer::L1, 1_000_000, 1_000_000_000_000)),
        Default("auto"),
        "Line rate of every link at L1, preamble and gap counted; `auto`: limited only by the \
         kernel's forwarding"),
    Key::new("path", Value::List(&Value::Name(|| Value::names(&Element::ALL))), Depends("empty"),
        "The elements between the gateways, from gw1 to gw2, see [below](#elements-in-the-path)")
        .words("list of `bridge`, `router`, `nat`, `impair`").range("up to 4, one `impair`"),
    Key::new("addresses", Value::Map(ADDRESSES), Depends("all defaults"),
        "IPv4 networks, see below"),
    Key::new("external", Value::Map(EXTERNAL), Depends("none"),
        "Interfaces that lead to external boxes: of this machine, see \
         [below](#cables-to-boxes-outside), or of [two hosts](#boxes-between-two-hosts)")
        .range("`kind: namespaces`, `hosts`"),
    Key::new("hosts", Value::Map(HOSTS), Depends("*required*"),
        "The two hosts, see [below](#two-hosts)").range("`kind: hosts`"),
];

/// Keys of `addresses`.
pub(super) const ADDRESSES: &[Key] = &[
    network("station_a", "10.1.0.0/24", "Station A (.2) and gw1 (.1)"),
    network(
        "cipher",
        "192.0.2.0/24",
        "gw1 (.1) and gw2 (.2); with a `router` or a `nat` in the path gw2 is in another network",
    ),
    network("station_b", "10.2.0.0/24", "Station B (.2) and gw2 (.1)"),
];

const fn network(name: &'static str, default: &'static str, meaning: &'static str) -> Key {
    Key::new(name, Value::Prefix, Default(default), meaning)
        .words("/24 prefix")
        .range("test ranges")
}

/// Keys of `external`.
#[rustfmt::skip]
pub(super) const EXTERNAL: &[Key] = &[
    Key::new("station_a", Value::Text, Required,
        "Station A's cable, to the first box").words("interface").range("15 characters"),
    Key::new("station_b", Value::Text, Required,
        "Station B's cable, to the second box").words("interface").range("15 characters"),
    Key::new("tap", Value::List(&Value::Text), Depends("none"),
        "The two ends of the link between the boxes, the first box's first; the tester joins them")
        .words("list of two interfaces"),
    Key::new("tap_host",
        Value::Name(|| HostName::ALL.map(HostName::name).to_vec()),
        Depends("*required* with a tap"),
        "The host that has both interfaces of the tap").words("`a` or `b`").range("`kind: hosts`"),
    Key::new("gateway_a", Value::Ipv4, Depends(".1 of `station_a`"),
        "The first box's address at A's cable").range("in `addresses.station_a`"),
    Key::new("gateway_b", Value::Ipv4, Depends(".1 of `station_b`"),
        "The second box's address at B's cable").range("in `addresses.station_b`"),
];

/// Keys of `hosts`.
#[rustfmt::skip]
pub(super) const HOSTS: &[Key] = &[
    Key::new("a", Value::Map(HOST), Required, "The host of station A and gw1"),
    Key::new("b", Value::Map(HOST), Required,
        "The host of gw2 and station B; same keys as `hosts.a`").apart(),
    // The longest time to wait is a weekend.
    Key::new("reconnect",
        Value::Time(Duration::ZERO, Duration::from_secs(72 * 3600)), Default("2 min"),
        "How long a run waits for a lost host; 0: not at all").range("up to 72 h"),
];

/// Keys of a host.
#[rustfmt::skip]
pub(super) const HOST: &[Key] = &[
    Key::new("reach", Value::Text, Depends("this machine"),
        "The command prefix that runs a command on the host as root, without any prompt")
        .words("command").range("no quotes"),
    Key::new("interface", Value::Text, Depends("none"),
        "The host's interface at the cable to the other host. Both hosts have one, or neither if \
         only `external` boxes are measured").words("interface").range("15 characters"),
    Key::new("cpus", Value::OneOrMany(&Value::Integer(0, CPU_MAX as u64)), Depends("all"),
        "The CPUs that the tools, generator and analyser of the host's stations use")
        .words("list of CPUs"),
    Key::new("program", Value::Path, Depends("searched, else sent"),
        "Path of cipherbench, of the same version, on the host").range("whole path"),
];
