//! What a journal holds: one [`Record`] a line.
//!
//! Counts and times are integers to the end; rates are divided once, in `stats`. A key carries its
//! unit.

mod device;
mod disturbed;
mod frame_trial;
mod frames;
mod measured;
mod soak;

pub use device::{
    CpuReference, DeviceFacts, DeviceFatigue, DeviceFound, DeviceResult, DeviceSpeed, Facts,
    FatiguePoint, FatigueProgress, FatigueSegment, KatOutcome, KatRow, Life, Proof, SpeedTrial,
};
pub use disturbed::{AttackTrial, Disturbance, DutEvent, TimeBin, Timeline};
pub use frame_trial::{
    BurstTrial, FramePort, FrameTrial, GoalBounds, LatencyBucket, LatencyTrial, RecoveryTrial,
    SearchEnd, ThroughputFound,
};
pub use frames::{DisturbedTrials, FrameFound, FrameResult};
pub use measured::{Figures, Measured};
pub use soak::{DevicePoint, SoakPoint, SoakProgress, SoakSegment};

use campaign::Plan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the journal format that is written; a reader refuses a higher one.
///
/// 1: iperf3 and ping. 2: frame tests, calibration, line rates. 3: other people's encryptors, what
/// happens under a load, claims, iperf2. 4: key sources, soaks, keys out of step. 5: crypto
/// devices.
pub const FORMAT_VERSION: u32 = 5;

/// The oldest version that is still read: what it lacks has a default that says so.
pub const FORMAT_VERSION_OLDEST: u32 = 1;

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "record")]
pub enum Record {
    /// The first line, once.
    Header(Box<Header>),
    /// A run was taken up again after it had broken off.
    Resumed(Resumed),
    /// The tool parameters found for a cell before its first trial.
    Tuned(Tuned),
    /// A segment of a soak ended, and the soak goes on.
    Soaked(Box<SoakProgress>),
    /// A fatigue trial of crypto devices goes on; what came of it so far.
    Fatigued(Box<FatigueProgress>),
    /// A trial ended, well or not.
    Trial(Box<TrialRecord>),
    /// The run came to its end (not written when it is interrupted).
    End(End),
}

/// How the run came to be: format version, plan, command and the machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT_VERSION`] of the writer.
    pub format: u32,
    /// Nanoseconds since the Unix epoch at which the run began.
    pub started_unix_ns: u64,
    /// Command line that started the run, word by word.
    pub command: Vec<String>,
    /// Version and revision of the program, for example `0.1.0 (a1b2c3d4)`.
    pub program: String,
    /// The machine and its tools.
    pub environment: Environment,
    /// What is to be done.
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
    /// CPU features that bear on the data path.
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
    /// Privilege that the run had.
    pub privilege: String,
    /// Sysctls that bear on results.
    pub sysctls: BTreeMap<String, String>,
    /// Tools: name to version.
    pub tools: BTreeMap<String, String>,
    /// Crypto engines: name to version.
    pub engines: BTreeMap<String, String>,
}

/// A run was taken up again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
    /// Version and revision of the program that goes on.
    pub program: String,
    /// The machine as it is now.
    pub environment: Environment,
}

/// The run came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Nanoseconds since the Unix epoch.
    pub at_unix_ns: u64,
}

/// The tool parameters that were best for a cell, and what else was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// [`campaign::plan::Cell::id`].
    pub cell: String,
    /// The parameters that trials of this cell use.
    pub best: ToolParameters,
    /// Every attempt in the order made.
    pub attempts: Vec<TuneAttempt>,
}

/// One attempt of the search for the best tool parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneAttempt {
    /// Tried.
    pub parameters: ToolParameters,
    /// Payload bit/s received; 0 when the attempt failed.
    pub payload_bps: u64,
    /// Share of datagrams lost, in parts per million; `None` for TCP.
    pub lost_ppm: Option<u64>,
    /// Why it failed, when it did.
    pub error: Option<String>,
}

/// Parameters of a traffic tool. Those that do not apply to the measurement are `None`.
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

/// One trial: which, when, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// [`campaign::plan::Cell::id`].
    pub cell: String,
    /// From 1.
    pub repeat: u32,
    /// Nanoseconds since the Unix epoch at which the trial began.
    pub started_unix_ns: u64,
    /// Wall time of the whole trial, bringing the DUT up included.
    pub duration_ns: u64,
    /// Commands run on the stations, word by word.
    pub commands: Vec<Vec<String>>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Outcome {
    /// It was measured, and every check of [`Evidence`] passed.
    Measured(Box<Measured>),
    /// Something was measured, but evidence speaks against it: no figure is reported, the reasons
    /// are.
    Invalid {
        /// Each a sentence for people.
        reasons: Vec<String>,
        /// What was read all the same, for whoever looks into it.
        measured: Box<Measured>,
    },
    /// It could not be measured.
    Failed {
        /// A sentence for people.
        reason: String,
    },
}

/// A reason of [`Outcome::Invalid`] in brief: the name of the check that it begins with, where one
/// speaks against the trial; else the whole.
#[must_use]
pub fn in_brief(reason: &str) -> &str {
    let is_name = |name: &str| {
        name.contains('-')
            && name
                .bytes()
                .all(|byte| byte == b'-' || byte.is_ascii_lowercase())
    };
    match reason.split_once(": ") {
        Some((name, _)) if is_name(name) => name,
        _ => reason,
    }
}

/// A bulk transfer as the receiving station saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Parameters in force.
    pub parameters: ToolParameters,
    /// Measured time, without warm-up.
    pub duration_ns: u64,
    /// Payload bytes that the sender handed to its socket in that time.
    pub sent_bytes: u64,
    /// Payload bytes that the receiver got in that time.
    pub received_bytes: u64,
    /// TCP segments sent again, where the tool tells.
    pub retransmits: Option<u64>,
    /// Datagrams, for UDP.
    pub datagrams: Option<Datagrams>,
    /// The timeline, in the receiver's view where the tool gives it, else the sender's.
    pub intervals: Vec<Interval>,
}

/// Datagram counts of a UDP transfer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Sent by A.
    pub sent: u64,
    /// Of those, not seen by B.
    pub lost: u64,
    /// Of those, datagrams that reached station B and were lost there: its socket's buffer was
    /// full. The rest was lost on the way.
    #[serde(default)]
    pub station_lost: u64,
    /// Out of order at B.
    pub out_of_order: u64,
    /// Mean jitter as the tool computes it, in nanoseconds.
    pub jitter_ns: u64,
}

/// One step of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// From the start of the measured time.
    pub start_ns: u64,
    /// From the start of the measured time.
    pub end_ns: u64,
    /// Payload bytes in it.
    pub bytes: u64,
}

/// Round-trip times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Requests sent.
    pub sent: u64,
    /// Replies received.
    pub received: u64,
    /// Each reply's round-trip time in the order of the requests, in nanoseconds.
    pub round_trips_ns: Vec<u64>,
}

/// CPU time by role over `wall_ns`. On one machine all roles share its cores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpu {
    /// Wall time over which the rest was read.
    pub wall_ns: u64,
    /// Stations' tools: user and system time.
    pub stations_ns: u64,
    /// Station A's part of it (the source of the traffic).
    pub station_a_ns: u64,
    /// Station B's part of it.
    pub station_b_ns: u64,
    /// DUT processes on both gateways: user and system time. `None`: it ran on machines of its own,
    /// and nobody knows.
    pub dut_ns: Option<u64>,
    /// The rest of the machine's busy time: softirq, kernel threads, the tester itself.
    pub kernel_ns: u64,
    /// Busy time of all cores.
    pub busy_ns: u64,
    /// Time that the hypervisor gave to others while a core had work to do; no part of `busy_ns`.
    #[serde(default)]
    pub steal_ns: u64,
    /// The part of `kernel_ns` that was spent by processes which have nothing to do with the run.
    #[serde(default)]
    pub foreign_ns: u64,
}

/// Proof that a figure is what it seems.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Checks made, passed or not.
    pub checks: Vec<Check>,
    /// What was sampled on the cipher link.
    pub cipher_link: CipherLink,
    /// What did not belong on the cipher link, over the whole trial; `None` when it was not watched
    /// (journals of versions that only sampled).
    #[serde(default)]
    pub watch: Option<CipherWatch>,
    /// Counter differences over the trial, by `node/interface` (`gw1/w0`).
    pub interfaces: BTreeMap<String, InterfaceCounters>,
    /// Offloads in force, by `node/interface`: feature to `on` or `off`.
    pub offloads: BTreeMap<String, BTreeMap<String, String>>,
    /// The DUT's own counters, by `gateway/counter`, as differences over the trial.
    pub dut_counters: BTreeMap<String, u64>,
    /// What the DUT says of itself: version, suite, engine, offloads, by `gateway/key`.
    pub dut_facts: BTreeMap<String, String>,
}

/// One check of the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Short name, for example `no-clear-text`.
    pub name: String,
    /// Whether it passed.
    pub passed: bool,
    /// A sentence with the numbers that say so.
    pub detail: String,
}

/// Frames sampled on the link between the gateways during a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CipherLink {
    /// Frames looked at.
    pub frames: u64,
    /// Of those, what the device sealed, in the form that it has: ESP, bare or in UDP, which was
    /// the only one when this got its name, WireGuard's data or OpenVPN's.
    pub esp_frames: u64,
    /// Frames that showed the stations' marker in clear.
    pub marker_frames: u64,
    /// TCP of the device's own between its gateways: keys agreed on, keys had from a KME. Absent in
    /// journals from before it was there.
    #[serde(default)]
    pub channel_frames: u64,
    /// Frames that are neither that nor known control traffic: ARP, ND, a key exchange where the
    /// device has one.
    pub other_frames: u64,
    /// What names the keys, as seen, in hexadecimal: SPIs; WireGuard's receiver indices; OpenVPN's
    /// key ids in the first byte and peer ids behind it.
    pub spis: Vec<String>,
}

/// Foreign frames on the link between the gateways, of all frames in both directions while it was
/// watched: what is neither sealed in the device's form (ESP, bare or in UDP with a non-zero SPI;
/// WireGuard's or OpenVPN's data on its ports), nor a key exchange where the device has one, by UDP
/// or TCP, a NAT keepalive (RFC 3948 §2.3), ARP or IPv6 neighbour discovery. A later fragment of
/// ESP or UDP goes with its packet's first one. Without encryption all traffic is foreign.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CipherWatch {
    /// Foreign frames (or super-packets): all of them.
    pub foreign_frames: u64,
    /// Of the first foreign frames, some dozens, which are looked at: those that show the stations'
    /// marker in clear.
    pub marker_frames: u64,
    /// Bytes of those that are looked at.
    pub foreign_bytes: u64,
    /// Up to three of them in words: `IPv4 UDP 10.1.0.2:4000 > 10.2.0.2:5201, 1428 B`.
    pub examples: Vec<String>,
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
    /// To be sent but dropped.
    pub tx_dropped: u64,
    /// Sent with an error.
    pub tx_errors: u64,
}

/// The one kind of figures that a record has.
///
/// # Errors
/// When it has more than one of `keys`.
fn at_most_one<T, E: serde::de::Error, const N: usize>(
    found: [Option<T>; N],
    keys: &str,
) -> Result<Option<T>, E> {
    let mut found = found.into_iter().flatten();
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(_) => Err(E::custom(format!("at most one of {keys} has a value"))),
    }
}

fn is_empty<T: Clone>(list: &[T]) -> bool {
    list.is_empty()
}
