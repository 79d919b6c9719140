//! Names of crypto engines, the suites that each has, and the choice among them as people write it.
//!
//! Data only: campaigns and reports read it without building an engine, and nothing here looks at
//! the host. Whether an engine works here is `engine`'s to say, and which one does a batch is
//! `dispatch`'s.

#![forbid(unsafe_code)]

mod choice;
mod engine;
mod read;

pub use choice::{Choice, Model, NotAChoice};
pub use engine::{CpuChoice, NULL, UnknownEngine, engines, serves};
