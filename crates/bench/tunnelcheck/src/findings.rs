//! The observations of a check, as plain values.

use offloads::Keep;
use probe::PathMtu;
use serde::{Deserialize, Serialize};

/// A host, as it describes itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFacts {
    /// Version of its program.
    pub program: String,
    /// The interface of its route to the other end.
    pub interface: String,
    /// The interface's kind as `ip -d link` names it, such as `wireguard`; empty for a card.
    pub kind: String,
}

/// The form of known packets that left a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "sealed")]
pub enum Seal {
    /// Encrypted, as far as the bytes show.
    Yes {
        /// The interface that they left.
        interface: String,
        /// The form of the packets, such as `ESP in UDP`.
        form: String,
        /// Packets that were found.
        packets: u32,
    },
    /// Not encrypted.
    No {
        /// The interface that they left.
        interface: String,
        /// The form of the packets.
        form: String,
        /// How it is known.
        why: Unsealed,
        /// Packets that show it.
        packets: u32,
    },
    /// Not known.
    Unknown {
        /// Why, as a clause: `needs root on this host`.
        reason: String,
    },
}

impl Seal {
    /// The interface that the packets left, if they were found.
    pub(crate) fn interface(&self) -> Option<&str> {
        match self {
            Self::Yes { interface, .. } | Self::No { interface, .. } => Some(interface),
            Self::Unknown { .. } => None,
        }
    }
}

/// How it is known that packets are not encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unsealed {
    /// Their text is readable.
    Readable,
    /// Equal texts leave as equal bytes.
    Repeats,
}

/// The sending side of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendReport {
    /// Segments with data that were sent, repeated ones included.
    pub segments: u32,
    /// Segments that were sent again.
    pub retransmitted: u32,
    /// Time with data to send or unacknowledged, in microseconds.
    pub busy_us: u64,
    /// Time with a full receive window, a part of it.
    pub receiver_limited_us: u64,
    /// Time with a full send buffer, a part of it.
    pub buffer_limited_us: u64,
    /// The sender's busiest CPU.
    pub cpu: Option<CpuUse>,
}

/// The receiving side of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Received {
    /// Bytes that arrived in each second.
    pub second_bytes: Vec<u64>,
    /// The receiver's busiest CPU.
    pub cpu: Option<CpuUse>,
}

/// The busiest CPU of a host during a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuUse {
    /// Its number.
    pub cpu: u16,
    /// Time that it was not idle, in per cent.
    pub busy_percent: u8,
    /// Time in software interrupts, in per cent.
    pub softirq_percent: u8,
}

/// Round trips of small datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// Sent.
    pub sent: u32,
    /// Not answered within a second.
    pub lost: u32,
    /// Median in nanoseconds; 0 without an answer.
    pub p50_ns: u64,
    /// 95th percentile in nanoseconds.
    pub p95_ns: u64,
    /// Longest in nanoseconds.
    pub max_ns: u64,
}

/// A stream in one direction, as both ends saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// The sender.
    pub sender: SendReport,
    /// The receiver.
    pub receiver: Received,
    /// Round trips meanwhile.
    pub round_trips: Option<RoundTrips>,
}

/// The offloads of a host's interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostOffloads {
    /// The interfaces whose offloads are tried. Settings are numbered in this order, those that are
    /// on first.
    pub interfaces: Vec<Examined>,
    /// Interfaces that are left alone, each with the reason.
    pub spared: Vec<String>,
}

/// An interface with its offloads, by their names for `ethtool -K`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Examined {
    /// Its name.
    pub name: String,
    /// Those that are on and can be changed.
    pub on: Vec<String>,
    /// Those that are off and can be changed.
    pub off: Vec<String>,
    /// Those that cannot be changed.
    pub refused: Vec<Refusal>,
}

/// Offloads that a driver does not change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// Why, in words.
    pub reason: String,
    /// Their names.
    pub features: Vec<String>,
}

/// The result of a search for offloads that hurt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OffloadFindings {
    /// Settings that were tried.
    pub settings: u32,
    /// Combinations of them.
    pub combinations: u32,
    /// Pairs of settings that can be in force together.
    pub pairs: u32,
    /// The pairs that were.
    pub pairs_covered: u32,
    /// Trials of all kinds.
    pub trials: u32,
    /// Offloads that hurt, or would; those in force first.
    pub hurting: Vec<Hurting>,
    /// Symptoms without a cause.
    pub unexplained: Vec<String>,
    /// Offloads and interfaces that were not changed, with the reason.
    pub not_changed: Vec<String>,
    /// Offloads that are not as they were found.
    pub not_restored: Vec<String>,
    /// Time in milliseconds.
    pub took_ms: u64,
}

impl OffloadFindings {
    /// The offloads that hurt now.
    pub(crate) fn in_force(&self) -> impl Iterator<Item = &Hurting> {
        let hurting = self.hurting.iter();
        hurting.filter(|hurting| hurting.in_force && !hurting.causes.is_empty())
    }
}

/// Offloads that break or slow the path together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hurting {
    /// The offloads with their values, such as `tso of here/wg0 = on`; none: in every combination.
    pub causes: Vec<String>,
    /// Their effect.
    pub symptoms: Vec<String>,
    /// Whether all of them were found so.
    pub in_force: bool,
    /// Whether the symptoms came and went once more with one of the causes.
    pub confirmed: bool,
    /// Ways to end the symptoms; any one suffices.
    pub remedies: Vec<Remedy>,
}

/// A way to end symptoms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// Commands, each with its host: `here: ethtool -K wg0 tso off`.
    pub commands: Vec<String>,
    /// Files that keep it over a restart.
    pub keep: Vec<Keep>,
}

/// A value for each direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PerDirection<T> {
    /// From this host, the asker, to the other one.
    pub from_here: T,
    /// From the other host to this one.
    pub to_here: T,
}

/// Everything that a check observed. An error is a clause for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Findings {
    /// The address of the other end.
    pub peer: String,
    /// The asker's host.
    pub here: HostFacts,
    /// The listener's host.
    pub there: HostFacts,
    /// The form of packets that leave the sender.
    pub seal: PerDirection<Seal>,
    /// The largest packet.
    pub mtu: PerDirection<Result<PathMtu, String>>,
    /// Round trips without load.
    pub idle: Result<RoundTrips, String>,
    /// The streams.
    pub streams: PerDirection<Result<Stream, String>>,
    /// The offloads that hurt, if they were asked for.
    pub offloads: Option<Result<OffloadFindings, String>>,
    /// Time of the whole check in milliseconds.
    pub took_ms: u64,
}
