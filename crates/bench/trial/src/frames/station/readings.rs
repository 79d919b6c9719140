//! Readings around every frame trial: the cipher link's counters and the kernel filter on it, the
//! device's counters, queues that were full, and CPU time that others took.
//!
//! The reading after a trial is the one before the next: no frame between two trials is left out,
//! and a trial costs one round trip per node, one for the filter, and one per gateway of a device
//! with checked counters.

use crate::counters::{by_machine, difference, nanoseconds, nodes, steady};
use crate::error::TrialError;
use crate::evidence::gateway::dut_work;
use crate::evidence::{ETHERNET_AND_FCS_BYTES, IN_FLIGHT_PACKETS, counted_since};
use crate::links::interfaces_between;
use crate::watch::{CipherLinkWatch, WatchPoint};
use journal::record::{
    CipherWatch, EndTraffic, FrameTrial, InterfaceCounters, LinkTraffic, MachineTime, QueueDrops,
    TrialReadings,
};
use plan::{Cell, Role};
use std::collections::BTreeMap;
use std::time::Instant;
use testbed::protocol::{CpuTime, NodeReading, Request, Response};
use testbed::{Bench, FrameEnd, FramePath, LabError, NodeId, RunningDut};

/// The gateways' ends of the stations' links.
const STATION_LINKS: [(NodeId, &str); 2] = [(NodeId::Gw1, "a1"), (NodeId::Gw2, "b1")];

/// Reads the path after each trial.
pub(super) struct PathReader<'a> {
    bench: &'a dyn Bench,
    look: Option<WatchPoint<'a>>,
    /// On from before the first trial until the rig is dropped.
    watch: Option<CipherLinkWatch<'a>>,
    path: FramePath,
    /// The nodes of each machine, A's first.
    machines: Vec<Vec<NodeId>>,
    /// Whether the stations are joined directly.
    is_rig: bool,
    /// Whether the device's counters are checked.
    counts_work: bool,
    /// The interfaces of the path, its ends included.
    on_path: Vec<String>,
    last: State,
}

/// Totals at one instant.
struct State {
    at: Instant,
    nodes: BTreeMap<NodeId, NodeReading>,
    /// CPU time of tools and device by node and handle.
    processes: BTreeMap<(NodeId, u64), CpuTime>,
    /// The device's processes among them.
    dut_processes: Vec<(NodeId, u64)>,
    /// The device's counters; `None` if they are not checked, or began anew.
    dut: Option<BTreeMap<String, u64>>,
}

impl<'a> PathReader<'a> {
    /// Starts the watch and reads the state before the first trial.
    pub(super) fn start(
        bench: &'a dyn Bench,
        dut: &RunningDut,
        cell: &Cell,
        path: &FramePath,
        look: Option<WatchPoint<'a>>,
    ) -> Result<Self, LabError> {
        let watch = look.map(|look| CipherLinkWatch::start(bench, dut, look));
        let adapter = &cell.dut.adapter;
        let is_rig = adapter.profile().role == Role::Rig;
        let (nodes, processes) = read_nodes(bench, dut, &[])?;
        Ok(Self {
            bench,
            look,
            watch: watch.transpose()?,
            path: path.clone(),
            machines: by_machine(bench)?,
            is_rig,
            counts_work: adapter.encryptor().is_some() && !is_rig,
            on_path: interfaces_between(path),
            last: State {
                at: Instant::now(),
                nodes,
                processes,
                dut_processes: dut.processes.clone(),
                dut: None,
            },
        })
    }

    /// Prepares for a trial: a restarted device counts from here.
    pub(super) fn before(&mut self, dut: &RunningDut) -> Result<(), LabError> {
        if self.counts_work && self.last.dut.is_none() {
            self.last.dut = Some(steady(|| self.bench.dut_counters(dut))?);
        }
        Ok(())
    }

    /// Forgets the device's counters: it was stopped or restarted.
    pub(super) fn forget_dut(&mut self) {
        self.last.dut = None;
    }

    /// Reads what happened since the last trial. `tools` have reported, and are known still.
    pub(super) fn after(
        &mut self,
        dut: &RunningDut,
        tools: &[(NodeId, u64)],
        trial: &FrameTrial,
    ) -> Result<TrialReadings, TrialError> {
        let watch = self.watch.as_ref().map(CipherLinkWatch::read).transpose()?;
        let (nodes, processes) = read_nodes(self.bench, dut, tools)?;
        let counters = self.counters(dut, trial)?;
        let now = State {
            at: Instant::now(),
            nodes,
            processes,
            dut_processes: dut.processes.clone(),
            dut: counters,
        };
        let last = std::mem::replace(&mut self.last, now);
        Ok(self.since(&last, trial.loads_both(), watch))
    }

    /// Returns the device's counters, read until they account for the received frames.
    fn counters(
        &self,
        dut: &RunningDut,
        trial: &FrameTrial,
    ) -> Result<Option<BTreeMap<String, u64>>, LabError> {
        let Some(before) = &self.last.dut else {
            return Ok(None);
        };
        let counters = self.bench.dut_counters(dut)?;
        let counted = counted_since(&counters, before);
        let work = dut_work(&self.path, &counted, trial.loads_both());
        let headers = trial.received * ETHERNET_AND_FCS_BYTES;
        let ip_bytes = trial.received_bytes.saturating_sub(headers);
        let is_complete = work.is_some_and(|work| {
            work.bytes_least() >= ip_bytes && work.unaccounted_packets <= IN_FLIGHT_PACKETS
        });
        if is_complete {
            Ok(Some(counters))
        } else {
            steady(|| self.bench.dut_counters(dut)).map(Some)
        }
    }

    /// The difference of the last two states, around a load of one direction or both.
    fn since(&self, before: &State, duplex: bool, watch: Option<CipherWatch>) -> TrialReadings {
        let now = &self.last;
        let counted = now.dut.as_ref().zip(before.dut.as_ref());
        let counted = counted.map(|(after, before)| counted_since(after, before));
        TrialReadings {
            wall_ns: nanoseconds(now.at, before.at),
            cipher: self.look.and_then(|look| self.cipher(before, duplex, look)),
            watch,
            dut: counted
                .as_ref()
                .and_then(|it| dut_work(&self.path, it, duplex)),
            dut_packets: counted.map(sealed_and_dropped).unwrap_or_default(),
            links: self.links(before),
            drops: self.drops(before, duplex),
            machine: machine(before, now, &self.machines[0]),
            machine_b: self.machines.get(1).map(|on_b| machine(before, now, on_b)),
            clocks: None,
        }
    }

    /// Returns an interface's counts since `before`; `None` if it does not exist.
    fn interface(&self, before: &State, (node, name): (NodeId, &str)) -> Option<InterfaceCounters> {
        let of = |state: &State| state.nodes.get(&node)?.interfaces.get(name).copied();
        let after = of(&self.last)?;
        Some(difference(&after, &of(before).unwrap_or_default()))
    }

    /// Packets at the interfaces of the path that are there.
    fn links(&self, before: &State) -> BTreeMap<String, EndTraffic> {
        let counted = |name: &String| {
            let (node, interface) = name.split_once('/')?;
            let node = self.last.nodes.keys().find(|id| id.name() == node)?;
            let counters = self.interface(before, (*node, interface))?;
            let packets = EndTraffic {
                received: counters.rx_packets,
                sent: counters.tx_packets,
            };
            Some((name.clone(), packets))
        };
        self.on_path.iter().filter_map(counted).collect()
    }

    /// The traffic at the watched end of the cipher link in the loaded directions.
    fn cipher(&self, before: &State, duplex: bool, look: WatchPoint<'_>) -> Option<LinkTraffic> {
        let counters = self.interface(before, (look.gateway, look.interface))?;
        let sends = [counters.tx_packets, counters.tx_bytes];
        let receives = [counters.rx_packets, counters.rx_bytes];
        // Without a load in the other direction, it carries only keepalives and rekeying of the
        // device, which are no work of the trial.
        let [packets, bytes] = match (duplex, look.sends) {
            (true, _) => [sends[0] + receives[0], sends[1] + receives[1]],
            (false, true) => sends,
            (false, false) => receives,
        };
        Some(LinkTraffic { packets, bytes })
    }

    /// Frames that found a queue full.
    fn drops(&self, before: &State, duplex: bool) -> QueueDrops {
        let FramePath { source, sink } = &self.path;
        let sinks = if duplex {
            vec![sink, source]
        } else {
            vec![sink]
        };
        let mut drops = QueueDrops::default();
        for sink in sinks {
            let dropped = |at| self.interface(before, at).unwrap_or_default();
            let own = dropped((sink.node, sink.interface.as_str())).rx_dropped;
            // A full backlog counts at both ends of a virtual link, a full ring at the other only.
            let peer = self.peer(sink).map_or(0, |peer| dropped(peer).tx_dropped);
            drops.station += own.max(peer);
        }
        let ends = [source, sink].map(|end| (end.node, end.interface.as_str()));
        let mut by_interface = BTreeMap::<NodeId, u64>::new();
        for (node, reading) in &self.last.nodes {
            for name in reading.interfaces.keys() {
                let at = (*node, name.as_str());
                let dropped = self.interface(before, at).map_or(0, |it| it.rx_dropped);
                *by_interface.entry(*node).or_default() += dropped;
                // A gateway's interface that a station has taken is the station's.
                if !is_station(*node) && !ends.contains(&at) {
                    drops.device += dropped;
                }
            }
            let earlier = before.nodes.get(node).map_or(0, |it| it.socket_drops);
            let sockets = reading.socket_drops.saturating_sub(earlier);
            if is_station(*node) || ends.iter().any(|(end, _)| end == node) {
                drops.station_sockets += sockets
            } else {
                drops.device_sockets += sockets
            }
        }
        let unattributed = self.machines.iter().map(|on_it| {
            // Any node of a machine has its count.
            let backlog =
                |state: &State| state.nodes.get(&on_it[0]).map_or(0, |it| it.backlog_drops);
            let all = backlog(&self.last).saturating_sub(backlog(before));
            let known = on_it.iter().filter_map(|node| by_interface.get(node));
            // The kernel's count of full backlogs has no interface. Drops that the interfaces do
            // not count belong to nobody on the path.
            all.saturating_sub(known.sum())
        });
        drops.unattributed = unattributed.sum();
        drops
    }

    /// The other end of the virtual link that an end of the path is on.
    fn peer(&self, end: &FrameEnd) -> Option<(NodeId, &str)> {
        let (a, b) = self.bench.station_interfaces();
        let (w0, w1) = self.bench.cipher_interfaces();
        match end.node {
            // Joined directly, the stations are each other's peer.
            NodeId::A if self.is_rig => Some((NodeId::B, b)),
            NodeId::B if self.is_rig => Some((NodeId::A, a)),
            NodeId::A => Some(STATION_LINKS[0]),
            NodeId::B => Some(STATION_LINKS[1]),
            NodeId::Gw1 if self.bench.elements().is_empty() => Some((NodeId::Gw2, w1)),
            NodeId::Gw2 if self.bench.elements().is_empty() => Some((NodeId::Gw1, w0)),
            _ => None,
        }
    }
}

/// Keeps a device's counters of sealed packets, and its drops with their reasons.
fn sealed_and_dropped(mut counted: BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    counted.retain(|name, count| match name.split_once('/') {
        Some((_, "cipher_rx_packets" | "cipher_tx_packets")) => true,
        Some((_, counter)) => counter.starts_with("dropped_packets.") && *count > 0,
        None => false,
    });
    counted
}

const fn is_station(node: NodeId) -> bool {
    matches!(node, NodeId::A | NodeId::B)
}

type Nodes = BTreeMap<NodeId, NodeReading>;
type Processes = BTreeMap<(NodeId, u64), CpuTime>;

/// Reads every node, with the programs on it.
fn read_nodes(
    bench: &dyn Bench,
    dut: &RunningDut,
    tools: &[(NodeId, u64)],
) -> Result<(Nodes, Processes), LabError> {
    let (mut readings, mut processes) = (Nodes::new(), Processes::new());
    for id in nodes(bench) {
        let on_it = tools.iter().chain(dut.path_processes());
        let on_it: Vec<u64> = on_it
            .filter(|(node, _)| *node == id)
            .map(|(_, process)| *process)
            .collect();
        let node = bench.node(id);
        let request = Request::Readings {
            processes: on_it.clone(),
        };
        match node.call(request)? {
            Response::Readings(reading) => {
                let times = reading.processes.iter().copied();
                processes.extend(on_it.iter().map(|process| (id, *process)).zip(times));
                readings.insert(id, reading);
            }
            other => return Err(node.unexpected(&other)),
        }
    }
    Ok((readings, processes))
}

/// CPU time that others took on the machine of these nodes between two states.
fn machine(before: &State, now: &State, on_it: &[NodeId]) -> MachineTime {
    // Any of them can read it.
    let of = |state: &State| state.nodes.get(&on_it[0]).cloned().unwrap_or_default();
    let (earlier, later) = (of(before), of(now));
    let its = now.processes.iter();
    let its = its.filter(|((node, _), _)| on_it.contains(node));
    // A process without an earlier reading has begun in between, and all of its time counts.
    let own = its.map(|(process, time)| {
        let earlier = before.processes.get(process).copied().unwrap_or_default();
        time.user_ns.saturating_sub(earlier.user_ns)
    });
    let own: u64 = own.sum();
    // The time of a device's process that has ended is lost.
    let mut dut = before.dut_processes.iter();
    let gone = dut.any(|it| on_it.contains(&it.0) && !now.dut_processes.contains(it));
    let user = later
        .machine
        .user_ns
        .saturating_sub(earlier.machine.user_ns);
    let pressure = later.pressure_ns.zip(earlier.pressure_ns);
    MachineTime {
        steal_ns: later
            .machine
            .steal_ns
            .saturating_sub(earlier.machine.steal_ns),
        foreign_ns: (!gone).then(|| user.saturating_sub(own)),
        pressure_ns: pressure.map(|(later, earlier)| later.saturating_sub(earlier)),
    }
}
