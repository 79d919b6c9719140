//! The result of a trial of IKEv2.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Loads of set-ups, and the one that the figures are of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IkeResult {
    /// Every load that was offered, in order.
    pub trials: Vec<IkeTrial>,
    /// Place in `trials` of the load with the figures and the evidence.
    pub figure: usize,
    /// The search for the highest rate; `None` at a given rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<IkeSearch>,
}

impl IkeResult {
    /// The load with the figures.
    #[must_use]
    pub fn figures(&self) -> Option<&IkeTrial> {
        self.trials.get(self.figure)
    }
}

/// The result of a search for the highest rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IkeSearch {
    /// The highest rate that was carried, per second; `None`: none was.
    pub lower_per_s: Option<u64>,
    /// The lowest rate that was not; `None`: all were.
    pub upper_per_s: Option<u64>,
}

/// One load of set-ups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IkeTrial {
    /// Set-ups offered per second.
    pub per_s: u64,
    /// Set-ups in the schedule.
    pub intended: u64,
    /// Begun.
    pub started: u64,
    /// Completed.
    pub completed: u64,
    /// Of these, within the time that the campaign allows.
    pub in_time: u64,
    /// Failed ones by reason: the RFC's name of a notification, or words.
    pub failed: BTreeMap<String, IkeFailure>,
    /// Times from the intended start to the completion: parts per thousand of the intended
    /// set-ups, and the time that this part did not exceed, in nanoseconds. Parts that did not
    /// complete are missing.
    pub latency_ns: Vec<(u16, u64)>,
    /// The delay of starts after their times that one of a hundred exceeds, in nanoseconds.
    pub late_p99_ns: u64,
    /// From the first intended start to the last completion, in nanoseconds.
    pub elapsed_ns: u64,
    /// Requests that were sent again.
    pub retransmissions: u64,
    /// Cookies that the gateway asked for.
    pub cookies: u64,
    /// Datagrams of the set-ups that the peers sent, and their content in bytes.
    pub sent: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// Datagrams that the peers received.
    pub received: u64,
    /// Bytes of these.
    pub received_bytes: u64,
    /// Datagrams that the generator lost for want of space, or could not send.
    pub generator_lost: u64,
    /// CPU time of the generator, in nanoseconds.
    pub generator_cpu_ns: u64,
    /// CPU time of the gateway's processes meanwhile, in nanoseconds; `None` if unknown.
    pub gateway_cpu_ns: Option<u64>,
    /// IKE SAs by the gateway's own count.
    pub gateway: GatewaySas,
}

/// Failures of one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IkeFailure {
    /// How many.
    pub count: u64,
    /// The first one, as a sentence with a remedy.
    pub example: String,
}

/// IKE SAs by a gateway's own count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewaySas {
    /// Before the load.
    pub before: u64,
    /// When the last set-up was over, with half-open ones.
    pub up: u64,
    /// Of these, half-open.
    pub half_open: u64,
    /// After the peers had deleted theirs.
    pub after: u64,
}

impl IkeTrial {
    /// Failed set-ups.
    #[must_use]
    pub fn failures(&self) -> u64 {
        let counts = self.failed.values().map(|it| it.count);
        counts.fold(0, u64::saturating_add)
    }

    /// The time that a part of the intended set-ups did not exceed, in parts per thousand.
    #[must_use]
    pub fn latency(&self, permille: u16) -> Option<u64> {
        let mut times = self.latency_ns.iter();
        times.find(|(part, _)| *part == permille).map(|(_, ns)| *ns)
    }
}
