//! The interfaces of this host, as `ip` shows them: the one of the route to the other end, and the
//! ones that packets can leave beneath it.

use guard::output_within;
use serde::Deserialize;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const OUTPUT_BYTES_MAX: usize = 16 << 20;
const LIMIT: Duration = Duration::from_secs(10);

/// Kinds of interfaces that wrap packets into others, and that are not the last on this host.
const TUNNELS: [&str; 24] = [
    "amt",
    "bareudp",
    "erspan",
    "fou",
    "geneve",
    "gre",
    "gretap",
    "gtp",
    "ip6erspan",
    "ip6gre",
    "ip6gretap",
    "ip6tnl",
    "ipip",
    "l2tp",
    "l2tp_eth",
    "macsec",
    "ovpn",
    "sit",
    "tun",
    "vti",
    "vti6",
    "vxlan",
    "wireguard",
    "xfrm",
];

/// Most interfaces that are looked at together.
const BENEATH_MAX: usize = 8;

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Interface {
    #[serde(rename = "ifname")]
    pub(crate) name: String,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    pub(crate) master: Option<String>,
    /// The interface that it is made on.
    #[serde(default)]
    pub(crate) link: Option<String>,
    #[serde(default)]
    pub(crate) mtu: u32,
    #[serde(default)]
    linkinfo: Linkinfo,
    #[serde(default, rename = "addr_info")]
    addresses: Vec<Address>,
    #[serde(skip)]
    is_card: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Address {
    local: Option<IpAddr>,
    #[serde(default)]
    scope: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct Linkinfo {
    #[serde(default)]
    info_kind: String,
}

#[derive(Debug, Deserialize)]
struct Route {
    dev: String,
}

impl Interface {
    pub(crate) fn kind(&self) -> &str {
        &self.linkinfo.info_kind
    }

    pub(crate) fn is_tunnel(&self) -> bool {
        TUNNELS.contains(&self.kind())
    }

    pub(crate) fn is_loopback(&self) -> bool {
        self.has("LOOPBACK")
    }

    /// Its addresses that other hosts can reach.
    pub(crate) fn reachable(&self) -> impl Iterator<Item = IpAddr> {
        let global = self
            .addresses
            .iter()
            .filter(|address| address.scope == "global");
        global.filter_map(|address| address.local)
    }

    /// Whether it has this address of the host.
    pub(crate) fn has_address(&self, address: IpAddr) -> bool {
        self.addresses
            .iter()
            .any(|known| known.local == Some(address))
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }
}

/// All interfaces of this network namespace. An error is a clause for people.
pub(crate) fn interfaces() -> Result<Vec<Interface>, String> {
    let text = ip(&["-j", "-d", "address", "show"])?;
    let mut found = parse(&text)?;
    for interface in &mut found {
        let device = Path::new("/sys/class/net").join(&interface.name);
        interface.is_card = device.join("device").exists();
    }
    Ok(found)
}

pub(crate) fn parse(text: &str) -> Result<Vec<Interface>, String> {
    serde_json::from_str(text).map_err(|error| format!("`ip -j address` cannot be read: {error}"))
}

/// The name of the interface of the route to an address.
pub(crate) fn towards(address: IpAddr) -> Result<String, String> {
    let text = ip(&["-j", "route", "get", &address.to_string()])?;
    let routes: Vec<Route> = serde_json::from_str(&text)
        .map_err(|error| format!("`ip -j route get` cannot be read: {error}"))?;
    let route = routes.into_iter().next();
    route
        .map(|route| route.dev)
        .ok_or_else(|| format!("there is no route to {address}"))
}

/// Whether a network card encrypts by itself: this host then sees its packets only before that.
pub(crate) fn is_sealed_by_the_card() -> bool {
    // Without the right to read SAs there is no right to look at packets either.
    ip(&["xfrm", "state"]).is_ok_and(|text| text.contains(" offload parameters:"))
}

fn ip(words: &[&str]) -> Result<String, String> {
    let ended = output_within(Command::new("ip").args(words), OUTPUT_BYTES_MAX, LIMIT)
        .map_err(|error| format!("`ip` of iproute2 cannot be used: {error}"))?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(format!("`ip {}` failed: {}", words.join(" "), said.trim()))
}

/// The interfaces that packets for the route's interface `top` may leave this host by: `top`
/// itself, or every other one that wraps nothing if `top` is a tunnel; cards first.
pub(crate) fn beneath(all: &[Interface], top: &str) -> Vec<String> {
    let is_tunnel = all
        .iter()
        .any(|interface| interface.name == top && interface.is_tunnel());
    if !is_tunnel {
        return vec![top.to_owned()];
    }
    let mut found: Vec<&Interface> = all
        .iter()
        .filter(|interface| interface.has("UP") && !interface.is_loopback())
        .filter(|interface| !interface.is_tunnel() && interface.name != top)
        // Ports of a bridge for containers; a card in a bridge or bond counts.
        .filter(|interface| interface.is_card || interface.master.is_none())
        .collect();
    found.sort_by_key(|interface| !interface.is_card);
    let names = found.into_iter().map(|interface| interface.name.clone());
    names.take(BENEATH_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: &str = r#"[
        {"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP"],"mtu":65536},
        {"ifindex":2,"ifname":"br0","flags":["BROADCAST","UP"],"mtu":1500,"linkinfo":{"info_kind":"bridge"}},
        {"ifindex":3,"ifname":"veth1","flags":["UP"],"master":"br0","linkinfo":{"info_kind":"veth"}},
        {"ifindex":4,"ifname":"eth0","flags":["BROADCAST","UP","LOWER_UP"],"mtu":1500},
        {"ifindex":5,"ifname":"eth1","flags":["BROADCAST"],"mtu":1500},
        {"ifindex":6,"ifname":"wg0","flags":["POINTOPOINT","UP"],"mtu":1420,"addr_info":[{"family":"inet","local":"10.9.0.1","prefixlen":24,"scope":"global"},{"family":"inet6","local":"fe80::1","prefixlen":64,"scope":"link"}],"linkinfo":{"info_kind":"wireguard"}},
        {"ifindex":7,"ifname":"gre1","flags":["POINTOPOINT","UP"],"mtu":1476,"linkinfo":{"info_kind":"gre","info_data":{"link":null}}}
    ]"#;

    #[test]
    fn beneath_a_tunnel_are_the_interfaces_that_wrap_nothing() {
        let mut all = parse(LINKS).unwrap();
        all[3].is_card = true;
        assert_eq!(beneath(&all, "wg0"), ["eth0", "br0"]);
        assert_eq!(beneath(&all, "gre1"), ["eth0", "br0"]);
        assert_eq!(beneath(&all, "eth0"), ["eth0"]);
        assert_eq!(beneath(&all, "veth1"), ["veth1"]);
        assert_eq!((all[5].kind(), all[5].mtu), ("wireguard", 1420));
        assert!(all[0].is_loopback());
        let reachable: Vec<_> = all[5].reachable().collect();
        assert_eq!(reachable, [IpAddr::from([10, 9, 0, 1])]);
        assert!(parse("[{}]").is_err() && parse("Object").is_err());
    }

    #[test]
    fn the_route_to_this_host_is_the_loopback_interface() {
        assert_eq!(towards(IpAddr::from([127, 0, 0, 1])).unwrap(), "lo");
        assert!(interfaces().unwrap().iter().any(Interface::is_loopback));
    }
}
