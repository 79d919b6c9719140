//! Why a part in a trial cannot be played.

use ike::session::NotationError;
use std::io;
use std::net::SocketAddr;

/// Why a part in a trial cannot be played. Failed set-ups are not errors: they are counted.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// The spec is not JSON of its type.
    #[error("the spec on standard input is invalid: {0}")]
    Spec(#[from] serde_json::Error),
    /// A value of the spec is impossible.
    #[error("{0}")]
    Value(String),
    /// The suite is unknown.
    #[error("the proposal `{text}` {source}")]
    Proposal {
        /// The text.
        text: String,
        /// Why.
        source: NotationError,
    },
    /// There are fewer pairs of address and port than peers.
    #[error(
        "{peers} peers need as many pairs of address and port, and there are {pairs}; \
         add addresses or ports, or set fewer peers"
    )]
    Sources {
        /// Peers.
        peers: u32,
        /// Pairs.
        pairs: u64,
    },
    /// An address of a peer is not one of this host.
    #[error(
        "{address} is no address of this host: {source}; add its network, \
         `ip route add local NETWORK dev lo`, and route it to this host at the gateway"
    )]
    Address {
        /// The address.
        address: SocketAddr,
        /// The kernel's reason.
        source: io::Error,
    },
    /// A port cannot be used.
    #[error("UDP port {port} cannot be bound: {source}")]
    Port {
        /// The port.
        port: u16,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The process needs more file descriptors than it may open.
    #[error(
        "{ports} ports need {needed} file descriptors, and this process may open {limit}; raise the hard limit \
         (`ulimit -Hn {needed}`), or use a network of addresses"
    )]
    Descriptors {
        /// Ports.
        ports: u64,
        /// File descriptors that they need.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// Certificates of the spec are unusable, or none can be issued.
    #[error("certificates: {0}")]
    Certificate(String),
    /// The system refused something.
    #[error("cannot {what}: {source}")]
    System {
        /// The refused operation.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The random number generator failed.
    #[error("the system has no random numbers")]
    Random,
}

impl PeersError {
    /// Names the operation that the system refused.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
