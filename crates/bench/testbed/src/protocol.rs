//! The protocol between a run and its stations: a JSON object per line on standard input and
//! output. A station (`cipherbench station`) runs in one network namespace, or on another host
//! behind `ssh host`. It reads requests until end of file and answers each by its `id` in any
//! order. Then it kills every process it started and exits, even if the one that started it died.

mod interface;
mod load;
mod ports;
mod sample;

pub use interface::BorrowedInterface;
pub use load::{BusyProgram, Load};
pub use ports::{ControlPort, SealedPort};
pub use sample::{Contents, Sample};

use crate::clocks::{Ask, Exchanges};
use journal::record::{Environment, InterfaceCounters, LogicalCpu};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Version of this protocol; both ends must have the same version.
pub const PROTOCOL_VERSION: u32 = 16;

/// A request, with the number that its answer repeats.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// Chosen by the caller, unique while unanswered.
    pub id: u64,
    /// What to do.
    pub request: Request,
}

/// The answer to a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reply {
    /// The call's number.
    pub id: u64,
    /// The outcome; an error is a sentence for people.
    pub result: Result<Response, String>,
}

/// A time limit as requests contain it, in whole milliseconds.
#[must_use]
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A program to start on a station.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Program ([`THIS_PROGRAM`], a path, or a name in `PATH`) and arguments, one word each; no
    /// shell.
    pub argv: Vec<String>,
    /// Variables of its environment, in addition to the station's.
    pub environment: BTreeMap<String, String>,
    /// Cores it may run on, as indices into those that the station may use; empty: all.
    pub cores: Vec<u16>,
    /// Written to its standard input, which is then closed.
    pub stdin: String,
    /// The condition for a successful start.
    pub ready: Ready,
}

/// When a started program counts as ready: a state awaited with a time limit, never a fixed delay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// Immediately.
    #[default]
    Started,
    /// When this TCP port listens in the station's namespace. A port that already listens before
    /// the start is an error.
    Listening(u16),
    /// When a UDP socket is bound to this port in the station's namespace. A port that is already
    /// bound before the start is an error.
    Bound(u16),
    /// When it prints a line that begins with this text on standard output.
    Line(String),
}

/// As a program's first word: the same executable as the station. A path could by then lead to
/// another file, for example after a build.
pub const THIS_PROGRAM: &str = "/proc/self/exe";

/// Name of [`THIS_PROGRAM`] in messages and process listings.
pub const THIS_PROGRAM_NAME: &str = "cipherbench";

impl Program {
    /// A program with its arguments that may run on all cores and counts as started immediately.
    #[must_use]
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// The same program with `stdin` on its standard input.
    #[must_use]
    pub fn with_input(self, stdin: impl Into<String>) -> Self {
        Self {
            stdin: stdin.into(),
            ..self
        }
    }
}

/// A request to a station.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Signal that the caller is alive. A host stops its stations after some seconds without a
    /// request.
    Alive,
    /// Lock the lab's name on this host, remove the remains of a killed run with that name, and
    /// start stations. Only for a station that serves a host, and only once.
    TakePart {
        /// The lab's name.
        lab: String,
        /// The nodes to start, by their names.
        nodes: Vec<String>,
        /// The CPUs of this host to assign to programs with cores; empty: any.
        cpus: Vec<u16>,
    },
    /// Pass a request on to a station that `TakePart` started, and return its answer.
    On {
        /// The node's name.
        node: String,
        /// The request.
        request: Box<Self>,
    },
    /// Identify the station.
    Hello {
        /// [`PROTOCOL_VERSION`] of the caller.
        protocol: u32,
    },
    /// Find a program as the station would to start it.
    Locate {
        /// Its name.
        program: String,
    },
    /// Start a program and wait until it is ready. After `limit_ms` it is killed, and the error
    /// contains its output.
    Start {
        /// The program.
        program: Program,
        /// Limit in milliseconds.
        limit_ms: u64,
    },
    /// Wait until a started program ends. After `limit_ms` it is killed and `timed_out` is set.
    Wait {
        /// From [`Response::Started`].
        process: u64,
        /// Limit in milliseconds.
        limit_ms: u64,
    },
    /// Send SIGTERM, after `grace_ms` SIGKILL, and wait.
    Stop {
        /// From [`Response::Started`].
        process: u64,
        /// Milliseconds between the two signals.
        grace_ms: u64,
    },
    /// Send SIGTERM without waiting.
    Terminate {
        /// From [`Response::Started`].
        process: u64,
    },
    /// Send a signal to a started program and its process group, without waiting.
    Signal {
        /// From [`Response::Started`].
        process: u64,
        /// Signal number, see `signal(7)`.
        signal: i32,
    },
    /// Wait until a started program has printed a whole line with this prefix on standard output,
    /// has ended, or `limit_ms` has passed. Its output is available before the kernel has freed all
    /// its resources.
    AwaitLine {
        /// From [`Response::Started`].
        process: u64,
        /// The beginning of the line.
        prefix: String,
        /// Limit in milliseconds.
        limit_ms: u64,
    },
    /// Return how a started program ended, or that it still runs. Neither waits nor signals.
    Status {
        /// From [`Response::Started`].
        process: u64,
    },
    /// CPU time of one running program (including children), or of the whole machine if `None`.
    CpuTime {
        /// From [`Response::Started`].
        process: Option<u64>,
    },
    /// Count cycles and instructions from now on. Replaces an earlier request of this kind.
    CountersStart {
        /// From [`Response::Started`]: each is counted with all its threads and children.
        processes: Vec<u64>,
        /// Whether to count all CPUs of the machine too.
        machine: bool,
    },
    /// Read the counters and close them.
    CountersEnd,
    /// Resident memory of one running program (including children).
    Resident {
        /// From [`Response::Started`].
        process: u64,
    },
    /// Identify a running program uniquely among all since the machine booted.
    Identity {
        /// From [`Response::Started`].
        process: u64,
    },
    /// Counters of all interfaces except `lo`.
    InterfaceCounters,
    /// Offload features in force on all interfaces except `lo`.
    Offloads,
    /// Inspect up to `frames` frames on an interface, for up to `limit_ms`.
    Sample {
        /// Interface name.
        interface: String,
        /// Most frames to inspect.
        frames: u32,
        /// Most whole sealed packets to return in addition to the counts; 0: none.
        packets: u32,
        /// Whether to inspect the contents of sealed packets.
        contents: bool,
        /// As in `Watch`.
        received_only: bool,
        /// Limit in milliseconds.
        limit_ms: u64,
        /// Byte strings that appear in the stations' cleartext traffic.
        markers: Vec<Vec<u8>>,
        /// UDP ports (either end) of the DUT's sealed packets.
        sealed_ports: Vec<SealedPort>,
        /// TCP ports of the DUT for its control connections.
        control_ports: Vec<ControlPort>,
    },
    /// Watch an interface until `WatchEnd` for foreign frames ([`journal::record::CipherWatch`]).
    Watch {
        /// Interface name.
        interface: String,
        /// Whether to watch only received frames, and not those that the interface sends. The
        /// kernel does not show sent frames that bypass the queue (`PACKET_QDISC_BYPASS`, AF_XDP).
        received_only: bool,
        /// UDP ports (either end) of the DUT's sealed packets. If empty, only bare ESP is expected.
        /// With ports of other forms only, bare ESP is foreign. With an opaque form, a frame is
        /// foreign only if it shows a marker.
        sealed_ports: Vec<SealedPort>,
        /// TCP ports of the DUT for its control connections; at most 8.
        control_ports: Vec<ControlPort>,
        /// Byte strings that appear in the stations' cleartext traffic.
        markers: Vec<Vec<u8>>,
        /// Whether sealed packets are foreign if they show the first marker at an offset that NULL
        /// encryption would leave it at.
        inside: bool,
    },
    /// End a watch.
    WatchEnd {
        /// From [`Response::Watching`].
        watch: u64,
    },
    /// Read a watch without ending it: the foreign frames since its start or the last reading.
    WatchRead {
        /// From [`Response::Watching`].
        watch: u64,
    },
    /// Read the counters that surround a frame trial in one round trip.
    Readings {
        /// From [`Response::Started`]: programs to read the CPU time of, without living
        /// descendants.
        processes: Vec<u64>,
    },
    /// Describe the machine.
    Environment,
    /// Report which programs use the machine's CPUs now.
    Load,
    /// Answer probes that compare clocks on an interface, replacing an earlier request of this
    /// kind; see [`crate::clocks`].
    ClockAnswer {
        /// Interface; `None`: stop answering.
        interface: Option<String>,
        /// Its MAC address.
        own: [u8; 6],
    },
    /// Send clock probes.
    ClockAsk(Ask),
    /// Watch the settings of the station's network namespace until `SettingsWatchEnd`; see
    /// [`journal::record::PathSettings`].
    SettingsWatch {
        /// Whether to count frames of ARP, neighbour and group discovery too.
        neighbours: bool,
    },
    /// End a watch on settings.
    SettingsWatchEnd {
        /// From [`Response::Watching`].
        watch: u64,
    },
    /// UDP datagrams that this station's kernel received and could not deliver to a socket.
    UdpErrors,
    /// The energy counters of the machine.
    Energy {
        /// The kernel's folder for them: `/sys/class/powercap`.
        folder: String,
    },
    /// GET `http://127.0.0.1:port/path` in the station's namespace and return the body of a 200
    /// response.
    HttpGet {
        /// TCP port.
        port: u16,
        /// Path with its leading slash.
        path: String,
    },
    /// Write a file into the station's private folder and return its path.
    WriteFile {
        /// Plain file name, no slash.
        name: String,
        /// The file's content.
        content: String,
        /// Readable by the owner only (keys).
        secret: bool,
    },
    /// Read the kernel's parameters of an interface, which the kernel resets when the interface
    /// moves.
    Parameters {
        /// Its name.
        interface: String,
    },
    /// At the station's end, return these interfaces, if they were moved to it, with their former
    /// settings to the namespace that the station was started in. Replaces an earlier request of
    /// this kind.
    GiveBack {
        /// The interfaces that will be moved to the station.
        lent: Vec<BorrowedInterface>,
    },
    /// Run these programs one after another at the station's end, before it returns interfaces,
    /// even if some fail. Replaces an earlier request of this kind.
    AtEnd {
        /// The programs.
        programs: Vec<Program>,
        /// Time limit of each program in milliseconds.
        limit_ms: u64,
    },
}

/// A station's answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// To `Hello`.
    Hello {
        /// [`PROTOCOL_VERSION`] of the station.
        protocol: u32,
        /// Version of the program.
        program: String,
        /// Process id of the station; for a local station, in the caller's pid namespace.
        pid: u32,
        /// Identifies the machine: stations with equal ids share their cores.
        boot_id: String,
        /// Identifies its clock: stations with equal ids read the same CLOCK_MONOTONIC.
        #[serde(default)]
        clock: String,
        /// Logical CPUs that the station may use.
        cores: u16,
        /// The same CPUs in the order of the indices in [`Program::cores`], with their cores and
        /// NUMA nodes.
        #[serde(default)]
        cpus: Vec<LogicalCpu>,
        /// `net.core.rmem_max` of the machine, in bytes: the largest receive buffer that a program
        /// can request. Kernels before 6.11 hide it inside the station's namespace, so the station
        /// reads it before it enters: use this value instead of running a program on the station.
        /// `None` if it could not be read.
        #[serde(default)]
        rmem_max_bytes: Option<u64>,
        /// `net.core.wmem_max`, read the same way: the largest send buffer.
        #[serde(default)]
        wmem_max_bytes: Option<u64>,
    },
    /// To `Locate`: its path; `None` if it is not on the station's machine.
    Located(Option<String>),
    /// To `TakePart`.
    PartTaken {
        /// One sentence for each item removed of an earlier run.
        swept: Vec<String>,
        /// Process ids of the stations on the host, by node name.
        pids: BTreeMap<String, u32>,
    },
    /// To `Start`.
    Started {
        /// Handle for later requests.
        process: u64,
        /// Process id.
        pid: u32,
        /// Its standard output until it was ready.
        stdout: String,
    },
    /// To `Wait` and `Stop`.
    Ended(Ended),
    /// To `Terminate`.
    Terminated,
    /// To `Signal`.
    Signalled,
    /// To `AwaitLine`: the first matching line, without its newline; `None` if no line matched.
    Line(Option<String>),
    /// To `Status`: `None` while it runs.
    Status(Option<Ended>),
    /// To `CpuTime`.
    CpuTime(CpuTime),
    /// To `CountersStart`: whether they count; false if the processor's counters are unavailable,
    /// or a process has ended.
    Counting(bool),
    /// To `CountersEnd`; `None` if nothing was counted.
    Counted(Option<Counted>),
    /// To `Resident`, in bytes. Shared pages count for each process.
    Resident(u64),
    /// To `Identity`.
    Identity {
        /// Process id.
        pid: u32,
        /// Its start, in clock ticks after boot.
        start_ticks: u64,
    },
    /// To `InterfaceCounters`: totals since each interface came up.
    InterfaceCounters(BTreeMap<String, InterfaceCounters>),
    /// To `Offloads`: interface to feature to `on` or `off`.
    Offloads(BTreeMap<String, BTreeMap<String, String>>),
    /// To `Sample`.
    Sample(Sample),
    /// To `Watch` and `SettingsWatch`: every frame or change from now on is seen.
    Watching {
        /// Handle for `WatchEnd` or `SettingsWatchEnd`.
        watch: u64,
    },
    /// To `Environment`, without the engines, which the caller adds.
    Environment(Box<Environment>),
    /// To `Load`.
    Load(Load),
    /// To `ClockAsk`.
    Clocks(Exchanges),
    /// To `WatchEnd` and `WatchRead`.
    Watched(journal::record::CipherWatch),
    /// To `Readings`.
    Readings(NodeReading),
    /// To `SettingsWatchEnd`. The names of interfaces and counters, and the changes, omit the node.
    SettingsWatched(journal::record::PathSettings),
    /// To `Parameters`: path below `/proc/sys/net` to value.
    Parameters(BTreeMap<String, String>),
    /// To `Energy`: the machine's packages; empty if it has none or denies reading them.
    Energy(Vec<EnergyZone>),
    /// To `UdpErrors`: totals of the station's network namespace (RFC 4113), IPv4.
    UdpErrors {
        /// Datagrams lost because a socket's receive buffer was full; part of `in_errors`.
        receive_buffer_errors: u64,
        /// Datagrams lost for any reason other than the lack of a listening socket.
        in_errors: u64,
    },
    /// To `HttpGet`.
    Body(String),
    /// To `WriteFile`.
    Written {
        /// The file's path.
        path: String,
    },
    /// To `GiveBack`, `AtEnd` and `Alive`.
    Noted,
}

/// Totals of a node. The machine's totals are the same on all its nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReading {
    /// Interfaces of the network namespace except `lo`. `rx_dropped` includes frames that found the
    /// softirq backlog full (`netdev_max_backlog`) and frames that a network card missed
    /// (`rx_missed_errors`): `/proc/net/dev` adds these up.
    pub interfaces: BTreeMap<String, InterfaceCounters>,
    /// UDP datagrams of the network namespace that found their socket's buffer full, IPv4 and IPv6
    /// (`RcvbufErrors`, RFC 4113).
    pub socket_drops: u64,
    /// Frames that found a softirq backlog full, on all cores of the machine
    /// (`/proc/net/softnet_stat`).
    pub backlog_drops: u64,
    /// CPU time of the machine.
    pub machine: CpuTime,
    /// Time that at least one task of the machine waited for a core (`/proc/pressure/cpu`), in
    /// nanoseconds; `None` if the kernel does not count it.
    pub pressure_ns: Option<u64>,
    /// CPU time of the requested programs, in their order. Resolution: one tick, 10 ms.
    pub processes: Vec<CpuTime>,
}

/// The energy counter of a package or of its memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyZone {
    /// The zone's name: `intel-rapl:0`.
    pub name: String,
    /// Its part of the machine: `package-0`, `dram`; empty if the kernel does not name it.
    pub domain: String,
    /// Energy in microjoules.
    pub energy_uj: u64,
    /// The value at which the counter wraps to 0.
    pub range_uj: u64,
}

/// How a program ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Whether it was killed at its time limit.
    pub timed_out: bool,
    /// Standard output, at most [`OUTPUT_LIMIT_BYTES`].
    pub stdout: String,
    /// Standard error, at most [`OUTPUT_LIMIT_BYTES`].
    pub stderr: String,
    /// CPU time of the program and of children that it waited for.
    pub cpu: CpuTime,
    /// Time from start to end.
    pub wall_ns: u64,
}

/// Most bytes of a program's output that are kept, from its beginning and its end.
pub const OUTPUT_LIMIT_BYTES: usize = 16 << 20;

/// Longest reply: two outputs of [`OUTPUT_LIMIT_BYTES`] with some JSON escapes. The station
/// replaces a longer one by an error, and the reader closes the connection.
pub const REPLY_BYTES_MAX: usize = 64 << 20;

/// CPU time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel; for the machine: all busy time that is not user time.
    pub system_ns: u64,
    /// For the machine: time that the hypervisor gave to other guests while a core had work to do;
    /// not included in the two above. 0 for a program.
    #[serde(default)]
    pub steal_ns: u64,
    /// For the machine: idle time of all cores together; 0 for a program.
    #[serde(default)]
    pub idle_ns: u64,
}

/// Counts of the processor's counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The requested programs, in their order.
    pub processes: Vec<Counts>,
    /// All CPUs of the machine, if requested.
    pub machine: Option<Counts>,
}

/// Counts of one program or of the machine, in user mode and in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Cycles of a CPU that was not halted.
    pub cycles: u64,
    /// Instructions retired.
    pub instructions: u64,
}
