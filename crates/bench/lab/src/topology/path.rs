//! The path between the gateways: links from element to element, and their networks.
//!
//! Without elements it is one link and one network. A bridge adds a link; a router, with or without
//! NAT, adds a link and a network.

use super::{A0, A1, B0, B1, C0, C1, End, Link, Map, W0, W1, cipher_ends, end, host};
use crate::nat::Translation;
use plan::{Addresses, Element};
use std::net::Ipv4Addr;
use testbed::{ElementId, NodeId};

/// Ports of an element, towards gw1 and towards gw2.
const PORTS: [&str; 2] = ["p0", "p1"];

/// Networks behind routers, for documentation (RFC 5737) and private (RFC 1918): one for each
/// router of the longest path, plus spares for networks that the lab may already use.
const BEHIND_ROUTERS: [Ipv4Addr; 7] = [
    Ipv4Addr::new(192, 0, 2, 0),
    Ipv4Addr::new(198, 51, 100, 0),
    Ipv4Addr::new(203, 0, 113, 0),
    Ipv4Addr::new(192, 168, 250, 0),
    Ipv4Addr::new(192, 168, 251, 0),
    Ipv4Addr::new(192, 168, 252, 0),
    Ipv4Addr::new(192, 168, 253, 0),
];

/// One of the two ports of a bridge, and the addresses behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) interface: &'static str,
    /// The MAC addresses behind the port.
    pub(crate) known: Vec<[u8; 6]>,
}

/// A side of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The side of station A.
    A,
    /// The side of station B.
    B,
}

impl Side {
    /// Returns the side that an end of the cipher link leads to.
    pub(super) fn ahead(own: End) -> Self {
        if own == W0 || own.interface == PORTS[1] {
            Self::B
        } else {
            Self::A
        }
    }

    /// Returns the side that a station's or a gateway's end is on.
    pub(crate) fn of(own: End) -> Self {
        match own {
            A0 | A1 | W0 | C0 => Self::A,
            _ => Self::B,
        }
    }
}

/// All links: the path's in order, and the one past it.
pub(super) fn links(elements: &[ElementId]) -> Vec<Link> {
    let ports = elements.iter().flat_map(|&element| ports(element));
    // W0, both ports of each element, and W1: an even number, so the chunks below pair each far
    // port with the near port of the next element.
    let ends: Vec<End> = [W0].into_iter().chain(ports).chain([W1]).collect();
    let cipher = ends
        .chunks_exact(2)
        .map(|ends| Link::new(ends[0], ends[1], true));
    [Link::new(A0, A1, false)]
        .into_iter()
        .chain(cipher)
        .chain([Link::new(B0, B1, false), Link::new(C0, C1, false)])
        .collect()
}

fn ports(element: ElementId) -> [End; 2] {
    // At most four elements, so the number fits in a byte.
    let first = 0xe0 + 2 * element.index();
    let port = |index: u8| {
        let name = PORTS[usize::from(index)];
        end((NodeId::Element(element), name), first + index)
    };
    [port(0), port(1)]
}

/// The cipher link's networks, from gw1 to gw2: one, and one more behind each router.
pub(super) fn networks(addresses: &Addresses, elements: &[ElementId]) -> Vec<Ipv4Addr> {
    let Addresses {
        station_a,
        cipher,
        station_b,
    } = *addresses;
    let own = [station_a, cipher, station_b].map(|prefix| host(prefix, 0));
    let free = BEHIND_ROUTERS
        .into_iter()
        .filter(|network| !own.contains(network));
    let routers = elements.iter().filter(|element| is_router(element));
    let behind = routers.zip(free).map(|(_, network)| network);
    [cipher].into_iter().chain(behind).collect()
}

fn is_router(element: &ElementId) -> bool {
    element.kind().routes()
}

impl Map {
    /// The elements between the gateways, from gw1 to gw2.
    pub(crate) fn elements(&self) -> &[ElementId] {
        &self.elements
    }

    /// The element that impairs the path, with its interfaces towards gw1 and towards gw2.
    pub(crate) fn impaired_element(&self) -> Option<(NodeId, [&'static str; 2])> {
        let mut elements = self.elements.iter();
        let impair = elements.find(|element| element.kind() == Element::Impair)?;
        Some((NodeId::Element(*impair), PORTS))
    }

    /// Returns the elements that translate addresses, with their translations, from gw1 to gw2.
    pub(crate) fn translations(&self) -> Vec<(NodeId, Translation)> {
        let mut inner = self.cipher_address(W0);
        let nats = self.elements.iter().copied();
        let nats = nats.filter(|element| element.kind() == Element::Nat);
        let translation = |element| {
            let [_, far] = ports(element);
            let found = Translation {
                outer_interface: far.interface,
                outer: self.cipher_address(far),
                inner,
            };
            // The next NAT sees the address that this one gives.
            inner = found.outer;
            (NodeId::Element(element), found)
        };
        nats.map(translation).collect()
    }

    /// The address of a gateway's end of the cipher link as its peer sees it: the last NAT's for a
    /// gw1 behind NATs.
    pub(crate) fn seen_address(&self, own: End) -> Ipv4Addr {
        match (own, self.translations().last()) {
            (W0, Some((_, nat))) => nat.outer,
            _ => self.address(own),
        }
    }

    /// Whether a node's interface is an end of the cipher link.
    pub(crate) fn is_cipher_end(&self, node: NodeId, interface: &str) -> bool {
        self.cipher_ends(node).any(|end| end.interface == interface)
    }

    /// A node's ends of the cipher link.
    pub(super) fn cipher_ends(&self, node: NodeId) -> impl Iterator<Item = End> {
        self.ends(node)
            .filter(|(.., link)| link.cipher)
            .map(|(own, ..)| own)
    }

    /// Returns the end of the next node on the path that is not a bridge.
    pub(super) fn next_hop(&self, own: End) -> End {
        let mut next = self.other_end(own);
        // Ends at a gateway at the latest.
        while let NodeId::Element(element) = next.node
            && !is_router(&element)
        {
            let [near, far] = ports(element);
            next = self.other_end(if next == near { far } else { near });
        }
        next
    }

    /// Returns the end opposite a gateway's end of the cipher link.
    pub(crate) fn far_end(&self, gateway: NodeId) -> (NodeId, &'static str) {
        let far = self.other_end(cipher_ends(gateway).0);
        (far.node, far.interface)
    }

    fn other_end(&self, own: End) -> End {
        let (_, other, _) = self
            .ends(own.node)
            .find(|(end, ..)| *end == own)
            .expect("every end is one of a link");
        other
    }

    /// Address of an end of the cipher link. Not for a bridge's end, which has no address.
    pub(super) fn cipher_address(&self, own: End) -> Ipv4Addr {
        let number = match Side::ahead(own) {
            Side::B => 1,
            Side::A => 2,
        };
        host(self.networks[self.network_of(own)], number)
    }

    /// Index of an end's network in the cipher link's networks.
    pub(super) fn network_of(&self, own: End) -> usize {
        let routers = self.elements.iter().filter(|element| is_router(element));
        match own.node {
            NodeId::Element(element) => {
                // Networks are numbered from gw1, and each router before this end is a boundary.
                let before = routers.filter(|router| router.index() < element.index());
                let behind_itself = is_router(&element) && Side::ahead(own) == Side::B;
                before.count() + usize::from(behind_itself)
            }
            NodeId::Gw2 | NodeId::B => routers.count(),
            // Tap and host have no end on the path.
            NodeId::A | NodeId::Gw1 | NodeId::Tap | NodeId::Host => 0,
        }
    }

    /// Adds a node's routes to the cipher link's networks behind routers.
    pub(super) fn route_cipher_networks(&self, batch: &mut String, node: NodeId) {
        for own in self.cipher_ends(node) {
            let here = self.network_of(own);
            // `here` is an index of `networks`, so `here + 1` is at most their number.
            let ahead = match Side::ahead(own) {
                Side::B => &self.networks[here + 1..],
                Side::A => &self.networks[..here],
            };
            let via = self.address(self.next_hop(own));
            for network in ahead {
                *batch += &format!("route add {network}/24 via {via}\n");
            }
        }
    }

    /// Returns the two ports of a bridge, each with the MAC addresses of all ends behind it.
    pub(crate) fn ports(&self, element: ElementId) -> [Port; 2] {
        let path = self.links.iter().filter(|link| link.near != C0);
        let ends: Vec<End> = path.flat_map(|link| link.in_order()).collect();
        let [near, far] = ports(element);
        let at = |port| ends.iter().position(|end| *end == port);
        let split = at(far).expect("an element's ports are ends of the path's links");
        let (before, behind) = ends.split_at(split);
        // All ends behind a port, not only the next: frames to a station cross the bridge too.
        let known = |ends: &[End], own: End| {
            let others = ends.iter().filter(|end| end.node != own.node);
            Port {
                interface: own.interface,
                known: others.flat_map(|end| [end.mac, end.test_mac]).collect(),
            }
        };
        [known(before, near), known(behind, far)]
    }
}
