//! Cables: interfaces of a machine that a lab moves into its namespaces, towards external boxes or
//! another host.
//!
//! 1. Every interface is inspected, and refused if it is in use ([`free`]).
//! 2. Its future owner records its settings, to restore them at its end ([`crate::lent`]).
//! 3. Only then is it moved. However the run ends in between, the owner returns its interfaces.
//!
//! An interface keeps its name: when station and run are killed together, the kernel returns a
//! physical interface under its current name. At the cable between two hosts it gets the name of
//! the link's end, and keeps the original as an alternative name, by which it is found then.

mod free;

use crate::Station;
use crate::offloads;
use crate::on_node::{ask, ip, run_tool};
use crate::remote::Seat;
use crate::switch;
use crate::version_settings;
use free::{HostInterface, free_interface, shown};
use plan::{Cables, HostName, Switch};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;
use testbed::protocol::{BorrowedInterface, Program, Request, Response};
use testbed::{Interrupt, LabError, Links, Node, NodeId, Result};

/// The lab's access to the external boxes.
pub(crate) struct Outside {
    pub(crate) cables: Cables,
    /// The node for commands: the run's machine, in the namespace of the run. Ctrl-C does not
    /// interrupt it, since boxes are taken down afterwards too.
    pub(crate) host: Station,
    /// Ends pending waits.
    pub(crate) interrupt: Interrupt,
    /// MAC addresses of A's and of B's interface.
    pub(crate) macs: [[u8; 6]; 2],
    /// The command by which the boxes were switched to another version.
    pub(crate) switched: Mutex<Option<Switch>>,
}

impl Outside {
    /// Moves the interfaces to their owners, which `station` returns. Commands run on `host`. The
    /// interfaces are on the two `machines` of the stations, A's first, or on `host` if `machines`
    /// is empty.
    pub(crate) fn connect<'a>(
        cables: &Cables,
        (host, machines): (Station, &[&dyn Node]),
        interrupt: Interrupt,
        station: impl Fn(NodeId) -> &'a Seat,
    ) -> Result<Self> {
        let machine = |id| match machines {
            [a, b] => match (id, cables.tap_host) {
                (NodeId::A, _) | (NodeId::Tap, Some(HostName::A)) => *a,
                _ => *b,
            },
            _ => &host as &dyn Node,
        };
        // All interfaces are inspected before the first one moves, so that a refusal changes
        // nothing.
        let mut found = Vec::new();
        for (key, name) in cables.interfaces() {
            let id = owner(key);
            found.push((
                id,
                free_interface(machine(id), &format!("external.{key}"), name)?,
            ));
        }
        // `Cables::interfaces` lists A's interface, B's, and then the tap's.
        let mac = |index: usize| mac_of("external", &found[index].1);
        let macs = [mac(0)?, mac(1)?];
        for id in [NodeId::A, NodeId::B, NodeId::Tap] {
            let own = found.iter().filter(|(owner, _)| *owner == id);
            let own: Vec<&HostInterface> = own.map(|(_, interface)| interface).collect();
            if !own.is_empty() {
                lend(machine(id), station(id), &own, None)?;
            }
        }
        if let Some([first, second]) = &cables.tap {
            let tap = station(NodeId::Tap);
            switch::join(tap, [first, second])?;
        }
        Ok(Self {
            cables: cables.clone(),
            host,
            interrupt,
            macs,
            switched: Mutex::default(),
        })
    }

    /// A node's external interfaces.
    pub(crate) fn interfaces(&self, node: NodeId) -> impl Iterator<Item = &str> {
        let all = self.cables.interfaces();
        all.filter(move |(key, _)| owner(key) == node)
            .map(|(_, name)| name)
    }

    /// Sets MTU and offloads of a node's external interfaces. Hardware may lack an offload: every
    /// trial reads those in force.
    pub(crate) fn configure(&self, node: &dyn Node, links: Links) -> Result<()> {
        let id = node.id();
        let mtu = match id {
            NodeId::Tap => links.cipher_mtu,
            _ => links.mtu,
        };
        let bridge = (id == NodeId::Tap).then_some(switch::NAME);
        let mut batch = String::new();
        for interface in self.interfaces(id).chain(bridge) {
            batch += &format!("link set {interface} mtu {mtu}\n");
            ask(node, offloads::set(interface, links.offloads))?;
        }
        ip(node, batch)
    }
}

/// Moves a host's interface at the cable to its gateway, which gives it this name, and returns its
/// MAC address. `key` names it in messages.
pub(crate) fn lend_cable(
    host: &dyn Node,
    gateway: &Seat,
    (key, name): (&str, &str),
    renamed: &str,
) -> Result<[u8; 6]> {
    recover(host, name, renamed)?;
    let found = free_interface(host, key, name)?;
    let mac = mac_of(key, &found)?;
    lend(host, gateway, &[&found], Some(renamed))?;
    Ok(mac)
}

/// Restores the name of an interface that the kernel returned under its name in a lab, since agent
/// and station were killed together.
fn recover(host: &dyn Node, name: &str, renamed: &str) -> Result<()> {
    if shown(host, name)?.is_some_and(|found| found.ifname == renamed) {
        // The name is usable again only after it is no alternative name. Kernels before 6.2 rename
        // no interface that is up.
        ip(
            host,
            format!(
                "link set {renamed} down\n\
                 link property del dev {renamed} altname {name}\n\
                 link set {renamed} name {name}\n"
            ),
        )?;
    }
    Ok(())
}

/// Returns its MAC address; `key` names it in messages.
fn mac_of(key: &str, interface: &HostInterface) -> Result<[u8; 6]> {
    parse_mac(&interface.address).ok_or_else(|| {
        let HostInterface {
            ifname, address, ..
        } = interface;
        let what = format!("`{ifname}` has no Ethernet address: {address}");
        refused(key, what, "take an Ethernet interface".to_owned())
    })
}

/// Returns the owner of the interface under a key of the lab file.
fn owner(key: &str) -> NodeId {
    match key {
        "station_a" => NodeId::A,
        "station_b" => NodeId::B,
        _ => NodeId::Tap,
    }
}

fn refused(key: &str, what: String, help: String) -> LabError {
    LabError::cannot_build(format!("the lab's `{key}`: {what}"), help)
}

/// Returns a tool's output on the host; `None` if it fails.
fn read(host: &dyn Node, argv: &[&str]) -> Result<Option<String>> {
    let ended = ask(host, argv.iter().copied())?;
    Ok((ended.code == Some(0)).then_some(ended.stdout))
}

fn parse<T: for<'de> Deserialize<'de>>(what: &str, text: &str) -> Result<Vec<T>> {
    // Some versions print no list at all if it would be empty.
    let text = if text.trim().is_empty() { "[]" } else { text };
    serde_json::from_str(text).map_err(|error| {
        let what = format!("cannot read what `{what}` prints: {error}");
        LabError::cannot_build(what, "install iproute2 6 or newer")
    })
}

/// Moves a station's interfaces to it, once it has recorded their settings.
fn lend(
    host: &dyn Node,
    station: &Seat,
    found: &[&HostInterface],
    renamed: Option<&str>,
) -> Result<()> {
    let mut lent = Vec::new();
    for found in found {
        lent.push(BorrowedInterface {
            interface: found.ifname.clone(),
            renamed: renamed.map(str::to_owned),
            mtu: found.mtu,
            up: found.flags.iter().any(|flag| flag == "UP"),
            offloads: offloads_of(host, &found.ifname)?,
            parameters: parameters_of(host, &found.ifname)?,
            additions: additions(host, &found.ifname)?,
        });
    }
    // Before the first one moves: from then on the station gives it back, however the run ends.
    match station.call(Request::GiveBack { lent })? {
        Response::Noted => {}
        other => return Err((station as &dyn Node).unexpected(&other)),
    }
    for HostInterface { ifname, .. } in found {
        // By a process in it: the namespace has no name.
        let pid = station.pid().to_string();
        let argv = ["ip", "link", "set", "dev", ifname, "netns", &pid];
        run_tool(host, Program::new(argv)).map_err(|error| {
            let what = format!("`{ifname}` cannot be taken into the lab: {error}");
            LabError::cannot_build(
                what,
                "moving an interface needs root on its machine: run with sudo there",
            )
        })?;
        let mut name = ifname.as_str();
        if let Some(renamed) = renamed {
            ip(
                station,
                format!("link set {name} down\nlink set {name} name {renamed}\n"),
            )?;
            // Kernels before 5.5 have no second names.
            let argv = [
                "ip", "link", "property", "add", "dev", renamed, "altname", name,
            ];
            ask(station, argv)?;
            name = renamed;
        }
        // The kernel takes an interface down when it moves to another namespace.
        ip(station, format!("link set {name} up\n"))?;
    }
    Ok(())
}

/// The kernel's parameters of an interface.
fn parameters_of(host: &dyn Node, interface: &str) -> Result<BTreeMap<String, String>> {
    let interface = interface.to_owned();
    match host.call(Request::Parameters { interface })? {
        Response::Parameters(found) => Ok(found),
        other => Err(host.unexpected(&other)),
    }
}

/// An entry of a neighbour table as printed by `ip -json neighbour`.
#[derive(Debug, Deserialize)]
struct Neighbour {
    dst: String,
    lladdr: Option<String>,
    /// Flags are keys without a value.
    #[serde(flatten)]
    flags: BTreeMap<String, Value>,
}

/// Commands of `ip` that add an interface's permanent neighbours and multicast addresses again.
fn additions(host: &dyn Node, name: &str) -> Result<Vec<String>> {
    let neighbours = |of: &[&str]| -> Result<Vec<Neighbour>> {
        let words = ["ip", "-json", "neighbour", "show"];
        let argv = [&words[..], of, &["dev", name]].concat();
        parse("ip neighbour", &read(host, &argv)?.unwrap_or_default())
    };
    let mut commands = Vec::new();
    for Neighbour { dst, lladdr, flags } in neighbours(&["nud", "permanent"])? {
        let lladdr = lladdr.map_or_else(String::new, |address| format!(" lladdr {address}"));
        let router = flags.get("router").map_or("", |_| " router");
        commands.push(format!(
            "neighbour replace {dst}{lladdr} dev {name} nud permanent{router}"
        ));
    }
    let proxies = neighbours(&["proxy"])?.into_iter();
    commands.extend(
        proxies.map(|Neighbour { dst, .. }| format!("neighbour replace proxy {dst} dev {name}")),
    );
    // Read by a program: the host may be another machine.
    let groups = read(host, &["cat", "/proc/net/dev_mcast"])?.unwrap_or_default();
    let groups = static_groups(&groups, name);
    commands.extend(groups.map(|address| format!("maddress add {address} dev {name}")));
    Ok(commands)
}

/// The hardware multicast addresses that were added to an interface by hand, from
/// `/proc/net/dev_mcast`: index, name, users, users by hand, address.
fn static_groups<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = String> + 'a {
    text.lines().filter_map(move |line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, interface, _, by_hand, address] = *fields else {
            return None;
        };
        // The file has the digits of an address without separators, and `ip` wants colons.
        let bytes = address.as_bytes().chunks(2).map(String::from_utf8_lossy);
        let is_wanted = interface == name && by_hand != "0";
        is_wanted.then(|| bytes.collect::<Vec<_>>().join(":"))
    })
}

/// Returns the current state of the features that a lab or a version's settings change.
fn offloads_of(host: &dyn Node, interface: &str) -> Result<BTreeMap<String, String>> {
    // A driver that answers nothing has nothing to restore.
    let text = read(host, &["ethtool", "-k", interface])?.unwrap_or_default();
    Ok(version_settings::changeable(&text))
}

/// `02:cb:00:00:00:a0`.
pub(crate) fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let bytes = text.split(':').map(|byte| u8::from_str_radix(byte, 16));
    let bytes: Vec<u8> = bytes.collect::<Result<_, _>>().ok()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multicast_addresses_added_by_hand_are_added_again() {
        let text = "2    eth1            1     0     333300000001\n\
                    3    eth10           1     1     01005e010204\n\
                    2    eth1            2     1     01005e010203\n";
        let found: Vec<_> = static_groups(text, "eth1").collect();
        assert_eq!(found, ["01:00:5e:01:02:03"]);
    }

    #[test]
    fn a_mac_address_has_six_bytes() {
        assert_eq!(
            parse_mac("02:cb:00:00:00:a0"),
            Some([2, 0xcb, 0, 0, 0, 0xa0])
        );
        for wrong in [
            "",
            "02:cb:00:00:00",
            "02:cb:00:00:00:a0:00",
            "02:cb:00:00:00:g0",
        ] {
            assert_eq!(parse_mac(wrong), None, "{wrong}");
        }
    }
}
