//! The policy against a slow and obviously correct one, and tests of single rules.

use encryptor::policy::{ANY_PORT, Policy, Selectors};
use etherparse::PacketBuilder;
use proptest::prelude::*;
use std::net::IpAddr;
use wire::headers::{IpView, TCP, UDP};
use yaml::Prefix;

const ICMP: u8 = 1;

fn prefix(text: &str) -> Prefix {
    let (address, length) = text.split_once('/').unwrap();
    Prefix::new(address.parse().unwrap(), length.parse().unwrap()).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A packet in the tests' notation.
#[derive(Debug, Clone, Copy)]
struct Description {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    ports: (u16, u16),
}

impl Description {
    fn bytes(self) -> Vec<u8> {
        let builder = match (self.source, self.destination) {
            (IpAddr::V4(a), IpAddr::V4(b)) => PacketBuilder::ipv4(a.octets(), b.octets(), 64),
            (IpAddr::V6(a), IpAddr::V6(b)) => PacketBuilder::ipv6(a.octets(), b.octets(), 64),
            _ => panic!("of two families: {self:?}"),
        };
        let mut out = Vec::new();
        let (source, destination) = self.ports;
        match self.protocol {
            TCP => builder
                .tcp(source, destination, 1, 1000)
                .write(&mut out, b"data"),
            UDP => builder.udp(source, destination).write(&mut out, b"data"),
            _ => builder.icmpv4_echo_request(1, 1).write(&mut out, b"data"),
        }
        .unwrap();
        out
    }

    fn back(self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            ports: (self.ports.1, self.ports.0),
            ..self
        }
    }
}

fn tunnel_of(policy: &Policy, packet: &[u8]) -> Option<u16> {
    policy.outbound(packet, &IpView::parse(packet).unwrap())
}

fn permits(policy: &Policy, tunnel: u16, packet: &[u8]) -> bool {
    policy.permits_inbound(tunnel, packet, &IpView::parse(packet).unwrap())
}

/// Checks every entry, longest prefix first.
fn slow(selectors: &[Selectors], packet: Description) -> Option<u16> {
    let mut all: Vec<_> = (0..)
        .zip(selectors)
        .flat_map(|(tunnel, own)| own.remote.iter().map(move |net| (net, tunnel, own)))
        .collect();
    all.sort_by_key(|(net, tunnel, _)| (std::cmp::Reverse(net.length()), *tunnel));
    let has_ports = [TCP, UDP].contains(&packet.protocol);
    let port = |range: &std::ops::RangeInclusive<u16>, port| {
        *range == ANY_PORT || (has_ports && range.contains(&port))
    };
    all.into_iter()
        .find(|(net, _, own)| {
            net.contains(packet.destination)
                && (own.local.is_empty() || own.local.iter().any(|net| net.contains(packet.source)))
                && own
                    .protocol
                    .is_none_or(|protocol| protocol == packet.protocol)
                && port(&own.local_ports, packet.ports.0)
                && port(&own.remote_ports, packet.ports.1)
        })
        .map(|(_, tunnel, _)| tunnel)
}

/// Addresses with few different bytes, so that prefixes contain them and each other.
fn address(v6: bool) -> impl Strategy<Value = IpAddr> {
    let byte = prop_oneof![Just(0u8), Just(10), Just(11), Just(128), Just(255)];
    prop::collection::vec(byte, 16).prop_map(move |bytes| {
        if v6 {
            IpAddr::from(<[u8; 16]>::try_from(bytes).unwrap())
        } else {
            IpAddr::from(<[u8; 4]>::try_from(&bytes[..4]).unwrap())
        }
    })
}

fn network() -> impl Strategy<Value = Prefix> {
    any::<bool>().prop_flat_map(|v6| {
        let bits = if v6 { 128 } else { 32u8 };
        (address(v6), 0..=bits)
            .prop_map(|(address, length)| Prefix::around(address, length).unwrap())
    })
}

fn one_selectors() -> impl Strategy<Value = Selectors> {
    let some_ports =
        || prop_oneof![3 => Just(ANY_PORT), 1 => Just(5000..=5999), 1 => Just(0..=5000)];
    (
        prop::collection::vec(network(), 1..6),
        prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(network(), 1..3)],
        prop_oneof![3 => Just(None), 1 => Just(Some(TCP)), 1 => Just(Some(UDP)), 1 => Just(Some(ICMP))],
        some_ports(),
        some_ports(),
    )
        .prop_map(|(remote, local, protocol, local_ports, remote_ports)| Selectors {
            remote,
            local,
            protocol,
            local_ports,
            remote_ports,
        })
}

fn description() -> impl Strategy<Value = Description> {
    let port = || prop_oneof![Just(4999u16), Just(5000), Just(5500), Just(6000)];
    any::<bool>().prop_flat_map(move |v6| {
        let protocol = prop_oneof![Just(TCP), Just(UDP), Just(if v6 { UDP } else { ICMP })];
        (address(v6), address(v6), protocol, (port(), port())).prop_map(
            |(source, destination, protocol, ports)| Description {
                source,
                destination,
                protocol,
                ports,
            },
        )
    })
}

proptest! {
    #[test]
    fn the_fast_lookup_agrees_with_the_slow_one(
        selectors in prop::collection::vec(one_selectors(), 0..12),
        packets in prop::collection::vec(description(), 1..40),
    ) {
        let policy = Policy::new(&selectors);
        for packet in packets {
            let expected = slow(&selectors, packet);
            prop_assert_eq!(tunnel_of(&policy, &packet.bytes()), expected, "{:?}", packet);
            let back = packet.back().bytes();
            for tunnel in 0..selectors.len() as u16 {
                let permitted = permits(&policy, tunnel, &back);
                prop_assert_eq!(permitted, expected == Some(tunnel), "{:?}", packet);
            }
        }
    }
}

#[test]
fn a_peer_cannot_impersonate_a_smaller_network_inside_its_own() {
    let policy = Policy::new(&[
        Selectors::to(vec![prefix("10.0.0.0/8")]),
        Selectors::to(vec![prefix("10.1.0.0/16")]),
    ]);
    let from = |source| {
        let packet = Description {
            source: ip(source),
            destination: ip("192.0.2.7"),
            protocol: UDP,
            ports: (1, 2),
        };
        packet.bytes()
    };
    assert!(permits(&policy, 0, &from("10.2.0.1")));
    assert!(!permits(&policy, 0, &from("10.1.0.1")));
    assert!(permits(&policy, 1, &from("10.1.0.1")));
    assert!(!permits(&policy, 1, &from("11.1.0.1")));
}

#[test]
fn a_fragment_that_may_match_a_tunnel_matches_no_other() {
    let with_ports = Selectors {
        protocol: Some(UDP),
        remote_ports: 53..=53,
        ..Selectors::to(vec![prefix("10.1.0.0/16")])
    };
    let policy = Policy::new(&[with_ports, Selectors::to(vec![prefix("10.0.0.0/8")])]);
    let packet = Description {
        source: ip("192.0.2.7"),
        destination: ip("10.1.0.1"),
        protocol: UDP,
        ports: (1000, 53),
    };
    let mut packet = packet.bytes();
    assert_eq!(tunnel_of(&policy, &packet), Some(0));
    // More fragments, then the last of them.
    packet[6] = 0x20;
    assert_eq!(tunnel_of(&policy, &packet), None);
    (packet[6], packet[7]) = (0, 100);
    assert_eq!(tunnel_of(&policy, &packet), None);
    // A fragment of another protocol cannot belong to that tunnel.
    packet[9] = TCP;
    assert_eq!(tunnel_of(&policy, &packet), Some(1));
}

#[test]
fn extension_headers_are_skipped() {
    let with_ports = Selectors {
        protocol: Some(TCP),
        remote_ports: 443..=443,
        ..Selectors::to(vec![prefix("2001:db8::/32")])
    };
    let policy = Policy::new(&[with_ports]);
    // IPv6, hop-by-hop options of 8 bytes, an atomic fragment, then TCP from 1000 to 443.
    let mut packet = vec![0x60, 0, 0, 0, 0, 36, 0, 64];
    packet.extend([0; 16]);
    packet.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    packet.extend([44, 0, 1, 4, 0, 0, 0, 0]);
    let fragment = packet.len();
    packet.extend([TCP, 0, 0, 0, 0, 0, 0, 9]);
    packet.extend([0x03, 0xe8, 0x01, 0xbb]);
    packet.extend([0; 16]);
    assert_eq!(tunnel_of(&policy, &packet), Some(0));
    // No longer atomic: more fragments follow.
    packet[fragment + 3] = 1;
    assert_eq!(tunnel_of(&policy, &packet), None);
    packet[fragment + 3] = 0;
    // Longer than the packet.
    packet[41] = 200;
    assert_eq!(tunnel_of(&policy, &packet), None);
}

#[test]
fn a_thousand_tunnels_are_distinguished() {
    let network = |tunnel: u16| prefix(&format!("10.{}.{}.0/24", tunnel >> 8, tunnel & 255));
    let selectors: Vec<_> = (0..1000)
        .map(|tunnel| Selectors::to(vec![network(tunnel)]))
        .collect();
    let policy = Policy::new(&selectors);
    for tunnel in 0..1000 {
        let packet = Description {
            source: ip("192.0.2.7"),
            destination: ip(&format!("10.{}.{}.9", tunnel >> 8, tunnel & 255)),
            protocol: TCP,
            ports: (1, 2),
        };
        assert_eq!(tunnel_of(&policy, &packet.bytes()), Some(tunnel));
    }
}
