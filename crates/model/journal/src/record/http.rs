//! The result of a trial over HTTP.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counts of an HTTP client, with the terms of RFC 9411.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpResult {
    /// The sustain phase in nanoseconds; of wget2 the time that it ran in it.
    pub duration_ns: u64,
    /// Transactions that ended in the sustain phase with the right object.
    pub transactions: u64,
    /// Bytes of their objects.
    pub object_bytes: u64,
    /// Connections established in the sustain phase; of TLS with their handshake. `None`: the
    /// client does not report them.
    pub connections: Option<u64>,
    /// Most connections that were open at one time.
    pub connections_most: Option<u64>,
    /// Transactions that the schedule planned for the whole run; `None`: closed loop.
    pub planned: Option<u64>,
    /// Transactions begun in the whole run.
    pub attempted: u64,
    /// Of these, failed transactions by reason.
    pub failed: BTreeMap<HttpFailure, u64>,
    /// Bytes received from connections in the whole run, heads and TLS included; the objects' bytes
    /// if the client does not report them.
    pub received_bytes: u64,
    /// Connections established in the whole run, as far as the client reports them.
    pub connections_in_all: u64,
    /// Times of transactions by size of their objects, for transactions due to begin in the sustain
    /// phase; empty: the client does not report them.
    pub objects: Vec<HttpTimes>,
    /// The cost of storing the files; `None`: the client stores none.
    pub stored: Option<HttpStored>,
}

impl HttpResult {
    /// Failed transactions of the whole run, for any reason.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed
            .values()
            .fold(0, |sum, n| sum.saturating_add(*n))
    }
}

/// Times of the transactions with objects of one size. Both times count from the intended start of
/// the transaction: opening a connection is part of its first one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpTimes {
    /// Size of the objects in bytes.
    pub object_bytes: u64,
    /// To the first byte of the response (TTFB).
    pub first_byte: Vec<TimeBucket>,
    /// To the last byte of the response (TTLB).
    pub last_byte: Vec<TimeBucket>,
}

/// Times of at most `upto_ns`, and above the bucket before. Resolved to 1 %.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeBucket {
    /// Highest time of the bucket.
    pub upto_ns: u64,
    /// Transactions in it.
    pub count: u64,
}

/// The cost of storing files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpStored {
    /// CPU time of the client in [`HttpResult::duration_ns`].
    pub client_cpu_ns: u64,
    /// Rate of the client's store for files of the same sizes, written directly by one writer right
    /// after the transfer, in bytes/s.
    pub direct_bytes_per_s: u64,
}

/// Why a transaction failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HttpFailure {
    /// The server refused the connection.
    Refused,
    /// The connection was reset.
    Reset,
    /// No answer, or not all of it, within the client's time limit.
    Timeout,
    /// The connection ended before the object did.
    Truncated,
    /// The server announced or sent another length than the object has.
    WrongLength,
    /// The content differs from the object's.
    WrongContent,
    /// A status other than 200.
    Status,
    /// The response came from a cache (header `Age`, RFC 9111 §5.1).
    Cached,
    /// The response is no valid HTTP.
    Protocol,
    /// TLS could not be agreed, or the certificate is not the trial's.
    Tls,
    /// The client had no port left for a connection.
    NoPort,
    /// The client had no file descriptor left.
    NoDescriptor,
    /// The client's store was full.
    StoreFull,
    /// wget2 left no file for another reason.
    Missing,
    /// Any other error of a socket.
    Other,
}

impl HttpFailure {
    /// For people, in a sentence.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Reset => "connection reset",
            Self::Timeout => "no answer in time",
            Self::Truncated => "connection ended within the object",
            Self::WrongLength => "wrong length",
            Self::WrongContent => "content differs",
            Self::Status => "status other than 200",
            Self::Cached => "answered from a cache",
            Self::Protocol => "no valid HTTP",
            Self::Tls => "TLS failed",
            Self::NoPort => "client out of ports",
            Self::NoDescriptor => "client out of descriptors",
            Self::StoreFull => "client's store full",
            Self::Missing => "no file",
            Self::Other => "other error of a socket",
        }
    }
}
