//! Names of crypto engines, their suites, and the syntax of a choice among them.
//!
//! Data only: campaigns and reports use it without building an engine, and nothing here probes the
//! host. Crate `engine` determines whether an engine works here, and `dispatch` which one processes
//! a batch.

#![forbid(unsafe_code)]

mod choice;
mod engine;
mod read;

pub use choice::{Choice, Model, NotAChoice};
pub use engine::{CpuChoice, NULL, UnknownEngine, engines, serves};
