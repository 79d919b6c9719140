//! The lines of the control connection. Version 2.

use crate::findings::{HostFacts, HostOffloads, Received, Seal, SendReport};
use probe::PathMtu;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Version of the protocol; both ends must have the same.
pub(crate) const VERSION: u32 = 2;

/// Longest line in bytes.
pub const LINE_BYTES_MAX: usize = 8192;

/// Longest stream that a listener takes part in, in milliseconds.
pub(crate) const STREAM_MS_MAX: u32 = 30_000;

/// A request of the asker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ask", deny_unknown_fields)]
pub enum Ask {
    /// The first line. Nothing else is answered before.
    Hello {
        /// Version of the protocol.
        version: u32,
        /// The token's digits.
        token: String,
    },
    /// Find the largest packet towards the asker.
    Mtu,
    /// Send marked packets to the asker, and look at what leaves the listener's host.
    Leaving,
    /// Send a stream to the asker, on its next connection.
    Send {
        /// Time in milliseconds.
        ms: u32,
    },
    /// Receive a stream from the asker, on its next connection.
    Receive {
        /// Time in milliseconds.
        ms: u32,
    },
    /// Report whether offloads can be tried there; nothing is changed yet.
    MayTry,
    /// Try which offloads can be changed, and serve probes.
    Offloads,
    /// Set a level of each offload.
    Apply {
        /// The levels in the order of [`HostOffloads`]: 0 as found, 1 the other.
        row: Vec<u8>,
    },
    /// Go on: without any request the listener restores its offloads.
    Still,
    /// Restore all offloads.
    Restore,
    /// The check is over.
    Bye,
}

/// The listener's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "answer", deny_unknown_fields)]
pub enum Answer {
    /// To `Hello`.
    Welcome {
        /// The key of all datagrams.
        key: u64,
        /// The listener's host.
        host: HostFacts,
    },
    /// To `Hello` with another token.
    WrongToken {},
    /// To `Hello` of another version.
    WrongVersion {
        /// The listener's.
        version: u32,
    },
    /// To `Mtu`.
    Mtu {
        /// The largest packet, or why it is unknown.
        found: Result<PathMtu, String>,
    },
    /// To `Leaving`.
    Leaving {
        /// The finding.
        seal: Seal,
    },
    /// To `MayTry`.
    MayTry {
        /// Why offloads must not be tried there, as a clause.
        refused: Option<String>,
    },
    /// To `Offloads`.
    Offloads {
        /// TCP port of the server of probes.
        port: u16,
        /// The offloads, or why there are none.
        found: Result<HostOffloads, String>,
    },
    /// To `Apply`.
    Applied {
        /// The levels in force.
        row: Result<Vec<u8>, String>,
    },
    /// To `Restore`.
    Restored {
        /// Offloads that are not as they were found.
        wrong: Vec<String>,
    },
    /// To `Send` and `Receive`: the connection for the stream is awaited. To `Still`.
    Ready {},
    /// At the end of `Send`.
    Sent {
        /// The sending side.
        report: Result<SendReport, String>,
    },
    /// At the end of `Receive`.
    Received {
        /// The receiving side.
        report: Result<Received, String>,
    },
}

/// Why a line is no message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    /// It is longer than [`LINE_BYTES_MAX`].
    #[error("a line of more than {LINE_BYTES_MAX} B")]
    TooLong,
    /// It is no message of this protocol.
    #[error("no message of this protocol: {0}")]
    Json(#[from] serde_json::Error),
}

/// Parses a line without its line feed.
///
/// # Errors
/// [`MessageError`].
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, MessageError> {
    if line.len() > LINE_BYTES_MAX {
        return Err(MessageError::TooLong);
    }
    Ok(serde_json::from_slice(line)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::{Examined, Refusal};

    #[test]
    fn lines_are_messages_or_errors() {
        let hello = Ask::Hello {
            version: VERSION,
            token: "00".repeat(16),
        };
        let line = serde_json::to_vec(&hello).unwrap();
        assert_eq!(parse::<Ask>(&line).unwrap(), hello);
        assert!(parse::<Answer>(&line).is_err());
        assert!(parse::<Ask>(br#"{"ask":"send","ms":-1}"#).is_err());
        assert!(parse::<Ask>(br#"{"ask":"send","ms":1,"x":0}"#).is_err());
        let long = vec![b' '; LINE_BYTES_MAX + 1];
        assert!(matches!(parse::<Ask>(&long), Err(MessageError::TooLong)));
    }

    #[test]
    fn the_longest_answer_fits_a_line() {
        let report = Received {
            second_bytes: vec![u64::MAX; STREAM_MS_MAX as usize / 1000],
            cpu: Some(crate::CpuUse {
                cpu: u16::MAX,
                busy_percent: 100,
                softirq_percent: 100,
            }),
        };
        let answer = Answer::Received { report: Ok(report) };
        assert!(serde_json::to_vec(&answer).unwrap().len() < LINE_BYTES_MAX);
        // Every offload of two interfaces, each refused in other words.
        let refused = |feature: &offloads::Feature| Refusal {
            reason: "\"".repeat(crate::features::REASON_CHARS_MAX),
            features: vec![feature.word.to_owned()],
        };
        let interface = Examined {
            name: "x".repeat(15),
            refused: offloads::FEATURES.iter().map(refused).collect(),
            ..Examined::default()
        };
        let offloads = HostOffloads {
            interfaces: vec![interface.clone(), interface],
            spared: Vec::new(),
        };
        let answer = Answer::Offloads {
            port: u16::MAX,
            found: Ok(offloads),
        };
        assert!(serde_json::to_vec(&answer).unwrap().len() < LINE_BYTES_MAX);
    }
}
