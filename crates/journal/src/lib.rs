//! The append-only record of a run, and how it is read back.

#![forbid(unsafe_code)]

pub mod record;

pub use record::Record;
