//! The stations at the cables: addresses, routes, and neighbours.

use super::super::Site;
use super::super::site::{all, on_each};
use crate::cables::{Outside, parse_mac};
use crate::on_node::ip;
use crate::protocol::Program;
use crate::sync::Deadline;
use crate::topology::{A0, B0, End, Side};
use crate::{FrameEnd, FramePath, Node, NodeId, Result};
use serde::Deserialize;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

/// Interval between two queries of a neighbour.
const STEP: Duration = Duration::from_millis(100);

/// How long one query may take.
const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// A station at its cable.
struct AtCable<'a> {
    interface: &'a str,
    gateway: Ipv4Addr,
    mac: [u8; 6],
    /// Its end inside the lab.
    end: End,
    side: Side,
}

fn at_cable(outside: &Outside, id: NodeId) -> AtCable<'_> {
    let cables = &outside.cables;
    match id {
        NodeId::A => AtCable {
            interface: &cables.station_a,
            gateway: cables.gateway_a,
            mac: outside.macs[0],
            end: A0,
            side: Side::A,
        },
        _ => AtCable {
            interface: &cables.station_b,
            gateway: cables.gateway_b,
            mac: outside.macs[1],
            end: B0,
            side: Side::B,
        },
    }
}

/// Routes everything of each station over its cable. Its own link keeps its address and its
/// neighbours.
pub(super) fn attach(site: &Site<'_>, outside: &Outside) -> Result<()> {
    all(on_each(&site.stations, |station| {
        let AtCable {
            interface,
            gateway,
            side,
            ..
        } = at_cable(outside, station.id());
        let own = site.map.station(side);
        ip(
            station,
            format!(
                "link set {interface} up\n\
                 address replace {own}/24 dev {interface} noprefixroute\n\
                 route replace default via {gateway} dev {interface} onlink src {own}\n"
            ),
        )
    }))
}

/// Undoes [`attach`], whether or not it was done.
pub(super) fn detach(site: &Site<'_>, outside: &Outside) -> Result<()> {
    all(on_each(&site.stations, |station| {
        let AtCable { interface, end, .. } = at_cable(outside, station.id());
        let gateway = site.map.gateway_of(end);
        ip(
            station,
            format!(
                "route replace default via {gateway} dev {}\n\
                 address flush dev {interface}\n\
                 neigh flush dev {interface}\n",
                end.interface
            ),
        )
    }))
}

/// The path of test frames, with the boxes' own addresses.
pub(super) fn frame_path(site: &Site<'_>, outside: &Outside, limit: Duration) -> Result<FramePath> {
    let mut ends = Vec::new();
    for end in on_each(&site.stations, |station| {
        frame_end(site, outside, station, limit)
    }) {
        ends.push(end?);
    }
    match <[FrameEnd; 2]>::try_from(ends) {
        Ok([source, sink]) => Ok(FramePath { source, sink }),
        Err(_) => unreachable!("there are two stations"),
    }
}

fn frame_end(
    site: &Site<'_>,
    outside: &Outside,
    station: &dyn Node,
    limit: Duration,
) -> Result<FrameEnd> {
    let at = at_cable(outside, station.id());
    let next_hop_mac = neighbour(site, outside, station, &at, limit)?;
    Ok(FrameEnd {
        interface: at.interface.to_owned(),
        mac: at.mac,
        next_hop_mac,
        ..site.map.frame_end(at.end)
    })
}

/// A neighbour as `ip -json neigh` prints it.
#[derive(Deserialize)]
struct Neighbour {
    lladdr: Option<String>,
}

/// Returns the MAC address that answers for the gateway's address, by the kernel's own discovery;
/// retries until one answers.
fn neighbour(
    site: &Site<'_>,
    outside: &Outside,
    station: &dyn Node,
    at: &AtCable<'_>,
    limit: Duration,
) -> Result<[u8; 6]> {
    let AtCable {
        interface, gateway, ..
    } = at;
    let gateway = gateway.to_string();
    let deadline = Deadline::after(limit);
    loop {
        // An echo reply does not matter: resolving the address comes first.
        let ping = [
            "ping", "-n", "-q", "-c", "1", "-W", "1", "-I", interface, &gateway,
        ];
        station.run(Program::new(ping), TOOL_LIMIT)?;
        let show = ["ip", "-json", "neigh", "show", &gateway, "dev", interface];
        let shown = station.run(Program::new(show), TOOL_LIMIT)?.stdout;
        let found: Vec<Neighbour> = serde_json::from_str(&shown).unwrap_or_default();
        let mac = found
            .iter()
            .find_map(|found| parse_mac(found.lladdr.as_deref()?));
        if let Some(mac) = mac {
            return Ok(mac);
        }
        outside.interrupt.check()?;
        if deadline.is_over() {
            let reason = format!(
                "is configured, but no device answers for {gateway} at station {}'s cable `{interface}` within {} s\n\
                 help: give the box that address there, or write another as `gateway_a` or `gateway_b` of the lab",
                station.id().name(),
                limit.as_secs()
            );
            return Err(site.error(reason));
        }
        thread::sleep(STEP);
    }
}
