//! The built-in lab's links, addresses and routes, as input of `ip -batch`. Text only; nothing is
//! run here.
//!
//! ```text
//!   A            gw1                        gw2            B
//!   a0 --------- a1   w0 -------------- w1   b1 --------- b0
//!   .2         .1     .1                .2     .1         .2
//!   [ station_a/24 ]  [   cipher/24    ]  [ station_b/24 ]
//! ```

use crate::{Links, NodeId};
use campaign::plan::Addresses;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// Interfaces of the cipher link: gw1's and gw2's end.
pub(crate) const CIPHER_INTERFACES: (&str, &str) = ("w0", "w1");
/// Interfaces of the stations: A's and B's.
pub(crate) const STATION_INTERFACES: (&str, &str) = ("a0", "b0");

/// A veth pair: made by one node, its other end at once in another's namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) near: (NodeId, &'static str),
    pub(crate) far: (NodeId, &'static str),
    /// Between the gateways.
    pub(crate) cipher: bool,
}

/// The path's links.
pub(crate) const LINKS: [Link; 3] = [
    Link {
        near: (NodeId::A, "a0"),
        far: (NodeId::Gw1, "a1"),
        cipher: false,
    },
    Link {
        near: (NodeId::Gw1, "w0"),
        far: (NodeId::Gw2, "w1"),
        cipher: true,
    },
    Link {
        near: (NodeId::B, "b0"),
        far: (NodeId::Gw2, "b1"),
        cipher: false,
    },
];

/// Addresses of the four nodes, from the lab's prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Map(Addresses);

impl Map {
    pub(crate) fn new(addresses: &Addresses) -> Self {
        Self(addresses.clone())
    }

    /// Station A.
    pub(crate) fn a(&self) -> Ipv4Addr {
        host(self.0.station_a, 2)
    }

    /// Station B.
    pub(crate) fn b(&self) -> Ipv4Addr {
        host(self.0.station_b, 2)
    }

    /// A gateway's address on the cipher link; `None` for a station.
    pub(crate) fn cipher(&self, node: NodeId) -> Option<Ipv4Addr> {
        match node {
            NodeId::Gw1 => Some(host(self.0.cipher, 1)),
            NodeId::Gw2 => Some(host(self.0.cipher, 2)),
            NodeId::A | NodeId::B => None,
        }
    }

    /// The prefix behind the gateway beyond `node`, as `address/24`.
    pub(crate) fn beyond(&self, node: NodeId) -> String {
        let far = match node {
            NodeId::A | NodeId::Gw1 => self.0.station_b,
            NodeId::Gw2 | NodeId::B => self.0.station_a,
        };
        format!("{}/24", host(far, 0))
    }

    /// Address of an interface.
    fn address(&self, node: NodeId, interface: &str) -> Ipv4Addr {
        match (node, interface) {
            (NodeId::A, _) => self.a(),
            (NodeId::B, _) => self.b(),
            (NodeId::Gw1, "w0") => host(self.0.cipher, 1),
            (NodeId::Gw2, "w1") => host(self.0.cipher, 2),
            (NodeId::Gw1, _) => host(self.0.station_a, 1),
            (NodeId::Gw2, _) => host(self.0.station_b, 1),
        }
    }

    /// Makes the links that start at a node; `pid` tells in whose namespace the far ends go.
    pub(crate) fn make_links(node: NodeId, pid: impl Fn(NodeId) -> u32) -> String {
        let mut batch = "link set lo up\n".to_owned();
        for link in LINKS.iter().filter(|link| link.near.0 == node) {
            let ((_, near), (far_node, far)) = (link.near, link.far);
            line(
                &mut batch,
                format_args!(
                    "link add {near} type veth peer name {far} netns {}",
                    pid(far_node)
                ),
            );
        }
        batch
    }

    /// Gives a node's interfaces their addresses, and a station its way out. All links exist by
    /// then.
    pub(crate) fn address_node(&self, node: NodeId) -> String {
        let mut batch = String::new();
        for interface in interfaces(node) {
            let address = self.address(node, interface);
            line(
                &mut batch,
                format_args!("address add {address}/24 dev {interface}"),
            );
            line(&mut batch, format_args!("link set {interface} up"));
        }
        let gateway = match node {
            NodeId::A => host(self.0.station_a, 1),
            NodeId::B => host(self.0.station_b, 1),
            NodeId::Gw1 | NodeId::Gw2 => return batch,
        };
        line(&mut batch, format_args!("route add default via {gateway}"));
        batch
    }
}

/// A node's interfaces on the path, from A to B.
pub(crate) fn interfaces(node: NodeId) -> impl Iterator<Item = &'static str> {
    let ends = LINKS.into_iter().flat_map(|link| [link.near, link.far]);
    ends.filter(move |(at, _)| *at == node)
        .map(|(_, interface)| interface)
}

/// Sets the MTU of a node's interfaces, and forgets path MTUs that were learnt under the former
/// ones.
pub(crate) fn set_mtu(node: NodeId, links: Links) -> String {
    let mut batch = String::new();
    for link in LINKS {
        let mtu = if link.cipher {
            links.cipher_mtu
        } else {
            links.mtu
        };
        for (_, interface) in [link.near, link.far].iter().filter(|(at, _)| *at == node) {
            line(&mut batch, format_args!("link set {interface} mtu {mtu}"));
        }
    }
    line(&mut batch, format_args!("route flush cache"));
    batch
}

fn line(batch: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(batch, "{line}");
}

/// Host `number` of the /24 that `prefix` is in.
fn host(prefix: Ipv4Addr, number: u8) -> Ipv4Addr {
    let [a, b, c, _] = prefix.octets();
    Ipv4Addr::new(a, b, c, number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> Map {
        Map::new(&Addresses {
            station_a: [10, 1, 0, 0].into(),
            cipher: [192, 0, 2, 0].into(),
            station_b: [10, 2, 0, 0].into(),
        })
    }

    #[test]
    fn every_link_is_made_once_and_every_interface_gets_one_address() {
        let made: String = NodeId::ALL
            .map(|node| Map::make_links(node, |_| 77))
            .concat();
        assert_eq!(made.matches("link add").count(), LINKS.len());
        assert!(made.contains("link add w0 type veth peer name w1 netns 77\n"));
        let addressed: String = NodeId::ALL.map(|node| map().address_node(node)).concat();
        for expected in [
            "address add 10.1.0.2/24 dev a0\n",
            "address add 10.1.0.1/24 dev a1\n",
            "address add 192.0.2.1/24 dev w0\n",
            "address add 192.0.2.2/24 dev w1\n",
            "address add 10.2.0.1/24 dev b1\n",
            "address add 10.2.0.2/24 dev b0\n",
        ] {
            assert_eq!(addressed.matches(expected).count(), 1, "{expected}");
        }
        assert!(addressed.contains("route add default via 10.1.0.1\n"));
        assert!(addressed.contains("route add default via 10.2.0.1\n"));
    }

    #[test]
    fn the_cipher_link_has_an_mtu_of_its_own() {
        let links = Links {
            mtu: 1500,
            cipher_mtu: 9000,
            offloads: true,
            rate_bps: None,
        };
        let batch = set_mtu(NodeId::Gw1, links);
        assert!(
            batch.contains("link set a1 mtu 1500\n") && batch.contains("link set w0 mtu 9000\n")
        );
    }
}
