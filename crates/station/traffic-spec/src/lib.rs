//! One station's part in a frame trial: the specification of it, and the station's report.
//!
//! A trial writes a [`Spec`] and reads a [`Report`], both as JSON; crate `traffic` does the work
//! between. Both sides need the times at which frames are due ([`Schedule`]) by one clock
//! ([`Monotonic`]).
//!
//! No ports are opened here, and nothing is sealed.

#![forbid(unsafe_code)]

mod clock;
mod report;
mod schedule;
mod spec;

pub use clock::{Clock, Monotonic, SECOND_NS};
pub use report::{Attacked, READY, Received, Reflected, Report, Sent, TimeBin};
pub use schedule::{Load, Part, Schedule, intended_by_bin};
pub use spec::{
    Addresses, Attack, AttackKind, Bins, BridgeSpec, IkeKeys, KeySource, Peer, RANDOM_TEST_PORTS,
    Receive, Reflect, Role, SealedForm, Send, SenderClock, Spec, TEST_PORT, Then, test_ports,
};
