//! Readings before, during and after a trial: counters and CPU time.

use crate::driver::driver_counters;
use crate::error::TrialError;
use crate::evidence::{counted_since, resets};
use crate::measurer::boot_id;
use journal::record::{Cpu, InterfaceCounters, MachineCpu};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use testbed::protocol::{CpuTime, Request, Response};
use testbed::{Bench, Counted, LabError, NodeId, RunningDut};

/// Maximum number of readings until a DUT's counters are steady.
const STEADY_READS_MAX: u32 = 50;
/// Maximum time until then: an external DUT may take a second per reading.
const STEADY_LIMIT: Duration = Duration::from_secs(2);
/// Interval of readings.
const STEADY_STEP: Duration = Duration::from_millis(5);

/// Counters of the whole path at one instant.
#[derive(Debug, Clone)]
pub(crate) struct Counters {
    at: Instant,
    pub(crate) interfaces: BTreeMap<String, InterfaceCounters>,
    /// The counters of network cards' drivers, by `node/interface`.
    drivers: BTreeMap<String, BTreeMap<String, u64>>,
    dut: BTreeMap<String, u64>,
}

impl Counters {
    pub(crate) fn read(bench: &dyn Bench, dut: &RunningDut) -> Result<Self, LabError> {
        let mut interfaces = BTreeMap::new();
        for id in nodes(bench) {
            let node = bench.node(id);
            let found = node.interface_counters()?.into_iter();
            interfaces.extend(found.map(|(name, value)| (format!("{}/{name}", id.name()), value)));
        }
        let mut drivers = BTreeMap::new();
        for (id, interface) in bench.cards() {
            let counters = driver_counters(bench.node(id), interface)?;
            drivers.insert(format!("{}/{interface}", id.name()), counters);
        }
        Ok(Self {
            // The time of the interfaces' counters: the device's may take seconds more to be
            // steady.
            at: Instant::now(),
            interfaces,
            drivers,
            dut: steady(|| bench.dut_counters(dut))?,
        })
    }

    /// Returns the interface counters from `before` to `self`, without interfaces that were added
    /// since.
    pub(crate) fn interfaces_since(&self, before: &Self) -> BTreeMap<String, InterfaceCounters> {
        let both = self.interfaces.iter().filter_map(|(name, after)| {
            before
                .interfaces
                .get(name)
                .map(|before| (name.clone(), difference(after, before)))
        });
        both.collect()
    }

    /// Returns the drivers' counters that changed from `before` to `self`.
    pub(crate) fn drivers_since(&self, before: &Self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let both = self.drivers.iter().filter_map(|(name, after)| {
            let mut changes = counted_since(after, before.drivers.get(name)?);
            changes.retain(|_, change| *change > 0);
            Some((name.clone(), changes))
        });
        both.collect()
    }

    /// Returns the DUT's counters from `before` to `self`.
    pub(crate) fn dut_since(&self, before: &Self) -> BTreeMap<String, u64> {
        counted_since(&self.dut, &before.dut)
    }

    /// Returns the DUT's counters that were reset from `before` to `self`, in words.
    pub(crate) fn dut_resets_since(&self, before: &Self) -> Vec<String> {
        resets(&self.dut, &before.dut)
    }

    pub(crate) fn ns_since(&self, before: &Self) -> u64 {
        nanoseconds(self.at, before.at)
    }
}

/// Reads until two consecutive readings agree: packets in flight through a DUT are counted at one
/// side only. Returns the last reading if they never agree.
pub(crate) fn steady<T: PartialEq, E>(mut read: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let begun = Instant::now();
    let mut last = read()?;
    for _ in 0..STEADY_READS_MAX {
        if begun.elapsed() > STEADY_LIMIT {
            break;
        }
        std::thread::sleep(STEADY_STEP);
        let next = read()?;
        if next == last {
            break;
        }
        last = next;
    }
    Ok(last)
}

pub(crate) fn difference(
    after: &InterfaceCounters,
    before: &InterfaceCounters,
) -> InterfaceCounters {
    // An interface that was made anew counts from 0.
    let since = |after, before| Counted::between(before, after).count();
    InterfaceCounters {
        rx_bytes: since(after.rx_bytes, before.rx_bytes),
        rx_packets: since(after.rx_packets, before.rx_packets),
        rx_dropped: since(after.rx_dropped, before.rx_dropped),
        rx_errors: since(after.rx_errors, before.rx_errors),
        tx_bytes: since(after.tx_bytes, before.tx_bytes),
        tx_packets: since(after.tx_packets, before.tx_packets),
        tx_dropped: since(after.tx_dropped, before.tx_dropped),
        tx_errors: since(after.tx_errors, before.tx_errors),
    }
}

/// Returns the datagrams that a station's sockets have dropped since its start, for full buffers.
pub(crate) fn station_lost(bench: &dyn Bench, station: NodeId) -> Result<u64, LabError> {
    let node = bench.node(station);
    match node.call(Request::UdpErrors)? {
        Response::UdpErrors {
            receive_buffer_errors,
            ..
        } => Ok(receive_buffer_errors),
        other => Err(node.unexpected(&other)),
    }
}

/// Returns all nodes of a lab: stations, gateways, and the elements between them.
pub(crate) fn nodes(bench: &dyn Bench) -> impl Iterator<Item = NodeId> {
    NodeId::ALL.into_iter().chain(bench.elements())
}

/// Returns the nodes of each machine of a lab, A's machine first.
pub(crate) fn by_machine(bench: &dyn Bench) -> Result<Vec<Vec<NodeId>>, LabError> {
    let mut machines: Vec<(String, Vec<NodeId>)> = Vec::new();
    for id in nodes(bench) {
        let boot_id = boot_id(bench.node(id))?;
        match machines.iter_mut().find(|(known, _)| *known == boot_id) {
            Some((_, nodes)) => nodes.push(id),
            None => machines.push((boot_id, vec![id])),
        }
    }
    Ok(machines.into_iter().map(|(_, nodes)| nodes).collect())
}

/// Offloads in force, by `node/interface`: feature to `on` or `off`.
pub(crate) type Offloads = BTreeMap<String, BTreeMap<String, String>>;

/// Reads the offloads of the whole path.
pub(crate) fn offloads(bench: &dyn Bench) -> Result<Offloads, LabError> {
    let mut offloads = BTreeMap::new();
    for id in nodes(bench) {
        let node = bench.node(id);
        match node.call(Request::Offloads)? {
            Response::Offloads(found) => offloads.extend(
                found
                    .into_iter()
                    .map(|(name, features)| (format!("{}/{name}", id.name()), features)),
            ),
            other => return Err(node.unexpected(&other)),
        }
    }
    Ok(offloads)
}

/// CPU time of all roles at one instant.
#[derive(Debug, Clone)]
pub(crate) struct CpuReading {
    at: Instant,
    a_ns: u64,
    b_ns: u64,
    /// `None` if the DUT runs elsewhere.
    dut_ns: Option<u64>,
    /// Of each machine, as [`by_machine`] lists them, its time and the user time of the tools and
    /// the DUT on it.
    machines: Vec<(CpuTime, u64)>,
}

impl CpuReading {
    /// Reads the stations' tools, the DUT's processes and the `machines`. `tools` must be running.
    pub(crate) fn read(
        bench: &dyn Bench,
        machines: &[Vec<NodeId>],
        tools: &[(NodeId, u64)],
        dut: &RunningDut,
    ) -> Result<Self, TrialError> {
        let at = Instant::now();
        let (mut a_ns, mut b_ns, mut dut_ns) = (0, 0, 0);
        let mut own_user_ns = BTreeMap::<NodeId, u64>::new();
        for &(id, process) in tools {
            let spent = bench.node(id).cpu_time(Some(process))?;
            *own_user_ns.entry(id).or_default() += spent.user_ns;
            match id {
                // A station may be in a gateway's place.
                NodeId::A | NodeId::Gw1 => a_ns += total(spent),
                NodeId::Gw2 | NodeId::B => b_ns += total(spent),
                // No tool runs on these.
                NodeId::Element(_) | NodeId::Tap | NodeId::Host => {}
            }
        }
        for &(id, process) in &dut.processes {
            let spent = bench.node(id).cpu_time(Some(process))?;
            *own_user_ns.entry(id).or_default() += spent.user_ns;
            dut_ns += total(spent);
        }
        // The tester's programs on the path are neither the stations' nor the device's, but are not
        // foreign either.
        for &(id, process) in &dut.beside {
            *own_user_ns.entry(id).or_default() += bench.node(id).cpu_time(Some(process))?.user_ns;
        }
        let machine = |nodes: &Vec<NodeId>| {
            // Any node of a machine can read its CPU time.
            let time = bench.node(nodes[0]).cpu_time(None)?;
            let own = nodes.iter().filter_map(|id| own_user_ns.get(id));
            Ok((time, own.sum()))
        };
        let machines = machines.iter().map(machine);
        Ok(Self {
            at,
            a_ns,
            b_ns,
            dut_ns: (!dut.elsewhere).then_some(dut_ns),
            machines: machines.collect::<Result<_, LabError>>()?,
        })
    }

    /// Returns the CPU time from `before` to `self`.
    pub(crate) fn since(&self, before: &Self) -> Cpu {
        let station_a_ns = self.a_ns.saturating_sub(before.a_ns);
        let station_b_ns = self.b_ns.saturating_sub(before.b_ns);
        let stations_ns = station_a_ns + station_b_ns;
        let both = self.dut_ns.zip(before.dut_ns);
        let dut_ns = both.map(|(after, before)| after.saturating_sub(before));
        let machines = self.machines.iter().zip(&before.machines);
        let machines: Vec<MachineCpu> = machines
            .map(|((after, own_after), (before, own_before))| MachineCpu {
                busy_ns: total(*after).saturating_sub(total(*before)),
                steal_ns: after.steal_ns.saturating_sub(before.steal_ns),
                foreign_ns: after
                    .user_ns
                    .saturating_sub(before.user_ns)
                    .saturating_sub(own_after.saturating_sub(*own_before)),
                idle_ns: after.idle_ns.saturating_sub(before.idle_ns),
            })
            .collect();
        let of_all: u64 = machines.iter().map(|machine| machine.busy_ns).sum();
        let machine_a = machines.first().copied().unwrap_or_default();
        Cpu {
            wall_ns: nanoseconds(self.at, before.at),
            stations_ns,
            station_a_ns,
            station_b_ns,
            dut_ns,
            // The machine's time has coarser ticks than a process's.
            kernel_ns: of_all.saturating_sub(stations_ns + dut_ns.unwrap_or(0)),
            busy_ns: machine_a.busy_ns,
            steal_ns: machine_a.steal_ns,
            foreign_ns: machine_a.foreign_ns,
            idle_ns: Some(machine_a.idle_ns),
            machine_b: machines.get(1).copied(),
            counted: None,
        }
    }
}

fn total(time: CpuTime) -> u64 {
    time.user_ns + time.system_ns
}

pub(crate) fn nanoseconds(later: Instant, earlier: Instant) -> u64 {
    u64::try_from(later.duration_since(earlier).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn counters_are_read_until_they_stand_still_or_for_a_bounded_time() {
        let mut readings = [3, 5, 9, 9, 10].into_iter();
        assert_eq!(steady(|| readings.next().ok_or("too many")), Ok(9));
        let mut moving = 0..;
        let last = steady(|| Ok::<_, Infallible>(moving.next()));
        assert_eq!(last, Ok(Some(STEADY_READS_MAX)));
    }
}
