//! Cycles and instructions by role over a part of a trial.

use crate::counters::nanoseconds;
use journal::record::{CountsByRole, CpuCounts};
use std::collections::BTreeMap;
use std::time::Instant;
use testbed::protocol::{Counted, Counts, Request, Response};
use testbed::{Bench, LabError, NodeId, RunningDut};

/// Counters that run on the nodes, until [`Self::end`]. Nodes replace counters that are left
/// behind.
pub(crate) struct Counting<'a> {
    bench: &'a dyn Bench,
    /// Programs counted on each node; also the first node of each machine, which counts that.
    programs: BTreeMap<NodeId, Vec<u64>>,
    dut: &'a RunningDut,
    started: Instant,
}

impl<'a> Counting<'a> {
    /// Starts to count the stations' tools, the DUT's processes and the `machines`, as
    /// [`by_machine`](crate::counters::by_machine) lists them. `None` if one has no counters.
    /// `tools` must be running.
    pub(crate) fn start(
        bench: &'a dyn Bench,
        machines: &[Vec<NodeId>],
        tools: &[(NodeId, u64)],
        dut: &'a RunningDut,
    ) -> Result<Option<Self>, LabError> {
        let count_machine: Vec<NodeId> = machines.iter().map(|nodes| nodes[0]).collect();
        // A node without programs is asked too, if it counts its machine.
        let mut programs: BTreeMap<_, _> =
            count_machine.iter().map(|id| (*id, Vec::new())).collect();
        for &(id, process) in tools.iter().chain(&dut.processes) {
            programs.entry(id).or_default().push(process);
        }
        let mut started = None;
        for (&id, processes) in &programs {
            let request = Request::CountersStart {
                processes: processes.clone(),
                machine: count_machine.contains(&id),
            };
            let node = bench.node(id);
            match node.call(request)? {
                Response::Counting(true) => {}
                Response::Counting(false) => return Ok(None),
                other => return Err(node.unexpected(&other)),
            }
            // The first node counts the machine, and each takes its time to attach.
            started.get_or_insert_with(Instant::now);
        }
        Ok(started.map(|started| Self {
            bench,
            programs,
            dut,
            started,
        }))
    }

    /// Returns the counts since the start; `None` if a node could not read them.
    pub(crate) fn end(self) -> Result<Option<CpuCounts>, LabError> {
        let wall_ns = nanoseconds(Instant::now(), self.started);
        let mut programs = Vec::new();
        let mut machine = Counts::default();
        // Every node ends its counters, even if one has none to report.
        let mut is_complete = true;
        for (&id, processes) in &self.programs {
            let node = self.bench.node(id);
            match node.call(Request::CountersEnd)? {
                Response::Counted(Some(Counted {
                    processes: counts,
                    machine: of_machine,
                })) => {
                    let handles = processes.iter().map(|process| (id, *process));
                    programs.extend(handles.zip(counts));
                    let of_machine = of_machine.unwrap_or_default();
                    machine.cycles += of_machine.cycles;
                    machine.instructions += of_machine.instructions;
                }
                Response::Counted(None) => is_complete = false,
                other => return Err(node.unexpected(&other)),
            }
        }
        Ok(is_complete.then(|| CpuCounts {
            wall_ns,
            cycles: self.by_role(&programs, machine, |counts| counts.cycles),
            instructions: self.by_role(&programs, machine, |counts| counts.instructions),
        }))
    }

    fn by_role(
        &self,
        programs: &[((NodeId, u64), Counts)],
        machine: Counts,
        event: fn(&Counts) -> u64,
    ) -> CountsByRole {
        let mut roles = CountsByRole {
            dut: (!self.dut.elsewhere).then_some(0),
            machine: event(&machine),
            ..CountsByRole::default()
        };
        for (program, counts) in programs {
            // Before the node decides: in a gateway's place, a station's tool and a device's
            // process are on one node.
            if self.dut.processes.contains(program) {
                // Elsewhere it has no processes here.
                *roles.dut.get_or_insert(0) += event(counts);
                continue;
            }
            match program.0 {
                // A station may be in a gateway's place.
                NodeId::A | NodeId::Gw1 => roles.station_a += event(counts),
                NodeId::Gw2 | NodeId::B => roles.station_b += event(counts),
                // No tool runs on these.
                NodeId::Element(_) | NodeId::Tap | NodeId::Host => {}
            }
        }
        roles
    }
}
