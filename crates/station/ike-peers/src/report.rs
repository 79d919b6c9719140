//! The generator's report after its part in a trial.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The report of a generator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Set-ups: IKE_SA_INIT to the first child SA.
    pub setups: Outcomes,
    /// Deletes of IKE SAs: request to response.
    pub deletes: Outcomes,
    /// Of the load `concurrent`.
    pub standing: Option<Standing>,
    /// Of the load `storm`.
    pub storm: Option<Storm>,
    /// Of the load `rekey`.
    pub rekeys: Option<Rekeys>,
    /// Of the load `half-open`.
    pub flood: Option<Flood>,
    /// It was stopped: the counts end there.
    #[serde(default)]
    pub is_partial: bool,
    /// Datagrams of all.
    pub traffic: Traffic,
    /// Datagrams that peers ignored, by reason.
    pub ignored: BTreeMap<String, u64>,
    /// Memory of the peers, once all were up.
    pub memory: Option<Memory>,
    /// The generator itself.
    pub generator: Generator,
}

/// Outcomes of one kind of exchange.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcomes {
    /// In the schedule.
    pub intended: u64,
    /// Begun.
    pub started: u64,
    /// Completed.
    pub completed: u64,
    /// Failed, by reason: the RFC's name of a notification, or words.
    pub failed: BTreeMap<String, Failure>,
    /// The first failure.
    pub first_failure: Option<FirstFailure>,
    /// Times from the intended start to the completion.
    pub latency: Times,
    /// Delays of starts after their intended times.
    pub late: Times,
    /// Requests that were sent again.
    pub retransmissions: u64,
    /// Cookies that the gateway asked for.
    pub cookies: u64,
    /// Set-ups without PPK, though one is configured.
    pub without_ppk: u64,
    /// Datagrams of these exchanges.
    pub traffic: Traffic,
    /// From the first intended start to the last completion, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of the generator from the first intended start to the last end, in nanoseconds.
    pub cpu_ns: u64,
}

impl Outcomes {
    /// Failures, for any reason.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed.values().map(|it| it.count).sum()
    }
}

/// Failures for one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// How many.
    pub count: u64,
    /// The first one, as a sentence with the section of the RFC and a remedy.
    pub example: String,
}

/// The first failure: up to here the gateway accepted all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstFailure {
    /// Peers that were up.
    pub up: u64,
    /// The reason.
    pub reason: String,
    /// When, in nanoseconds after the first intended start.
    pub at_ns: u64,
}

/// A distribution of times, with three significant digits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Highest value of each bucket in nanoseconds, and the number of times in it, rising.
    pub buckets: Vec<(u64, u64)>,
}

impl Times {
    /// Number of times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// The time that the given part of all does not exceed, in nanoseconds. `of` may exceed the
    /// number of times: the missing ones count as infinite, and the result can be `None`.
    #[must_use]
    pub fn quantile(&self, part: f64, of: u64) -> Option<u64> {
        let wanted = ((part * of as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let mut buckets = self.buckets.iter();
        let found = buckets.find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        found.map(|(upto_ns, _)| *upto_ns)
    }
}

/// Datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Sent.
    pub sent: u64,
    /// Their content in bytes, with the marker of the shared port, without headers of UDP and IP.
    pub sent_bytes: u64,
    /// Received.
    pub received: u64,
    /// Their content in bytes.
    pub received_bytes: u64,
}

/// Peers that stayed up for a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// How long, in nanoseconds.
    pub hold_ns: u64,
    /// Peers with their SAs at the beginning.
    pub up: u64,
    /// At the end.
    pub left: u64,
    /// Peers that lost them, by reason.
    pub lost: BTreeMap<String, Failure>,
    /// Checks that the gateway lives, which were sent again.
    pub retransmissions: u64,
    /// Datagrams meanwhile.
    pub traffic: Traffic,
    /// CPU time of the generator meanwhile, in nanoseconds.
    pub cpu_ns: u64,
}

/// All peers at the same time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Storm {
    /// The set-ups before the storm, if there were any.
    pub before: Option<Outcomes>,
    /// When parts of all peers were back.
    pub back: Vec<Back>,
}

/// When a part of all peers was back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Back {
    /// The part.
    pub percent: u8,
    /// Nanoseconds after the storm began; `None`: not before the end.
    pub after_ns: Option<u64>,
}

/// Replaced SAs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rekeys {
    /// Request of new keys to the new SA.
    pub outcomes: Outcomes,
    /// New SAs with all key exchanges of the proposal.
    pub same_exchanges: u64,
    /// New SAs without one of them, such as the post-quantum one.
    pub fewer_exchanges: u64,
}

/// First requests alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flood {
    /// In the schedule.
    pub intended: u64,
    /// Sent.
    pub sent: u64,
    /// Answered with an IKE SA that is half-open.
    pub accepted: u64,
    /// Answered with a request for a cookie.
    pub cookies: u64,
    /// Answered with another notification, by the RFC's name.
    pub refused: BTreeMap<String, u64>,
    /// Other datagrams.
    pub other: u64,
}

/// Memory of the peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Peers that were up.
    pub peers: u64,
    /// The process's anonymous memory before the first peer, in bytes.
    pub before_bytes: u64,
    /// With all of them.
    pub with_bytes: u64,
    /// The difference per peer. The kernel's memory of sockets is not in it.
    pub bytes_per_peer: u64,
}

/// The generator itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generator {
    /// Time of the whole part, in nanoseconds.
    pub elapsed_ns: u64,
    /// CPU time of its thread, in nanoseconds.
    pub cpu_ns: u64,
    /// Datagrams lost because a receive buffer was full.
    pub missed: u64,
    /// Datagrams that the kernel did not take.
    pub unsent: u64,
    /// Its last reason.
    pub refusal: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_times_count_as_infinite() {
        let times = Times {
            buckets: vec![(10, 1), (20, 8), (30, 1)],
        };
        assert_eq!(times.count(), 10);
        assert_eq!(times.quantile(0.1, 10), Some(10));
        assert_eq!(times.quantile(0.5, 10), Some(20));
        assert_eq!(times.quantile(1.0, 10), Some(30));
        assert_eq!(times.quantile(0.99, 11), None);
        assert_eq!(Times::default().quantile(0.5, 0), None);
    }
}
