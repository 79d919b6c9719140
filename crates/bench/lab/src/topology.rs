//! The links, addresses and routes of the built-in lab, as input of `ip -batch`. This module
//! creates text and runs nothing.
//!
//! ```text
//!   A             gw1                        gw2             B
//!   a0 ---------- a1   w0 -------------- w1   b1 ---------- b0
//!   .2          .1     .1                .2     .1          .2
//!   [ station_a/24 ]   [   cipher/24    ]   [ station_b/24 ]
//!   198.18.0.0/16                                198.19.0.0/16
//!   2001:2:0:18::/64                          2001:2:0:19::/64
//!
//!   c0 ----------------------------------------------------- c1
//!   .1                  [ 169.254.0.0/30 ]                   .2
//! ```
//!
//! The last link bypasses all gateways; its frame rate is the limit of the tester itself.
//!
//! With path elements, here `[bridge, router]`, the cipher link consists of several links:
//!
//! ```text
//!   gw1             bridge1            router2             gw2
//!   w0 ------------ p0   p1 ---------- p0   p1 ------------ w1
//!   .1                                 .2   .1              .2
//!   [            cipher/24              ]   [ 198.51.100.0/24 ]
//! ```
//!
//! Between two hosts, either w0 and w1 are the interfaces at a cable, with their hardware MAC
//! addresses, or the gateways have no link. There is no bypass link then.

mod path;
mod shaping;
mod test_networks;

pub(crate) use path::{Port, Side};
pub(crate) use test_networks::{Hop, IPV6_MTU_MIN};

use plan::{Addresses, LabPlan};
use std::net::Ipv4Addr;
use testbed::{DIRECT, ElementId, FrameEnd, Links, NodeId, PATH};

/// Interfaces of the cipher link: gw1's and gw2's end.
pub(crate) const CIPHER_INTERFACES: (&str, &str) = (W0.interface, W1.interface);
/// Interfaces of the stations: A's and B's.
pub(crate) const STATION_INTERFACES: (&str, &str) = (A0.interface, B0.interface);

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) node: NodeId,
    pub(crate) interface: &'static str,
    /// Locally administered. Fixed, so that neighbour entries exist before the first frame.
    pub(crate) mac: [u8; 6],
    /// Destination of test frames to a station at this end. No interface has this address, so the
    /// station's kernel drops the frames as foreign right after the analyser has seen them.
    pub(crate) test_mac: [u8; 6],
}

const fn end((node, interface): testbed::End, number: u8) -> End {
    End {
        node,
        interface,
        mac: [0x02, 0xcb, 0, 0, 0, number],
        test_mac: [0x02, 0xcb, 0, 0, 1, number],
    }
}

pub(crate) const A0: End = end(PATH[0], 0xa0);
pub(crate) const A1: End = end(PATH[1], 0xa1);
pub(crate) const W0: End = end(PATH[2], 0xc0);
pub(crate) const W1: End = end(PATH[3], 0xc1);
pub(crate) const B1: End = end(PATH[4], 0xb1);
pub(crate) const B0: End = end(PATH[5], 0xb0);
pub(crate) const C0: End = end(DIRECT[0], 0xd0);
pub(crate) const C1: End = end(DIRECT[1], 0xd1);

/// Returns a gateway's end of the cipher link and its peer's. Station B has gw2's ends if it is the
/// peer of an external gateway.
pub(crate) fn cipher_ends(gateway: NodeId) -> (End, End) {
    match gateway {
        NodeId::Gw2 | NodeId::B => (W1, W0),
        _ => (W0, W1),
    }
}

/// A gateway's end of the link to its station.
pub(crate) fn clear_end(gateway: NodeId) -> End {
    match gateway {
        NodeId::Gw2 => B1,
        _ => A1,
    }
}

/// A veth pair, created by one node with its far end in another node's namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) near: End,
    pub(crate) far: End,
    /// Whether the link is between the gateways.
    pub(crate) cipher: bool,
}

impl Link {
    const fn new(near: End, far: End, cipher: bool) -> Self {
        Self { near, far, cipher }
    }

    /// Returns its ends from A's side to B's.
    fn in_order(self) -> [End; 2] {
        if self.near == B0 {
            [self.far, self.near]
        } else {
            [self.near, self.far]
        }
    }

    fn is_past_the_gateways(self) -> bool {
        self.near.node == NodeId::A && self.far.node == NodeId::B
    }

    fn mtu(self, links: Links) -> u16 {
        // The stations may seal the packets that they send over the bypass link.
        if self.cipher || self.is_past_the_gateways() {
            links.cipher_mtu
        } else {
            links.mtu
        }
    }
}

/// Links, addresses and networks of all nodes, from the lab's path and prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Map {
    addresses: Addresses,
    elements: Vec<ElementId>,
    links: Vec<Link>,
    /// The networks of the cipher link, from gw1 to gw2.
    networks: Vec<Ipv4Addr>,
    between_hosts: bool,
    /// MAC addresses of the interfaces at the cable between two hosts, gw1's first, once they are
    /// known.
    cable_macs: Option<[[u8; 6]; 2]>,
    /// Whether this kernel has IPv6.
    ipv6: bool,
}

impl Map {
    pub(crate) fn new(plan: &LabPlan, ipv6: bool) -> Self {
        let elements: Vec<_> = ElementId::of_path(&plan.path).collect();
        let mut links = path::links(&elements);
        if let Some(hosts) = &plan.hosts {
            let is_there = |link: &Link| !link.cipher || hosts.has_cable();
            // A veth pair cannot lead to another host, so that there is no link past the gateways.
            links.retain(|link| is_there(link) && !link.is_past_the_gateways());
        }
        Self {
            addresses: plan.addresses.clone(),
            links,
            between_hosts: plan.hosts.is_some(),
            cable_macs: None,
            networks: path::networks(&plan.addresses, &elements),
            elements,
            ipv6,
        }
    }

    /// Returns a node's ends of links, each with the link's other end and the link.
    fn ends(&self, node: NodeId) -> impl Iterator<Item = (End, End, Link)> {
        let both = self
            .links
            .iter()
            .flat_map(|&link| [(link.near, link.far, link), (link.far, link.near, link)]);
        both.filter(move |(own, ..)| own.node == node)
    }

    /// Whether the stations are on two hosts. Then no link bypasses the gateways.
    pub(crate) const fn is_between_hosts(&self) -> bool {
        self.between_hosts
    }

    /// Whether the cipher link is a cable between two hosts.
    pub(crate) fn is_over_cable(&self) -> bool {
        self.between_hosts && self.links.iter().any(|link| link.cipher)
    }

    /// Sets the MAC addresses of the interfaces at the cable, gw1's first.
    pub(crate) const fn set_cable_macs(&mut self, macs: [[u8; 6]; 2]) {
        self.cable_macs = Some(macs);
    }

    /// MAC address of a link's end.
    pub(crate) fn mac_of(&self, end: End) -> [u8; 6] {
        self.cable_mac(end).unwrap_or(end.mac)
    }

    /// Destination of test frames to a station at a link's end. At a cable it is the address of the
    /// interface, because a network card and a switch pass no other address on.
    pub(crate) fn test_mac_of(&self, end: End) -> [u8; 6] {
        self.cable_mac(end).unwrap_or(end.test_mac)
    }

    fn cable_mac(&self, end: End) -> Option<[u8; 6]> {
        let [gw1, gw2] = self.cable_macs?;
        match end {
            W0 => Some(gw1),
            W1 => Some(gw2),
            _ => None,
        }
    }

    /// A node's interfaces at ends of links.
    pub(crate) fn interfaces(&self, node: NodeId) -> impl Iterator<Item = &'static str> {
        self.ends(node).map(|(own, ..)| own.interface)
    }

    /// Returns the first of the lab's prefixes that is reserved for test frames or for the bypass
    /// link.
    pub(crate) fn taken(addresses: &Addresses) -> Option<Ipv4Addr> {
        let Addresses {
            station_a,
            cipher,
            station_b,
        } = *addresses;
        let is_taken =
            |prefix: &Ipv4Addr| matches!(prefix.octets(), [198, 18 | 19, ..] | [169, 254, ..]);
        [station_a, cipher, station_b].into_iter().find(is_taken)
    }

    /// Whether this kernel has IPv6.
    pub(crate) const fn has_ipv6(&self) -> bool {
        self.ipv6
    }

    /// Station B.
    pub(crate) fn b(&self) -> Ipv4Addr {
        self.address(B0)
    }

    /// A side's station.
    pub(crate) fn station(&self, side: Side) -> Ipv4Addr {
        match side {
            Side::A => self.address(A0),
            Side::B => self.address(B0),
        }
    }

    /// Address of a side's gateway on the cipher link.
    pub(crate) fn cipher_end(&self, side: Side) -> Ipv4Addr {
        match side {
            Side::A => self.address(W0),
            Side::B => host(self.addresses.cipher, 2),
        }
    }

    /// Next hop of a station's default route.
    pub(crate) fn gateway_of(&self, end: End) -> Ipv4Addr {
        self.address(self.next_hop(end))
    }

    /// Address of a link's end.
    pub(crate) fn address(&self, end: End) -> Ipv4Addr {
        let Addresses {
            station_a,
            station_b,
            ..
        } = self.addresses;
        match end {
            A0 => host(station_a, 2),
            A1 => host(station_a, 1),
            B1 => host(station_b, 1),
            B0 => host(station_b, 2),
            // Link-local (RFC 3927), so it collides with no lab's prefix.
            C0 => Ipv4Addr::new(169, 254, 0, 1),
            C1 => Ipv4Addr::new(169, 254, 0, 2),
            _ => self.cipher_address(end),
        }
    }

    /// Returns the networks behind a side's gateway: its station's network and its test networks.
    pub(crate) fn networks_behind(&self, side: Side, links: Links) -> Vec<String> {
        let mut networks = vec![self.station_network(side), side.test_ipv4()];
        if self.carries_ipv6(links) {
            networks.push(side.test_ipv6());
        }
        networks
    }

    /// Returns the networks behind a side's gateway that one of several tunnels carries: a test
    /// address each, and the station's network in the first.
    pub(crate) fn networks_in_tunnel(
        &self,
        side: Side,
        links: Links,
        tunnel: u16,
        tunnels: u16,
    ) -> Vec<String> {
        if tunnels == 1 {
            return self.networks_behind(side, links);
        }
        let mut networks = side.test_hosts(tunnel, self.carries_ipv6(links));
        if tunnel == 0 {
            networks.push(self.station_network(side));
        }
        networks
    }

    /// The network of a side's station.
    pub(crate) fn station_network(&self, side: Side) -> String {
        let station = match side {
            Side::A => self.addresses.station_a,
            Side::B => self.addresses.station_b,
        };
        format!("{}/24", host(station, 0))
    }

    /// Makes the station at `other` a permanent neighbour of the station at `own`, by address.
    pub(crate) fn join(&self, own: End, other: End) -> String {
        let (address, interface) = (self.address(other), own.interface);
        // The stations are in different networks, so each needs a route to the other.
        format!(
            "route replace {address}/32 dev {interface} scope link\n\
             neigh replace {address} lladdr {} dev {interface} nud permanent\n",
            mac(self.mac_of(other))
        )
    }

    /// Undoes [`join`](Self::join), even if that was never done.
    pub(crate) fn part(&self, own: End, other: End) -> String {
        let address = self.address(other);
        // Replacing first ensures that the entry exists.
        let joined = self.join(own, other);
        let interface = own.interface;
        format!("{joined}neigh del {address} dev {interface}\nroute del {address}/32\n")
    }

    /// Whether the links carry IPv6: the kernel disables it on an interface with too small an MTU.
    pub(crate) fn carries_ipv6(&self, links: Links) -> bool {
        self.ipv6 && links.mtu.min(links.cipher_mtu) >= IPV6_MTU_MIN
    }

    /// Returns the end of a test frame path for a station at a link's end.
    pub(crate) fn frame_end(&self, end: End) -> FrameEnd {
        let next_hop_mac = match end {
            // No gateway is on this link: frames go to the other station.
            C0 => C1.test_mac,
            C1 => C0.test_mac,
            _ => self.mac_of(self.next_hop(end)),
        };
        let side = Side::of(end);
        FrameEnd {
            node: end.node,
            interface: end.interface.to_owned(),
            mac: self.mac_of(end),
            next_hop_mac,
            address: self.address(end),
            test_address: side.first_ipv4(),
            test_address_v6: side.first_ipv6(),
            peer: None,
        }
    }

    /// Creates the links that start at a node, except cables; `pid` returns a process in the
    /// namespace that gets the far end.
    pub(crate) fn make_links(&self, node: NodeId, pid: impl Fn(NodeId) -> u32) -> String {
        // Programs of one node talk to each other over loopback, as the metrics of an encryptor.
        let mut batch = "link set lo up\n".to_owned();
        let own = |link: &&Link| link.near.node == node && !(link.cipher && self.between_hosts);
        for Link { near, far, .. } in self.links.iter().filter(own) {
            batch += &format!(
                "link add {} address {} type veth peer name {} address {} netns {}\n",
                near.interface,
                mac(near.mac),
                far.interface,
                mac(far.mac),
                pid(far.node)
            );
        }
        batch
    }

    /// Sets a node's addresses, permanent neighbours, and routes: a default route for a station,
    /// routes to the cipher networks for any other node. Not for a bridge. All links must exist.
    pub(crate) fn address_node(&self, node: NodeId) -> String {
        let mut batch = String::new();
        for (own, ..) in self.ends(node) {
            let other = self.next_hop(own);
            let (interface, prefix) = (own.interface, prefix_length(own));
            // Permanent neighbours, so that no trial begins with ARP or has it in between.
            let (address, neighbour) = (self.address(own), self.address(other));
            let neighbour_mac = mac(self.mac_of(other));
            batch += &format!(
                "address add {address}/{prefix} dev {interface}\n\
                 link set {interface} up\n\
                 neigh replace {neighbour} lladdr {neighbour_mac} dev {interface} nud permanent\n"
            );
        }
        // After the loop: the kernel refuses a route through an interface that is down.
        let gateway = match node {
            NodeId::A => self.address(A1),
            NodeId::B => self.address(B1),
            _ => {
                self.route_cipher_networks(&mut batch, node);
                return batch;
            }
        };
        batch += &format!("route add default via {gateway}\n");
        batch
    }

    /// Sets the MTU of a node's interfaces and flushes path MTUs learnt under the former MTUs.
    pub(crate) fn set_mtu(&self, node: NodeId, links: Links) -> String {
        let mut batch = String::new();
        for (End { interface, .. }, _, link) in self.ends(node) {
            let mtu = link.mtu(links);
            batch += &format!("link set {interface} mtu {mtu}\n");
        }
        // Otherwise a path MTU learnt in an earlier cell limits the packets of this one.
        batch += "route flush cache\n";
        batch
    }
}

/// Returns the prefix length of an interface's network.
fn prefix_length(end: End) -> u8 {
    match end {
        C0 | C1 => 30,
        _ => 24,
    }
}

pub(crate) fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

/// Host `number` of the /24 that `prefix` is in.
fn host(prefix: Ipv4Addr, number: u8) -> Ipv4Addr {
    let [a, b, c, _] = prefix.octets();
    Ipv4Addr::new(a, b, c, number)
}

#[cfg(test)]
mod tests;
