//! The observations of one combination of settings, and which of them are faults.

use probe::{Check, DatagramCounts, Datagrams, Direction, Findings, PathMtu, StreamCounts};
use std::collections::BTreeMap;
use std::fmt;

/// Share of datagrams that a busy machine may lose: a hundredth.
const LOSS_PARTS: u64 = 100;

/// A question about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Question {
    /// The largest packet.
    Mtu,
    /// TCP or UDP of the kernel.
    Probe(Check),
}

/// A question in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DirectedQuestion {
    /// The question.
    pub question: Question,
    /// The direction: up is from A to B.
    pub direction: Direction,
}

impl fmt::Display for DirectedQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            Direction::Up => "from A to B",
            Direction::Down => "from B to A",
        };
        match self.question {
            Question::Mtu => write!(f, "path MTU {direction}"),
            Question::Probe(check) => write!(f, "{check} {direction}"),
        }
    }
}

/// The answer of one trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// What was wrong.
    pub fault: Option<String>,
    /// Intact payload in bit/s, where it is measured.
    pub bps: Option<f64>,
    /// A remark that is no fault.
    pub note: Option<String>,
}

/// All answers of one trial.
pub type Answers = BTreeMap<DirectedQuestion, Answer>;

/// The answers in a probe's findings.
#[must_use]
pub fn answers(findings: &Findings) -> Answers {
    let mut answers = Answers::new();
    let mut put = |question, direction, answer| {
        answers.insert(
            DirectedQuestion {
                question,
                direction,
            },
            answer,
        )
    };
    for (direction, found) in &findings.mtu {
        put(Question::Mtu, *direction, of(found, path_mtu));
    }
    for (direction, found) in &findings.tcp {
        put(Question::Probe(Check::Tcp), *direction, of(found, stream));
    }
    for (direction, kind, found) in &findings.udp {
        put(
            Question::Probe(Check::Udp(*kind)),
            *direction,
            of(found, datagrams),
        );
    }
    answers
}

fn of<T>(found: &Result<T, String>, judge: impl Fn(&T) -> Answer) -> Answer {
    match found {
        Ok(counts) => judge(counts),
        Err(reason) => Answer {
            fault: Some(reason.clone()),
            ..Answer::default()
        },
    }
}

fn path_mtu(found: &PathMtu) -> Answer {
    let PathMtu {
        known_bytes,
        passed_bytes,
    } = *found;
    Answer {
        fault: found.is_black_hole().then(|| {
            format!(
                "black hole: the kernel sends packets of {known_bytes} B, of which no longer than {passed_bytes} B \
                 arrive, and no router reports it"
            )
        }),
        ..Answer::default()
    }
}

fn stream(counts: &StreamCounts) -> Answer {
    let StreamCounts {
        sent_bytes,
        received_bytes,
        wrong_at,
        ended,
        elapsed_ns,
    } = *counts;
    let fault = match wrong_at {
        Some(at) => Some(format!("corrupted: byte {at} is not the one that was sent")),
        None if !ended || received_bytes < sent_bytes => Some(format!(
            "stalled: {received_bytes} of {sent_bytes} B arrived in time"
        )),
        None => None,
    };
    Answer {
        fault,
        bps: rate(received_bytes, elapsed_ns),
        note: None,
    }
}

fn datagrams(counts: &DatagramCounts) -> Answer {
    let lost = counts.sent.saturating_sub(counts.received);
    let wrong = [
        (counts.wrong_length, "of another length"),
        (counts.wrong_payload, "with another payload"),
        (counts.wrong_tos, "with another DSCP or ECN"),
        (counts.wrong_ttl, "with another TTL"),
        (counts.repeated, "twice"),
    ];
    let wrong = wrong.into_iter().find(|(count, _)| *count > 0);
    let sent = counts.sent;
    let fault = match wrong {
        Some((count, how)) => Some(format!(
            "corrupted: {count} of {sent} datagrams arrive {how}"
        )),
        None => lost_fault(lost, sent),
    };
    Answer {
        fault,
        bps: rate(counts.received_bytes, counts.elapsed_ns),
        note: counts.refused.as_ref().map(|reason| {
            format!(
                "the kernel refuses trains (UDP_SEGMENT: {reason}), so datagrams leave one by one"
            )
        }),
    }
}

fn lost_fault(lost: u64, sent: u64) -> Option<String> {
    (lost > sent / LOSS_PARTS || sent == 0)
        .then(|| format!("lost: {lost} of {sent} datagrams do not arrive"))
}

fn rate(bytes: u64, elapsed_ns: u64) -> Option<f64> {
    (elapsed_ns > 0).then(|| bytes as f64 * 8e9 / elapsed_ns as f64)
}

/// Datagrams with and without checksums in one direction.
#[must_use]
pub(crate) fn checksum_twins(direction: Direction) -> [DirectedQuestion; 2] {
    [Datagrams::Single, Datagrams::Unchecked].map(|kind| DirectedQuestion {
        question: Question::Probe(Check::Udp(kind)),
        direction,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_named_worst_first() {
        let counts = DatagramCounts {
            sent: 480,
            received: 400,
            wrong_tos: 3,
            ..DatagramCounts::default()
        };
        let words = |counts: &DatagramCounts| datagrams(counts).fault;
        assert_eq!(
            words(&counts).unwrap(),
            "corrupted: 3 of 480 datagrams arrive with another DSCP or ECN"
        );
        let lossy = DatagramCounts {
            wrong_tos: 0,
            ..counts
        };
        assert_eq!(
            words(&lossy).unwrap(),
            "lost: 80 of 480 datagrams do not arrive"
        );
        let busy = DatagramCounts {
            received: 476,
            ..lossy
        };
        assert_eq!(words(&busy), None);
        assert!(
            words(&DatagramCounts::default()).is_some(),
            "nothing was sent"
        );
        let whole = StreamCounts {
            sent_bytes: 10,
            received_bytes: 10,
            ended: true,
            elapsed_ns: 8,
            ..StreamCounts::default()
        };
        assert_eq!(stream(&whole).bps, Some(10e9));
        let cut = StreamCounts {
            received_bytes: 9,
            ..whole
        };
        assert_eq!(
            stream(&cut).fault.unwrap(),
            "stalled: 9 of 10 B arrived in time"
        );
    }
}
