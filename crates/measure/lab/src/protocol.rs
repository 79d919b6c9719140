//! The protocol between a run and its stations: one JSON object a line on standard input and
//! output.
//!
//! A station (`cipherbench station`) sits in one network namespace, or on another host behind `ssh
//! host`. It reads requests until end of file, answers each by its `id` in any order, and at end of
//! file kills every process it started and exits: the process that started it can die at any moment
//! and nothing stays behind.

mod lent;
mod load;
mod ports;
mod sample;

pub use lent::Lent;
pub use load::{BusyProgram, Load};
pub use ports::{ControlPort, SealedPort};
pub use sample::{Contents, Sample};

use crate::clocks::{Ask, Exchanges};
use journal::record::{Environment, InterfaceCounters, LogicalCpu};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of this protocol; both ends must have the same.
pub const PROTOCOL_VERSION: u32 = 14;

/// A request with the number that its answer carries.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    /// Chosen by the caller, unique while unanswered.
    pub id: u64,
    /// What to do.
    pub request: Request,
}

/// An answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reply {
    /// The call's number.
    pub id: u64,
    /// The outcome; an error is a sentence for people.
    pub result: Result<Response, String>,
}

/// A program to start on a station.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Program ([`THIS_PROGRAM`], a path, or a name to be found in `PATH`) and arguments, word by
    /// word; no shell.
    pub argv: Vec<String>,
    /// Cores it may run on, counted from 0 among those that the station may use; empty: all.
    pub cores: Vec<u16>,
    /// Written to its standard input, which is then closed.
    pub stdin: String,
    /// The condition for a successful start.
    pub ready: Ready,
}

/// When a started program counts as ready: a state awaited up to a limit, never a fixed delay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// At once.
    #[default]
    Started,
    /// When this TCP port listens in the station's namespace. It must not before the start: that is
    /// an error.
    Listening(u16),
    /// When a UDP socket is bound to this port in the station's namespace. None must be before the
    /// start.
    Bound(u16),
    /// When it prints a line that begins with this text on standard output.
    Line(String),
}

/// As a program's first word: the very program that the station is. A path could lead to another
/// file by then, after a build for example.
pub const THIS_PROGRAM: &str = "/proc/self/exe";

/// How [`THIS_PROGRAM`] is called in messages and listings of processes.
pub(crate) const THIS_PROGRAM_NAME: &str = "cipherbench";

impl Program {
    /// A program with its arguments that may run on all cores and counts as started at once.
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
    /// The caller lives. Without a word from it for some seconds, a host takes its stations down.
    Alive,
    /// Take the lab's name on this host, remove what a killed run of that name has left, and start
    /// stations. Of a station that serves a host, and once.
    TakePart {
        /// The lab's name.
        lab: String,
        /// The nodes to start, by their names.
        nodes: Vec<String>,
        /// The CPUs of this host that programs with cores are assigned; empty: any.
        cpus: Vec<u16>,
    },
    /// Pass a request on to a station that `TakePart` started; its answer is the answer.
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
    /// Find a program where the station would start it.
    Locate {
        /// Its name.
        program: String,
    },
    /// Start a program and wait until it is ready or `limit_ms` has passed (then it is killed: an
    /// error that carries what it printed).
    Start {
        /// The program.
        program: Program,
        /// Limit in milliseconds.
        limit_ms: u64,
    },
    /// Wait until a started program ends, or `limit_ms` has passed (then it is killed and
    /// `timed_out` is set).
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
    /// Send SIGTERM, and do not wait.
    Terminate {
        /// From [`Response::Started`].
        process: u64,
    },
    /// Send a started program and its group a signal, and do not wait.
    Signal {
        /// From [`Response::Started`].
        process: u64,
        /// Its number, of `signal(7)`.
        signal: i32,
    },
    /// Wait until a started program has printed a whole line with this prefix on standard output,
    /// has ended, or `limit_ms` has passed. Its output is available before the kernel has freed all
    /// its resources.
    AwaitLine {
        /// From [`Response::Started`].
        process: u64,
        /// How the line begins.
        prefix: String,
        /// Limit in milliseconds.
        limit_ms: u64,
    },
    /// How a started program ended, or that it still runs. Neither waits nor signals.
    Status {
        /// From [`Response::Started`].
        process: u64,
    },
    /// CPU time of one running program (children included), or `None`: of the whole machine.
    CpuTime {
        /// From [`Response::Started`].
        process: Option<u64>,
    },
    /// Count cycles and instructions from now on. Replaces an earlier request of this kind.
    CountersStart {
        /// From [`Response::Started`]: each counted with all its threads and children.
        processes: Vec<u64>,
        /// Whether to count what all CPUs of the machine do.
        machine: bool,
    },
    /// Read the counters, and end them.
    CountersEnd,
    /// Memory of one running program (children included) that is in RAM.
    Resident {
        /// From [`Response::Started`].
        process: u64,
    },
    /// What identifies a running program among all that the machine has run since it booted.
    Identity {
        /// From [`Response::Started`].
        process: u64,
    },
    /// Counters of all interfaces but `lo`.
    InterfaceCounters,
    /// Offload features in force, of all interfaces but `lo`.
    Offloads,
    /// Look at up to `frames` frames on an interface, for up to `limit_ms`.
    Sample {
        /// Interface name.
        interface: String,
        /// Frames to look at.
        frames: u32,
        /// Whole sealed packets to return beside the counts, at most; 0: none.
        packets: u32,
        /// Whether to read what sealed packets contain.
        contents: bool,
        /// Limit in milliseconds.
        limit_ms: u64,
        /// Byte strings that the stations' traffic shows in clear.
        markers: Vec<Vec<u8>>,
        /// UDP ports (either end) that carry what a DUT sealed.
        sealed_ports: Vec<SealedPort>,
        /// TCP ports of the DUT's own.
        control_ports: Vec<ControlPort>,
    },
    /// Watch every frame of an interface until `WatchEnd`: the kernel hands over and counts only
    /// what is foreign, see [`journal::record::CipherWatch`].
    Watch {
        /// Interface name.
        interface: String,
        /// Whether only frames that the interface receives are watched, or also those it sends.
        /// The kernel does not show a frame that was sent past the queue (`PACKET_QDISC_BYPASS`,
        /// AF_XDP) where it is sent.
        received_only: bool,
        /// UDP ports (either end) that carry what a DUT sealed; empty: only bare ESP is expected.
        /// Beside ports of other forms only, bare ESP is foreign. Of an opaque form every frame
        /// that shows a marker is foreign, and no other.
        sealed_ports: Vec<SealedPort>,
        /// TCP ports of the DUT's own; at most 8.
        control_ports: Vec<ControlPort>,
        /// Byte strings that the stations' traffic shows in clear.
        markers: Vec<Vec<u8>>,
        /// Whether sealed packets that show the first marker where NULL encryption leaves it are
        /// foreign.
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
        /// From [`Response::Started`]: programs whose CPU time is read, living descendants not
        /// included.
        processes: Vec<u64>,
    },
    /// Say what machine this is.
    Environment,
    /// Say who uses the CPUs of the machine now.
    Load,
    /// Answer probes that compare clocks on an interface, instead of what was answered before;
    /// see [`crate::clocks`].
    ClockAnswer {
        /// Interface; `None`: answer no more.
        interface: Option<String>,
        /// Its MAC address.
        own: [u8; 6],
    },
    /// Send such probes.
    ClockAsk(Ask),
    /// Watch the settings of the station's network namespace until `SettingsWatchEnd`; see
    /// [`journal::record::PathSettings`].
    SettingsWatch {
        /// Whether to count frames of ARP and neighbour discovery too.
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
        /// Where its kernel shows them: `/sys/class/powercap`.
        folder: String,
    },
    /// GET `http://127.0.0.1:port/path` in the station's namespace; the answer is the body of a
    /// 200.
    HttpGet {
        /// TCP port.
        port: u16,
        /// Path with its slash.
        path: String,
    },
    /// Write a file into the station's private folder; the answer carries its path.
    WriteFile {
        /// Plain file name, no slash.
        name: String,
        /// What to write.
        content: String,
        /// Readable by the owner only (keys).
        secret: bool,
    },
    /// Read the kernel's parameters of an interface, which it gets anew wherever it moves.
    Parameters {
        /// Its name.
        interface: String,
    },
    /// Give these interfaces back to the namespace that the station was started in, at its end, as
    /// they were; only those moved to it by then. Replaces an earlier request of this kind.
    GiveBack {
        /// The interfaces that will be moved to the station.
        lent: Vec<Lent>,
    },
    /// Run these programs one after the other at the station's end, before it gives interfaces
    /// back, even if some fail. Replaces an earlier request of this kind.
    AtEnd {
        /// The programs.
        programs: Vec<Program>,
        /// Each one's limit in milliseconds.
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
        /// Process id of the station, in the caller's pid namespace when local.
        pid: u32,
        /// Identifies the machine: stations with equal ids share their cores.
        boot_id: String,
        /// Identifies its clock: stations with equal ones read the same CLOCK_MONOTONIC.
        #[serde(default)]
        clock: String,
        /// Logical CPUs that the station may use.
        cores: u16,
        /// The same in the order in which [`Program::cores`] counts them, with their cores and NUMA
        /// nodes.
        #[serde(default)]
        cpus: Vec<LogicalCpu>,
        /// `net.core.rmem_max` of the machine, in bytes: the largest receive buffer that a program
        /// can ask for. Kernels before 6.11 do not show it inside the station's namespace, so it is
        /// read before the station enters that: take it from here, not by a program on the
        /// station. `None` when it could not be read.
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
        /// A sentence for all that was removed of an earlier run.
        swept: Vec<String>,
        /// Process ids of the stations on the host, by their nodes' names.
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
    /// To `AwaitLine`: the first matching line, without its newline; `None` if there is none.
    Line(Option<String>),
    /// To `Status`: `None` while it runs.
    Status(Option<Ended>),
    /// To `CpuTime`.
    CpuTime(CpuTime),
    /// To `CountersStart`: whether they count; false where the processor's counters are not
    /// available, or a process has ended.
    Counting(bool),
    /// To `CountersEnd`; `None` where nothing was counted.
    Counted(Option<Counted>),
    /// To `Resident`, in bytes. What several processes share counts in each.
    Resident(u64),
    /// To `Identity`.
    Identity {
        /// Process id.
        pid: u32,
        /// Its start, in clock ticks after boot.
        start_ticks: u64,
    },
    /// To `InterfaceCounters`: totals since the interface came up.
    InterfaceCounters(BTreeMap<String, InterfaceCounters>),
    /// To `Offloads`: interface to feature to `on` or `off`.
    Offloads(BTreeMap<String, BTreeMap<String, String>>),
    /// To `Sample`.
    Sample(Sample),
    /// To `Watch` and `SettingsWatch`: every frame, or every change, is seen from now on.
    Watching {
        /// Handle for `WatchEnd` or `SettingsWatchEnd`.
        watch: u64,
    },
    /// To `Environment`; the engines are left to the caller.
    Environment(Box<Environment>),
    /// To `Load`.
    Load(Load),
    /// To `ClockAsk`.
    Clocks(Exchanges),
    /// To `WatchEnd` and `WatchRead`.
    Watched(journal::record::CipherWatch),
    /// To `Readings`.
    Readings(NodeReading),
    /// To `SettingsWatchEnd`: neither names of interfaces and counters nor changes have the node.
    SettingsWatched(journal::record::PathSettings),
    /// To `Parameters`: path below `/proc/sys/net` to value.
    Parameters(BTreeMap<String, String>),
    /// To `Energy`: its packages; empty where there are none or they must not be read.
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
        /// Where.
        path: String,
    },
    /// To `GiveBack`, `AtEnd` and `Alive`.
    Noted,
}

/// Totals of a node. Those of the machine are the same on every node of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeReading {
    /// Interfaces of the network namespace but `lo`. `rx_dropped` includes frames that found the
    /// softirq backlog full (`netdev_max_backlog`) and those that a network card missed
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
    /// Time in which some task of the machine waited for a core (`/proc/pressure/cpu`), in
    /// nanoseconds; `None` if the kernel does not count it.
    pub pressure_ns: Option<u64>,
    /// CPU time of the programs asked for, in their order. Resolution: one tick, 10 ms.
    pub processes: Vec<CpuTime>,
}

/// The energy counter of one package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyZone {
    /// `intel-rapl:0`.
    pub name: String,
    /// Microjoules.
    pub energy_uj: u64,
    /// Where the counter begins again at 0.
    pub range_uj: u64,
}

/// How a program ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Killed because its time was up.
    pub timed_out: bool,
    /// Standard output, at most [`OUTPUT_LIMIT_BYTES`].
    pub stdout: String,
    /// Standard error, at most [`OUTPUT_LIMIT_BYTES`].
    pub stderr: String,
    /// CPU time of it and its waited-for children.
    pub cpu: CpuTime,
    /// From start to end.
    pub wall_ns: u64,
}

impl Ended {
    /// How it ended, for people: `exit status 1`, `SIGKILL`.
    #[must_use]
    pub fn how(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(number)) => nix::sys::signal::Signal::try_from(number)
                .map_or_else(|_| format!("signal {number}"), |signal| signal.to_string()),
            (None, None) => "ended in an unknown way".to_owned(),
        }
    }

    /// The end of its output, for an error message: `": "` and its last lines on standard error, or
    /// on standard output if standard error is empty; empty if both are.
    #[must_use]
    pub fn last_words(&self) -> String {
        const LINES: usize = 4;
        let said = |text: &str| {
            let lines: Vec<String> = text
                .lines()
                .map(|line| line.trim().to_owned())
                .filter(|l| !l.is_empty())
                .collect();
            lines[lines.len().saturating_sub(LINES)..].join("; ")
        };
        let words = [&self.stderr, &self.stdout].map(|text| said(text));
        words
            .iter()
            .find(|words| !words.is_empty())
            .map_or_else(String::new, |w| format!(": {w}"))
    }
}

/// Most bytes of a program's output that are kept: its beginning and its end.
pub const OUTPUT_LIMIT_BYTES: usize = 16 << 20;

/// A reply that is longer is replaced by an error at its station, and ends the connection at its
/// reader: two outputs of [`OUTPUT_LIMIT_BYTES`] with some escapes of JSON.
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
    /// For the machine: time that its cores had no work to do, together; 0 for a program.
    #[serde(default)]
    pub idle_ns: u64,
}

/// What the processor's counters counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The programs asked for, in their order.
    pub processes: Vec<Counts>,
    /// All CPUs of the machine, where asked for.
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
