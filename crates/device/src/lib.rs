//! Crypto devices, and what is done to them: functional, speed and fatigue trials.
//!
//! ```text
//! Spec (JSON) ─► Device ─► sessions, one a thread ─► jobs ─► Report (JSON)
//! ```
//!
//! A [`Device`] is our engines, a provider or engine of OpenSSL, a PKCS#11 token, or a model of a coprocessor. It runs in
//! a process of its own (`cipherbench device`), so that a driver that crashes is a counted failure and not the end of a run.

mod device;
mod operation;
pub mod report;
pub mod spec;

pub use device::{Device, DeviceError, Facts, Job, Queue, Session};
pub use operation::{Action, Algorithm, Operation};
