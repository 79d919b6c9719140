//! Readings around one frame trial: counts by links, queues, the device and the machine.

use super::CipherWatch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Readings around a frame trial, as differences from the end of the trial before, or from the
/// start of the device. So no frame between two trials is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialReadings {
    /// Time between the two readings.
    pub wall_ns: u64,
    /// Traffic at the watched end of the cipher link in the loaded directions; `None` if the link
    /// is not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cipher: Option<LinkTraffic>,
    /// The kernel filter's verdict on every frame of the cipher link; `None` if it is not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<CipherWatch>,
    /// Counters that the device reported; `None` if it has no checked ones, or was restarted in the
    /// trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dut: Option<DutWork>,
    /// Packets that the device's gateways sent and received sealed, and dropped packets, by
    /// `gateway/counter`, without drops of 0; empty if [`Self::dut`] is `None`, and in older
    /// journals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dut_packets: BTreeMap<String, u64>,
    /// Packets at the interfaces of the path, by `node/interface`; empty in older journals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, EndTraffic>,
    /// Frames dropped at full queues.
    #[serde(default)]
    pub drops: QueueDrops,
    /// CPU time that others used on the machine.
    #[serde(default)]
    pub machine: MachineTime,
    /// The same for B's host, if that is another machine: `machine` is A's then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_b: Option<MachineTime>,
    /// How the clocks of the stations' hosts agreed; `None` on one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockAgreement>,
}

/// How the clocks of two hosts agreed over a trial: compared before it and after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAgreement {
    /// Lead of the clock of B's host over the clock of A's host after the trial (CLOCK_MONOTONIC of
    /// each).
    pub ahead_ns: i64,
    /// Its rate minus the rate of A's clock, in parts of 10^9, as receivers estimated it in the
    /// trial.
    pub faster_ppb: i64,
    /// Largest error, either way, of a time that a receiver converted to the sender's clock, if
    /// neither clock's rate changed and changed back within the trial; [`Self::UNKNOWN_NS`] if they
    /// could not be compared after it.
    pub within_ns: u64,
}

impl ClockAgreement {
    /// Error of a time between two hosts that is acceptable for any latency, in nanoseconds.
    const EXACT_NS: u64 = 1000;
    /// The agreement of the clocks is unknown.
    pub const UNKNOWN_NS: u64 = u64::MAX;

    /// Whether a latency between the hosts can be stated: its error is at most a tenth of it, or a
    /// microsecond.
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

/// Counts by the gateways in the path.
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

/// Frames dropped at full queues, by the side that the queue belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDrops {
    /// At the receiving station's interface, before its port: softirq backlog, ring of the virtual
    /// link, or a card's missed frames.
    pub station: u64,
    /// At interfaces of the device or of elements of the path.
    pub device: u64,
    /// At softirq backlogs of the machines, not of an interface of the path: the owner of the
    /// frames is unknown.
    pub unattributed: u64,
    /// Datagrams dropped at a full socket buffer in a station's network namespace.
    pub station_sockets: u64,
    /// Datagrams dropped at a full socket buffer in the device's network namespaces.
    pub device_sockets: u64,
}

/// CPU time that others used on the machine, over all cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineTime {
    /// Time that the hypervisor gave to others while a core had work to do. Resolution: 10 ms.
    pub steal_ns: u64,
    /// User time of programs unrelated to the run; `None` if programs of the run ended in the
    /// trial, since their time is then unknown. Resolution: 10 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign_ns: Option<u64>,
    /// Time that some task waited for a core (`/proc/pressure/cpu`), tasks of the run included;
    /// `None` if the kernel does not count it.
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
    /// CPU time used by others, on the machine of the path with the larger amount.
    #[must_use]
    pub fn most_taken(&self) -> MachineTime {
        let both = [Some(self.machine), self.machine_b].into_iter().flatten();
        let most = both.max_by_key(MachineTime::taken_ns);
        most.unwrap_or_default()
    }
}
