//! The built-in lab on this machine: four stations, each in a network namespace, one more per path
//! element, and the DUT between them. In a lab of two hosts, each host has two of the four
//! stations.

mod devices;
mod monitoring;
mod two_hosts;

use crate::Privilege;
use crate::bypass::Bypass;
use crate::cables::{Outside, lend_cable};
use crate::cut::Cut;
use crate::dut::{self, Site, by_node};
use crate::monitor::rapl;
use crate::nat;
use crate::offloads;
use crate::on_node::{ask, ip, run_tool, tc};
use crate::procfs;
use crate::remote::Seat;
use crate::remote::part::Part;
use crate::state;
use crate::switch;
use crate::topology::{
    CIPHER_INTERFACES, End, IPV6_MTU_MIN, Map, STATION_INTERFACES, Side, W0, W1,
};
use crate::version_settings::ToRestore;
use plan::{Cables, Direction, Dut, External, Hosts, IpVersion, LabPlan, Overlay};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use testbed::protocol::Program;
use testbed::{
    Bench, ClockEnd, DutAction, IkeSas, Interrupt, LabError, Links, Monitor, Node, NodeId,
    PeersGateway, Result, RunningDut,
};
use two_hosts::{CableEnds, LabHost, open_hosts};

/// Settings of a lab in addition to its plan. Stations run this program as `station --node NAME`,
/// and the built-in encryptor as `encrypt --config FILE`.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Folder of the state files ([`state::folder`]).
    pub state_folder: PathBuf,
    /// Ends every pending call.
    pub interrupt: Interrupt,
}

impl Setup {
    /// Uses the privilege's state folder, or the user's without a privilege.
    ///
    /// # Errors
    /// If the state folder cannot be created.
    pub fn new(privilege: Option<Privilege>, interrupt: Interrupt) -> Result<Self> {
        Ok(Self {
            state_folder: state::folder(privilege.unwrap_or_else(Privilege::of_nobody))?,
            interrupt,
        })
    }
}

/// The built lab, A – gw1 – gw2 – B. Dropping it removes everything.
pub struct NamespaceLab {
    // Dropped in this order: the name is released last.
    dut: Option<Up>,
    /// In the order of [`NodeId::ALL`], then the path's elements in order, then the tap.
    stations: Vec<Seat>,
    outside: Option<Outside>,
    map: Map,
    links: Option<Links>,
    /// Whether the links may have shapers from an earlier setting.
    shaped: bool,
    /// The link between the gateways.
    cut: Cut,
    bypass: Bypass,
    swept: Vec<String>,
    /// The nodes that run programs on the two hosts, A's first; empty on one machine.
    hosts: Vec<LabHost>,
    /// The folder of the kernel's energy counters on the lab's machines.
    powercap: String,
    /// This lab's name lock on this machine.
    part: Part,
}

/// A DUT that is up.
struct Up {
    adapter: Box<dyn dut::Adapter>,
    dut: Dut,
    links: Links,
    direction: Direction,
    /// The settings of nodes that its version replaced.
    applied: ToRestore,
}

impl Up {
    /// Returns the external boxes at the cables; `None` if the DUT has none.
    const fn external(&self) -> Option<&External> {
        self.dut.adapter.external()
    }
}

impl NamespaceLab {
    /// Locks the lab's name, removes the remains of a killed run with that name, starts the
    /// stations and connects them.
    ///
    /// # Errors
    /// [`LabError::Taken`], [`LabError::CannotBuild`] with what to do, or
    /// [`LabError::Interrupted`]. Nothing remains after an error.
    pub fn build(plan: &LabPlan, setup: &Setup) -> Result<Self> {
        if let Some(prefix) = Map::taken(&plan.addresses) {
            return Err(LabError::cannot_build(
                format!("the lab's network {prefix}/24 overlaps a network of the lab"),
                "take another than those of 198.18.0.0/15, where test frames come from, and \
                 169.254.0.0/16",
            ));
        }
        // The numbers of elements are part of MAC addresses, in which few fit.
        let most = LabPlan::ELEMENTS_MAX;
        if plan.path.len() > most {
            return Err(LabError::cannot_build(
                format!("the path has {} elements", plan.path.len()),
                format!("write {most} at most"),
            ));
        }
        // Decided once for all nodes: the kernel has IPv6 in every namespace or in none.
        let map = Map::new(plan, procfs::has_ipv6());
        let (mut part, mut swept) = Part::take(&setup.state_folder, &plan.name)?;
        let (mut stations, mut both) = (Vec::new(), Vec::new());
        if plan.external.is_some() {
            part.expect_returns()?;
        }
        if let Some(hosts) = &plan.hosts {
            for (host, seats, found) in open_hosts(hosts, plan, &mut part, setup)? {
                stations.extend(seats);
                both.push(host);
                swept.extend(found);
            }
        } else {
            let elements = map.elements().iter().copied().map(NodeId::Element);
            let tap = plan.external.iter().filter(|cables| cables.tap.is_some());
            let tap = tap.map(|_| NodeId::Tap);
            let nodes: Vec<_> = NodeId::ALL.into_iter().chain(elements).chain(tap).collect();
            let started = part
                .start(&nodes, &[], &setup.interrupt)
                .map_err(cannot_build)?;
            stations.extend(started.into_iter().map(Seat::Here));
        }
        let mut lab = Self {
            dut: None,
            stations,
            outside: None,
            map,
            links: None,
            shaped: false,
            cut: Cut::default(),
            bypass: Bypass::default(),
            swept,
            hosts: both,
            powercap: rapl::FOLDER.to_owned(),
            part,
        };
        // From here on an error drops the lab, which ends its stations and gives interfaces back.
        lab.join(plan.hosts.as_ref()).map_err(cannot_build)?;
        if let Some(cables) = &plan.external {
            let outside = lab.connect(cables, setup).map_err(cannot_build)?;
            lab.outside = Some(outside);
        }
        Ok(lab)
    }

    /// Takes the cables to external boxes.
    fn connect(&mut self, cables: &Cables, setup: &Setup) -> Result<Outside> {
        let host = self.part.start_host()?;
        let interrupt = setup.interrupt.clone();
        let machines = self.hosts.iter().map(LabHost::node).collect::<Vec<_>>();
        Outside::connect(cables, (host, &machines), interrupt, |id| self.seat(id))
    }

    /// Returns the cables if the running DUT is external.
    fn is_outside(&self) -> Option<&Outside> {
        self.dut.as_ref()?.external()?;
        self.outside.as_ref()
    }

    /// Whether a station is the peer of the running DUT, which leaves no tap between them.
    fn has_station_peer(&self) -> bool {
        let external = self.dut.as_ref().and_then(Up::external);
        external.is_some_and(|external| external.gateway.is_some())
    }

    /// One sentence for each item removed of an earlier run.
    #[must_use]
    pub fn swept(&self) -> &[String] {
        &self.swept
    }

    /// Process id of a station.
    #[must_use]
    pub fn station_pid(&self, id: NodeId) -> u32 {
        self.seat(id).pid()
    }

    fn seat(&self, id: NodeId) -> &Seat {
        self.stations
            .iter()
            .find(|station| station.id() == id)
            .unwrap_or_else(|| panic!("this lab has no {}", id.name()))
    }

    fn station(&self, id: NodeId) -> &dyn Node {
        self.seat(id)
    }

    fn join(&mut self, hosts: Option<&Hosts>) -> Result<()> {
        let pid = |id| self.seat(id).pid();
        self.on_all(|node| ip(node, self.map.make_links(node.id(), pid)))?;
        // Before addresses are set: neighbours are permanent, by the addresses of the cards.
        let ends = hosts.and_then(CableEnds::of);
        if let Some(ends) = &ends {
            self.take_cable(ends)?;
        }
        self.on_all(|node| match switch::bridge(node.id()) {
            Some(element) => switch::make(node, &self.map.ports(element)),
            None => ip(node, self.map.address_node(node.id())),
        })?;
        for (id, translation) in self.map.translations() {
            translation.set(self.seat(id))?;
        }
        // Both ends of every link are up.
        self.on_all(|node| match switch::bridge(node.id()) {
            Some(_) if !switch::forwards(node)? => Err(node.error(format!(
                "its ports do not forward within {} s",
                switch::READY_LIMIT.as_secs()
            ))),
            _ => Ok(()),
        })?;
        match &ends {
            Some(ends) => {
                ends.await_frames(self.station(NodeId::Gw1), self.map.cipher_end(Side::B))
            }
            None => Ok(()),
        }
    }

    /// Moves the interfaces at the cable between two hosts to the gateways.
    fn take_cable(&mut self, cable: &CableEnds<'_>) -> Result<()> {
        let ends = [
            (NodeId::Gw1, CIPHER_INTERFACES.0),
            (NodeId::Gw2, CIPHER_INTERFACES.1),
        ];
        let mut macs = [[0; 6]; 2];
        for (((at, (id, renamed)), (name, _, interface)), mac) in
            self.hosts.iter().zip(ends).zip(cable.0).zip(&mut macs)
        {
            let named = (&*format!("hosts.{}", name.name()), interface);
            *mac = lend_cable(at.node(), self.seat(id), named, renamed)?;
        }
        self.map.set_cable_macs(macs);
        Ok(())
    }

    /// Runs an action on all nodes concurrently.
    fn on_all(&self, action: impl Fn(&dyn Node) -> Result<()> + Sync) -> Result<()> {
        let nodes: Vec<_> = self.stations.iter().map(|it| it as &dyn Node).collect();
        dut::all(dut::on_each(&nodes, action))
    }

    fn site<'a>(&'a self, dut: &'a Dut, links: Links, direction: Direction) -> Site<'a> {
        Site {
            dut: &dut.name,
            software: &dut.software,
            links,
            direction,
            gateways: [self.station(NodeId::Gw1), self.station(NodeId::Gw2)],
            elements: &self.stations[NodeId::ALL.len()..][..self.map.elements().len()],
            stations: [self.station(NodeId::A), self.station(NodeId::B)],
            map: &self.map,
            outside: self.outside.as_ref(),
            tap: self.tap().map(|tap| tap as &dyn Node),
        }
    }

    fn tap(&self) -> Option<&Seat> {
        self.stations
            .iter()
            .find(|station| station.id() == NodeId::Tap)
    }

    fn site_of<'a>(&'a self, up: &'a Up) -> Site<'a> {
        self.site(&up.dut, up.links, up.direction)
    }
}

impl Bench for NamespaceLab {
    fn node(&self, id: NodeId) -> &dyn Node {
        match (id, &self.outside) {
            (NodeId::Host, Some(outside)) => &outside.host,
            _ => self.station(id),
        }
    }

    fn elements(&self) -> Vec<NodeId> {
        let elements = self.map.elements().iter();
        let tap = self.tap().map(|_| NodeId::Tap);
        let elements = elements.copied().map(NodeId::Element);
        elements.chain(tap).collect()
    }

    fn impaired_element(&self) -> Option<(NodeId, [&str; 2])> {
        self.map.impaired_element()
    }

    fn target(&self) -> Ipv4Addr {
        self.map.b()
    }

    fn cipher_interfaces(&self) -> (&str, &str) {
        CIPHER_INTERFACES
    }

    fn cipher_ends(&self) -> Option<[(NodeId, &str); 2]> {
        let Some(outside) = self.is_outside() else {
            let (gw1, gw2) = CIPHER_INTERFACES;
            return Some([(NodeId::Gw1, gw1), (NodeId::Gw2, gw2)]);
        };
        let tap = outside.cables.tap.as_ref();
        let [first, second] = tap.filter(|_| !self.has_station_peer())?;
        Some([(NodeId::Tap, second), (NodeId::Tap, first)])
    }

    fn far_end(&self, gateway: NodeId) -> Option<(NodeId, &str)> {
        if self.is_outside().is_some() {
            let [first, second] = self.cipher_ends()?;
            return Some(if gateway == NodeId::Gw2 {
                first
            } else {
                second
            });
        }
        let far = || self.map.far_end(gateway);
        (!self.map.is_over_cable()).then(far)
    }

    fn clock_ends(&self) -> Option<[ClockEnd<'_>; 2]> {
        let end = |end: End| ClockEnd {
            node: end.node,
            interface: end.interface,
            mac: self.map.mac_of(end),
        };
        (self.map.is_over_cable()).then(|| [W0, W1].map(end))
    }

    fn cards(&self) -> Vec<(NodeId, &str)> {
        if let Some(Outside { cables, .. }) = self.is_outside() {
            let tap = cables.tap.iter().flatten();
            let tap = tap.map(|tap| (NodeId::Tap, tap.as_str()));
            let stations = [
                (NodeId::A, cables.station_a.as_str()),
                (NodeId::B, cables.station_b.as_str()),
            ];
            return stations.into_iter().chain(tap).collect();
        }
        if !self.map.is_over_cable() {
            return Vec::new();
        }
        let (gw1, gw2) = CIPHER_INTERFACES;
        vec![(NodeId::Gw1, gw1), (NodeId::Gw2, gw2)]
    }

    fn station_interfaces(&self) -> (&str, &str) {
        match self.is_outside() {
            Some(Outside { cables, .. }) => (&cables.station_a, &cables.station_b),
            None => STATION_INTERFACES,
        }
    }

    fn configure(&mut self, links: Links) -> Result<()> {
        if self.links == Some(links) {
            return Ok(());
        }
        // Setting offloads starts a program for each interface, so that it is left out if nothing
        // changes.
        let same_offloads = self.links.is_some_and(|now| now.offloads == links.offloads);
        let shape = links.rate_bps.is_some() || self.shaped;
        // Unknown until all nodes are configured.
        self.links = None;
        // Even if a node fails below, others may have their shapers by then.
        self.shaped |= shape;
        self.on_all(|node| {
            let id = node.id();
            ip(node, self.map.set_mtu(id, links))?;
            if self.dut.is_none() {
                // The kernel dropped the routes if an MTU was too small for IPv6.
                ip(node, self.map.route_test_networks(id, links))?;
            }
            let own = switch::bridge(id).map(|_| switch::NAME);
            let interfaces = self.map.interfaces(id).chain(own);
            for interface in interfaces.filter(|_| !same_offloads) {
                // A super-packet would be lost or delayed as a whole, with all its frames.
                let is_cipher = self.map.is_cipher_end(id, interface) || interface == switch::NAME;
                let cut = is_cipher && self.map.impaired_element().is_some();
                let set = offloads::set(interface, links.offloads && !cut);
                if self.map.is_over_cable() && is_cipher_end(interface) {
                    // Hardware may lack an offload: each trial reads the offloads in force.
                    ask(node, set).map(drop)?
                } else {
                    run_tool(node, Program::new(set))?
                }
            }
            if shape {
                tc(node, self.map.shape(id, links))?;
            }
            match &self.outside {
                Some(outside) => outside.configure(node, links),
                None => Ok(()),
            }
        })?;
        self.shaped = links.rate_bps.is_some();
        self.links = Some(links);
        Ok(())
    }

    fn check_ip(&self, version: IpVersion, links: Links) -> Result<()> {
        let refuse = |what: String, help: &str| Err(LabError::cannot_build(what, help));
        match version {
            IpVersion::V6 if !self.map.has_ipv6() => refuse(
                "this kernel has no IPv6, or was started without it".to_owned(),
                "start it without `ipv6.disable=1`, or test with IPv4",
            ),
            IpVersion::V6 if !self.map.carries_ipv6(links) => {
                let mtu = links.mtu.min(links.cipher_mtu);
                refuse(
                    format!(
                        "an MTU of {mtu} B is too small for IPv6, which needs {IPV6_MTU_MIN} B"
                    ),
                    "raise the MTU, or test with IPv4",
                )
            }
            IpVersion::V4 | IpVersion::V6 => Ok(()),
        }
    }

    fn start_dut(&mut self, dut: &Dut, links: Links, direction: Direction) -> Result<RunningDut> {
        self.start(dut, links, direction)
    }

    fn dut_counters(&self, dut: &RunningDut) -> Result<BTreeMap<String, u64>> {
        let Some(up) = &self.dut else {
            return Ok(BTreeMap::new());
        };
        let mut counters = up.adapter.counters(&self.site_of(up), dut)?;
        // Frames of the other DUTs do not pass the elements of the path, so that their counters say
        // nothing.
        if up.dut.adapter.crosses_elements() {
            for (id, _) in self.map.translations() {
                counters.extend(by_node(id, nat::counters(self.seat(id))?));
            }
        }
        Ok(counters)
    }

    fn expect_dut(&self) -> Result<()> {
        match &self.dut {
            Some(up) => up.adapter.expect_there(&self.site_of(up)),
            None => Ok(()),
        }
    }

    fn lost_tunnels(&self) -> Result<Vec<String>> {
        let up = self.dut.as_ref();
        up.map_or(Ok(Vec::new()), |up| {
            up.adapter.lost_tunnels(&self.site_of(up))
        })
    }

    fn monitor<'a>(&'a self, _dut: &RunningDut, busy: &[u16]) -> Result<Monitor<'a>> {
        self.monitor_beside(busy)
    }

    fn act(&self, dut: &mut RunningDut, action: DutAction) -> Result<()> {
        let Some(up) = &self.dut else {
            return Ok(());
        };
        let link = || {
            let end = match self.is_outside() {
                Some(_) => self.cipher_ends().map(|[_, first]| first),
                None => Some((NodeId::Gw1, CIPHER_INTERFACES.0)),
            };
            end.map(|(node, interface)| (self.station(node), interface))
                .ok_or_else(|| {
                    let reason = "has a link that cannot be cut: the lab has no tap in it";
                    LabError::dut(&up.dut.name, reason)
                })
        };
        match action {
            DutAction::CutLink => {
                let (node, interface) = link()?;
                self.cut.cut(node, interface)
            }
            DutAction::JoinLink => {
                let (node, interface) = link()?;
                self.cut.join(node, interface)
            }
            DutAction::OpenBypass | DutAction::CloseBypass => {
                let (node, interface) = (self.station(NodeId::Gw1), CIPHER_INTERFACES.0);
                let ipv6 = self.map.carries_ipv6(up.links);
                match action {
                    DutAction::OpenBypass => self.bypass.open(node, interface, ipv6),
                    _ => self.bypass.close(node, interface, ipv6),
                }
            }
            DutAction::Reset(on, kind) => up.adapter.reset(&self.site_of(up), dut, on, kind),
            other => up.adapter.act(&self.site_of(up), dut, other),
        }
    }

    fn dut_identity(&self, dut: &RunningDut, on: NodeId) -> Result<Vec<String>> {
        match &self.dut {
            Some(up) => up.adapter.identity(&self.site_of(up), dut, on),
            None => Ok(Vec::new()),
        }
    }

    fn serve_peers(&self) -> Result<PeersGateway> {
        let up = self.dut.as_ref().ok_or_else(no_dut)?;
        up.adapter.serve_peers(&self.site_of(up))
    }

    fn ike_sas(&self) -> Result<IkeSas> {
        let up = self.dut.as_ref().ok_or_else(no_dut)?;
        up.adapter.ike_sas(&self.site_of(up))
    }

    fn start_overlay(&self, overlay: Overlay, links: Links) -> Result<()> {
        self.connect_overlay(overlay, links)
    }

    fn stop_overlay(&self) -> Result<()> {
        self.disconnect_overlay()
    }

    fn stop_dut(&mut self, dut: RunningDut) -> Result<()> {
        self.stop(dut)
    }
}

fn no_dut() -> LabError {
    LabError::cannot_build("no device is up", "start one first")
}

impl Drop for NamespaceLab {
    fn drop(&mut self) {
        // An unfinished run: dropping the lab does not stop external boxes.
        if let Some(mut up) = self.dut.take_if(|up| up.external().is_some()) {
            let site = self.site(&up.dut, up.links, up.direction);
            // No caller is left to report a failure to.
            let _ = up.adapter.stop(&site, RunningDut::default());
        }
        if let Some(Err(reason)) = self.outside.as_ref().map(dut::firmware::back) {
            // Every trial is recorded by now, and the user must know.
            let _ = writeln!(io::stderr(), "warning: the boxes {reason}");
        }
        // Ask all to end concurrently; each is awaited when it is dropped.
        self.stations.iter().for_each(Seat::hang_up);
    }
}

/// Whether this interface is at the link between the gateways.
fn is_cipher_end(interface: &str) -> bool {
    [CIPHER_INTERFACES.0, CIPHER_INTERFACES.1].contains(&interface)
}

/// Turns a station's error during the build into the reason why the lab cannot be built.
fn cannot_build(error: LabError) -> LabError {
    let help = "`cipherbench doctor` lists what this machine lacks";
    error.into_cannot_build(|node| format!("station {node}"), help)
}
