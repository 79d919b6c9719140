//! Writer and reader of the append-only record of a run.
//!
//! A run is a folder, `runs/<time>-<name>/`, and its journal is the file `journal.jsonl` in it: one
//! JSON object per line, the [`Header`](record::Header) first. A [`Writer`] writes each line in one
//! call and syncs it to the disk before it returns, so that a kill loses at most the line being
//! written. Each line ends in a checksum that is chained with the line before (`checksum`), so
//! that a changed line is never read as if it were whole. [`read`] returns a [`Journal`], the only
//! source of every document of a run.
//!
//! This crate does not interpret figures (`stats` does), but rejects impossible ones (`possible`).
//! It reads no clock, and never rewrites a complete line. `docs/journal.md` describes the format.

#![forbid(unsafe_code)]

mod checksum;
pub mod error;
pub mod folder;
mod lines;
mod possible;
mod reader;
pub mod record;
pub mod time;
mod writer;

pub use error::JournalError;
pub use folder::{DEFAULT_ROOT, FILE_NAME, dir_as_created, run_dir, with_run};
pub use lines::Lines;
pub use reader::{Journal, Warning, from_bytes, read};
pub use record::Record;
pub use writer::{Writer, to_bytes};
