//! The two hosts of a lab with stations on another machine.

use super::{NamespaceLab, Setup, cannot_build};
use crate::programs::{self, Missing};
use crate::remote::part::Part;
use crate::remote::{RemoteHost, Seat};
use crate::sync::join;
use crate::{Station, host};
use journal::record::Environment;
use plan::{Cell, Host, HostName, Hosts, LabPlan};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use testbed::protocol::{Load, Program, Request, Response};
use testbed::{Interrupt, LabError, Node, NodeId, Result};

/// Time limit until both ends of a cable are up and pass frames: the link may be renegotiated.
const CABLE_LIMIT: Duration = Duration::from_secs(15);

/// One of the two hosts of a lab.
pub(super) enum LabHost {
    Here(Station),
    There(Arc<RemoteHost>),
}

impl LabHost {
    pub(super) fn node(&self) -> &dyn Node {
        match self {
            Self::Here(station) => station,
            Self::There(host) => host.node(),
        }
    }
}

impl NamespaceLab {
    /// The environments of the lab's hosts, by their names in the lab; empty on one machine.
    ///
    /// # Errors
    /// When a host went away.
    pub fn host_environments(&self) -> Result<BTreeMap<String, Environment>> {
        let named = HostName::ALL.into_iter().zip(&self.hosts);
        let environment =
            |(name, host): (HostName, &LabHost)| match host.node().call(Request::Environment)? {
                Response::Environment(found) => Ok((name.name().to_owned(), *found)),
                other => Err(host.node().unexpected(&other)),
            };
        named.map(environment).collect()
    }

    /// The CPU load of the lab's machines, by their names in the lab, or `this machine` in a lab
    /// without hosts.
    ///
    /// # Errors
    /// When a host went away.
    pub fn loads(&self) -> Result<Vec<(String, Load)>> {
        if self.hosts.is_empty() {
            return Ok(vec![("this machine".to_owned(), host::load())]);
        }
        let named = HostName::ALL.into_iter().zip(&self.hosts);
        let load = |(name, host): (HostName, &LabHost)| match host.node().call(Request::Load)? {
            Response::Load(found) => Ok((format!("host {}", name.name()), found)),
            other => Err(host.node().unexpected(&other)),
        };
        named.map(load).collect()
    }

    /// The programs that cells of the plan need and a host lacks. Empty in a lab on this machine
    /// alone, which is checked before it is built.
    ///
    /// # Errors
    /// When a host does not answer.
    pub fn missing(&self, plan: &LabPlan, cells: &[&Cell]) -> Result<Vec<Missing>> {
        let nodes = self.hosts.iter().map(LabHost::node);
        let names = HostName::ALL.map(HostName::name);
        let hosts: Vec<_> = names.into_iter().zip(nodes).collect();
        programs::missing_on(plan, cells, &hosts)
    }
}

pub(super) type Opened = (LabHost, Vec<Seat>, Vec<String>);

/// The nodes on each host of a lab, A's first.
fn nodes(plan: &LabPlan) -> [Vec<NodeId>; 2] {
    let tap_host = plan.external.as_ref().and_then(|cables| cables.tap_host);
    HostName::ALL.map(|name| {
        let mut nodes = match name {
            HostName::A => vec![NodeId::A, NodeId::Gw1],
            HostName::B => vec![NodeId::Gw2, NodeId::B],
        };
        nodes.extend((tap_host == Some(name)).then_some(NodeId::Tap));
        nodes
    })
}

/// Connects to both hosts concurrently and starts the nodes on each.
pub(super) fn open_hosts(
    hosts: &Hosts,
    plan: &LabPlan,
    part: &mut Part,
    setup: &Setup,
) -> Result<Vec<Opened>> {
    let interrupt = &setup.interrupt;
    let sides: Vec<_> = hosts.each().into_iter().zip(nodes(plan)).collect();
    thread::scope(|scope| {
        let reached = sides.iter().map(|((name, host), nodes)| {
            let there = !host.is_this_machine();
            there.then(|| {
                let part = (&*plan.name, &**nodes);
                scope.spawn(move || RemoteHost::open(*name, host, part, interrupt))
            })
        });
        // Collected before the first join, so that all threads run: hosts connect at the same time.
        let reached: Vec<_> = reached.collect();
        let mut opened = Vec::new();
        for (reached, ((_, host), nodes)) in reached.into_iter().zip(&sides) {
            opened.push(match reached {
                Some(reached) => {
                    let (host, seats, swept) = join(reached)?;
                    (LabHost::There(host), seats, swept)
                }
                None => open_here(part, (host, nodes), interrupt).map_err(cannot_build)?,
            });
        }
        Ok(opened)
    })
}

/// Starts the nodes of a host that is this machine.
fn open_here(
    part: &mut Part,
    (host, nodes): (&Host, &[NodeId]),
    interrupt: &Interrupt,
) -> Result<Opened> {
    // Stations of two hosts borrow interfaces of their machine, at the cable between the hosts or
    // towards external boxes.
    part.expect_returns()?;
    let stations = part.start(nodes, &host.cpus, interrupt)?;
    let seats = stations.into_iter().map(Seat::Here).collect();
    Ok((LabHost::Here(part.start_host()?), seats, Vec::new()))
}

/// The cable between two hosts: the host and the interface at each end.
pub(super) struct CableEnds<'a>(pub(super) [(HostName, &'a Host, &'a str); 2]);

impl<'a> CableEnds<'a> {
    /// Returns `None` if no cable connects them.
    pub(super) fn of(hosts: &'a Hosts) -> Option<Self> {
        let [a, b] = hosts
            .each()
            .map(|(name, host)| Some((name, host, host.interface.as_deref()?)));
        Some(Self([a?, b?]))
    }

    /// Waits until frames pass from gw1 to gw2's address: the link may be renegotiated.
    pub(super) fn await_frames(&self, gw1: &dyn Node, target: Ipv4Addr) -> Result<()> {
        let limit = CABLE_LIMIT.as_secs();
        // With `-w`, ping counts answers and not requests: it ends at the first answer or at the
        // limit. The limit of the call is longer, so that ping reports the failure itself.
        let ping = format!("ping -n -q -c 1 -i 0.2 -w {limit} {target}");
        let ended = gw1.run(Program::new(ping.split(' ')), CABLE_LIMIT * 2)?;
        if ended.code == Some(0) {
            return Ok(());
        }
        let [(_, a, at_a), (_, b, at_b)] = self.0;
        let (a, b) = (a.describe(), b.describe());
        let what = format!("no frame passes from {at_a} at {a} to {at_b} at {b} within {limit} s");
        let help = "see whether a cable, or a switch in one VLAN, joins these two interfaces, and whether both are up";
        Err(LabError::cannot_build(what, help))
    }
}
