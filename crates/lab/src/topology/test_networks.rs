//! Networks that test frames come from and go to: routed towards the stations, but nobody's, so that
//! a station's kernel drops what the analyser has seen, without an answer.
//!
//! IPv6 is routed without an address on any link, by neighbours that are written down: then there is
//! nothing that a kernel would announce, ask for or answer from, and no frame on the links that is
//! not the measurement's.

use super::{A0, A1, B0, B1, End, Map, W0, W1, ends, line, mac};
use crate::{Links, NodeId};
use std::net::{Ipv4Addr, Ipv6Addr};

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

/// The next hop for IPv6 at a link's end: no address of that end, only the name of its neighbour
/// entry.
fn hop_ipv6(end: End) -> Ipv6Addr {
    let link = match end.node {
        NodeId::A => 0xa,
        NodeId::B => 0xb,
        NodeId::Gw1 | NodeId::Gw2 => 0xc,
    };
    let host = if end.node == NodeId::Gw1 { 1 } else { 2 };
    Ipv6Addr::new(0x2001, 2, 0, link, 0, 0, 0, host)
}

impl Map {
    /// A gateway's routes to the test networks of its own side, and its neighbours of IPv6; nothing
    /// for a station. Can be repeated.
    pub(crate) fn route_test_networks(&self, node: NodeId, links: Links) -> String {
        let (station, interface) = match node {
            NodeId::Gw1 => (A0, A1.interface),
            NodeId::Gw2 => (B0, B1.interface),
            NodeId::A | NodeId::B => return String::new(),
        };
        let network = TestNetwork::of(node);
        let mut batch = String::new();
        let (prefix, via) = (network.ipv4(), self.address(station));
        line(
            &mut batch,
            format_args!("route replace {prefix} via {via} dev {interface}"),
        );
        if self.carries_ipv6(links) {
            for (own, other, _) in ends(node) {
                let (hop, hop_mac, interface) = (hop_ipv6(other), mac(other.mac), own.interface);
                line(
                    &mut batch,
                    format_args!(
                        "neigh replace {hop} lladdr {hop_mac} dev {interface} nud permanent"
                    ),
                );
            }
            let route = route_ipv6(&network.ipv6(), station, interface);
            line(&mut batch, format_args!("{route}"));
        }
        batch
    }

    /// A gateway's routes over the cipher link to what is behind the other one. Can be repeated.
    pub(crate) fn route_in_clear(&self, node: NodeId, links: Links) -> String {
        let (other, interface) = match node {
            NodeId::Gw1 => (W1, W0.interface),
            _ => (W0, W1.interface),
        };
        let via = self.address(other);
        let mut batch = String::new();
        for network in self.beyond(node, links) {
            let route = if network.contains(':') {
                route_ipv6(&network, other, interface)
            } else {
                format!("route replace {network} via {via} dev {interface}")
            };
            line(&mut batch, format_args!("{route}"));
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

    /// Lets a gateway drop test frames instead of handing them on: a station stands in its place.
    /// [`route_test_networks`](Self::route_test_networks) is the way back.
    pub(crate) fn hold_back_test_frames(&self, node: NodeId, links: Links) -> String {
        let network = TestNetwork::of(node);
        let mut batch = String::new();
        let mut hold_back = |prefix: String| {
            line(&mut batch, format_args!("route replace blackhole {prefix}"));
        };
        hold_back(network.ipv4());
        if self.carries_ipv6(links) {
            hold_back(network.ipv6());
        }
        batch
    }
}

/// A route by way of a neighbour, though no address of the interface is in its network.
fn route_ipv6(network: &str, hop: End, interface: &str) -> String {
    let via = hop_ipv6(hop);
    format!("route replace {network} via {via} dev {interface} onlink")
}
