//! Writing the journal of a run.

use crate::checksum::Chain;
use crate::folder::FILE_NAME;
use crate::lines::{Lines, line};
use crate::reader::parse;
use crate::record::{Header, Record};
use crate::{Journal, JournalError};
use std::path::Path;

/// Appends to the journal of a run. Until it is dropped, no other process can write to that
/// journal.
#[derive(Debug)]
pub struct Writer {
    lines: Lines,
}

impl Writer {
    /// Creates the journal of a new run in `dir` ([`run_dir`](crate::run_dir) creates that) with
    /// its header. If the header cannot be written, the file is removed, and `dir` if it is empty.
    ///
    /// # Errors
    /// When `dir` has a journal already, or it cannot be written.
    pub fn create(dir: &Path, header: &Header) -> Result<Self, JournalError> {
        let first = Record::Header(Box::new(header.clone()));
        let lines = Lines::begin(dir.join(FILE_NAME), &first, Chain::new(header))?;
        Ok(Self { lines })
    }

    /// Opens the journal of an interrupted run, and reads it. An incomplete last line is cut off;
    /// the returned journal has a warning about it. It is locked before it is read, so that the
    /// result stays valid until this writer is dropped.
    ///
    /// # Errors
    /// As [`read`](crate::read), and when another process is writing it.
    pub fn append_to(dir: &Path) -> Result<(Self, Journal), JournalError> {
        let path = dir.join(FILE_NAME);
        let (lines, journal) = Lines::go_on(path, parse)?;
        Ok((Self { lines }, journal))
    }

    /// Appends one record. When this returns `Ok`, the line is on the disk.
    ///
    /// # Errors
    /// When it cannot be written: disk full, over quota, I/O error. A partial line is removed, so
    /// that the next record can be tried; if that fails, too, this and every later call is an
    /// error.
    pub fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        self.lines.append(record)
    }

    /// SHA-256 of the journal's first line, in lower-case hexadecimal digits: it identifies the
    /// run and its plan. Unlike the checksums of lines it is not truncated.
    #[must_use]
    pub fn header_digest(&self) -> &str {
        self.lines.first_digest()
    }

    /// The journal's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.lines.path()
    }
}

/// Returns the bytes of a journal of this header and these records, as a [`Writer`] writes them.
#[must_use]
pub fn to_bytes(header: &Header, records: &[Record]) -> Vec<u8> {
    let first = Record::Header(Box::new(header.clone()));
    let (mut bytes, mut chain) = line(&first, &Chain::new(header));
    for record in records {
        // By the same function as a writer: both must give the same bytes.
        let (next, after) = line(record, &chain);
        bytes.extend_from_slice(&next);
        chain = after;
    }
    bytes
}
