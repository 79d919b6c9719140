//! Why a part in a trial cannot be played.

use std::io;

/// Why a part in a trial cannot be played. Failed transactions are no errors: they are counted.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The spec is no JSON of its form.
    #[error("the spec on standard input is invalid: {0}")]
    Spec(#[from] serde_json::Error),
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// What was asked of it.
        what: String,
        /// Its reason.
        source: io::Error,
    },
    /// The process may not open as many files as it needs.
    #[error(
        "{connections} connections need {needed} file descriptors, and this process may open {limit}; raise the hard \
         limit (`ulimit -Hn {needed}`), or set fewer `connections`"
    )]
    Descriptors {
        /// Connections of the client.
        connections: u32,
        /// Descriptors that they need.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// The station has fewer ports than connections.
    #[error(
        "{connections} connections need as many ports, and this station has {ports} \
         (net.ipv4.ip_local_port_range); set fewer `connections`"
    )]
    Ports {
        /// Connections of the client.
        connections: u32,
        /// Ports of the station.
        ports: u32,
    },
    /// The certificates of the trial are unusable, or cannot be created.
    #[error("the trial's certificate cannot be used: {0}")]
    Certificate(String),
}

impl HttpError {
    /// Names what was asked of the system.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
