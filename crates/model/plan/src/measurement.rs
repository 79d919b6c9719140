//! What a trial measures, and with which tool.

use crate::procedure::ProcedureKind;
use crate::words::time;
use crate::{
    DeviceTest, Dscp, FrameTest, HttpClient, HttpTest, IkeTest, Player, Tool, TransferDirection,
    VideoTest, VideoTransport,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use strum::VariantArray;
use units::human::counted;
use units::{BitRate, Bytes, Layer};

/// The measurement of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Measurement {
    /// Bulk TCP by a tool.
    Tcp {
        /// The tool that sends and receives.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        tool: Tool,
        /// Which way the payload goes.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        direction: TransferDirection,
        /// Congestion control by the kernel's name (`-C`, `-Z`); `None`: the kernel's default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        congestion: Option<String>,
        /// Parallel streams (`-P`), over all processes.
        streams: u16,
        /// Socket buffer (`-w`) in bytes; `None`: the kernel tunes it.
        window_bytes: Option<u64>,
        /// Measured time, in nanoseconds, after `warmup_ns`.
        duration_ns: u64,
        /// Time at the start that is not counted (`-O`).
        warmup_ns: u64,
    },
    /// UDP by a tool.
    Udp {
        /// The tool that sends and receives.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        tool: Tool,
        /// Which way the datagrams go.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        direction: TransferDirection,
        /// UDP payload (`-l`) in bytes; `None`: the largest that the MTU carries whole.
        datagram_bytes: Option<u32>,
        /// Offered payload rate (`-b`) of each way in bit/s; `None`: as fast as the tool can send.
        rate_bps: Option<u64>,
        /// Parallel streams (`-P`), over all processes.
        streams: u16,
        /// Measured time, in nanoseconds.
        duration_ns: u64,
        /// Time at the start that is not counted (`-O`).
        warmup_ns: u64,
    },
    /// Round-trip time by ping, from A to B.
    Ping {
        /// Echo requests per trial.
        count: u32,
        /// From one request to the next, in nanoseconds.
        interval_ns: u64,
        /// ICMP payload in bytes.
        payload_bytes: u16,
        /// Whether the same requests are sent again under a TCP load from A to B, from B to A, and
        /// both ways.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        loaded: bool,
        /// Whether the hops of the path and its MTU are looked for.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        route: bool,
        /// Classes of service of the load: a TCP connection of each, in parallel. Empty: one
        /// connection without a class.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        load_dscp: Vec<Dscp>,
    },
    /// Objects over HTTP, fetched by A from B.
    Http(HttpTest),
    /// Video, played by A from B.
    Video(VideoTest),
    /// Set-ups of IKEv2 by simulated peers beside gw2.
    Ike(IkeTest),
    /// Ethernet frames of exact size by Cipherbench's generator and analyser.
    Frames(FrameTest),
    /// Operations of a crypto device.
    Device(DeviceTest),
}

/// Loads under which echo requests are repeated.
const LOADED_TIMES: u32 = 3;
/// Time of a load around the requests, about.
const LOAD_AROUND: Duration = Duration::from_secs(3);
/// Time to find hops and MTU, about.
const ROUTE_TIME: Duration = Duration::from_secs(5);

/// Names of the kinds of tools' trials.
const TOOLS: [&str; 7] = ["tcp", "udp", "ping", "http", "flows", "video", "ike"];
/// Names of the kinds of crypto devices' trials.
const DEVICE_TRIALS: [&str; 3] = ["kat", "speed", "fatigue"];

impl Measurement {
    /// The names of all kinds, in the order of the documents.
    pub fn kinds() -> impl Iterator<Item = &'static str> {
        let procedures = ProcedureKind::VARIANTS.iter().map(|kind| kind.name());
        TOOLS.into_iter().chain(procedures).chain(DEVICE_TRIALS)
    }

    /// The tool of a bulk transfer; `None` for other measurements.
    #[must_use]
    pub const fn tool(&self) -> Option<Tool> {
        match self {
            Self::Tcp { tool, .. } | Self::Udp { tool, .. } => Some(*tool),
            _ => None,
        }
    }

    /// The frame test; `None` for other measurements.
    #[must_use]
    pub const fn frames(&self) -> Option<&FrameTest> {
        match self {
            Self::Frames(test) => Some(test),
            _ => None,
        }
    }

    /// The trial of IKEv2; `None` for other measurements.
    #[must_use]
    pub const fn ike(&self) -> Option<&IkeTest> {
        match self {
            Self::Ike(test) => Some(test),
            _ => None,
        }
    }

    /// Which way the payload of a bulk transfer goes; `None` for other measurements.
    #[must_use]
    pub const fn transfer_direction(&self) -> Option<TransferDirection> {
        match self {
            Self::Tcp { direction, .. } | Self::Udp { direction, .. } => Some(*direction),
            _ => None,
        }
    }

    /// The key of its figures in the journal.
    #[must_use]
    pub const fn figures(&self) -> &'static str {
        match self {
            // Datagrams are counted as a part of a transfer.
            Self::Tcp { .. } | Self::Udp { .. } => "transfer",
            Self::Ping { .. } => "latency",
            Self::Http(_) => "http",
            Self::Video(_) => "video",
            Self::Ike(_) => "ike",
            Self::Frames(_) => "frames",
            Self::Device(_) => "device",
        }
    }

    /// The programs that measure, unless this program does.
    #[must_use]
    pub fn programs(&self) -> Vec<&'static str> {
        match self {
            Self::Tcp { tool, .. } | Self::Udp { tool, .. } => vec![match tool {
                Tool::Iperf3 => "iperf3",
                Tool::Iperf2 => "iperf",
            }],
            Self::Ping { loaded, route, .. } => {
                // iperf3 makes the load, whichever tool other trials use.
                let all = [(true, "ping"), (*loaded, "iperf3"), (*route, "traceroute")];
                let asked = all.into_iter().filter(|(asked, _)| *asked);
                asked.map(|(_, name)| name).collect()
            }
            Self::Http(test) => {
                let client = (test.client == HttpClient::Wget2).then_some("wget2");
                test.server.program().into_iter().chain(client).collect()
            }
            Self::Video(test) => {
                // ffmpeg makes the clip for every player.
                let player = (test.player == Player::Vlc).then_some(test.player.program());
                let server = (test.transport == VideoTransport::Http).then_some("python3");
                ["ffmpeg"].into_iter().chain(player).chain(server).collect()
            }
            // This program generates frames, simulates peers, and works on devices, by itself.
            Self::Ike(_) | Self::Frames(_) | Self::Device(_) => Vec::new(),
        }
    }

    /// Time that a tool runs: TCP and UDP end with a whole second. `None` without a tool.
    #[must_use]
    pub fn tool_time(&self) -> Option<Duration> {
        match *self {
            Self::Tcp {
                duration_ns,
                warmup_ns,
                ..
            }
            | Self::Udp {
                duration_ns,
                warmup_ns,
                ..
            } => {
                // iperf3 runs for whole seconds (`-t`).
                let run_ns = duration_ns.saturating_add(warmup_ns);
                Some(Duration::from_secs(run_ns.div_ceil(1_000_000_000)))
            }
            Self::Ping {
                count,
                interval_ns,
                loaded,
                route,
                ..
            } => {
                // Idle first, and again under each load.
                let once = Duration::from_nanos(interval_ns) * count;
                let loads = u32::from(loaded) * LOADED_TIMES;
                Some(once + (once + LOAD_AROUND) * loads + ROUTE_TIME * u32::from(route))
            }
            Self::Http(test) => Some(Duration::from_nanos(test.run_ns())),
            Self::Video(test) => Some(Duration::from_nanos(test.run_ns())),
            Self::Ike(test) => Some(test.time()),
            Self::Frames(_) | Self::Device(_) => None,
        }
    }

    /// Whether its figure is compared with the tester's limit without a device.
    #[must_use]
    pub fn has_ceiling(&self) -> bool {
        self.frames()
            .is_some_and(|test| test.procedure.plan().has_ceiling())
    }

    /// Name of the kind, in campaigns, cell ids and gates.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tcp { .. } => "tcp",
            Self::Udp { .. } => "udp",
            Self::Ping { .. } => "ping",
            Self::Http(test) => test.kind(),
            Self::Video(_) => "video",
            Self::Ike(_) => "ike",
            Self::Frames(test) => test.procedure.kind().name(),
            Self::Device(test) => test.name(),
        }
    }

    /// A trial of tools in words; empty for others. `cores` and `path` describe the stations,
    /// `tuned` a search for parameters.
    pub(crate) fn tool_in_words(&self, cores: &str, path: &str, tuned: &str) -> String {
        let run = |duration_ns: u64, warmup_ns: u64| match warmup_ns {
            0 => time(duration_ns),
            _ => format!("{} after {} of warm-up", time(duration_ns), time(warmup_ns)),
        };
        let by = |tool: Tool| {
            // The default is not spelled out, like other defaults.
            let other = (tool != Tool::default()).then(|| format!(" by {}", tool.name()));
            other.unwrap_or_default()
        };
        let going = |direction: TransferDirection| match direction {
            // Defaults are not spelled out, so that a line shows the unusual settings.
            TransferDirection::AToB => "",
            TransferDirection::BToA => " from B to A",
            TransferDirection::Duplex => " both ways at once",
        };
        match self {
            Self::Tcp {
                tool,
                direction,
                congestion,
                streams,
                window_bytes,
                duration_ns,
                warmup_ns,
            } => {
                let streams = counted(*streams, "stream");
                let window = window_bytes.map_or_else(String::new, |bytes| {
                    format!(", window {}", Bytes::new(bytes))
                });
                let congestion = congestion
                    .as_ref()
                    .map_or_else(String::new, |name| format!(", congestion control {name}"));
                let time = run(*duration_ns, *warmup_ns);
                format!(
                    "TCP{}{}, {streams} on {cores}{window}{congestion}, {time}, {path}{tuned}",
                    by(*tool),
                    going(*direction)
                )
            }
            Self::Udp {
                tool,
                direction,
                datagram_bytes,
                rate_bps,
                streams,
                duration_ns,
                warmup_ns,
            } => {
                let streams = counted(*streams, "stream");
                let datagram = datagram_bytes.map_or_else(
                    || "the largest datagrams".to_owned(),
                    |bytes| format!("datagrams of {bytes} B"),
                );
                let rate = rate_bps.map_or_else(
                    || "full rate".to_owned(),
                    |bps| BitRate::new(bps, Layer::Payload).to_string(),
                );
                let time = run(*duration_ns, *warmup_ns);
                format!(
                    "UDP{}{}, {datagram} at {rate}, {streams} on {cores}, {time}, {path}{tuned}",
                    by(*tool),
                    going(*direction)
                )
            }
            Self::Ping {
                count,
                interval_ns,
                payload_bytes,
                loaded,
                route,
                load_dscp,
            } => {
                let interval = time(*interval_ns);
                let classes: Vec<&str> = load_dscp.iter().map(|class| class.name()).collect();
                let loaded = match (*loaded, &classes[..]) {
                    (false, _) => String::new(),
                    (true, []) => ", idle and under TCP load".to_owned(),
                    (true, classes) => format!(
                        ", idle and under TCP loads of the classes {} in parallel",
                        classes.join(", ")
                    ),
                };
                let route = if *route {
                    ", with hops and path MTU"
                } else {
                    ""
                };
                format!(
                    "ping, {count} requests of {payload_bytes} B, one every {interval}{loaded}{route}, {path}"
                )
            }
            Self::Http(test) => format!("{} on {cores}, {path}", test.in_words()),
            Self::Video(test) => format!("{} on {cores}, {path}", test.in_words()),
            Self::Ike(test) => format!("{}, {path}", test.in_words()),
            Self::Frames(_) | Self::Device(_) => String::new(),
        }
    }
}
