//! Cycles and instructions that a packet costs, by the processor's counters.

use crate::figures::estimate::Estimate;
use crate::figures::repeats::{estimate, per_second};
use journal::record::{CountsByRole, CpuCounts, Figures, Measured};
use schemars::JsonSchema;
use serde::Serialize;

/// CPU cost per packet, in user mode and in the kernel: for one frame of a frame test or one
/// datagram of UDP that was received, sealed by one gateway and opened by the other.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PacketCost {
    /// Cycles of CPUs that were not halted.
    pub cycles: PerPacket,
    /// Instructions retired.
    pub instructions: PerPacket,
}

/// Counts of one event per packet.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PerPacket {
    /// All CPUs of the machine.
    pub machine: Estimate,
    /// The same without the stations' tools: the DUT, the rest of the kernel, the tester itself.
    pub beside_stations: Estimate,
    /// The DUT's processes on both gateways; `null` for a DUT without processes.
    pub dut: Option<Estimate>,
}

impl PacketCost {
    /// `None` if a repeat has no counts or no count of packets (TCP: segments are not counted one
    /// by one), and for a DUT on other machines.
    pub(crate) fn of(measured: &[(u32, &Measured)]) -> Option<Self> {
        Some(Self {
            cycles: PerPacket::of(measured, |counted| counted.cycles)?,
            instructions: PerPacket::of(measured, |counted| counted.instructions)?,
        })
    }
}

impl PerPacket {
    fn of(measured: &[(u32, &Measured)], event: fn(&CpuCounts) -> CountsByRole) -> Option<Self> {
        // Each is a rate over its measured time, so that a different window does not matter.
        let per_packet = |count: fn(&CountsByRole) -> Option<u64>| {
            estimate(measured, |trial| {
                let counted = trial.cpu.counted?;
                let count = count(&event(&counted))?;
                Some(per_second(count, counted.wall_ns)? / packets_per_s(trial)?)
            })
        };
        Some(Self {
            // For a DUT on other machines the cycles of this machine are only of the stations.
            machine: per_packet(|counts| counts.dut.map(|_| counts.machine))?,
            beside_stations: per_packet(|counts| Some(counts.beside_stations()))?,
            // A DUT in the kernel has no process with cycles: its work is part of the machine's.
            dut: per_packet(|counts| counts.dut.filter(|count| *count > 0)),
        })
    }
}

/// Packets received per second while the CPUs were counted.
fn packets_per_s(measured: &Measured) -> Option<f64> {
    let rate = match &measured.figures {
        Figures::Transfer(transfer) => {
            let datagrams = transfer.datagrams?;
            let received = datagrams.sent.saturating_sub(datagrams.lost);
            per_second(received, transfer.duration_ns)?
        }
        Figures::Frames(found) => {
            let trial = found.trials.get(found.evidence_trial?)?;
            per_second(trial.received, trial.elapsed_ns.max(trial.duration_ns))?
        }
        // No other figures count packets.
        _ => return None,
    };
    Some(rate).filter(|rate| *rate > 0.0)
}
