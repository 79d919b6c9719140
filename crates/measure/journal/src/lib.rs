//! The append-only record of a run, and how it is read back.
//!
//! A run is a folder, `runs/<time>-<name>/`, and its journal is the file `journal.jsonl` in it: one
//! JSON object a line, the [`Header`](record::Header) first. A [`Writer`] hands each line to the
//! kernel in one write and to the disk before it returns, so that whatever kills the run takes at
//! most the line being written. [`read`] gives a [`Journal`] back; every document of a run is made
//! from that and nothing else.
//!
//! The crate does not know what the figures mean (`stats` does), keeps no clock, and never rewrites
//! a line that was finished. The format is described for people in `docs/journal.md`.

#![forbid(unsafe_code)]

pub mod error;
pub mod folder;
mod reader;
pub mod record;
pub mod time;
mod writer;

pub use error::JournalError;
pub use folder::{FILE_NAME, run_dir};
pub use reader::{Journal, Warning, read};
pub use record::Record;
pub use writer::Writer;
