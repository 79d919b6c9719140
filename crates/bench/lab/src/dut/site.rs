//! The surroundings of a DUT, and which part of it is loaded.

use super::{PATH_INTERVAL, PATH_LIMIT};
use crate::cables::Outside;
use crate::on_node::{ip, ip_each, run_tool};
use crate::remote::Seat;
use crate::sync::{Deadline, join};
use crate::topology::{A0, B0, End, Hop, Map, Side, W0, W1, cipher_ends};
use plan::{Direction, Software};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{
    FramePath, Interrupt, LabError, Links, Node, NodeId, Result, RunningDut, StationKeys,
    StationPeer,
};

/// The surroundings of a DUT.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    /// [`plan::Dut::name`].
    pub(crate) dut: &'a str,
    /// [`plan::Dut::software`].
    pub(crate) software: &'a Software,
    pub(crate) links: Links,
    /// Which part of it is loaded.
    pub(crate) direction: Direction,
    /// gw1 and gw2.
    pub(crate) gateways: [&'a dyn Node; 2],
    /// The elements between them, in order.
    pub(crate) elements: &'a [Seat],
    /// A and B.
    pub(crate) stations: [&'a dyn Node; 2],
    pub(crate) map: &'a Map,
    /// The cables to external boxes, and the node for their commands.
    pub(crate) outside: Option<&'a Outside>,
    /// Between those boxes.
    pub(crate) tap: Option<&'a dyn Node>,
}

impl<'a> Site<'a> {
    /// The same site with the DUT on gw1 alone, and a station instead of gw2.
    pub(crate) fn one_box(&self) -> Self {
        Self {
            direction: Direction::Encrypt,
            ..*self
        }
    }

    /// The gateways that the DUT runs on.
    pub(crate) fn loaded(&self) -> &[&'a dyn Node] {
        match self.direction {
            Direction::Encrypt => &self.gateways[..1],
            Direction::Decrypt => &self.gateways[1..],
            Direction::Both => &self.gateways,
        }
    }

    /// Whether the DUT runs on that gateway, and no station in its place.
    pub(crate) fn loads(&self, id: NodeId) -> bool {
        self.loaded().iter().any(|node| node.id() == id)
    }

    /// The device's program on a node: the campaign's, if it names one, or `installed`.
    pub(crate) fn program<'p>(&'p self, node: &dyn Node, installed: &'p str) -> &'p str {
        // A station in a gateway's place is no part of the device.
        let own = self.software.program().filter(|_| self.loads(node.id()));
        own.unwrap_or(installed)
    }

    /// A command of the device's program on a node, with the campaign's environment.
    pub(crate) fn command(&self, node: &dyn Node, argv: Vec<String>) -> Program {
        let environment = if self.loads(node.id()) {
            self.software.environment.clone()
        } else {
            BTreeMap::new()
        };
        Program {
            argv,
            environment,
            ..Program::default()
        }
    }

    /// The gateway that a station replaces, if any.
    pub(crate) fn stand_in(&self) -> Option<&'a dyn Node> {
        match self.direction {
            Direction::Encrypt => Some(self.gateways[1]),
            Direction::Decrypt => Some(self.gateways[0]),
            Direction::Both => None,
        }
    }

    /// The routers among the elements between the gateways.
    pub(crate) fn routers(&self) -> Vec<&'a dyn Node> {
        let elements = self.elements.iter().map(|element| element as &dyn Node);
        elements
            .filter(|element| element.id().forwards_ip())
            .collect()
    }

    /// All nodes that forward IP in clear if nothing encrypts: the loaded gateways and the routers.
    pub(crate) fn forwarding(&self) -> Vec<&'a dyn Node> {
        let mut nodes = self.loaded().to_vec();
        nodes.extend(self.routers());
        nodes
    }

    /// The hops to gw1 and to gw2, or to the station that replaces one.
    pub(crate) fn last_hops(&self) -> [Hop; 2] {
        let stand_in = self.stand_in().map(Node::id);
        [W0, W1].map(|end| {
            if stand_in == Some(end.node) {
                self.map.station_hop(end)
            } else {
                self.map.node_hop(end)
            }
        })
    }

    /// The gateway of that id.
    pub(crate) fn gateway(&self, id: NodeId) -> Option<&'a dyn Node> {
        self.gateways.into_iter().find(|node| node.id() == id)
    }

    /// The path of test frames through the loaded gateways.
    pub(crate) fn frame_path(&self) -> FramePath {
        // A station in a gateway's place is at that gateway's end of the cipher link.
        let (source, sink) = match self.direction {
            Direction::Encrypt => (A0, W1),
            Direction::Decrypt => (W0, B0),
            Direction::Both => (A0, B0),
        };
        FramePath {
            source: self.map.frame_end(source),
            sink: self.map.frame_end(sink),
        }
    }

    /// The path of test frames if the stations are neighbours.
    pub(crate) fn bridged_frame_path(&self) -> FramePath {
        let mut path = self.frame_path();
        path.source.next_hop_mac = B0.test_mac;
        path.sink.next_hop_mac = A0.test_mac;
        path
    }

    /// The path, with the station in a gateway's place, if any, as the device's peer. `peer`
    /// returns how it seals and opens, between its outer address and the device's.
    pub(crate) fn with_station_peer(
        &self,
        mut path: FramePath,
        peer: impl FnOnce(&'a dyn Node, [Ipv4Addr; 2]) -> Result<StationPeer>,
    ) -> Result<FramePath> {
        if let Some(node) = self.stand_in() {
            let (own, other) = cipher_ends(node.id());
            let ends = [self.map.address(own), self.map.seen_address(other)];
            path.end_at(node.id()).peer = Some(peer(node, ends)?);
        }
        Ok(path)
    }

    /// Removes the files with the keys of stations.
    pub(crate) fn forget_station_keys(&self, dut: &RunningDut) -> Result<()> {
        let path = dut.frame_path.iter();
        let ends = path.flat_map(|path| [&path.source, &path.sink]);
        let removed = ends.filter_map(|end| {
            let files = match &end.peer.as_ref()?.keys {
                StationKeys::WireGuard(file) => vec![file.clone()],
                // With the epochs, which are of no use without the keys.
                StationKeys::File(key) => vec![key.clone(), format!("{key}.epoch")],
                // Its daemon's files, which go with it.
                StationKeys::Ike { .. } => return None,
            };
            // Routers and bridges of the path never seal, so that they have no keys.
            let nodes = self.stations.into_iter().chain(self.gateways);
            let node = nodes.into_iter().find(|node| node.id() == end.node)?;
            let words = ["rm", "-f"].map(str::to_owned).into_iter().chain(files);
            Some(run_tool(node, Program::new(words)))
        });
        all(removed.collect())
    }

    /// Makes the stations neighbours on their links: the DUT carries Ethernet.
    pub(crate) fn join_stations(&self) -> Result<()> {
        self.on_stations(|own, other| self.map.join(own, other))
    }

    /// Undoes it, whether or not it was done.
    pub(crate) fn part_stations(&self) -> Result<()> {
        self.on_stations(|own, other| self.map.part(own, other))
    }

    /// Runs `ip` on both stations; `batch` gets the station's end and the other's.
    fn on_stations(&self, batch: impl Fn(End, End) -> String + Sync) -> Result<()> {
        all(on_each(&self.stations, |station| {
            let (own, other) = match station.id() {
                NodeId::A => (A0, B0),
                _ => (B0, A0),
            };
            ip(station, batch(own, other))
        }))
    }

    /// Waits until A reaches B; returns immediately if a station replaces a gateway.
    pub(crate) fn await_path(&self) -> Result<()> {
        // The path ends at the station then, and B is not behind it.
        if self.stand_in().is_some() {
            return Ok(());
        }
        if self.reaches(PATH_LIMIT)? {
            return Ok(());
        }
        Err(self.not_reached(PATH_LIMIT))
    }

    /// Waits until A reaches B, at most this long, or until the run is interrupted.
    pub(crate) fn await_path_within(&self, limit: Duration, interrupt: &Interrupt) -> Result<()> {
        let deadline = Deadline::after(limit);
        // In steps, between which the run can be interrupted.
        while !self.reaches(PATH_LIMIT.min(limit))? {
            interrupt.check()?;
            if deadline.is_over() {
                return Err(self.not_reached(limit));
            }
        }
        Ok(())
    }

    /// Whether A reaches B within a time.
    fn reaches(&self, limit: Duration) -> Result<bool> {
        let target = self.map.b();
        let (interval, seconds) = (PATH_INTERVAL.as_secs_f64(), limit.as_secs().max(1));
        // With a deadline, `ping` sends until one answer has come.
        let ping = format!("ping -n -q -c 1 -i {interval} -w {seconds} {target}");
        // With a longer limit than the one of `ping`, which then ends by itself and reports a
        // failure.
        let ended = self.stations[0].run(Program::new(ping.split(' ')), limit * 2)?;
        Ok(ended.code == Some(0))
    }

    fn not_reached(&self, limit: Duration) -> LabError {
        let (target, limit) = (self.map.b(), limit.as_secs());
        self.error(format!(
            "is up, but A does not reach B ({target}) through it within {limit} s"
        ))
    }

    pub(crate) fn error(&self, reason: impl Into<String>) -> LabError {
        LabError::dut(self.dut, reason)
    }

    /// The error for a DUT that a node has set up in another way than requested.
    pub(crate) fn differs(&self, node: &dyn Node, what: &str) -> LabError {
        let gateway = node.name();
        self.error(format!("differs from the request on {gateway}: {what}"))
    }

    /// The networks behind a gateway's peer.
    pub(crate) fn networks_beyond(&self, gateway: NodeId) -> Vec<String> {
        let (_, peer) = cipher_ends(gateway);
        self.map.networks_behind(Side::of(peer), self.links)
    }

    /// Sets a gateway's interface up, after the commands that `prepare` it, and routes the networks
    /// behind the peer into it.
    pub(crate) fn set_up(&self, node: &dyn Node, interface: &str, prepare: String) -> Result<()> {
        let mut batch = prepare;
        // The MTU first: the kernel refuses IPv6 routes into an interface with too small a one.
        batch += &format!("link set {interface} mtu {} up\n", self.links.mtu);
        for network in self.networks_beyond(node.id()) {
            batch += &format!("route replace {network} dev {interface}\n");
        }
        ip(node, batch)
    }

    /// Removes leftovers of a failed DUT on gateways and routers: interfaces outside the path, and
    /// routes to the networks beyond.
    ///
    /// # Errors
    /// The first node's failures; all else is removed.
    pub(crate) fn clear(&self) -> Result<()> {
        let mut nodes = self.gateways.to_vec();
        nodes.extend(self.routers());
        all(on_each(&nodes, |node| {
            let found = node.interface_counters()?.into_keys();
            let own: Vec<_> = self.map.interfaces(node.id()).collect();
            // No link of the lab has these, so the device made them.
            let foreign = found.filter(|name| !own.contains(&name.as_str()));
            let mut batch: String = foreign.map(|name| format!("link del {name}\n")).collect();
            batch.push_str(&self.map.unroute(node.id(), self.links));
            batch.push_str(&self.map.route_test_networks(node.id(), self.links));
            // An interface may have gone with another one, or cannot be removed: that must not keep
            // the routes.
            ip_each(node, batch)
        }))
    }
}

/// Runs an action on several nodes concurrently; returns the results in their order.
pub(crate) fn on_each<T: Send>(
    nodes: &[&dyn Node],
    action: impl Fn(&dyn Node) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    let action = &action;
    thread::scope(|scope| {
        let pending: Vec<_> = nodes
            .iter()
            .map(|&node| scope.spawn(move || action(node)))
            .collect();
        // Awaited in order, although they may end in another.
        pending.into_iter().map(join).collect()
    })
}

/// Returns the first error, if any.
pub(crate) fn all(results: Vec<Result<()>>) -> Result<()> {
    results.into_iter().fold(Ok(()), Result::and)
}

/// Keys with their node's name in front: `gw1/version`.
pub(crate) fn by_node<K: Display, V>(
    node: NodeId,
    values: impl IntoIterator<Item = (K, V)>,
) -> impl Iterator<Item = (String, V)> {
    let named = move |(key, value)| (format!("{}/{key}", node.name()), value);
    values.into_iter().map(named)
}

/// Adds the facts of all nodes; returns the first error.
pub(crate) fn gather(
    results: Vec<Result<BTreeMap<String, String>>>,
    facts: &mut BTreeMap<String, String>,
) -> Result<()> {
    all(results
        .into_iter()
        .map(|found| found.map(|found| facts.extend(found)))
        .collect())
}
