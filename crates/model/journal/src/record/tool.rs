//! Results of tools: bulk transfers, round trips, and the path at the IP layer.

use super::ToolParameters;
use plan::{Dscp, TransferDirection};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A bulk transfer one way, measured by the receiving station: from A to B, or from B to A if the
/// cell has that [direction](plan::TransferDirection). A duplex transfer has A to B here, and the
/// other way in [`reverse`](Self::reverse).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Parameters in force.
    pub parameters: ToolParameters,
    /// Measured time, without warm-up.
    pub duration_ns: u64,
    /// Payload bytes that the sender wrote to its socket in that time.
    pub sent_bytes: u64,
    /// Payload bytes that the receiver received in that time.
    pub received_bytes: u64,
    /// Retransmitted TCP segments, if the tool reports them.
    pub retransmits: Option<u64>,
    /// Datagrams, for UDP.
    pub datagrams: Option<Datagrams>,
    /// The timeline: the receiver's if the tool reports it, else the sender's.
    pub intervals: Vec<Interval>,
    /// TCP: data for the figures of RFC 6349; `None` for UDP, if the tool does not report it, and
    /// in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpFacts>,
    /// The other way of a duplex transfer, from B to A, in the same time; `None` of one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Box<Self>>,
}

impl Transfer {
    /// The ways that carried payload: one, or of a duplex transfer A to B and B to A.
    pub fn each_way(&self) -> impl Iterator<Item = &Self> {
        // A transfer in one direction is a list of one.
        [Some(self), self.reverse.as_deref()].into_iter().flatten()
    }

    /// The queue that drained after the sender had ended, if one did.
    #[must_use]
    pub fn drain(&self) -> Option<Drain> {
        self.datagrams?.drain
    }

    /// Payload bytes that the sender offered, and the time that it took.
    #[must_use]
    pub fn offered(&self) -> (u64, u64) {
        match (self.drain(), self.parameters.datagram_bytes) {
            // The duration of the transfer is the receiver's then, and too long for the sender's
            // rate.
            (Some(drain), Some(bytes)) => {
                (drain.offered.saturating_mul(bytes.into()), drain.offered_ns)
            }
            _ => (self.sent_bytes, self.duration_ns),
        }
    }
}

/// TCP by the sender's kernel, as the tool reports it (`struct tcp_info`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpFacts {
    /// Maximum segment size at the start, in bytes of payload.
    pub segment_bytes: Option<u64>,
    /// Round-trip time while the transfer ran: mean of the smoothed estimates (`tcpi_rtt`) of all
    /// streams at the ends of the intervals in the measured time.
    pub loaded_rtt_ns: Option<u64>,
    /// Shortest round trip of echo requests on the idle path, just before the transfer (the
    /// baseline RTT of RFC 6349 section 3.2.1).
    pub baseline_rtt_ns: Option<u64>,
    /// Congestion control that the sender's kernel used.
    pub congestion: Option<String>,
}

/// Datagram counts of a UDP transfer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Datagrams {
    /// Sent by the sending station.
    pub sent: u64,
    /// Of those, not received by the other.
    pub lost: u64,
    /// Of the lost ones, datagrams that the receiving station dropped for a full socket buffer. The
    /// path lost the rest.
    #[serde(default)]
    pub station_lost: u64,
    /// Received out of order.
    pub out_of_order: u64,
    /// Copies that the impaired path made and the receiver counted, by the packets out of order;
    /// they are in no other figure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub copies: u64,
    /// Interarrival jitter by RFC 3550 §6.4.1, as iperf computes it, in nanoseconds: mean over its
    /// streams.
    pub jitter_ns: u64,
    /// The queue that drained after the sender had ended; `None` if none did, and in older
    /// journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<Drain>,
}

/// A queue that drained: datagrams arrived for longer than they were sent, at a steady rate, since
/// the path was slower than the sender and queued the excess. The duration of the transfer is then
/// the receiver's, and the sender offered its load in less time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// From the sender's end to the receiver's, by the clock of each.
    pub time_ns: u64,
    /// Datagrams that were sent in the measured time, by the sender's clock.
    pub offered: u64,
    /// The measured time by the sender's clock.
    pub offered_ns: u64,
}

/// One step of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// From the start of the measured time.
    pub start_ns: u64,
    /// From the start of the measured time.
    pub end_ns: u64,
    /// Payload bytes.
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
    /// The same requests under TCP loads, in the order made; empty if not requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loaded: Vec<LoadedLatency>,
    /// Hops and MTU of the path; `None` if not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Route>,
}

/// Round-trip times while TCP loaded the path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedLatency {
    /// Which way the load went.
    pub direction: TransferDirection,
    /// Requests sent.
    pub sent: u64,
    /// Replies received.
    pub received: u64,
    /// Each reply's round-trip time in the order of the requests, in nanoseconds.
    pub round_trips_ns: Vec<u64>,
    /// Time of the requests.
    pub duration_ns: u64,
    /// Bytes of frames that went from A's side to B's and back in that time: between the gateways,
    /// or on the stations' links if the link between the gateways is not observed.
    pub link_bytes: [u64; 2],
    /// The loads by class, if several classes loaded the path in parallel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<LoadedClass>,
    /// Packets sampled between the gateways under a load of several classes, by the class of the
    /// outermost IP header; empty without that and in older journals.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outer_dscp: BTreeMap<String, u64>,
}

/// The load of one class of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedClass {
    /// The class.
    pub class: Dscp,
    /// Payload that arrived from A at B and back in the time of the requests, in bytes.
    pub bytes: [u64; 2],
}

/// The path from station A to B at the IP layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Hops by traceroute; the last one is the target if it answered.
    pub hops: Vec<Hop>,
    /// IP MTU of the stations' links.
    pub link_mtu_bytes: u16,
    /// Largest IP packet with DF set that was answered, found by search (RFC 8899 section 5.3);
    /// `None` if not even the smallest one was.
    pub path_mtu_bytes: Option<u16>,
    /// MTU that a router on the path reported for a packet as long as the links' MTU (RFC 1191
    /// section 4); `None` without a report.
    pub reported_mtu_bytes: Option<u16>,
}

/// One hop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// Address of the first answer; `None` without an answer.
    pub address: Option<String>,
    /// Other output of traceroute: further addresses that answered, labels of MPLS, and the refusal
    /// in an answer (`!H`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Round-trip times of the probes that were answered, in nanoseconds.
    pub round_trips_ns: Vec<u64>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
