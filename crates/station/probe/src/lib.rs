//! A probe of a path: real TCP and UDP between two stations, in both directions, whose receivers
//! check every byte, length and header field.
//!
//! ```text
//! caller ── control (TCP, JSON lines) ──► server      one exchange per check and direction
//!        ── stream or datagrams ────────►             or from the server to the caller
//! ```
//!
//! Datagrams are sent in rounds; the sender waits for the receiver's answer to each. So a slow path
//! makes a round slower and loses nothing, and every lost datagram is a fault of the path.

#![forbid(unsafe_code)]

mod control;
mod datagrams;
mod path_mtu;
mod payload;
mod spec;
mod stream;

pub use control::{Access, Call, call, play, serve};
pub use path_mtu::{LEAST_BYTES, largest_packet};
pub use spec::{
    Check, DatagramCounts, Datagrams, Direction, Findings, PathMtu, READY, Spec, StreamCounts,
};

/// Error of a probe.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The spec cannot be read.
    #[error("the spec of a probe cannot be read: {0}")]
    Spec(#[from] serde_json::Error),
    /// A socket cannot be used, or the peer does not answer.
    #[error("{what}: {error}")]
    Socket {
        /// What was attempted.
        what: &'static str,
        /// The kernel's error.
        error: std::io::Error,
    },
}

fn failed(what: &'static str) -> impl Fn(std::io::Error) -> ProbeError {
    move |error| ProbeError::Socket { what, error }
}
