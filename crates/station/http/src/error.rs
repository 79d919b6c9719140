//! Why a part in a trial cannot be played.

use std::io;

/// Why a part in a trial cannot be played. Failed transactions are not errors: they are counted.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The spec is not JSON of its type.
    #[error("the spec on standard input is invalid: {0}")]
    Spec(#[from] serde_json::Error),
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// The refused operation.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The process needs more file descriptors than it may open.
    #[error(
        "{connections} connections need {needed} file descriptors, and this process may open {limit}; raise the hard \
         limit (`ulimit -Hn {needed}`), or set fewer `connections`"
    )]
    Descriptors {
        /// Connections of the client.
        connections: u32,
        /// File descriptors that they need.
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
    /// Names the operation that the system refused.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
