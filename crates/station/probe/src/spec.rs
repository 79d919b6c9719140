//! The spec of a station's part, and the counts that it reports.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

/// The line that a server prints when it listens.
pub const READY: &str = "ready";

/// One station's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "part")]
pub enum Spec {
    /// Serve callers until stopped.
    Serve {
        /// TCP port.
        port: u16,
    },
    /// Make all checks against a server, and report [`Findings`].
    Call {
        /// The server.
        target: Ipv4Addr,
        /// Its TCP port.
        port: u16,
        /// Time of each check in milliseconds.
        check_ms: u64,
        /// Length of the long datagrams' payload in bytes.
        datagram_bytes: u16,
        /// The checks to make; empty: all. The largest packet is always searched first: the kernel
        /// then knows it, and later checks lose nothing to a router that reports it.
        checks: Vec<(Direction, Check)>,
    },
}

/// Direction of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the caller to the server.
    Up,
    /// From the server to the caller.
    Down,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];
}

/// A kind of datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Datagrams {
    /// One system call for each.
    Single,
    /// Trains by `UDP_SEGMENT`, received with `UDP_GRO`; the last datagram of each is shorter.
    Trains,
    /// One system call for each, without a UDP checksum.
    Unchecked,
    /// DSCP, ECN and TTL change within a flow, and so does the length.
    Marked,
}

impl Datagrams {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Single, Self::Trains, Self::Unchecked, Self::Marked];
}

/// A check of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// A TCP stream.
    Tcp,
    /// Datagrams of a kind.
    Udp(Datagrams),
}

impl Check {
    /// All checks.
    pub const ALL: [Self; 5] = [
        Self::Tcp,
        Self::Udp(Datagrams::Single),
        Self::Udp(Datagrams::Trains),
        Self::Udp(Datagrams::Unchecked),
        Self::Udp(Datagrams::Marked),
    ];

    /// The checks over IPv6: without UDP that has no checksum, and without marked datagrams.
    pub const IPV6: [Self; 3] = [
        Self::Tcp,
        Self::Udp(Datagrams::Single),
        Self::Udp(Datagrams::Trains),
    ];
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp(Datagrams::Single) => "UDP",
            Self::Udp(Datagrams::Trains) => "UDP in trains (UDP_SEGMENT)",
            Self::Udp(Datagrams::Unchecked) => "UDP without checksums",
            Self::Udp(Datagrams::Marked) => "UDP with changing DSCP, ECN and TTL",
        })
    }
}

/// The counts of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamCounts {
    /// Bytes that the sender's kernel accepted.
    pub sent_bytes: u64,
    /// Bytes that arrived and are those that were sent.
    pub received_bytes: u64,
    /// Offset of the first wrong byte.
    pub wrong_at: Option<u64>,
    /// Whether the stream ended in order, by the time limit.
    pub ended: bool,
    /// From the first to the last byte, at the receiver.
    pub elapsed_ns: u64,
}

/// The counts of datagrams.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatagramCounts {
    /// Sent.
    pub sent: u64,
    /// Intact ones, each counted once.
    pub received: u64,
    /// Payload of these in bytes.
    pub received_bytes: u64,
    /// Datagrams that arrived more than once.
    pub repeated: u64,
    /// Datagrams of another length than they were sent with.
    pub wrong_length: u64,
    /// Datagrams with another payload.
    pub wrong_payload: u64,
    /// Intact ones with another DSCP or ECN.
    pub wrong_tos: u64,
    /// Intact ones with another TTL than the hops of the first one explain.
    pub wrong_ttl: u64,
    /// Time of all rounds at the sender.
    pub elapsed_ns: u64,
    /// Why trains were sent datagram by datagram, if the kernel refused them.
    pub refused: Option<String>,
}

/// The largest packet of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathMtu {
    /// The MTU that the sender's kernel uses, after all reports of routers, in bytes.
    pub known_bytes: u16,
    /// The longest IP packet that arrived.
    pub passed_bytes: u16,
}

impl PathMtu {
    /// Whether packets vanish that the kernel takes for short enough, and no router reports it.
    #[must_use]
    pub const fn is_black_hole(self) -> bool {
        self.passed_bytes < self.known_bytes
    }
}

/// The results of the requested checks; the error of one that could not be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// Streams.
    pub tcp: Vec<(Direction, Result<StreamCounts, String>)>,
    /// Datagrams.
    pub udp: Vec<(Direction, Datagrams, Result<DatagramCounts, String>)>,
    /// Path MTUs.
    pub mtu: Vec<(Direction, Result<PathMtu, String>)>,
}
