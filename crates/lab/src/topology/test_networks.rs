//! Networks that test frames come from and go to: routed towards the stations, but nobody's.
//!
//! The last hop is to a MAC address that is nobody's either, so that a station's kernel drops what the
//! analyser has seen, without an answer and before it looks for a route; that look costs a quarter of
//! the frames that a core can send.
//!
//! IPv6 is routed without an address on any link, by neighbours that are written down: then there is
//! nothing that a kernel would announce, ask for or answer from, and no frame on the links that is
//! not the measurement's.

use super::{A0, A1, B0, B1, End, Map, W0, W1, ends, line, mac};
use crate::{Links, NodeId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Every link that carries IPv6 has at least this MTU, in bytes (RFC 8200 §5).
pub(crate) const IPV6_MTU_MIN: u16 = 1280;

/// The test networks behind one side: a half of 198.18.0.0/15 (RFC 2544 §C.2.2) and a /64 of
/// 2001:2::/48 (RFC 5180 §8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestNetwork {
    /// Behind A's side.
    A,
    /// Behind B's side.
    B,
}

impl TestNetwork {
    /// Of the side that a node is on.
    pub(crate) const fn of(node: NodeId) -> Self {
        match node {
            NodeId::A | NodeId::Gw1 => Self::A,
            NodeId::Gw2 | NodeId::B => Self::B,
        }
    }

    const fn number(self) -> u8 {
        match self {
            Self::A => 18,
            Self::B => 19,
        }
    }

    pub(crate) fn ipv4(self) -> String {
        format!("198.{}.0.0/16", self.number())
    }

    pub(crate) fn ipv6(self) -> String {
        format!("2001:2:0:{}::/64", self.number())
    }

    /// The first address; address 0 is the network's own (RFC 4291 §2.6.1).
    pub(super) const fn first_ipv4(self) -> Ipv4Addr {
        Ipv4Addr::new(198, self.number(), 0, 1)
    }

    pub(super) fn first_ipv6(self) -> Ipv6Addr {
        // The number is written as it is in IPv4, in digits.
        let number = match self {
            Self::A => 0x18,
            Self::B => 0x19,
        };
        Ipv6Addr::new(0x2001, 2, 0, number, 0, 0, 0, 1)
    }
}

/// The next hop at a link's end. But for a gateway's own IPv4 address, only the names of neighbour
/// entries.
struct Hop {
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
    mac: [u8; 6],
}

impl Map {
    /// The node at that end itself.
    fn node_hop(&self, end: End) -> Hop {
        Hop {
            ipv4: self.address(end),
            ipv6: hop_ipv6(end, 0),
            mac: end.mac,
        }
    }

    /// A station at that end, as test frames reach it.
    fn station_hop(&self, end: End) -> Hop {
        let [a, b, c, number] = self.address(end).octets();
        Hop {
            ipv4: Ipv4Addr::new(a, b, c, number + 2),
            ipv6: hop_ipv6(end, 2),
            mac: end.test_mac,
        }
    }

    /// A gateway's routes to the test networks of its own side, and its neighbours; nothing for a
    /// station. Can be repeated.
    pub(crate) fn route_test_networks(&self, node: NodeId, links: Links) -> String {
        let (station, interface) = match node {
            NodeId::Gw1 => (A0, A1.interface),
            NodeId::Gw2 => (B0, B1.interface),
            NodeId::A | NodeId::B => return String::new(),
        };
        let ipv6 = self.carries_ipv6(links);
        let mut batch = String::new();
        for (own, other, _) in ends(node) {
            for hop in [self.node_hop(other), self.station_hop(other)] {
                let names = [Some(hop.ipv4.into()), ipv6.then_some(hop.ipv6.into())];
                for name in names.into_iter().flatten() {
                    neighbour(&mut batch, name, hop.mac, own.interface);
                }
            }
        }
        let network = TestNetwork::of(node);
        let hop = self.station_hop(station);
        route(&mut batch, &network.ipv4(), &hop, interface);
        if ipv6 {
            route(&mut batch, &network.ipv6(), &hop, interface);
        }
        batch
    }

    /// A gateway's routes over the cipher link to what is behind the other one, or to a station that
    /// stands in its place. Can be repeated.
    pub(crate) fn route_in_clear(&self, node: NodeId, links: Links, to_station: bool) -> String {
        let (other, interface) = match node {
            NodeId::A | NodeId::Gw1 => (W1, W0.interface),
            NodeId::Gw2 | NodeId::B => (W0, W1.interface),
        };
        let hop = if to_station {
            self.station_hop(other)
        } else {
            self.node_hop(other)
        };
        let mut batch = String::new();
        for network in self.beyond(node, links) {
            route(&mut batch, &network, &hop, interface);
        }
        batch
    }

    /// Removes a gateway's routes to what is behind the other one, whether they are there or not.
    pub(crate) fn unroute(&self, node: NodeId, links: Links) -> String {
        let mut batch = String::new();
        for network in self.beyond(node, links) {
            // There is one to delete then.
            line(
                &mut batch,
                format_args!("route replace blackhole {network}"),
            );
            line(&mut batch, format_args!("route del {network}"));
        }
        batch
    }
}

fn hop_ipv6(end: End, offset: u16) -> Ipv6Addr {
    let link = match end.interface.as_bytes().first() {
        Some(b'a') => 0xa,
        Some(b'b') => 0xb,
        _ => 0xc,
    };
    let host = if end.node == NodeId::Gw1 { 1 } else { 2 };
    Ipv6Addr::new(0x2001, 2, 0, link, 0, 0, 0, host + offset)
}

/// Writes a neighbour down, for good.
fn neighbour(batch: &mut String, name: IpAddr, address: [u8; 6], interface: &str) {
    let address = mac(address);
    line(
        batch,
        format_args!("neigh replace {name} lladdr {address} dev {interface} nud permanent"),
    );
}

/// Sets a route by way of a neighbour, whether or not an address of the interface is in its network.
fn route(batch: &mut String, network: &str, hop: &Hop, interface: &str) {
    let via: IpAddr = if network.contains(':') {
        hop.ipv6.into()
    } else {
        hop.ipv4.into()
    };
    line(
        batch,
        format_args!("route replace {network} via {via} dev {interface} onlink"),
    );
}
