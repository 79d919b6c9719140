//! Readings around one frame trial: what links, queues, the device and the machine counted.

use super::CipherWatch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Readings around a frame trial, as differences from the end of the trial before, or from the
/// start of the device. So no frame between two trials is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialReadings {
    /// Time between the two readings.
    pub wall_ns: u64,
    /// What passed the watched end of the cipher link in the loaded directions; `None` where
    /// nothing looks at that link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cipher: Option<LinkTraffic>,
    /// The kernel filter's verdict on every frame of the cipher link; `None` where nothing looks
    /// there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<CipherWatch>,
    /// The device's own counters; `None` where it has none that are checked, or was restarted in
    /// the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dut: Option<DutWork>,
    /// Packets that the device's gateways sent and received sealed, and those that they dropped, by
    /// `gateway/counter`, without drops of 0; empty where [`Self::dut`] is `None`, and in older
    /// journals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dut_packets: BTreeMap<String, u64>,
    /// Packets at the interfaces of the path, by `node/interface`; empty in older journals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, EndTraffic>,
    /// Frames that found a queue full.
    #[serde(default)]
    pub drops: QueueDrops,
    /// What others took of the machine.
    #[serde(default)]
    pub machine: MachineTime,
    /// The same of B's host, where that is another machine: `machine` is A's then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_b: Option<MachineTime>,
    /// How the clocks of the stations' hosts agreed; `None` on one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockAgreement>,
}

/// How the clocks of two hosts agreed over a trial: compared before it and after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAgreement {
    /// By how much the clock of B's host was ahead of that of A's after the trial (CLOCK_MONOTONIC
    /// of each).
    pub ahead_ns: i64,
    /// How much faster it was, in parts of 10^9, as receivers reckoned in the trial.
    pub faster_ppb: i64,
    /// By how much a time may be wrong, either way, that a receiver converted to the sender's
    /// clock, as long as neither clock's rate changed and changed back within the trial;
    /// [`Self::UNKNOWN_NS`] where they could not be compared after it.
    pub within_ns: u64,
}

impl ClockAgreement {
    /// What times between two hosts may be wrong by whatever they are, in nanoseconds.
    const EXACT_NS: u64 = 1000;
    /// Nothing is known of how they agree.
    pub const UNKNOWN_NS: u64 = u64::MAX;

    /// Whether a latency between the hosts can be stated: it is wrong by a tenth of it at most, or
    /// by a microsecond.
    #[must_use]
    pub const fn is_exact_for(&self, latency_ns: u64) -> bool {
        self.within_ns <= Self::EXACT_NS || self.within_ns <= latency_ns / 10
    }
}

/// Counters of an interface in the loaded directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTraffic {
    /// Packets or super-packets.
    pub packets: u64,
    /// Their bytes, Ethernet headers included.
    pub bytes: u64,
}

/// Packets or super-packets at an interface, in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndTraffic {
    /// Received.
    pub received: u64,
    /// Sent.
    pub sent: u64,
}

/// What the gateways in the path counted themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DutWork {
    /// Bytes of IP packets in clear taken in to be sealed; `None` without a gateway that seals. Of
    /// a single gateway loaded both ways, both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_in_bytes: Option<u64>,
    /// Bytes of IP packets in clear put out after opening; `None` without a gateway that opens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub put_out_bytes: Option<u64>,
    /// Sealed packets that one gateway sent and the other did not receive, in the loaded
    /// directions; `None` with one gateway in the path, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_between_packets: Option<u64>,
    /// Largest difference, at one gateway, of packets in and packets out, dropped or shared.
    pub unaccounted_packets: u64,
}

/// Frames that found a queue full, by the side that the queue belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDrops {
    /// At the receiving station's interface, before its port: softirq backlog, ring of the virtual
    /// link, or a card's missed frames.
    pub station: u64,
    /// At interfaces of the device or of elements of the path.
    pub device: u64,
    /// At softirq backlogs of the machines, of no interface of the path: whose loss it was is
    /// unknown.
    pub unattributed: u64,
    /// Datagrams that found the buffer of a socket full in a station's network namespace.
    pub station_sockets: u64,
    /// Datagrams that found the buffer of a socket full in the device's network namespaces.
    pub device_sockets: u64,
}

/// What others took of the machine, over all cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTime {
    /// Time that the hypervisor gave to others while a core had work to do. Resolution: 10 ms.
    pub steal_ns: u64,
    /// User time of programs unrelated to the run; `None` when programs of the run ended in the
    /// trial, whose time is then unknown. Resolution: 10 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_ns: Option<u64>,
    /// Time in which some task waited for a core (`/proc/pressure/cpu`), the run's own tasks
    /// included; `None` if the kernel does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_ns: Option<u64>,
}

impl MachineTime {
    /// CPU time that other programs and the hypervisor took.
    #[must_use]
    pub fn taken_ns(&self) -> u64 {
        let foreign_ns = self.foreign_ns.unwrap_or(0);
        foreign_ns.saturating_add(self.steal_ns)
    }
}

impl DutWork {
    /// The smaller of the two counts of bytes in clear; 0 without any.
    #[must_use]
    pub fn bytes_least(&self) -> u64 {
        let both = self.taken_in_bytes.into_iter().chain(self.put_out_bytes);
        both.min().unwrap_or(0)
    }
}

impl TrialReadings {
    /// What others took of that machine of the path of which they took more.
    #[must_use]
    pub fn most_taken(&self) -> MachineTime {
        let both = [Some(self.machine), self.machine_b].into_iter().flatten();
        let most = both.max_by_key(MachineTime::taken_ns);
        most.unwrap_or_default()
    }
}
