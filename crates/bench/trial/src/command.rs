//! Commands on the stations: their words and the cores they may use.
//!
//! Debian 12's iperf3 (3.12) drives all its streams from one thread, so `-P 8` uses one core, not
//! eight. A cell of N cores therefore runs N processes, each pinned to a separate core, with the
//! streams spread over them. Newer iperf3 (from 3.16) has a thread per stream; pinned to one core,
//! they share it evenly. Its counts are less exact: see
//! [`crate::iperf3::Session::uncounted_bytes`].
//!
//! iperf2 always has a thread per stream and runs in the same way.
//!
//! This module runs nothing: `plan` prints what [`commands`] returns, and a trial starts exactly
//! that.

pub(crate) mod http;
mod iperf2;
mod ping;
pub(crate) mod video;

use crate::cores::{Machine, Machines};
use crate::timing::Timing;
use journal::record::ToolParameters;
use plan::{Cell, Dscp, Measurement, Stations, Tool, TransferDirection};
use serde::Serialize;
use std::net::Ipv4Addr;
use testbed::NodeId;
use testbed::protocol::{Program, Ready, THIS_PROGRAM, THIS_PROGRAM_NAME};
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

pub(crate) use iperf2::BLOCK_BYTES as IPERF2_BLOCK_BYTES;

/// TCP port of the first iperf3 server; each further process takes the next one.
pub const BASE_PORT: u16 = 5201;
/// Requested socket buffer in UDP trials, in bytes: at 10 Gbit/s it holds 3 ms. If a station's
/// kernel allows less (`net.core.rmem_max`, `wmem_max`), that limit applies; the record has the
/// size.
pub const UDP_WINDOW_BYTES: u64 = 4 << 20;

/// iperf3's header in a datagram: seconds, microseconds and a sequence number, 4 bytes each.
const IPERF3_UDP_HEADER_BYTES: usize = 12;
/// Length of the longest marker, and period of the payload's pattern.
const MARKER_BYTES: usize = 10;
/// Length of the shortest marker: shorter ones occur in ciphertext by chance.
const MARKER_BYTES_MIN: usize = 4;

/// A program that prepares a station.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preparation {
    /// The station.
    pub node: NodeId,
    /// Ends by itself.
    pub program: Program,
}

/// The commands on the stations during a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    /// The cores of the stations.
    pub cores: Cores,
    /// Preparations of stations, before anything is counted: each must succeed, and report the
    /// same.
    pub preparations: Vec<Preparation>,
    /// On station A before the others, alone: ping, for the baseline round trip of a TCP transfer
    /// (RFC 6349 section 3.2.1). `None` if the tool reports no round trip for comparison.
    pub baseline: Option<Program>,
    /// On station B, started first; none for ping.
    pub servers: Vec<Program>,
    /// On station A; their end ends the trial.
    pub clients: Vec<Program>,
    /// Parameters in force, with every default filled in.
    pub parameters: ToolParameters,
    /// Beginning and end of the measured time.
    pub timing: Timing,
    /// Bytes that every full packet of the stations carries in clear; empty when the payload is too
    /// short for a marker.
    pub marker: Vec<u8>,
}

impl Commands {
    /// All programs, in the order started.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        let preparations = self.preparations.iter().map(|one| &one.program);
        let others = self.servers.iter().chain(&self.clients);
        preparations.chain(&self.baseline).chain(others)
    }

    /// The cores of all programs.
    pub(crate) fn cores(&self) -> Vec<u16> {
        self.programs()
            .flat_map(|program| program.cores.clone())
            .collect()
    }
}

/// Why a cell has no commands. The texts say what to change in the campaign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// More cores than there are.
    #[error(
        "the cell asks for {wanted} cores per station, {whose} has {present}; \
         set `cores` to {present} or less"
    )]
    TooFewCores {
        /// [`Stations::cores`].
        wanted: u16,
        /// The machine: `this machine`, or `host a`.
        whose: &'static str,
        /// CPUs of the machine, as far as a lab's `cpus` permit.
        present: u16,
    },
    /// The cell measures crypto devices, which need no tool.
    #[error("crypto devices have no stations, so no tool can run there")]
    NoStations,
    /// A setting is zero that must be at least one.
    #[error("{what} is 0; set it to 1 or more")]
    Zero {
        /// The setting.
        what: &'static str,
    },
    /// `ping` counts its interval in whole milliseconds.
    #[error("ping cannot keep an interval of {interval_ns} ns; set a multiple of 1 ms")]
    PingInterval {
        /// [`Measurement::Ping::interval_ns`].
        interval_ns: u64,
    },
    /// `ping` reports no round-trip time when its timestamp does not fit in the payload.
    #[error("a ping payload of {payload_bytes} B has no room for its timestamp; set 16 B or more")]
    PingPayload {
        /// [`Measurement::Ping::payload_bytes`].
        payload_bytes: u16,
    },
    /// An MTU that has no room for IPv4 and UDP headers.
    #[error(
        "an MTU of {mtu} B has no room for a UDP datagram; IPv4 requires 68 B or more (RFC 791)"
    )]
    Mtu {
        /// [`Stations::mtu`].
        mtu: u16,
    },
    /// A tool would print more than a station keeps of its output.
    #[error(
        "{streams} streams in one process report more than is kept in this time; set fewer `streams`, more \
         `cores` or a shorter `duration`"
    )]
    TooLong {
        /// Streams of the process that has most.
        streams: u16,
    },
    /// The certificate of a trial with TLS cannot be created.
    #[error("no certificate for the trial's server: {problem}")]
    Certificate {
        /// Why.
        problem: String,
    },
    /// A kind of measurement without a tool.
    #[error("no tool measures `{measurement}` here")]
    NoTool {
        /// [`Measurement::name`].
        measurement: &'static str,
    },
}

/// Cores of the stations' tools, as [`Program::cores`] counts them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// Station A's, from the low end.
    pub a: Vec<u16>,
    /// Station B's, from the high end of the same machine, or from the low end of another one.
    pub b: Vec<u16>,
    machines: Machines,
}

impl Cores {
    /// Assigns `per_station` CPUs to each station. On one machine A takes them from the low end and
    /// B from the high end, so that they share as few as possible: threads of one core and memory
    /// of another NUMA node are used only if nothing else is left.
    ///
    /// # Errors
    /// When a machine has fewer than `per_station`, or that is 0.
    pub fn assign(per_station: u16, machines: impl Into<Machines>) -> Result<Self, CommandError> {
        let machines = machines.into();
        if per_station == 0 {
            return Err(CommandError::Zero {
                what: "the number of cores per station",
            });
        }
        let each = usize::from(per_station);
        let choice = |machine: &Machine, whose, wanted| match machine.present() {
            present if each > present => Err(CommandError::TooFewCores {
                wanted: per_station,
                whose,
                present: u16::try_from(present).unwrap_or(u16::MAX),
            }),
            _ => Ok(machine.choice(wanted)),
        };
        let (a, b) = match &machines {
            // One choice of double the number for both, from its two ends. With fewer CPUs the
            // stations share the ones in the middle.
            Machines::One(machine) => {
                let choice = choice(machine, "this machine", 2 * each)?;
                (choice.clone(), choice.into_iter().rev().collect())
            }
            Machines::Two([a, b]) => (choice(a, "host a", each)?, choice(b, "host b", each)?),
        };
        let [a, b] = [a, b].map(|choice: Vec<u16>| choice.into_iter().take(each).collect());
        Ok(Self { a, b, machines })
    }

    /// Cores that both stations use.
    #[must_use]
    pub fn shared(&self) -> Vec<u16> {
        self.shared_by(&self.a, &self.b)
    }

    /// The cores of `a` that are also in `b`; none on two machines.
    pub(crate) fn shared_by(&self, a: &[u16], b: &[u16]) -> Vec<u16> {
        match self.machines {
            Machines::One(_) => a.iter().copied().filter(|core| b.contains(core)).collect(),
            Machines::Two(_) => Vec::new(),
        }
    }

    /// These of A's cores, and these of B's, by the kernel's numbers, with their hosts if there are
    /// two.
    pub(crate) fn in_words(&self, a: &[u16], b: &[u16]) -> [String; 2] {
        let list = |machine: &Machine, cores: &[u16]| {
            let words = cores.iter().map(|core| machine.number(*core).to_string());
            words.collect::<Vec<_>>().join(", ")
        };
        match &self.machines {
            Machines::One(machine) => [a, b].map(|cores| list(machine, cores)),
            Machines::Two([of_a, of_b]) => {
                [list(of_a, a) + " of host a", list(of_b, b) + " of host b"]
            }
        }
    }
}

/// Returns the words of a program as a shell command, for people and the journal; of one that reads
/// its task from standard input with that task as the last word.
#[must_use]
pub fn words(program: &Program) -> Vec<String> {
    let [first, name] = &program.argv[..] else {
        return program.argv.clone();
    };
    if first != THIS_PROGRAM {
        return program.argv.clone();
    }
    // The arguments of a subcommand are on standard input, and not in `argv`.
    let task = match name.as_str() {
        // Its task has the key of the trial, which no journal is to have.
        http::SUB_COMMAND => http::shown(&program.stdin).unwrap_or_default(),
        _ => program.stdin.trim_end().to_owned(),
    };
    [THIS_PROGRAM_NAME, name, "<<<", &task]
        .map(str::to_owned)
        .to_vec()
}

/// Returns a subcommand of this binary that reads its specification as a line of JSON.
pub(crate) fn sub_command(name: &str, spec: &impl Serialize) -> Program {
    // On standard input: a specification may have keys in it, and every user of the machine can
    // read a command line.
    let spec = serde_json::to_string(spec).expect("a specification is plain data");
    Program::new([THIS_PROGRAM, name]).with_input(spec + "\n")
}

/// The same on these CPUs, by the station's numbers.
pub(crate) fn sub_command_on(
    name: &str,
    spec: &impl Serialize,
    cores: &[u16],
    ready: Ready,
) -> Program {
    Program {
        cores: cores.to_vec(),
        ready,
        ..sub_command(name, spec)
    }
}

/// Returns the parameters of a cell's trials without tuning.
#[must_use]
pub fn parameters(cell: &Cell) -> ToolParameters {
    match cell.measurement {
        Measurement::Tcp {
            streams,
            window_bytes,
            ..
        } => ToolParameters {
            streams: Some(streams),
            window_bytes,
            ..ToolParameters::default()
        },
        Measurement::Udp {
            datagram_bytes,
            rate_bps,
            streams,
            ..
        } => ToolParameters {
            streams: Some(streams),
            window_bytes: Some(UDP_WINDOW_BYTES),
            datagram_bytes: datagram_bytes
                .or_else(|| Some(largest_datagram_bytes(cell.stations?.tool_mtu()))),
            rate_bps,
        },
        _ => ToolParameters::default(),
    }
}

/// Returns the UDP payload of the largest datagram that the MTU carries unfragmented.
#[must_use]
pub fn largest_datagram_bytes(mtu: u16) -> u32 {
    u32::from(mtu).saturating_sub((IPV4_HEADER_BYTES + UDP_HEADER_BYTES) as u32)
}

/// Returns the commands of one trial of `cell` with `parameters`, on machines with those CPUs,
/// against `target`, or B's address in the overlay of the cell.
///
/// # Errors
/// [`CommandError`] when the cell's settings are impossible.
pub fn commands(
    cell: &Cell,
    parameters: &ToolParameters,
    target: Ipv4Addr,
    machines: impl Into<Machines>,
) -> Result<Commands, CommandError> {
    let mut commands = usual(cell, parameters, target, machines)?;
    let measuring = commands.servers.iter_mut().chain(&mut commands.clients);
    for program in measuring {
        let Some(name) = program.argv.first_mut() else {
            continue;
        };
        if let Some(replaced) = cell.dut.software.station_program(name) {
            replaced.clone_into(name);
        }
    }
    Ok(commands)
}

/// The commands with the installed tools.
fn usual(
    cell: &Cell,
    parameters: &ToolParameters,
    target: Ipv4Addr,
    machines: impl Into<Machines>,
) -> Result<Commands, CommandError> {
    let stations = cell.stations.ok_or(CommandError::NoStations)?;
    let cores = Cores::assign(stations.cores, machines)?;
    let target = stations.overlay.target(target);
    match cell.measurement {
        Measurement::Ping {
            count,
            interval_ns,
            payload_bytes,
            ..
        } => {
            let dscp = stations.dscp;
            ping::commands((count, interval_ns, payload_bytes, dscp), target, &cores)
        }
        Measurement::Tcp {
            duration_ns,
            warmup_ns,
            ..
        }
        | Measurement::Udp {
            duration_ns,
            warmup_ns,
            ..
        } => bulk(
            (cell, stations),
            (duration_ns, warmup_ns),
            parameters,
            target,
            &cores,
        ),
        Measurement::Http(test) => http::commands(&test, target, &cores),
        Measurement::Video(test) => video::commands(&test, (target, stations.mtu), &cores),
        Measurement::Ike(_) | Measurement::Frames(_) | Measurement::Device(_) => {
            Err(CommandError::NoTool {
                measurement: cell.measurement.name(),
            })
        }
    }
}

/// The share of one process in a bulk transfer, for any tool.
struct Share<'a> {
    direction: TransferDirection,
    /// `None`: the kernel's default, and for UDP.
    congestion: Option<&'a str>,
    target: Ipv4Addr,
    port: u16,
    /// Of this process.
    streams: u16,
    timing: &'a Timing,
    window_bytes: Option<u64>,
    /// `None` for TCP.
    datagrams: Option<Datagrams>,
    /// `None`: the tool's default.
    dscp: Option<Dscp>,
}

impl Share<'_> {
    /// The option for the class of service, with a blank before it; both tools have the same.
    fn class(&self) -> String {
        let dscp = self.dscp;
        dscp.map_or_else(String::new, |dscp| format!(" -S {}", dscp.tos()))
    }
}

#[derive(Clone, Copy)]
struct Datagrams {
    bytes: u32,
    /// Of one stream, in bit/s; `None`: as fast as possible.
    rate_bps: Option<u64>,
}

fn bulk(
    (cell, stations): (&Cell, Stations),
    (duration_ns, warmup_ns): (u64, u64),
    parameters: &ToolParameters,
    target: Ipv4Addr,
    cores: &Cores,
) -> Result<Commands, CommandError> {
    let streams = parameters.streams.unwrap_or(1);
    if streams == 0 {
        return Err(CommandError::Zero {
            what: "the number of streams",
        });
    }
    let datagrams = match cell.measurement {
        Measurement::Udp { .. } => {
            let bytes = parameters
                .datagram_bytes
                .unwrap_or_else(|| largest_datagram_bytes(stations.tool_mtu()));
            if bytes == 0 {
                let mtu = stations.tool_mtu();
                return Err(CommandError::Mtu { mtu });
            }
            // At least 1: to iperf3, 0 means as fast as possible.
            let of_one = |rate: u64| (rate / u64::from(streams)).max(1);
            Some(Datagrams {
                bytes,
                rate_bps: parameters.rate_bps.map(of_one),
            })
        }
        _ => None,
    };
    let processes = stations.cores.min(streams);
    let most = streams.div_ceil(processes);
    let timing = Timing::of_transfer(duration_ns, warmup_ns, most)
        .ok_or(CommandError::TooLong { streams: most })?;
    let tool = cell.measurement.tool().unwrap_or_default();
    let direction = cell.measurement.transfer_direction().unwrap_or_default();
    let congestion = match &cell.measurement {
        Measurement::Tcp { congestion, .. } => congestion.as_deref(),
        _ => None,
    };

    let mut servers = Vec::new();
    let mut clients = Vec::new();
    for i in 0..processes {
        let share = Share {
            direction,
            congestion,
            target,
            port: BASE_PORT + i,
            // The first processes have one stream more, if the streams cannot be divided evenly.
            streams: streams / processes + u16::from(i < streams % processes),
            timing: &timing,
            window_bytes: parameters.window_bytes,
            datagrams,
            dscp: stations.dscp,
        };
        let (server, client, ready) = match tool {
            Tool::Iperf3 => share.iperf3(),
            Tool::Iperf2 => share.iperf2(),
        };
        let i = usize::from(i);
        servers.push(program(&server, vec![cores.b[i]], ready));
        // `Cores::assign` returns the number that the cell asks for, and there are no more
        // processes.
        clients.push(program(&client, vec![cores.a[i]], Ready::Started));
    }
    let marker = match (tool, datagrams) {
        (Tool::Iperf3, Some(datagrams)) => {
            marker(IPERF3_UDP_HEADER_BYTES, datagrams.bytes as usize)
        }
        (Tool::Iperf2, Some(datagrams)) => iperf2::marker(datagrams.bytes as usize),
        // The pattern runs through the stream; segments start anywhere in it.
        (_, None) => pattern(0, MARKER_BYTES),
    };
    // iperf2 does not report the round trip of its connections in numbers.
    let baseline = (datagrams.is_none() && tool == Tool::Iperf3)
        .then(|| program(&ping::baseline(target), vec![cores.a[0]], Ready::Started));
    Ok(Commands {
        cores: cores.clone(),
        preparations: Vec::new(),
        baseline,
        servers,
        clients,
        parameters: parameters.clone(),
        timing,
        marker,
    })
}

impl Share<'_> {
    /// Returns the commands of server and client, and the server's sign of being ready.
    fn iperf3(&self) -> (String, String, Ready) {
        let Self { target, port, .. } = self;
        let interval = seconds(self.timing.step_ns);
        let window = self
            .window_bytes
            .map_or(String::new(), |bytes| format!(" -w {bytes}"));
        // `-b` is per stream; 0 means as fast as possible.
        let udp = self.datagrams.map_or(String::new(), |of| {
            format!(" -u -l {} -b {}", of.bytes, of.rate_bps.unwrap_or(0))
        });
        let direction = iperf3_option(self.direction);
        let congestion = self
            .congestion
            .map_or(String::new(), |name| format!(" -C {name}"));
        let class = self.class();
        let server = format!("iperf3 -s -1 -J -i {interval} -p {port}");
        let client = format!(
            "iperf3 -c {target} -p {port} -J -i {interval} -t {} -P {}{window}{udp}{direction}{congestion}{class} \
             --connect-timeout 3000 --repeating-payload",
            self.timing.run_seconds(),
            self.streams,
        );
        (server, client, Ready::Listening(*port))
    }
}

/// Returns iperf3's option for a direction, with a blank before it.
pub(crate) const fn iperf3_option(direction: TransferDirection) -> &'static str {
    match direction {
        TransferDirection::AToB => "",
        TransferDirection::BToA => " -R",
        TransferDirection::Duplex => " --bidir",
    }
}

fn program(command: &str, cores: Vec<u16>, ready: Ready) -> Program {
    let argv = command.split_whitespace().map(str::to_owned).collect();
    Program {
        argv,
        cores,
        ready,
        ..Program::default()
    }
}

/// Returns the payload at `offset` with `--repeating-payload` and our `ping -p`: the repeated
/// digits.
fn pattern(offset: usize, bytes: usize) -> Vec<u8> {
    (offset..offset + bytes)
        .map(|i| b'0' + (i % 10) as u8)
        .collect()
}

/// Returns the marker: the pattern's bytes behind the header of a payload.
fn marker(header_bytes: usize, payload_bytes: usize) -> Vec<u8> {
    match payload_bytes.saturating_sub(header_bytes).min(MARKER_BYTES) {
        room if room < MARKER_BYTES_MIN => Vec::new(),
        room => pattern(header_bytes, room),
    }
}

/// Formats nanoseconds as seconds with at most three decimals, which both tools accept.
fn seconds(ns: u64) -> String {
    let ms = ns / 1_000_000;
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_cores;
