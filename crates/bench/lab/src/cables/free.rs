//! Checks that an interface of a machine is unused, and that all its settings survive a loan.

use super::{parse, read, refused};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use testbed::{Node, Result};

/// Kinds of interfaces with `link` naming their other end.
const PAIRS: [&str; 3] = ["veth", "netkit", "vxcan"];
/// Keys of a kind's data that name the interface below.
const BELOW: [&str; 3] = ["link", "slave1", "slave2"];

/// An interface as printed by `ip -json -details address`, which also prints an empty object for
/// each interface that was not asked for, in some versions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct HostInterface {
    pub(super) ifname: String,
    pub(super) flags: Vec<String>,
    pub(super) mtu: u32,
    link_type: String,
    pub(super) address: String,
    master: Option<String>,
    /// The interface that it is made on, or its other end.
    link: Option<String>,
    linkinfo: LinkInfo,
    addr_info: Vec<Address>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct LinkInfo {
    info_kind: String,
    info_data: Value,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Address {
    family: String,
    local: String,
    scope: String,
}

/// A route as printed by `ip -json route`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Route {
    dst: String,
    dev: String,
    #[serde(rename = "type")]
    kind: String,
    table: Option<String>,
    protocol: String,
    /// Of a route over several interfaces.
    nexthops: Vec<NextHop>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct NextHop {
    dev: String,
}

/// A queueing discipline as printed by `tc -json qdisc`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Queueing {
    kind: String,
    /// `0:` for disciplines that the kernel sets.
    handle: String,
    root: bool,
}

/// A TCP connection.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Connection {
    /// Its address here.
    own: String,
    peer: String,
}

/// A machine's facts about an interface.
#[derive(Debug, Clone, Default)]
struct Facts {
    found: HostInterface,
    wireless: bool,
    /// Every interface.
    all: Vec<HostInterface>,
    /// The interfaces that default routes lead to.
    uplinks: Vec<String>,
    connections: Vec<Connection>,
    /// Routes to it.
    routes: Vec<Route>,
    queueing: Vec<Queueing>,
}

/// Inspects an interface, and refuses one that somebody needs, or that would come back changed.
pub(super) fn free_interface(host: &dyn Node, key: &str, name: &str) -> Result<HostInterface> {
    let facts = look_at(host, key, name)?;
    match objection(&facts, name) {
        Some((what, help)) => Err(refused(key, what, help)),
        None => Ok(facts.found),
    }
}

/// The interface with that name or alternative name; `None` if it does not exist.
pub(super) fn shown(host: &dyn Node, name: &str) -> Result<Option<HostInterface>> {
    let argv = ["ip", "-json", "-details", "address", "show", "dev", name];
    let Some(text) = read(host, &argv)? else {
        return Ok(None);
    };
    let found: Vec<HostInterface> = parse("ip address", &text)?;
    Ok(found.into_iter().find(|found| !found.ifname.is_empty()))
}

fn look_at(host: &dyn Node, key: &str, name: &str) -> Result<Facts> {
    let all = read(host, &["ip", "-json", "-details", "address", "show"])?;
    let all: Vec<HostInterface> = parse("ip address", &all.unwrap_or_default())?;
    let Some(found) = shown(host, name)? else {
        let known: Vec<_> = all.iter().map(|found| found.ifname.as_str()).collect();
        let what = format!("there is no interface `{name}` on that machine");
        let help = format!(
            "it has {}; one that a run has borrowed is back when that run ends",
            known.join(", ")
        );
        return Err(refused(key, what, help));
    };
    let listed = |what: &str, argv: &[&str]| -> Result<String> {
        let text = read(host, argv)?;
        text.ok_or_else(|| {
            let help = format!("see what `{}` says there", argv.join(" "));
            refused(key, format!("`{what}` fails for `{name}`"), help)
        })
    };
    let routes = ["ip", "-json", "route", "show", "table", "all", "dev", name];
    let queueing = ["tc", "-json", "qdisc", "show", "dev", name];
    // The result only words a refusal, except for link-local addresses: without `ss` they count as
    // unused.
    let connections = ["sh", "-c", "ss -Htn state established || true"];
    Ok(Facts {
        found,
        wireless: is_wireless(host, name)?,
        all,
        uplinks: uplinks(host)?,
        connections: connections_of(&read(host, &connections)?.unwrap_or_default()),
        routes: parse("ip route", &listed("ip route", &routes)?)?,
        queueing: parse("tc qdisc", &listed("tc qdisc", &queueing)?)?,
    })
}

/// The interfaces that default routes lead to.
fn uplinks(host: &dyn Node) -> Result<Vec<String>> {
    let mut uplinks = Vec::new();
    for version in ["-4", "-6"] {
        let argv = ["ip", version, "-json", "route", "show", "default"];
        // Without IPv6 there is no table of it.
        if let Some(text) = read(host, &argv)? {
            let routes: Vec<Route> = parse("ip route", &text)?;
            // A route over several interfaces has no `dev`; the empty name matches no interface.
            uplinks.extend(routes.into_iter().flat_map(|route| {
                let several = route.nexthops.into_iter().map(|hop| hop.dev);
                several.chain([route.dev])
            }));
        }
    }
    Ok(uplinks)
}

/// Uses its entry in `/sys`, or the old list if `/sys` belongs to another namespace.
fn is_wireless(host: &dyn Node, name: &str) -> Result<bool> {
    let script = "test -e \"/sys/class/net/$1/phy80211\" || grep -q \"^ *$1:\" /proc/net/wireless";
    let argv = ["sh", "-c", script, "sh", name];
    Ok(read(host, &argv)?.is_some())
}

/// From the lines of `ss -Htn state established`, which end in both ends of a connection.
fn connections_of(text: &str) -> Vec<Connection> {
    let ends = text.lines().filter_map(|line| {
        // `ss` prints no state if only one is asked for, so two queue lengths come first.
        let mut words = line.split_whitespace().skip(2).map(address_of);
        Some(Connection {
            own: words.next()?,
            peer: words.next()?,
        })
    });
    ends.collect()
}

/// The address of `192.0.2.1:22`, `[::ffff:192.0.2.1]:22` or `[fe80::1]%eth0:22`.
fn address_of(end: &str) -> String {
    let address = end.rsplit_once(':').map_or(end, |(address, _)| address);
    let address = address.split('%').next().unwrap_or(address);
    let address = address.trim_start_matches('[').trim_end_matches(']');
    address.trim_start_matches("::ffff:").to_owned()
}

impl HostInterface {
    /// The interfaces below: this one goes, or loses its path, when they move.
    fn below(&self) -> impl Iterator<Item = &str> {
        let LinkInfo {
            info_kind,
            info_data,
        } = &self.linkinfo;
        let is_pair = PAIRS.contains(&info_kind.as_str());
        let link = self.link.as_deref().filter(|_| !is_pair);
        let data = BELOW.iter();
        let data = data.filter_map(move |key| info_data.get(*key)?.as_str());
        link.into_iter().chain(data)
    }

    /// The first address that somebody gave it: every interface with IPv6 has a link-local one.
    fn address_in_use(&self) -> Option<&str> {
        let in_use = |address: &&Address| address.family != "inet6" || address.scope != "link";
        let address = self.addr_info.iter().find(in_use)?;
        Some(&address.local)
    }
}

impl Facts {
    /// The interfaces above it, nearest first: its bridge, a VLAN on that …
    fn above(&self) -> Vec<&HostInterface> {
        let mut found: Vec<&HostInterface> = Vec::new();
        let mut known = BTreeSet::from([self.found.ifname.as_str()]);
        let mut masters: BTreeSet<&str> = self.found.master.as_deref().into_iter().collect();
        // Each round goes one level up. Known names are skipped, so the loop ends.
        loop {
            let more: Vec<&HostInterface> = self
                .all
                .iter()
                .filter(|it| !known.contains(&*it.ifname))
                .filter(|it| {
                    masters.contains(&*it.ifname) || it.below().any(|name| known.contains(name))
                })
                .collect();
            if more.is_empty() {
                return found;
            }
            known.extend(more.iter().map(|it| it.ifname.as_str()));
            masters.extend(more.iter().filter_map(|it| it.master.as_deref()));
            found.extend(more);
        }
    }

    /// A connection of another machine to an interface's addresses.
    fn connection(&self, of: &HostInterface) -> Option<&Connection> {
        let is_own = |it: &&Connection| of.addr_info.iter().any(|its| its.local == it.own);
        // A machine may be connected to itself, which survives the loan.
        let mut others = self.connections.iter().filter(|it| it.peer != it.own);
        others.find(is_own)
    }

    /// Returns who needs an interface, as the rest of a sentence after its name.
    fn need(&self, of: &HostInterface) -> Option<String> {
        if self.uplinks.contains(&of.ifname) {
            return Some("over which this machine's default route goes".to_owned());
        }
        if let Some(Connection { own, peer }) = self.connection(of) {
            return Some(format!(
                "over which {peer} is connected to this machine ({own})"
            ));
        }
        let address = of.address_in_use()?;
        Some(format!("which has the address {address}"))
    }
}

/// Returns why an interface cannot be used, and what to do.
fn objection(facts: &Facts, name: &str) -> Option<(String, String)> {
    let another = "take another interface".to_owned();
    let needed = format!("{another}: this one would be gone while the run lasts");
    let Facts { found, .. } = facts;
    // The kernel lists counters and parameters by the proper name only.
    if found.ifname != name {
        let own = &found.ifname;
        return Some((
            format!("`{name}` is another name of `{own}`"),
            format!("write `{own}`"),
        ));
    }
    if facts.uplinks.iter().any(|uplink| uplink == name) {
        let what = format!("this machine's default route goes out of `{name}`");
        return Some((what, needed));
    }
    // The kernel moves a wireless interface to another namespace only together with its radio.
    if facts.wireless {
        return Some((format!("`{name}` is wireless"), "take a cable".to_owned()));
    }
    if found.link_type != "ether" {
        let kind = &found.link_type;
        return Some((
            format!("`{name}` is no Ethernet interface ({kind})"),
            another,
        ));
    }
    beneath_others(facts, name)
        .or_else(|| in_use(facts, name))
        .or_else(|| lost_settings(facts, name))
}

/// Objects if other interfaces are made on it, or it is a port of one.
fn beneath_others(facts: &Facts, name: &str) -> Option<(String, String)> {
    let above = facts.above();
    let master = facts.found.master.as_deref();
    let place = |upper: &HostInterface| {
        let HostInterface {
            ifname, linkinfo, ..
        } = upper;
        if master == Some(ifname.as_str()) {
            format!("`{name}` is a port of `{ifname}`")
        } else {
            format!("`{name}` is under `{ifname}` ({})", linkinfo.info_kind)
        }
    };
    // If somebody needs an interface above, no command to free this one is suggested.
    let needed = above
        .iter()
        .find_map(|upper| Some((place(upper), facts.need(upper)?)));
    if let Some((place, need)) = needed {
        let help = "take another interface: this one would be gone while the run lasts";
        return Some((format!("{place}, {need}"), help.to_owned()));
    }
    // A bridge may be in another namespace.
    let Some(first) = above.first() else {
        let master = master?;
        let help = format!("take another interface, or free it: `ip link set {name} nomaster`");
        return Some((format!("`{name}` is a port of `{master}`"), help));
    };
    let free = if master == Some(first.ifname.as_str()) {
        format!("ip link set {name} nomaster")
    } else {
        format!("ip link delete {}", first.ifname)
    };
    let help = format!("take another interface, or free it: `{free}`");
    Some((place(first), help))
}

/// Objects if it has an address, or a route leads to it.
fn in_use(facts: &Facts, name: &str) -> Option<(String, String)> {
    let another = "take another interface";
    // If somebody is connected over it, no command that removes the address is suggested.
    let connection = facts.connection(&facts.found);
    if let Some(local) = facts.found.address_in_use() {
        let what = format!("`{name}` is in use: it has the address {local}");
        let help = match connection {
            Some(Connection { peer, .. }) => {
                format!("{another}: {peer} is connected to this machine over it")
            }
            None => format!("{another}, or free it: `ip address flush dev {name}`"),
        };
        return Some((what, help));
    }
    if let Some(Connection { own, peer }) = connection {
        let what = format!("`{name}` is in use: {peer} is connected to its address {own}");
        return Some((
            what,
            format!("{another}: this one would be gone while the run lasts"),
        ));
    }
    // The kernel makes some routes itself, and again those that a router announces.
    let by_hand = |route: &&Route| {
        !["kernel", "ra"].contains(&&*route.protocol)
            && route.kind != "multicast"
            && route.table.as_deref() != Some("local")
    };
    let route = facts.routes.iter().find(by_hand)?;
    let dst = &route.dst;
    let version = if dst.contains(':') { " -6" } else { "" };
    let table = route.table.as_ref();
    let table = table.map_or_else(String::new, |table| format!(" table {table}"));
    Some((
        format!("`{name}` is in use: the route to {dst} leads to it, and would be lost"),
        format!(
            "{another}, or delete the route: `ip{version} route delete {dst} dev {name}{table}`"
        ),
    ))
}

/// Objects if the kernel would drop settings that cannot be restored as they were.
fn lost_settings(facts: &Facts, name: &str) -> Option<(String, String)> {
    let set = |it: &&Queueing| {
        it.handle != "0:" && (it.root || ["clsact", "ingress"].contains(&&*it.kind))
    };
    let Queueing { kind, root, .. } = facts.queueing.iter().find(set)?;
    let place = if *root { "root" } else { kind.as_str() };
    Some((
        format!(
            "`{name}` has the queueing discipline `{kind}`, which would be lost with its filters"
        ),
        format!(
            "take another interface, or delete it and set it again after the run: `tc qdisc delete dev {name} {place}`"
        ),
    ))
}

#[cfg(test)]
mod tests;
