//! A quick question between two hosts that a tunnel joins: is it encrypted, what MTU passes, how
//! fast is it both ways, how long is a round trip, idle and under load, what limits it, and on
//! request: which offload hurts it.
//!
//! ```text
//!  asker                                   listener
//!  ask ──── control (TCP, JSON lines) ───► listen     the token first, then one step after another
//!      ◄─── datagrams (UDP, same port) ──►            probes of the MTU, pings, marked packets
//!      ◄─── streams (TCP, same port) ────►            one for each direction
//!      ◄─── probes (TCP and UDP) ────────►            for each combination of offloads
//!   │                                        │
//!   └─ leaving: copies of what leaves the interface beneath the tunnel
//! ```
//!
//! Observations are plain values ([`Findings`]). [`Verdict`] is computed from them without I/O.

#![forbid(unsafe_code)]

mod address;
mod ask;
mod asker;
mod connection;
mod cpu;
mod datagrams;
mod error;
mod features;
mod findings;
mod interfaces;
mod leaving;
mod listen;
mod message;
mod path_mtu;
mod pings;
mod screen;
mod seal;
mod serving;
mod sessions;
mod stream;
mod token;
mod trying;
mod under_test;
mod verdict;

pub use address::{listening_address, peer_address};
pub use ask::ask;
pub use asker::Question;
pub use datagrams::is_of_check;
pub use error::{CheckError, Outcome};
pub use findings::{
    CpuUse, Examined, Findings, HostFacts, HostOffloads, Hurting, OffloadFindings, PerDirection,
    Received, Refusal, Remedy, RoundTrips, Seal, SendReport, Stream, Unsealed,
};
pub use listen::Listener;
pub use message::{Answer, Ask, LINE_BYTES_MAX, MessageError, parse};
pub use probe::PathMtu;
pub use screen::{json, screen};
pub use seal::form_of_frame;
pub use token::Token;
pub use verdict::{Direction, Limit, Verdict};

/// Port of the control connection, the streams and the datagrams, unless another is given.
pub const PORT: u16 = 8423;
