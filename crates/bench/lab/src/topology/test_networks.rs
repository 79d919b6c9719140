//! Source and destination networks of test frames, routed towards the stations but assigned to no
//! interface.
//!
//! The last hop's MAC address belongs to no interface either. So a station's kernel drops frames
//! that the analyser has seen, without an answer and before the route lookup, which would cost a
//! quarter of the frames that a core can send.
//!
//! IPv6 is routed with static neighbours, without an address on any link: so kernels announce,
//! solicit and answer nothing, and the links carry only frames of the measurement.

use super::{A0, A1, B0, B1, End, Map, Side, mac};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use testbed::{Links, NodeId};

/// Minimum MTU, in bytes, of a link that carries IPv6 (RFC 8200 §5).
pub(crate) const IPV6_MTU_MIN: u16 = 1280;

/// The test networks behind one side: a half of 198.18.0.0/15 (RFC 2544 §C.2.2) and a /64 of
/// 2001:2::/48 (RFC 5180 §8).
impl Side {
    const fn number(self) -> u8 {
        match self {
            Self::A => 18,
            Self::B => 19,
        }
    }

    pub(crate) fn test_ipv4(self) -> String {
        format!("198.{}.0.0/16", self.number())
    }

    pub(super) fn test_ipv6(self) -> String {
        format!("2001:2:0:{}::/64", self.number())
    }

    /// The first address; address 0 identifies the network (RFC 4291 §2.6.1).
    pub(super) const fn first_ipv4(self) -> Ipv4Addr {
        Ipv4Addr::new(198, self.number(), 0, 1)
    }

    /// The test addresses of one tunnel, as networks.
    pub(super) fn test_hosts(self, tunnel: u16, with_ipv6: bool) -> Vec<String> {
        let ipv4 = u32::from(self.first_ipv4()) + u32::from(tunnel);
        let ipv6 = u128::from(self.first_ipv6()) + u128::from(tunnel);
        let mut hosts = vec![format!("{}/32", Ipv4Addr::from(ipv4))];
        if with_ipv6 {
            hosts.push(format!("{}/128", Ipv6Addr::from(ipv6)));
        }
        hosts
    }

    pub(super) fn first_ipv6(self) -> Ipv6Addr {
        // The same digits as the decimal ones in IPv4.
        let number = match self {
            Self::A => 0x18,
            Self::B => 0x19,
        };
        Ipv6Addr::new(0x2001, 2, 0, number, 0, 0, 0, 1)
    }
}

/// The next hop at a link's end. Except for a node's real IPv4 address, the addresses are only keys
/// of neighbour entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hop {
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
    mac: [u8; 6],
}

impl Map {
    /// Returns the hop to the node at that end.
    pub(crate) fn node_hop(&self, end: End) -> Hop {
        Hop {
            ipv4: self.address(end),
            ipv6: self.hop_ipv6(end, 0),
            mac: self.mac_of(end),
        }
    }

    /// Returns the hop for test frames to a station at that end.
    pub(crate) fn station_hop(&self, end: End) -> Hop {
        let [a, b, c, number] = self.address(end).octets();
        // No interface has an address that ends so.
        Hop {
            ipv4: Ipv4Addr::new(a, b, c, number + 2),
            ipv6: self.hop_ipv6(end, 2),
            mac: self.test_mac_of(end),
        }
    }

    fn hop_ipv6(&self, end: End, offset: u16) -> Ipv6Addr {
        let link = match end {
            A0 | A1 => 0xa,
            B0 | B1 => 0xb,
            _ => 0xc + self.network_of(end),
        };
        // At most 0xc plus one network behind each router.
        let link = u16::try_from(link).unwrap_or(u16::MAX);
        let [.., number] = self.address(end).octets();
        Ipv6Addr::new(0x2001, 2, 0, link, 0, 0, 0, u16::from(number) + offset)
    }

    /// Returns all next hops of an end's node on that link.
    fn hops(&self, own: End) -> Vec<Hop> {
        let next = self.next_hop(own);
        let mut hops = vec![self.node_hop(next)];
        if !matches!(next.node, NodeId::Element(_)) {
            hops.push(self.station_hop(next));
        }
        // A gateway that only switches forwards frames to the station behind it.
        if matches!(own.node, NodeId::Element(_)) && next.node == NodeId::Gw1 {
            hops.push(self.station_hop(A0));
        }
        hops
    }

    /// Sets the neighbours of a node that forwards IP, and a gateway's routes to the test networks
    /// of its side; nothing for other nodes. Can be repeated.
    pub(crate) fn route_test_networks(&self, node: NodeId, links: Links) -> String {
        let mut batch = String::new();
        // Test frames end at stations, and bridges pass them on below IP.
        if !node.forwards_ip() {
            return batch;
        }
        let ipv6 = self.carries_ipv6(links);
        for (own, ..) in self.ends(node) {
            for hop in self.hops(own) {
                let names = [Some(hop.ipv4.into()), ipv6.then_some(hop.ipv6.into())];
                for name in names.into_iter().flatten() {
                    neighbour(&mut batch, name, hop.mac, own.interface);
                }
            }
        }
        let (station, own) = match node {
            NodeId::Gw1 => (A0, A1),
            NodeId::Gw2 => (B0, B1),
            _ => return batch,
        };
        let (side, hop) = (Side::of(station), self.station_hop(station));
        route(&mut batch, &side.test_ipv4(), &hop, own.interface);
        if ipv6 {
            route(&mut batch, &side.test_ipv6(), &hop, own.interface);
        }
        batch
    }

    /// Sets the routes over the cipher link of a node that forwards IP, to the networks behind the
    /// gateways ahead of it. `last` are the hops used for gw1 and gw2. Can be repeated.
    pub(crate) fn route_in_clear(&self, node: NodeId, links: Links, last: [Hop; 2]) -> String {
        let mut batch = String::new();
        for own in self.cipher_ends(node) {
            let next = self.next_hop(own);
            // The last hop depends on the DUT: the gateway itself, or the station in its place.
            let hop = match next.node {
                NodeId::A | NodeId::Gw1 => last[0],
                NodeId::Gw2 | NodeId::B => last[1],
                NodeId::Element(_) | NodeId::Tap | NodeId::Host => self.node_hop(next),
            };
            for network in self.networks_behind(Side::ahead(own), links) {
                route(&mut batch, &network, &hop, own.interface);
            }
        }
        batch
    }

    /// Removes a node's cleartext routes, if present.
    pub(crate) fn unroute(&self, node: NodeId, links: Links) -> String {
        let mut batch = String::new();
        for own in self.cipher_ends(node) {
            for network in self.networks_behind(Side::ahead(own), links) {
                // Replacing first ensures that the route exists.
                batch += &format!("route replace blackhole {network}\n");
                batch += &format!("route del {network}\n");
            }
        }
        batch
    }
}

/// Adds a permanent neighbour.
fn neighbour(batch: &mut String, name: IpAddr, address: [u8; 6], interface: &str) {
    let address = mac(address);
    *batch += &format!("neigh replace {name} lladdr {address} dev {interface} nud permanent\n");
}

/// Sets a route via a neighbour, even if the interface has no address in the neighbour's network.
fn route(batch: &mut String, network: &str, hop: &Hop, interface: &str) {
    let via: IpAddr = if network.contains(':') {
        hop.ipv6.into()
    } else {
        hop.ipv4.into()
    };
    *batch += &format!("route replace {network} via {via} dev {interface} onlink\n");
}
