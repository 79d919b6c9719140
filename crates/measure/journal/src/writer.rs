//! Writing a journal: one line, one write, one flush.

use crate::folder::FILE_NAME;
use crate::reader::{open_error, parse};
use crate::record::{Header, Record};
use crate::{Journal, JournalError};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Appends to the journal of a run. While it lives, no other process can write to that journal.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    /// Bytes of finished lines.
    finished: u64,
    /// A write failed and what it left could not be taken back.
    broken: bool,
}

impl Writer {
    /// Starts the journal of a new run in `dir` ([`run_dir`](crate::run_dir) makes one) with its
    /// header. When the header cannot be written, the file is taken away again, and `dir` with it
    /// if it is empty.
    ///
    /// # Errors
    /// When there is a journal in `dir` already, or it cannot be written.
    pub fn create(dir: &Path, header: &Header) -> Result<Self, JournalError> {
        let path = dir.join(FILE_NAME);
        let file = match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(JournalError::Exists { path });
            }
            Err(error) => return Err(JournalError::io("create", path, error)),
        };
        lock(&file, &path)?;
        let mut writer = Self {
            file,
            path,
            finished: 0,
            broken: false,
        };
        let begun = writer
            .append(&Record::Header(Box::new(header.clone())))
            .and_then(|()| sync_folder(dir));
        if let Err(error) = begun {
            // Best effort: the error to report is the first one.
            let _ = fs::remove_file(&writer.path);
            let _ = fs::remove_dir(dir);
            return Err(error);
        }
        Ok(writer)
    }

    /// Opens the journal of a run that broke off, and reads it. An unfinished last line is cut off;
    /// the journal that is returned carries a warning about it. Lock first, then read: what is
    /// returned is what the file holds until this writer is dropped.
    ///
    /// # Errors
    /// As [`read`](crate::read), and when another process is writing it.
    pub fn append_to(dir: &Path) -> Result<(Self, Journal), JournalError> {
        let path = dir.join(FILE_NAME);
        let opened = OpenOptions::new().append(true).read(true).open(&path);
        let mut file = opened.map_err(|error| open_error(dir, path.clone(), error))?;
        lock(&file, &path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|error| JournalError::io("read", &path, error))?;
        let (journal, finished) = parse(&path, &bytes)?;
        if finished < bytes.len() {
            file.set_len(finished as u64)
                .and_then(|()| file.sync_data())
                .map_err(|error| JournalError::io("repair", &path, error))?;
        }
        Ok((
            Self {
                file,
                path,
                finished: finished as u64,
                broken: false,
            },
            journal,
        ))
    }

    /// Appends one record. When this returns `Ok`, the line is on the disk.
    ///
    /// # Errors
    /// When it cannot be written: disk full, over quota, I/O error. What was written of the line is
    /// taken back, so that the next record can be tried; where that fails too, this and every later
    /// call is an error.
    pub fn append(&mut self, record: &Record) -> Result<(), JournalError> {
        if self.broken {
            return Err(JournalError::Broken {
                path: self.path.clone(),
            });
        }
        // A record is plain data with string keys: it always has a JSON form.
        let mut line = serde_json::to_vec(record).expect("a record can be written as JSON");
        debug_assert!(!line.contains(&b'\n'), "JSON escapes newlines");
        line.push(b'\n');
        // One `write` call unless the disk takes only part of it; the rest then meets the error
        // itself.
        match self
            .file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
        {
            Ok(()) => {
                self.finished += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.broken = self.file.set_len(self.finished).is_err();
                Err(JournalError::io("write", &self.path, error))
            }
        }
    }

    /// The journal's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The lock is the kernel's and goes with the process, however that ends.
fn lock(file: &File, path: &Path) -> Result<(), JournalError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse { path: path.into() }),
        Err(TryLockError::Error(error)) => Err(JournalError::io("lock", path, error)),
    }
}

/// A new file survives a power cut only once its folder's entry is on the disk.
fn sync_folder(dir: &Path) -> Result<(), JournalError> {
    File::open(dir)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| JournalError::io("write", dir, error))
}
