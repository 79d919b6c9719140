//! What runs on the stations: words of each command, and the cores it may use.
//!
//! Debian 12's iperf3 (3.12) drives all its streams from one thread, so `-P 8` uses one core, not eight. A
//! cell of N cores therefore runs N processes, each held on a core of its own, with the streams spread over
//! them. Newer iperf3 (3.16 on) has a thread per stream; held on one core, it is measured alike.
//!
//! Nothing here runs anything: `plan` prints what [`commands`] returns, and a trial starts just that.

use crate::timing::Timing;
use campaign::plan::{Cell, Measurement};
use journal::record::ToolParameters;
use lab::protocol::{Program, Ready};
use std::net::Ipv4Addr;
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

/// TCP port of the first iperf3 server; each further process takes the next one.
pub const BASE_PORT: u16 = 5201;
/// Socket buffer asked for in UDP trials, in bytes: at 10 Gbit/s it holds 3 ms. A station whose kernel
/// allows less (`net.core.rmem_max`, `wmem_max`) uses what it allows, and the record says how much.
pub const UDP_WINDOW_BYTES: u64 = 4 << 20;

/// iperf3 puts seconds, microseconds and a sequence number, 4 bytes each, before the payload.
const IPERF3_UDP_HEADER_BYTES: usize = 12;
/// `ping` puts a `struct timeval` before its pattern.
const PING_TIMESTAMP_BYTES: usize = 16;
/// Longest marker looked for, and the period of the payload's pattern.
const MARKER_BYTES: usize = 10;
/// A shorter marker would be found in cipher text by chance.
const MARKER_BYTES_MIN: usize = 4;

/// What runs on the stations during a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    /// On station B, started first; none for ping.
    pub servers: Vec<Program>,
    /// On station A; the trial ends with them.
    pub clients: Vec<Program>,
    /// Parameters in force, with every default filled in.
    pub parameters: ToolParameters,
    /// When measuring begins and ends.
    pub timing: Timing,
    /// Bytes that every full packet of the stations carries in clear; empty when the payload is too short
    /// for a pattern that chance would not produce.
    pub marker: Vec<u8>,
}

/// A cell that cannot be turned into commands. The texts say what to change in the campaign.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// More cores than there are.
    #[error(
        "the cell asks for {wanted} cores per station, this machine has {present}; \
         set `cores` to {present} or less"
    )]
    TooFewCores {
        /// [`Cell::cores_per_station`].
        wanted: u16,
        /// Of the machine.
        present: u16,
    },
    /// Zero where at least one is needed.
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
        "an MTU of {mtu} B has no room for a UDP datagram; IPv4 asks for 68 B or more (RFC 791)"
    )]
    Mtu {
        /// [`Cell::mtu`].
        mtu: u16,
    },
    /// A kind of measurement that no tool here makes.
    #[error("no tool measures `{measurement}` here")]
    Unknown {
        /// [`Measurement::name`].
        measurement: &'static str,
    },
}

/// Cores of the stations' tools when both stations are on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores {
    /// Station A's, from the low end.
    pub a: Vec<u16>,
    /// Station B's, from the high end.
    pub b: Vec<u16>,
}

impl Cores {
    /// Gives each station `per_station` of a machine's `present` cores, A from the low end and B from the
    /// high end, so that they share as few as can be.
    ///
    /// # Errors
    /// When the machine has fewer than a station asks for, or none is asked for.
    pub fn assign(per_station: u16, present: u16) -> Result<Self, CommandError> {
        if per_station == 0 {
            return Err(CommandError::Zero {
                what: "the number of cores per station",
            });
        }
        if per_station > present {
            return Err(CommandError::TooFewCores {
                wanted: per_station,
                present,
            });
        }
        Ok(Self {
            a: (0..per_station).collect(),
            b: (0..per_station).map(|i| present - 1 - i).collect(),
        })
    }

    /// Cores that both stations use.
    #[must_use]
    pub fn shared(&self) -> Vec<u16> {
        self.a
            .iter()
            .copied()
            .filter(|core| self.b.contains(core))
            .collect()
    }
}

/// Parameters that a cell's trials use when nothing better was found by tuning.
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
            datagram_bytes: Some(
                datagram_bytes.unwrap_or_else(|| largest_datagram_bytes(cell.mtu)),
            ),
            rate_bps,
        },
        _ => ToolParameters::default(),
    }
}

/// UDP payload of the largest datagram that the MTU carries in one piece.
#[must_use]
pub fn largest_datagram_bytes(mtu: u16) -> u32 {
    u32::from(mtu).saturating_sub((IPV4_HEADER_BYTES + UDP_HEADER_BYTES) as u32)
}

/// The commands of one trial of `cell` with `parameters`, against `target`, on a machine of `machine_cores`.
///
/// # Errors
/// When the cell asks for what cannot be: see [`CommandError`].
pub fn commands(
    cell: &Cell,
    parameters: &ToolParameters,
    target: Ipv4Addr,
    machine_cores: u16,
) -> Result<Commands, CommandError> {
    let cores = Cores::assign(cell.cores_per_station, machine_cores)?;
    match cell.measurement {
        Measurement::Ping {
            count,
            interval_ns,
            payload_bytes,
        } => ping(
            &Echo {
                count,
                interval_ns,
                payload_bytes,
            },
            target,
            &cores,
        ),
        Measurement::Tcp {
            duration_ns,
            warmup_ns,
            ..
        }
        | Measurement::Udp {
            duration_ns,
            warmup_ns,
            ..
        } => iperf3(
            cell,
            Timing::of_transfer(duration_ns, warmup_ns),
            parameters,
            target,
            &cores,
        ),
        ref other => Err(CommandError::Unknown {
            measurement: other.name(),
        }),
    }
}

struct Echo {
    count: u32,
    interval_ns: u64,
    payload_bytes: u16,
}

fn ping(echo: &Echo, target: Ipv4Addr, cores: &Cores) -> Result<Commands, CommandError> {
    let &Echo {
        count,
        interval_ns,
        payload_bytes,
    } = echo;
    if count == 0 {
        return Err(CommandError::Zero {
            what: "the number of echo requests",
        });
    }
    if interval_ns == 0 || interval_ns % 1_000_000 != 0 {
        return Err(CommandError::PingInterval { interval_ns });
    }
    if usize::from(payload_bytes) < PING_TIMESTAMP_BYTES {
        return Err(CommandError::PingPayload { payload_bytes });
    }
    let pattern: String = pattern(0, MARKER_BYTES)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let argv = format!(
        // `-W 1`: wait a second for replies that are late, not the ten that a lost last one would cost.
        "ping -n -i {} -c {count} -s {payload_bytes} -p {pattern} -W 1 {target}",
        seconds(interval_ns),
    );
    Ok(Commands {
        servers: Vec::new(),
        clients: vec![program(&argv, cores.a.clone(), Ready::Started)],
        parameters: ToolParameters::default(),
        timing: Timing::of_ping(count, interval_ns),
        marker: marker(PING_TIMESTAMP_BYTES, usize::from(payload_bytes)),
    })
}

fn iperf3(
    cell: &Cell,
    timing: Timing,
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
    let (udp, marker) = match cell.measurement {
        Measurement::Udp { .. } => {
            let bytes = parameters
                .datagram_bytes
                .unwrap_or_else(|| largest_datagram_bytes(cell.mtu));
            if bytes == 0 {
                return Err(CommandError::Mtu { mtu: cell.mtu });
            }
            // `-b` is per stream; 0 asks for as fast as it goes.
            let rate = parameters
                .rate_bps
                .map_or(0, |rate| (rate / u64::from(streams)).max(1));
            (
                format!(" -u -l {bytes} -b {rate}"),
                marker(IPERF3_UDP_HEADER_BYTES, bytes as usize),
            )
        }
        // The pattern runs through the stream; segments start anywhere in it.
        _ => (String::new(), pattern(0, MARKER_BYTES)),
    };
    let window = parameters
        .window_bytes
        .map_or(String::new(), |bytes| format!(" -w {bytes}"));
    let interval = seconds(timing.interval_ns);

    let processes = cell.cores_per_station.min(streams);
    let mut servers = Vec::new();
    let mut clients = Vec::new();
    for i in 0..processes {
        let port = BASE_PORT + i;
        let share = streams / processes + u16::from(i < streams % processes);
        let server = format!("iperf3 -s -1 -J -i {interval} -p {port}");
        let client = format!(
            "iperf3 -c {target} -p {port} -J -i {interval} -t {} -P {share}{window}{udp} \
             --connect-timeout 3000 --repeating-payload",
            timing.run_seconds(),
        );
        servers.push(program(
            &server,
            vec![cores.b[usize::from(i)]],
            Ready::Listening(port),
        ));
        clients.push(program(
            &client,
            vec![cores.a[usize::from(i)]],
            Ready::Started,
        ));
    }
    Ok(Commands {
        servers,
        clients,
        parameters: parameters.clone(),
        timing,
        marker,
    })
}

fn program(command: &str, cores: Vec<u16>, ready: Ready) -> Program {
    let argv = command.split_whitespace().map(str::to_owned).collect();
    Program {
        argv,
        cores,
        stdin: String::new(),
        ready,
    }
}

/// What `--repeating-payload` and our `ping -p` put at `offset` of a payload: the digits, over and over.
fn pattern(offset: usize, bytes: usize) -> Vec<u8> {
    (offset..offset + bytes)
        .map(|i| b'0' + (i % 10) as u8)
        .collect()
}

/// The pattern's bytes that a payload shows behind its own header.
fn marker(header_bytes: usize, payload_bytes: usize) -> Vec<u8> {
    match payload_bytes.saturating_sub(header_bytes).min(MARKER_BYTES) {
        room if room < MARKER_BYTES_MIN => Vec::new(),
        room => pattern(header_bytes, room),
    }
}

/// Nanoseconds as seconds with as many decimals as needed, at most three: what both tools accept.
fn seconds(ns: u64) -> String {
    let ms = ns / 1_000_000;
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign::plan::{Adapter, Dut};

    const TARGET: Ipv4Addr = Ipv4Addr::new(10, 2, 0, 2);
    const S: u64 = 1_000_000_000;

    fn cell(cores: u16, measurement: Measurement) -> Cell {
        Cell {
            id: "cell".to_owned(),
            group: "group".to_owned(),
            dut: Dut {
                name: "direct".to_owned(),
                adapter: Adapter::Direct,
            },
            mtu: 1500,
            cores_per_station: cores,
            offloads: true,
            measurement,
            tune: false,
            estimate_ns: 0,
        }
    }

    fn tcp(streams: u16) -> Measurement {
        Measurement::Tcp {
            streams,
            window_bytes: None,
            duration_ns: 2 * S,
            warmup_ns: S / 2,
        }
    }

    fn udp(datagram_bytes: Option<u32>, rate_bps: Option<u64>, streams: u16) -> Measurement {
        Measurement::Udp {
            datagram_bytes,
            rate_bps,
            streams,
            duration_ns: S,
            warmup_ns: 0,
        }
    }

    fn lines(cell: &Cell) -> (Vec<String>, Vec<String>) {
        let made = commands(cell, &parameters(cell), TARGET, 4).unwrap();
        let join = |programs: &[Program]| programs.iter().map(|p| p.argv.join(" ")).collect();
        (join(&made.servers), join(&made.clients))
    }

    #[test]
    fn a_tcp_cell_of_one_core_is_one_process_on_each_side() {
        let (servers, clients) = lines(&cell(1, tcp(4)));
        assert_eq!(servers, ["iperf3 -s -1 -J -i 0.1 -p 5201"]);
        assert_eq!(
            clients,
            [
                "iperf3 -c 10.2.0.2 -p 5201 -J -i 0.1 -t 3 -P 4 --connect-timeout 3000 --repeating-payload"
            ]
        );
    }

    #[test]
    fn streams_are_spread_over_one_process_per_core_each_held_on_its_own() {
        let cell = cell(3, tcp(8));
        let made = commands(&cell, &parameters(&cell), TARGET, 4).unwrap();
        let streams: Vec<&str> = made.clients.iter().map(|p| p.argv[11].as_str()).collect();
        assert_eq!(streams, ["3", "3", "2"]);
        let cores =
            |programs: &[Program]| -> Vec<_> { programs.iter().map(|p| p.cores.clone()).collect() };
        assert_eq!(cores(&made.clients), [[0], [1], [2]]);
        assert_eq!(cores(&made.servers), [[3], [2], [1]]);
        assert_eq!(made.servers[2].ready, Ready::Listening(5203));
    }

    #[test]
    fn fewer_streams_than_cores_run_fewer_processes() {
        let (servers, clients) = lines(&cell(2, tcp(1)));
        assert_eq!((servers.len(), clients.len()), (1, 1));
    }

    #[test]
    fn a_udp_rate_is_split_over_the_streams_and_none_means_as_fast_as_it_goes() {
        let (_, clients) = lines(&cell(1, udp(Some(64), Some(90_000_000), 3)));
        assert!(
            clients[0].contains("-P 3 -w 4194304 -u -l 64 -b 30000000 "),
            "{}",
            clients[0]
        );
        let (_, clients) = lines(&cell(1, udp(None, None, 1)));
        assert!(clients[0].contains("-u -l 1472 -b 0 "), "{}", clients[0]);
    }

    #[test]
    fn a_ping_carries_the_marker_and_keeps_its_interval() {
        let ping = Measurement::Ping {
            count: 100,
            interval_ns: 2_000_000,
            payload_bytes: 56,
        };
        let (servers, clients) = lines(&cell(1, ping));
        assert!(servers.is_empty());
        assert_eq!(
            clients,
            ["ping -n -i 0.002 -c 100 -s 56 -p 30313233343536373839 -W 1 10.2.0.2"]
        );
    }

    #[test]
    fn stations_share_cores_only_when_there_are_too_few() {
        let apart = Cores::assign(1, 2).unwrap();
        assert_eq!(
            (apart.a.as_slice(), apart.b.as_slice()),
            (&[0][..], &[1][..])
        );
        assert!(apart.shared().is_empty());
        assert_eq!(Cores::assign(2, 2).unwrap().shared(), [0, 1]);
        assert_eq!(Cores::assign(2, 3).unwrap().shared(), [1]);
        assert_eq!(
            Cores::assign(3, 2),
            Err(CommandError::TooFewCores {
                wanted: 3,
                present: 2
            })
        );
    }

    #[test]
    fn the_marker_is_what_the_tools_were_seen_to_send() {
        // Captured from iperf3 3.12 and iputils 20221126: behind their headers both go on in the pattern.
        assert_eq!(marker(IPERF3_UDP_HEADER_BYTES, 1472), b"2345678901");
        assert_eq!(marker(IPERF3_UDP_HEADER_BYTES, 18), b"234567");
        assert_eq!(marker(IPERF3_UDP_HEADER_BYTES, 15), b"");
        assert_eq!(marker(PING_TIMESTAMP_BYTES, 56), b"6789012345");
    }

    #[test]
    fn what_cannot_run_is_refused_with_the_setting_to_change() {
        let error = |cell: &Cell| {
            commands(cell, &parameters(cell), TARGET, 4)
                .unwrap_err()
                .to_string()
        };
        assert!(error(&cell(9, tcp(1))).contains("9 cores per station, this machine has 4"));
        assert!(error(&cell(0, tcp(1))).contains("cores per station is 0"));
        assert!(error(&cell(1, tcp(0))).contains("streams is 0"));
        let ping = |count, interval_ns, payload_bytes| {
            cell(
                1,
                Measurement::Ping {
                    count,
                    interval_ns,
                    payload_bytes,
                },
            )
        };
        assert!(error(&ping(0, 1_000_000, 56)).contains("echo requests is 0"));
        assert!(error(&ping(1, 500_000, 56)).contains("multiple of 1 ms"));
        assert!(error(&ping(1, 1_000_000, 8)).contains("timestamp"));
        let mut tiny = cell(1, udp(None, None, 1));
        tiny.mtu = 28;
        assert!(error(&tiny).contains("MTU of 28 B"));
    }
}
