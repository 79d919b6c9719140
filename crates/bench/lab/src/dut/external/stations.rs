//! The stations at the cables: addresses, routes, and neighbours.

use super::super::Site;
use super::super::site::{all, on_each};
use crate::cables::{Outside, parse_mac};
use crate::on_node::{ask, ip};
use crate::sync::Deadline;
use crate::topology::{A0, B0, End, Side};
use serde::Deserialize;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;
use testbed::{FrameEnd, FramePath, Node, NodeId, Result};

/// Interval between two queries of a neighbour.
const STEP: Duration = Duration::from_millis(100);

/// The stations at the boxes' cables.
#[derive(Clone, Copy)]
pub(super) struct Cabling<'a> {
    pub(super) outside: &'a Outside,
    /// Whether the boxes pass frames on, so that each station is the other's neighbour.
    pub(super) bump: bool,
    /// Whether B is the peer of the one gateway, at its cipher side.
    pub(super) b_is_peer: bool,
}

/// A station at its cable.
struct AtCable<'a> {
    interface: &'a str,
    /// Its address there.
    own: Ipv4Addr,
    /// Next hop of all its traffic: the box's address, or the other station's.
    next_hop: Ipv4Addr,
    mac: [u8; 6],
    mtu: u16,
    /// Its end inside the lab.
    end: End,
}

impl<'a> Cabling<'a> {
    fn at_cable(&self, site: &Site<'_>, id: NodeId) -> AtCable<'a> {
        let cables = &self.outside.cables;
        // Boxes that pass frames on have no address there, so that the other station answers
        // itself.
        let next_hop = |gateway, other| {
            if self.bump {
                site.map.station(other)
            } else {
                gateway
            }
        };
        let (map, links) = (site.map, site.links);
        let [mac_a, mac_b] = self.outside.macs;
        let at_a = AtCable {
            interface: &cables.station_a,
            own: map.station(Side::A),
            next_hop: next_hop(cables.gateway_a, Side::B),
            mac: mac_a,
            mtu: links.mtu,
            end: A0,
        };
        if id == NodeId::A {
            return at_a;
        }
        let at_b = AtCable {
            interface: &cables.station_b,
            own: map.station(Side::B),
            next_hop: next_hop(cables.gateway_b, Side::A),
            mac: mac_b,
            end: B0,
            ..at_a
        };
        if !self.b_is_peer {
            return at_b;
        }
        AtCable {
            own: map.cipher_end(Side::B),
            next_hop: map.cipher_end(Side::A),
            mtu: links.cipher_mtu,
            ..at_b
        }
    }

    /// Routes all traffic of each station over its cable. The station's lab link keeps its address
    /// and its neighbours.
    pub(super) fn attach(&self, site: &Site<'_>) -> Result<()> {
        all(on_each(&site.stations, |station| {
            let AtCable {
                interface,
                own,
                next_hop,
                mtu,
                ..
            } = self.at_cable(site, station.id());
            // The lab link has the route to this network, so the cable gets none (`noprefixroute`).
            // The next hop may be outside of the network (`onlink`).
            ip(
                station,
                format!(
                    "link set {interface} mtu {mtu} up\n\
                     address replace {own}/24 dev {interface} noprefixroute\n\
                     route replace default via {next_hop} dev {interface} onlink src {own}\n"
                ),
            )
        }))
    }

    /// Undoes [`attach`](Self::attach), whether or not it was done.
    pub(super) fn detach(&self, site: &Site<'_>) -> Result<()> {
        all(on_each(&site.stations, |station| {
            let AtCable { interface, end, .. } = self.at_cable(site, station.id());
            let (gateway, mtu) = (site.map.gateway_of(end), site.links.mtu);
            ip(
                station,
                format!(
                    "route replace default via {gateway} dev {}\n\
                     link set {interface} mtu {mtu}\n\
                     address flush dev {interface}\n\
                     neigh flush dev {interface}\n",
                    end.interface
                ),
            )
        }))
    }

    /// The path of test frames, with the MAC addresses of the neighbours.
    pub(super) fn frame_path(&self, site: &Site<'_>, limit: Duration) -> Result<FramePath> {
        let ends = on_each(&site.stations, |station| {
            self.frame_end(site, station, limit)
        });
        let ends = ends.into_iter().collect::<Result<Vec<_>>>()?;
        let Ok([source, sink]) = <[FrameEnd; 2]>::try_from(ends) else {
            unreachable!("there are two stations");
        };
        Ok(FramePath { source, sink })
    }

    fn frame_end(&self, site: &Site<'_>, station: &dyn Node, limit: Duration) -> Result<FrameEnd> {
        let at = self.at_cable(site, station.id());
        let Some(next_hop_mac) = self.neighbour(station, &at, limit)? else {
            let (interface, next_hop, limit) = (at.interface, at.next_hop, limit.as_secs());
            let help = match (self.bump, self.b_is_peer && at.end == B0) {
                (true, _) => "see whether the boxes pass broadcast frames between their cables",
                (false, true) => "give the gateway that address at its cipher side",
                (false, false) => {
                    "give the box that address there, or write another as `gateway_a` or `gateway_b` of the lab"
                }
            };
            let reason = format!(
                "is configured, but no device answers for {next_hop} at station {}'s cable `{interface}` within \
                 {limit} s\nhelp: {help}",
                station.id().name()
            );
            return Err(site.error(reason));
        };
        Ok(FrameEnd {
            interface: at.interface.to_owned(),
            mac: at.mac,
            next_hop_mac,
            address: at.own,
            ..site.map.frame_end(at.end)
        })
    }

    /// Looks whether each station's cable is up, and whether a device answers there within a time.
    ///
    /// # Errors
    /// The error names the missing sign.
    pub(super) fn expect_answers(&self, site: &Site<'_>, limit: Duration) -> Result<()> {
        all(on_each(&site.stations, |station| {
            let at = self.at_cable(site, station.id());
            let (interface, name) = (at.interface, station.id().name());
            let show = ["ip", "-json", "link", "show", "dev", interface];
            let shown = ask(station, show)?.stdout;
            // An interface that has vanished is printed as an error, and counts as one without a
            // link.
            let found: Vec<Link> = serde_json::from_str(&shown).unwrap_or_default();
            if !found.iter().any(Link::is_up) {
                let reason = format!(
                    "is not there any more: station {name}'s cable `{interface}` has no link\n\
                     help: see whether the device is on, and its port is up"
                );
                return Err(site.error(reason));
            }
            // Forget neighbours that answered before, to ask again.
            ip(station, format!("neigh flush dev {interface}\n"))?;
            if self.neighbour(station, &at, limit)?.is_some() {
                return Ok(());
            }
            let (next_hop, limit) = (at.next_hop, limit.as_secs());
            let reason = format!(
                "is not there any more: {next_hop} at station {name}'s cable `{interface}` does not answer ARP within \
                 {limit} s\nhelp: see whether the device runs, and has that address"
            );
            Err(site.error(reason))
        }))
    }

    /// Returns the MAC address that answers for the next hop's address, by the kernel's neighbour
    /// discovery; retries until one answers, or until the limit.
    fn neighbour(
        &self,
        station: &dyn Node,
        at: &AtCable<'_>,
        limit: Duration,
    ) -> Result<Option<[u8; 6]>> {
        let AtCable {
            interface,
            next_hop,
            ..
        } = at;
        let next_hop = next_hop.to_string();
        let deadline = Deadline::after(limit);
        loop {
            // An echo reply does not matter: resolving the address comes first.
            let ping = [
                "ping", "-n", "-q", "-c", "1", "-W", "1", "-I", interface, &next_hop,
            ];
            ask(station, ping)?;
            let show = ["ip", "-json", "neigh", "show", &next_hop, "dev", interface];
            let shown = ask(station, show)?.stdout;
            let found: Vec<Neighbour> = serde_json::from_str(&shown).unwrap_or_default();
            let mac = found
                .iter()
                .find_map(|found| parse_mac(found.lladdr.as_deref()?));
            // Looked for once more at the deadline, as the last query may have been answered.
            if mac.is_some() || deadline.is_over() {
                return Ok(mac);
            }
            self.outside.interrupt.check()?;
            thread::sleep(STEP);
        }
    }
}

/// An interface as `ip -json link` prints it.
#[derive(Deserialize)]
struct Link {
    flags: Vec<String>,
}

impl Link {
    fn is_up(&self) -> bool {
        // The link itself: `UP` is only the setting.
        self.flags.iter().any(|flag| flag == "LOWER_UP")
    }
}

/// A neighbour as `ip -json neigh` prints it.
#[derive(Deserialize)]
struct Neighbour {
    lladdr: Option<String>,
}
