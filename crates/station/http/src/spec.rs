//! One station's part in a trial, as JSON.

use plan::HttpTest;
use serde::{Deserialize, Serialize};
use std::net::SocketAddrV4;

/// Name of the server in its certificate.
pub const SERVER_NAME: &str = "server";

/// One station's part in a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Spec {
    /// Serves until it is stopped.
    Serve(Serve),
    /// Fetches, reports and ends.
    Fetch(Fetch),
}

/// A server's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// The trial.
    pub test: HttpTest,
    /// TCP port that it listens on.
    pub port: u16,
    /// Worker processes, at least 1; Python has one.
    pub workers: u16,
    /// Certificate and key in PEM, with TLS.
    pub identity: Option<Identity>,
}

/// A certificate with its key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The certificate, PEM.
    pub certificate: String,
    /// Its private key, PEM.
    pub key: String,
}

/// Omits the key.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// A client's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    /// The trial.
    pub test: HttpTest,
    /// Address of the server.
    pub server: SocketAddrV4,
    /// Threads of the open-loop client, at least 1; wget2 has up to one per connection.
    pub threads: u16,
    /// The authority that signed the server's certificate, PEM; with TLS.
    pub authority: Option<String>,
    /// Time limit of a transaction in nanoseconds.
    pub timeout_ns: u64,
    /// Size of the RAM disk for files in bytes; `None` means half of the memory.
    #[serde(default)]
    pub store_bytes: Option<u64>,
}
