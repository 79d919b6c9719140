//! The records of a journal: one [`Record`] per line.
//!
//! Counts and times stay integers; `stats` computes rates. Keys end in their unit.

mod added;
mod captured;
mod check;
mod cipher_link;
mod device;
mod disturbed;
mod frame_trial;
mod frames;
mod http;
mod ike;
mod lost;
mod measured;
mod monitored;
mod readings;
mod service;
mod settings;
mod soak;
mod tester;
mod tool;
mod topology;
mod video;

pub use added::Added;
pub use captured::{CaptureContents, Captured, LengthCount, ProtocolCount};
pub use check::{Check, Explanation, in_brief};
pub use cipher_link::{CipherLink, SealedContents};
pub use device::{
    CpuReference, DeviceFacts, DeviceFatigue, DeviceRecord, DeviceResult, DeviceSpeed, Facts,
    FatigueCounts, FatiguePoint, FatigueProgress, FatigueSegment, KatOutcome, KatRow, Life, Proof,
    SpeedTrial,
};
pub use disturbed::{AttackTrial, Disturbance, DutEvent, ResetRecord, TimeBin, Timeline};
pub use frame_trial::{
    BurstTrial, DelayTrend, FramePort, FrameTrial, GoalBounds, GoalOutcome, LatencyBucket,
    LatencyTrial, RecoveryTrial, Reflection, Reserve, SearchEnd, SearchRecord,
};
pub use frames::{DisturbedTrials, FrameResult, ProcedureRecord};
pub use http::{HttpFailure, HttpResult, HttpStored, HttpTimes, TimeBucket};
pub use ike::{GatewaySas, IkeFailure, IkeResult, IkeSearch, IkeTrial};
pub use impair::{Counts as ImpairCounts, Impaired};
pub use lost::{LostAt, PathCount, PathPlace};
pub use measured::*;
pub use monitored::{
    LoadReading, Monitored, MonitoredDevice, Series, SeriesGap, SeriesPoint, TrafficWindow,
};
pub use readings::{
    ClockAgreement, DutWork, EndTraffic, LinkTraffic, MachineTime, QueueDrops, TrialReadings,
};
pub use service::ServiceTrial;
pub use settings::{PathSettings, SettingChange};
pub use soak::{DevicePoint, SoakPoint, SoakProbe, SoakProgress, SoakSegment};
pub use tool::{
    Datagrams, Drain, Hop, Interval, Latency, LoadedClass, LoadedLatency, Route, TcpFacts, Transfer,
};
pub use topology::{LogicalCpu, physical_cores};
pub use video::{FramesSeen, RtpCounts, VideoResult, VideoStream};
pub use wire::variation::{DelayVariation, Ipdv, Pdv};

use plan::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::IntoStaticStr;

/// Version of the written journal format; a reader refuses a higher one.
///
/// 1: iperf3 and ping. 2: frame tests, calibration, line rates. 3: external encryptors,
/// disturbances, claims, iperf2. 4: key sources, soaks, keys out of step. 5: crypto devices.
/// 6: checksums. 7: transfers from B to A and both ways, HTTP, video. 8: repeats added to cells,
/// IKEv2.
pub const FORMAT_VERSION: u32 = 8;

/// The first version with checksums of lines.
pub const FORMAT_CHECKED: u32 = 6;

/// The oldest version that is still read. Keys that it lacks have defaults that mark them as
/// absent.
pub const FORMAT_VERSION_OLDEST: u32 = 1;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, IntoStaticStr, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "record")]
#[strum(serialize_all = "kebab-case")]
pub enum Record {
    /// The first line, once.
    Header(Box<Header>),
    /// An interrupted run was resumed.
    Resumed(Box<Resumed>),
    /// The tool parameters found for a cell before its first trial.
    Tuned(Tuned),
    /// A segment of a soak in progress ended.
    Soaked(Box<SoakProgress>),
    /// A snapshot of a fatigue trial of crypto devices in progress.
    Fatigued(Box<FatigueProgress>),
    /// Repeats were added to cells, to decide limits.
    Added(Added),
    /// A trial ended, with or without success.
    Trial(Box<TrialRecord>),
    /// The run ended (not written when it is interrupted).
    End(End),
}

impl Record {
    /// Its kind, as in the key `record`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// Format version, plan, command and machine of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT_VERSION`] of the writer.
    pub format: u32,
    /// Start of the run, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Command line of the run, word by word.
    pub command: Vec<String>,
    /// Version and revision of the program, for example `0.1.0 (a1b2c3d4)`.
    pub program: String,
    /// The machine and its tools.
    pub environment: Environment,
    /// The plan.
    pub plan: Plan,
}

/// The machine that the run was made on. Empty means that it could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "EnvironmentInfo")]
pub struct Environment {
    /// CPU model name.
    pub cpu_model: String,
    /// Online logical CPUs; 0 when unknown.
    pub cpus: u32,
    /// Those CPUs with their cores and NUMA nodes; empty when unknown, and in older journals.
    #[serde(default)]
    pub topology: Vec<LogicalCpu>,
    /// CPU features that affect the data path.
    pub cpu_features: Vec<String>,
    /// Frequency governor.
    pub governor: String,
    /// Memory; 0 when unknown.
    pub memory_bytes: u64,
    /// Kernel name, release and version.
    pub kernel: String,
    /// Distribution.
    pub os: String,
    /// Hypervisor; empty on bare metal.
    pub hypervisor: String,
    /// Privilege of the run.
    pub privilege: String,
    /// Events of the processor's counters, or why they are unavailable; empty in older journals.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hardware_counters: String,
    /// The machine's energy counters, or why it has none; empty in older journals.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub energy_counters: String,
    /// Source of corrections of the kernel's clock, and the clock's estimated error; empty in older
    /// journals.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub clock_discipline: String,
    /// Of a lab of two hosts: both, by the names that the lab gives them, without engines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, Self>,
    /// Sysctls that affect results.
    pub sysctls: BTreeMap<String, String>,
    /// Tools: name to version.
    pub tools: BTreeMap<String, String>,
    /// Crypto engines: name to version.
    pub engines: BTreeMap<String, String>,
}

impl Environment {
    /// Cores of the machine, counting the threads of one core (SMT siblings) once; logical CPUs if
    /// the cores are unknown.
    #[must_use]
    pub fn cores(&self) -> u32 {
        match physical_cores(&self.topology) {
            // Older journals have no topology.
            0 => self.cpus,
            // A container or an affinity may leave fewer CPUs than the machine has cores.
            cores => cores.min(self.cpus.max(1)),
        }
    }
}

/// A resume of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
    /// Version and revision of the resuming program.
    pub program: String,
    /// The machine at the resume.
    pub environment: Environment,
}

/// The end of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
}

/// The best tool parameters of a cell, and all attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// [`plan::Cell::id`].
    pub cell: String,
    /// The parameters that trials of this cell use.
    pub best: ToolParameters,
    /// Every attempt in the order made.
    pub attempts: Vec<TuneAttempt>,
}

/// One attempt of the search for the best tool parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneAttempt {
    /// The parameters.
    pub parameters: ToolParameters,
    /// Payload bit/s received; 0 when the attempt failed.
    pub payload_bps: u64,
    /// Share of datagrams lost, in parts per million; `None` for TCP.
    pub lost_ppm: Option<u64>,
    /// Why it failed; `None` if it did not.
    pub error: Option<String>,
}

/// Parameters of a traffic tool; `None` if they do not apply to the measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolParameters {
    /// Parallel streams over all processes (`-P`).
    pub streams: Option<u16>,
    /// Socket buffer (`-w`) in bytes.
    pub window_bytes: Option<u64>,
    /// UDP payload (`-l`) in bytes.
    pub datagram_bytes: Option<u32>,
    /// Offered payload rate (`-b`) in bit/s.
    pub rate_bps: Option<u64>,
}

/// One trial with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// [`plan::Cell::id`].
    pub cell: String,
    /// From 1.
    pub repeat: u32,
    /// Start of the trial, in nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// Wall time of the whole trial, including the start of the DUT.
    pub duration_ns: u64,
    /// The largest step of the system's clock during the trial, compared with a clock that cannot
    /// be set, in nanoseconds; 0 below 100 ms, and in older journals.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_step_ns: i64,
    /// Commands run on the stations, word by word.
    pub commands: Vec<Vec<String>>,
    /// Its outcome.
    pub outcome: Outcome,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(value: &i64) -> bool {
    *value == 0
}

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Outcome {
    /// It was measured, and every check of [`Evidence`] passed.
    Measured(Box<Measured>),
    /// It was measured, but a check failed: the reasons are reported instead of a figure.
    Invalid {
        /// One sentence each.
        reasons: Vec<String>,
        /// The readings, for investigation.
        measured: Box<Measured>,
    },
    /// It could not be measured.
    Failed {
        /// A sentence.
        reason: String,
    },
}

impl Outcome {
    /// Explanation of a reason of [`Outcome::Invalid`], from the failed check that the reason
    /// begins with. `None` for other reasons, and in older journals.
    #[must_use]
    pub fn explanation(&self, reason: &str) -> Option<&Explanation> {
        let Self::Invalid { measured, .. } = self else {
            return None;
        };
        let mut checks = measured.evidence.checks.iter();
        // A reason is kept as text only; the name in front leads back to its check.
        let name = in_brief(reason);
        checks
            .find(|check| check.name == name)?
            .explanation
            .as_ref()
    }
}

/// CPU time by role over `wall_ns`. On one machine all roles share its cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Wall time of all readings.
    pub wall_ns: u64,
    /// Stations' tools: user and system time.
    pub stations_ns: u64,
    /// Station A's part of it (the source of the traffic).
    pub station_a_ns: u64,
    /// Station B's part of it.
    pub station_b_ns: u64,
    /// DUT processes on both gateways: user and system time. `None`: it ran on other machines, so
    /// its CPU time is unknown.
    pub dut_ns: Option<u64>,
    /// The rest of the machines' busy time: softirq, kernel threads, the tester itself.
    pub kernel_ns: u64,
    /// Busy time of all cores.
    pub busy_ns: u64,
    /// Steal time: a core had work, but the hypervisor ran others. Not in `busy_ns`.
    #[serde(default)]
    pub steal_ns: u64,
    /// The part of `kernel_ns` that processes unrelated to the run used.
    #[serde(default)]
    pub foreign_ns: u64,
    /// Time that the cores had no work to do, together; `None` in journals of versions that did not
    /// record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<u64>,
    /// CPU times of B's host, if it is another machine: the four times above are then of A's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_b: Option<MachineCpu>,
    /// Hardware counters; `None` if unavailable, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CpuCounts>,
}

/// CPU times of a machine, as in [`Cpu`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineCpu {
    /// Busy time of all cores.
    pub busy_ns: u64,
    /// Steal time.
    pub steal_ns: u64,
    /// User time of processes unrelated to the run.
    pub foreign_ns: u64,
    /// Time that the cores had no work to do, together.
    pub idle_ns: u64,
}

/// Values of the processor's counters by role over `wall_ns`, in user mode and in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCounts {
    /// Wall time of the machine's counters.
    pub wall_ns: u64,
    /// Cycles of CPUs that were not halted.
    pub cycles: CountsByRole,
    /// Instructions retired.
    pub instructions: CountsByRole,
}

/// Counts of one event by role; a program's count includes its threads and children.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountsByRole {
    /// Station A's tools.
    pub station_a: u64,
    /// Station B's tools.
    pub station_b: u64,
    /// DUT processes on both gateways. `None`: it ran on other machines.
    pub dut: Option<u64>,
    /// All CPUs, with all their work.
    pub machine: u64,
}

impl CountsByRole {
    /// Everything but the stations' tools: the DUT and the rest of the kernel.
    #[must_use]
    pub const fn beside_stations(&self) -> u64 {
        self.machine
            .saturating_sub(self.station_a.saturating_add(self.station_b))
    }
}

/// Evidence that a figure is valid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// All checks, passed or failed.
    pub checks: Vec<Check>,
    /// Samples of the cipher link.
    pub cipher_link: CipherLink,
    /// Packets sampled as the receiving station received them, by class of service; empty if the
    /// cell has no class, and in older journals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub received_dscp: BTreeMap<String, u64>,
    /// Foreign frames on the cipher link over the whole trial; `None` if it was not watched
    /// (journals of versions that only sampled).
    #[serde(default)]
    pub watch: Option<CipherWatch>,
    /// Counter differences over the trial, by `node/interface` (`gw1/w0`).
    pub interfaces: BTreeMap<String, InterfaceCounters>,
    /// Counters of the drivers of network cards that changed over the trial, by `node/interface`,
    /// with the drivers' names; empty without a card, and in older journals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub drivers: BTreeMap<String, BTreeMap<String, u64>>,
    /// Offloads in force, by `node/interface`: feature to `on` or `off`.
    pub offloads: BTreeMap<String, BTreeMap<String, String>>,
    /// Counters that the DUT reported, by `gateway/counter`, as differences over the trial.
    pub dut_counters: BTreeMap<String, u64>,
    /// Metadata that the DUT reported: version, suite, engine, offloads, by `gateway/key`.
    pub dut_facts: BTreeMap<String, String>,
    /// Settings that changed during the trial, and counters of the kernels; `None` if they were not
    /// read (older journals, trials without links).
    #[serde(default)]
    pub settings: Option<PathSettings>,
    /// Effects of the impaired path on frames between the gateways; `None` without one, and in
    /// older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impaired: Option<Impaired>,
    /// Places of packet loss, as far as counters show; empty without loss, and in journals of
    /// versions that did not record it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_at: Vec<LostAt>,
    /// The unrelated programs that used the most CPU time of the tester's machine during the trial,
    /// if they used much, the busiest first; without programs that ended before the trial did.
    /// Empty in journals of versions that did not record it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_by: Vec<TakenBy>,
}

/// A program unrelated to the run that used the machine during a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenBy {
    /// Its name in the kernel.
    pub name: String,
    /// Its process id.
    pub process: u32,
    /// User time in per cent of one core, over the whole trial.
    pub percent: u32,
}

/// Sealed packets sampled between the gateways that the tester opened itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedPackets {
    /// Whole sealed packets, each from another frame or from another segment of a super-packet.
    pub packets: u64,
    /// Of those, packets that were authentic under the SA that their SPI identifies, with a payload
    /// that the device's mode has.
    pub opened: u64,
    /// Of the opened packets, those with a packet from one station's addresses to the other's, in
    /// the direction of the keys.
    pub between_stations: u64,
    /// Sampled sealed frames that contained no whole packet: fragments, and super-packets that the
    /// kernel could not describe.
    #[serde(default)]
    pub not_whole: u64,
    /// Packets that were not opened, by reason, with the names of the encryptor's drop reasons.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, u64>,
}

/// Foreign frames on the link between the gateways, of all frames in both directions while it was
/// watched.
///
/// Frames are foreign unless they are sealed in the device's form (ESP, bare or in UDP with a
/// non-zero SPI; WireGuard's or OpenVPN's data on its ports), a key exchange by UDP or TCP for
/// devices that have one, a NAT keepalive (RFC 3948 §2.3), ARP, IPv6 neighbour or group discovery,
/// or the lab's probes that compare the clocks of two hosts. A later fragment of ESP or UDP is
/// classified like its packet's first one. A frame in the device's form is also foreign if the
/// stations' data is readable at the offsets of NULL encryption. Without encryption all traffic is
/// foreign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CipherWatch {
    /// All foreign frames (or super-packets).
    pub foreign_frames: u64,
    /// Frames with the stations' marker in clear, of the first dozens of foreign frames, which are
    /// inspected.
    pub marker_frames: u64,
    /// Inspected frames in the device's form with clear text at the offsets of the stations' data.
    /// Absent in older journals, which did not inspect the contents.
    #[serde(default)]
    pub clear_sealed_frames: u64,
    /// Bytes of the inspected frames.
    pub foreign_bytes: u64,
    /// The first [`Self::EXAMPLES_MAX`] as text: `IPv4 UDP 10.1.0.2:4000 > 10.2.0.2:5201, 1428 B`.
    pub examples: Vec<String>,
    /// Whether the interface was down for a time. It passes nothing then, and the watch resumes
    /// when it is up again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub interrupted: bool,
}

impl CipherWatch {
    /// Most examples of foreign frames.
    pub const EXAMPLES_MAX: usize = 3;
}

/// Interface counters, as differences over a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceCounters {
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets (or super-packets) received.
    pub rx_packets: u64,
    /// Received but dropped.
    pub rx_dropped: u64,
    /// Received with an error.
    pub rx_errors: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets (or super-packets) sent.
    pub tx_packets: u64,
    /// Dropped before sending.
    pub tx_dropped: u64,
    /// Sent with an error.
    pub tx_errors: u64,
}

/// Returns the only value of a record's alternative `keys`, if any.
///
/// # Errors
/// When there is more than one.
fn at_most_one<T, E: serde::de::Error, const N: usize>(
    found: [Option<T>; N],
    keys: &str,
) -> Result<Option<T>, E> {
    // The keys are optional one by one in JSON; only the reader can refuse two of them.
    let mut found = found.into_iter().flatten();
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(_) => Err(E::custom(format!("at most one of {keys} has a value"))),
    }
}

/// Whether a flag is off, for keys that are left out then.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

fn is_empty<T: Clone>(list: &[T]) -> bool {
    list.is_empty()
}
