//! Cables: interfaces of a machine that a lab moves into its namespaces, towards external boxes or
//! another host.
//!
//! 1. Every interface is inspected, and refused if it is in use.
//! 2. Its future owner records its settings, to restore them at its end ([`crate::station`]).
//! 3. Only then is it moved. However the run ends in between, the owner returns what it has.
//!
//! An interface keeps its name: when station and run are killed together, the kernel returns a
//! physical interface under its current name. At the cable between two hosts it gets the name of
//! the link's end, and its own as a second one, by which it is found then.

use crate::hosts::Seat;
use crate::offloads;
use crate::on_node::{ip, run_tool};
use crate::protocol::{Lent, Program, Request, Response};
use crate::switch;
use crate::{Interrupt, LabError, Links, Node, NodeId, Result, Station};
use campaign::plan::{Cables, HostName};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long one of the tools that look at interfaces may take.
const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// The external boxes, as a lab reaches them.
pub(crate) struct Outside {
    pub(crate) cables: Cables,
    /// Where commands run: the run's machine, in the namespace of the run. Ctrl-C does not
    /// interrupt it, since boxes are taken down afterwards too.
    pub(crate) host: Station,
    /// Ends pending waits.
    pub(crate) interrupt: Interrupt,
    /// MAC addresses of A's and of B's interface.
    pub(crate) macs: [[u8; 6]; 2],
}

/// An interface as `ip -json address` has it.
#[derive(Debug, Clone, Default, Deserialize)]
struct Found {
    ifname: String,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    mtu: u32,
    #[serde(default)]
    link_type: String,
    #[serde(default)]
    address: String,
    #[serde(default)]
    master: Option<String>,
    #[serde(default)]
    addr_info: Vec<Address>,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Address {
    #[serde(default)]
    family: String,
    #[serde(default)]
    local: String,
    #[serde(default)]
    scope: String,
}

/// A route as `ip -json route` has it.
#[derive(Debug, Deserialize)]
struct Route {
    #[serde(default)]
    dev: String,
}

impl Outside {
    /// Moves the interfaces to their owners, which `station` returns. Commands run on `host`; the
    /// interfaces are of the two `machines` that the stations are on, A's first, or of `host` where
    /// there are none.
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
        let mut found = Vec::new();
        for (key, name) in cables.interfaces() {
            let id = owner(key);
            found.push((
                id,
                free_interface(machine(id), &format!("external.{key}"), name)?,
            ));
        }
        let mac = |index: usize| mac_of("external", &found[index].1);
        let macs = [mac(0)?, mac(1)?];
        for id in [NodeId::A, NodeId::B, NodeId::Tap] {
            let own = found.iter().filter(|(owner, _)| *owner == id);
            let own: Vec<&Found> = own.map(|(_, interface)| interface).collect();
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
            node.run(offloads::set(interface, links.offloads), TOOL_LIMIT)?;
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

/// Gives an interface its name back that the kernel returned under the name it had in a lab: agent
/// and station were killed together.
fn recover(host: &dyn Node, name: &str, renamed: &str) -> Result<()> {
    if shown(host, name)?.is_some_and(|found| found.ifname == renamed) {
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

/// Looks at an interface, and refuses one that somebody needs.
fn free_interface(host: &dyn Node, key: &str, name: &str) -> Result<Found> {
    let found = look_at(host, key, name)?;
    let wireless = is_wireless(host, name)?;
    let uplink = default_routes(host)?.iter().any(|uplink| uplink == name);
    match objection(&found, name, wireless, uplink) {
        Some((what, help)) => Err(refused(key, what, help)),
        None => Ok(found),
    }
}

/// Returns its MAC address; `key` names it in messages.
fn mac_of(key: &str, interface: &Found) -> Result<[u8; 6]> {
    parse_mac(&interface.address).ok_or_else(|| {
        let Found {
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

/// Returns what a tool prints on the host; `None` if it fails.
fn read(host: &dyn Node, argv: &[&str]) -> Result<Option<String>> {
    let ended = host.run(Program::new(argv.iter().copied()), TOOL_LIMIT)?;
    Ok((ended.code == Some(0)).then_some(ended.stdout))
}

fn parse<T: for<'de> Deserialize<'de>>(what: &str, text: &str) -> Result<Vec<T>> {
    let text = if text.trim().is_empty() { "[]" } else { text };
    serde_json::from_str(text).map_err(|error| {
        let what = format!("cannot read what `{what}` prints: {error}");
        LabError::cannot_build(what, "install iproute2 6 or newer")
    })
}

/// The interfaces that default routes lead to.
fn default_routes(host: &dyn Node) -> Result<Vec<String>> {
    let mut uplinks = Vec::new();
    for version in ["-4", "-6"] {
        let argv = ["ip", version, "-json", "route", "show", "default"];
        // Without IPv6 there is no table of it.
        if let Some(text) = read(host, &argv)? {
            let routes: Vec<Route> = parse("ip route", &text)?;
            uplinks.extend(routes.into_iter().map(|route| route.dev));
        }
    }
    Ok(uplinks)
}

/// The interface of that name, or of that second name; `None` if there is none.
fn shown(host: &dyn Node, name: &str) -> Result<Option<Found>> {
    let argv = ["ip", "-json", "address", "show", "dev", name];
    let Some(text) = read(host, &argv)? else {
        return Ok(None);
    };
    let found: Vec<Found> = parse("ip address", &text)?;
    Ok(found.into_iter().find(|found| !found.ifname.is_empty()))
}

fn look_at(host: &dyn Node, key: &str, name: &str) -> Result<Found> {
    if let Some(found) = shown(host, name)? {
        return Ok(found);
    }
    let all = read(host, &["ip", "-json", "address", "show"])?.unwrap_or_default();
    let all: Vec<Found> = parse("ip address", &all)?;
    let known: Vec<_> = all.iter().map(|found| found.ifname.as_str()).collect();
    let what = format!("there is no interface `{name}` on that machine");
    let help = format!("it has {}", known.join(", "));
    Err(refused(key, what, help))
}

/// From its entry in `/sys`, or from the old list where `/sys` belongs to another namespace.
fn is_wireless(host: &dyn Node, name: &str) -> Result<bool> {
    let script = "test -e \"/sys/class/net/$1/phy80211\" || grep -q \"^ *$1:\" /proc/net/wireless";
    let argv = ["sh", "-c", script, "sh", name];
    Ok(read(host, &argv)?.is_some())
}

/// Returns why an interface cannot be used, and what to do.
fn objection(found: &Found, name: &str, wireless: bool, uplink: bool) -> Option<(String, String)> {
    let another = "take another interface".to_owned();
    if found.ifname != name {
        let own = &found.ifname;
        return Some((
            format!("`{name}` is another name of `{own}`"),
            format!("write `{own}`"),
        ));
    }
    if uplink {
        return Some((
            format!("this machine's default route goes out of `{name}`"),
            format!("{another}: this one would be gone while the run lasts"),
        ));
    }
    if wireless {
        return Some((format!("`{name}` is wireless"), "take a cable".to_owned()));
    }
    if found.link_type != "ether" {
        let kind = &found.link_type;
        return Some((
            format!("`{name}` is no Ethernet interface ({kind})"),
            another,
        ));
    }
    if let Some(master) = &found.master {
        return Some((
            format!("`{name}` is a port of `{master}`"),
            format!("{another}, or free it: `ip link set {name} nomaster`"),
        ));
    }
    // Every interface with IPv6 has a link-local address.
    let in_use = |address: &&Address| address.family != "inet6" || address.scope != "link";
    let address = found.addr_info.iter().find(in_use)?;
    let local = &address.local;
    Some((
        format!("`{name}` is in use: it has the address {local}"),
        format!("{another}, or free it: `ip address flush dev {name}`"),
    ))
}

/// Moves a station's interfaces to it, once it has recorded their settings.
fn lend(host: &dyn Node, station: &Seat, found: &[&Found], renamed: Option<&str>) -> Result<()> {
    let mut lent = Vec::new();
    for found in found {
        lent.push(Lent {
            interface: found.ifname.clone(),
            renamed: renamed.map(str::to_owned),
            mtu: found.mtu,
            up: found.flags.iter().any(|flag| flag == "UP"),
            offloads: offloads_of(host, &found.ifname)?,
        });
    }
    match station.call(Request::GiveBack { lent })? {
        Response::Noted => {}
        other => return Err((station as &dyn Node).unexpected(&other)),
    }
    for Found { ifname, .. } in found {
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
            (station as &dyn Node).run(Program::new(argv), TOOL_LIMIT)?;
            name = renamed;
        }
        ip(station, format!("link set {name} up\n"))?;
    }
    Ok(())
}

/// Returns the current state of the offloads that a lab sets.
fn offloads_of(host: &dyn Node, interface: &str) -> Result<BTreeMap<String, String>> {
    let text = read(host, &["ethtool", "-k", interface])?.unwrap_or_default();
    let found = offloads::parse(&text);
    let settable = offloads::SETTABLE
        .iter()
        .filter_map(|(word, feature)| Some(((*word).to_owned(), found.get(*feature)?.clone())));
    Ok(settable.collect())
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

    fn free() -> Found {
        let text = r#"{"ifname":"eth1","flags":["BROADCAST","UP"],"mtu":1500,"link_type":"ether",
            "address":"02:00:00:00:00:01",
            "addr_info":[{"family":"inet6","local":"fe80::1","scope":"link"}]}"#;
        serde_json::from_str(text).unwrap()
    }

    fn what(found: &Found, wireless: bool, uplink: bool) -> Option<String> {
        objection(found, "eth1", wireless, uplink).map(|(what, _)| what)
    }

    #[test]
    fn an_interface_that_somebody_needs_is_refused() {
        assert_eq!(what(&free(), false, false), None);
        let with = |change: fn(&mut Found)| {
            let mut found = free();
            change(&mut found);
            what(&found, false, false).unwrap()
        };
        assert!(what(&free(), true, false).unwrap().contains("wireless"));
        assert!(
            what(&free(), false, true)
                .unwrap()
                .contains("default route")
        );
        assert!(with(|found| found.ifname = "enp3s0".to_owned()).contains("another name"));
        assert!(with(|found| found.link_type = "none".to_owned()).contains("no Ethernet"));
        assert!(with(|found| found.master = Some("br7".to_owned())).contains("br7"));
        let address = |family: &str, scope: &str| Address {
            family: family.to_owned(),
            local: "address".to_owned(),
            scope: scope.to_owned(),
        };
        for (family, scope) in [("inet", "global"), ("inet", "link"), ("inet6", "global")] {
            let mut found = free();
            found.addr_info.push(address(family, scope));
            assert!(what(&found, false, false).unwrap().contains("in use"));
        }
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
