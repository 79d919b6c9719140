//! Request to one end of the link for a clock comparison, and its result.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// The four times of a probe, in nanoseconds, each by the CLOCK_MONOTONIC of its side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// The probe left, or a little earlier.
    pub sent_ns: i64,
    /// It arrived, or a little later.
    pub received_ns: i64,
    /// The answer left, or a little earlier.
    pub answered_ns: i64,
    /// It arrived, or a little later.
    pub returned_ns: i64,
}

/// Probes that were answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchanges {
    /// In order.
    pub exchanges: Vec<Exchange>,
    /// Maximum error of both sides' stamp conversions together.
    pub within_ns: u64,
    /// By how much the kernels of the asking and of the answering side correct the rates of their
    /// clocks, in parts of 10^9 (adjtimex(2)).
    pub corrected_ppb: [i64; 2],
    /// Whether cards stamped every one of them, at the asking and at the answering side.
    pub by_cards: [bool; 2],
}

/// Probes to send.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Interface.
    pub interface: String,
    /// Its MAC address.
    pub own: [u8; 6],
    /// MAC address of the interface that answers, or of the first box on the way there.
    pub target: [u8; 6],
    /// Source and target of probes over UDP, which boxes pass on; `None`: frames of an experimental
    /// EtherType.
    pub udp: Option<[Ipv4Addr; 2]>,
    /// Number of probes.
    pub probes: u32,
}
