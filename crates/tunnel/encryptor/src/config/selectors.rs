//! Traffic selectors of one peer (RFC 4301 §4.4.1.1).

use crate::policy::{ANY_PORT, Selectors, has_ports};
use std::ops::RangeInclusive;
use wire::headers::{TCP, UDP};
use yaml::{Map, Node, Prefix, Reported};

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// Reads `routes`, `local`, `protocol`, `local_ports` and `remote_ports` of a peer's map. `route`
/// checks one route.
pub(super) fn read<'d>(
    map: &Map<'d>,
    route: impl FnMut(Node<'d>) -> Result<Prefix, Reported>,
) -> Result<Selectors, Reported> {
    let routes = map
        .required("routes")
        .and_then(|node| node.one_or_many(route));
    let local = map.find("local");
    let protocol = map.read("protocol", |node| {
        node.word_or("any", |node| protocol(node, routes.as_deref().ok()))
    });
    let ports = |key| map.with_default(key, ANY_PORT, |node| ports(node, protocol));
    let (local_ports, remote_ports) = (ports("local_ports"), ports("remote_ports"));
    Ok(Selectors {
        remote: routes?,
        local: local?.unwrap_or_default(),
        protocol: protocol?,
        local_ports: local_ports?,
        remote_ports: remote_ports?,
    })
}

/// Reads `tcp`, `udp`, `icmp` or an IANA protocol number. `icmp` means ICMPv6 for a peer with only
/// IPv6 routes.
fn protocol(node: Node<'_>, routes: Option<&[Prefix]>) -> Result<u8, Reported> {
    let text = node.text()?;
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return node.integer(0..=u8::MAX);
    }
    // ICMP and ICMPv6 are two protocols with different numbers.
    let mut families = routes
        .unwrap_or_default()
        .iter()
        .map(|route| route.address().is_ipv4());
    let icmp = match families.next() {
        Some(first) if families.any(|other| other != first) && text == "icmp" => {
            return Err(node.mistake(
                "`icmp` has two meanings for a peer with routes of both address families",
                "write 1 for ICMP or 58 for ICMPv6, or split it into two peers",
            ));
        }
        Some(false) => ICMPV6,
        _ => ICMP,
    };
    node.one_of("protocol", &[("tcp", TCP), ("udp", UDP), ("icmp", icmp)])
}

/// One port, or `first-last`.
fn ports(
    node: Node<'_>,
    protocol: Result<Option<u8>, Reported>,
) -> Result<RangeInclusive<u16>, Reported> {
    if let Ok(protocol) = protocol
        && !protocol.is_some_and(has_ports)
    {
        return Err(node.mistake(
            "ports are given without a protocol that has ports",
            "write `protocol: tcp` or `protocol: udp` beside them",
        ));
    }
    let text = node.text()?;
    let range = match text.split_once('-') {
        Some((first, last)) => first.trim().parse().ok().zip(last.trim().parse().ok()),
        None => text.parse().ok().map(|port| (port, port)),
    };
    match range {
        Some((first, last)) if first <= last => Ok(first..=last),
        _ => Err(node.mistake(
            format!("`{text}` is not a range of ports"),
            "write one port, or the first and the last: `5201`, `5201-5299`",
        )),
    }
}
