//! Names of algorithms, operations and engines, the suites of engines, the configured choice among
//! engines, and the kinds of crypto devices with their tests and reports.
//!
//! Data only: plans, journals and reports use it without building an engine or a device library,
//! and nothing here probes the host. Crate `engine` determines whether an engine works here,
//! `dispatch` which one processes a batch, and `device` opens a device.

#![forbid(unsafe_code)]

mod choice;
pub mod device;
mod engine;
mod operation;
pub mod sample;
pub mod worker;

pub use choice::{Choice, EngineModel, NotAChoice};
pub use engine::{CpuChoice, NULL, UnknownEngine, engines, serves};
pub use operation::{
    ALGORITHMS, Action, Algorithm, Cipher, Curve, Family, Hash, MlDsa, MlKem, Mode, Operation,
    Padding, UnknownName,
};
