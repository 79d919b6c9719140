//! Simulated IKEv2 peers of one gateway: one station's part in one trial.
//!
//! ```text
//! Spec ─► Agenda: when each set-up, delete or rekeying begins
//!           │
//!           ▼
//!        Engine: one thread, one `ike::session` per peer ─► Report
//!           │ ▲
//!           ▼ │
//!         Sockets: two for a network of addresses, or one per port
//! ```
//!
//! The load is open-loop: a set-up begins at its time, whether others have completed or not, and
//! its latency counts from that time. A peer is a whole initiator with its identity, address, SPIs
//! and keys; one that is idle takes about 2 KiB.
//!
//! [`gateway`] is a responder for tests, and for the calibration of the peers without a device.
//!
//! No verdicts: `trial` compares the counts with the device's.

#![forbid(unsafe_code)]

mod agenda;
mod answer;
mod credentials;
mod engine;
mod error;
mod flood;
pub mod gateway;
mod peer;
mod phases;
mod play;
mod report;
mod resources;
mod run;
mod sockets;
mod sources;
mod spec;
mod tally;
mod timers;
mod triggers;
mod trust;

pub use answer::LATE_NS_MAX;
pub use error::PeersError;
pub use play::play;
pub use report::{
    Back, Failure, FirstFailure, Flood, Generator, Memory, Outcomes, Rekeys, Report, Standing,
    Storm, Times, Traffic,
};
pub use run::run;
pub use spec::{
    Authentication, Behaviour, Hidden, Load, Pem, Ppk, Rekeyed, Selectors, Sources, Spec,
};
pub use triggers::{Progress, Triggers};
