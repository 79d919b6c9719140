//! Files of checksummed lines: one write and one sync per line.

use crate::JournalError;
use crate::checksum::Chain;
use crate::folder::FILE_BYTES_MAX;
use crate::reader::{Finished, json_problem, open_error};
use guard::{open_regular, read_from};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Appends records to a file, one line of JSON for each, with the chained checksums of a journal.
/// Until it is dropped, no other process can write to that file.
#[derive(Debug)]
pub struct Lines {
    file: Locked,
    path: PathBuf,
    /// Length of the complete lines.
    finished: u64,
    /// The checksums of these lines.
    chain: Chain,
    first_digest: String,
    /// A write failed and its partial line could not be removed.
    broken: bool,
}

impl Lines {
    /// Creates a file with its first record. If that cannot be written, the file is removed, and
    /// its folder if it is empty.
    ///
    /// # Errors
    /// When the file exists already, or it cannot be written.
    pub fn create(path: PathBuf, first: &impl Serialize) -> Result<Self, JournalError> {
        Self::begin(path, first, Chain::CHECKED)
    }

    /// As [`Lines::create`], with or without checksums.
    pub(crate) fn begin(
        path: PathBuf,
        first: &impl Serialize,
        chain: Chain,
    ) -> Result<Self, JournalError> {
        let mut options = OpenOptions::new();
        // `create_new` refuses links as well: a run writes no file that somebody prepared. In mode
        // `append` no seek can lead a write into an earlier line.
        options.append(true).create_new(true).mode(0o644);
        let file = match options.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(JournalError::Exists { path });
            }
            Err(error) => return Err(JournalError::io("create", path, error)),
        };
        let file = Locked::new(file, &path)?;
        // Before the line is written, as `append` advances the chain.
        let first_digest = digest_of_first(&line(first, &chain).0);
        let mut lines = Self {
            file,
            path,
            finished: 0,
            chain,
            first_digest,
            broken: false,
        };
        let dir = lines.path.parent().unwrap_or(Path::new("")).to_owned();
        // The folder last: its entry is worth something only with a line in the file.
        let begun = lines.append(first).and_then(|()| sync_folder(&dir));
        if let Err(error) = begun {
            // Best effort: the first error is reported.
            let _ = fs::remove_file(&lines.path);
            // Fails if the folder has other files, which remain.
            let _ = fs::remove_dir(dir);
            return Err(error);
        }
        Ok(lines)
    }

    /// Opens a file to continue it, and reads its records. An incomplete last line is cut off.
    ///
    /// # Errors
    /// When it cannot be read or written, when another process is writing it, and when a complete
    /// line is no such record or does not fit its checksum.
    pub fn append_to<T: DeserializeOwned>(path: PathBuf) -> Result<(Self, Vec<T>), JournalError> {
        Self::go_on(path, records)
    }

    /// As [`Lines::append_to`], with a parser of the whole file.
    pub(crate) fn go_on<T>(
        path: PathBuf,
        parse: impl FnOnce(&Path, &[u8]) -> Result<(T, Finished), JournalError>,
    ) -> Result<(Self, T), JournalError> {
        // Opening a FIFO for reading and writing waits for nobody.
        let opened = OpenOptions::new().append(true).read(true).open(&path);
        let file = opened.map_err(|error| match error.kind() {
            // The file is there, and may be read: only continuing it is not possible.
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                JournalError::io("write to", &path, error)
            }
            _ => {
                let dir = path.parent().unwrap_or(Path::new(""));
                open_error(dir, path.clone(), error)
            }
        })?;
        let not_read = |error| JournalError::io("read", &path, error);
        if !file.metadata().map_err(not_read)?.is_file() {
            // Names the file's actual type.
            return Err(not_read(match open_regular(&path) {
                Ok(_) => io::Error::other("it was replaced meanwhile"),
                Err(error) => error,
            }));
        }
        // Before the first read: a line that another process is writing would look incomplete,
        // and be cut off below.
        let file = Locked::new(file, &path)?;
        let bytes = read_from(&*file, FILE_BYTES_MAX).map_err(not_read)?;
        let (read, finished) = parse(&path, &bytes)?;
        let Finished {
            bytes: finished,
            chain,
        } = finished;
        if finished < bytes.len() {
            // Appending behind a part of a line would make one broken line of both.
            file.set_len(finished as u64)
                .and_then(|()| file.sync_data())
                .map_err(|error| JournalError::io("repair", &path, error))?;
        }
        let lines = Self {
            file,
            path,
            finished: finished as u64,
            chain,
            first_digest: digest_of_first(&bytes),
            broken: false,
        };
        Ok((lines, read))
    }

    /// Appends one record, which must have a JSON form. When this returns `Ok`, the line is on the
    /// disk.
    ///
    /// # Errors
    /// When it cannot be written: disk full, over quota, I/O error. A partial line is removed, so
    /// that the next record can be tried; if that fails, too, this and every later call is an
    /// error.
    pub fn append(&mut self, record: &impl Serialize) -> Result<(), JournalError> {
        if self.broken {
            return Err(JournalError::Broken {
                path: self.path.clone(),
            });
        }
        let (line, chain) = line(record, &self.chain);
        // One `write` call, unless the disk accepts only a part; the next call then returns the
        // error.
        match self
            .file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
        {
            // Only a line on the disk changes the chain, so the next one follows it.
            Ok(()) => {
                self.finished += line.len() as u64;
                self.chain = chain;
                Ok(())
            }
            Err(error) => {
                // With the partial line in place, the next record would be a part of it.
                self.broken = self.file.set_len(self.finished).is_err();
                Err(JournalError::io("write", &self.path, error))
            }
        }
    }

    /// SHA-256 of the first line, in lower-case hexadecimal digits.
    #[must_use]
    pub fn first_digest(&self) -> &str {
        &self.first_digest
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Parses a file of records with checksums.
fn records<T: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
) -> Result<(Vec<T>, Finished), JournalError> {
    let finished = bytes.iter().rposition(|&byte| byte == b'\n');
    let finished = finished.map_or(0, |last| last + 1);
    let all_lines = || {
        let lines = bytes[..finished].split_inclusive(|&byte| byte == b'\n');
        lines.map(|line| &line[..line.len() - 1])
    };
    let mut chain = Chain::CHECKED;
    let records = (1..).zip(all_lines()).map(|(number, line)| {
        chain
            .check(line, all_lines())
            .and_then(|()| serde_json::from_slice(line).map_err(|error| json_problem(&error)))
            .map_err(|problem| JournalError::Line {
                path: path.into(),
                line: number,
                problem,
            })
    });
    let records: Vec<T> = records.collect::<Result<_, _>>()?;
    if records.is_empty() {
        return Err(JournalError::NoHeader { path: path.into() });
    }
    let bytes = finished;
    Ok((records, Finished { bytes, chain }))
}

/// SHA-256 of the first of these lines, without its newline.
fn digest_of_first(lines: &[u8]) -> String {
    let first = lines
        .split(|&byte| byte == b'\n')
        .next()
        .unwrap_or_default();
    base16ct::lower::encode_string(&Sha256::digest(first))
}

/// Returns the line of a record, with its newline, and the checksums up to it.
pub(crate) fn line(record: &impl Serialize, chain: &Chain) -> (Vec<u8>, Chain) {
    // A record is plain data with string keys, which always has a JSON form.
    let mut line = serde_json::to_vec(record).expect("a record can be written as JSON");
    // The reader splits at newlines before it parses.
    debug_assert!(!line.contains(&b'\n'), "JSON escapes newlines");
    let chain = chain.seal(&mut line);
    line.push(b'\n');
    (line, chain)
}

/// A file that no other process can lock. The kernel releases the lock when the process ends in any
/// way.
#[derive(Debug)]
struct Locked(File);

/// Programs that list runs take a shared lock for a moment, again and again: a writer waits for
/// them. Another writer keeps its lock.
const LOCK_TRIES: u32 = 50;
const LOCK_STEP: Duration = Duration::from_millis(4);

impl Locked {
    fn new(file: File, path: &Path) -> Result<Self, JournalError> {
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) => thread::sleep(LOCK_STEP),
                Err(TryLockError::Error(error)) => {
                    return Err(JournalError::io("lock", path, error));
                }
            }
        }
        Err(JournalError::InUse { path: path.into() })
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Closing the file is not enough: a program that another thread is just starting has a copy
        // of it, and so the lock, until it executes. If unlocking fails, the file is closed anyway.
        let _ = self.0.unlock();
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

/// Syncs a folder: a new file survives a power cut only if its folder's entry is on the disk.
fn sync_folder(dir: &Path) -> Result<(), JournalError> {
    File::open(dir)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| JournalError::io("write", dir, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeMap;

    #[test]
    fn a_program_that_lists_runs_does_not_keep_a_writer_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        File::create(&path).unwrap();
        let list = || {
            let file = File::open(&path).unwrap();
            for _ in 0..2000 {
                file.lock_shared().unwrap();
                file.unlock().unwrap();
            }
        };
        thread::scope(|scope| {
            scope.spawn(list);
            for _ in 0..50 {
                drop(Locked::new(File::open(&path).unwrap(), &path).unwrap());
            }
        });
    }

    #[test]
    fn a_lock_ends_with_its_owner_though_a_copy_of_the_file_lives() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let locked = Locked::new(File::create(&path).unwrap(), &path).unwrap();
        let copy = locked.try_clone().unwrap();
        let again = || Locked::new(File::open(&path).unwrap(), &path);
        assert!(matches!(again(), Err(JournalError::InUse { .. })));
        drop(locked);
        assert!(again().is_ok());
        drop(copy);
    }

    #[test]
    fn records_are_read_again_and_a_changed_line_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records.jsonl");
        let of = |number: u32| BTreeMap::from([("number", number)]);
        let mut lines = Lines::create(path.clone(), &of(1)).unwrap();
        lines.append(&of(2)).unwrap();
        drop(lines);
        let whole = fs::read(&path).unwrap();
        // A kill while a line is written leaves a part of it.
        fs::write(&path, [&whole[..], br#"{"number":3"#].concat()).unwrap();
        let read = || Lines::append_to::<BTreeMap<String, Value>>(path.clone());
        let (mut lines, records) = read().unwrap();
        assert_eq!(records.len(), 2);
        lines.append(&of(4)).unwrap();
        drop(lines);
        let (_, records) = read().unwrap();
        assert_eq!(records[2]["number"], 4);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(r#""number":2"#, r#""number":9"#)).unwrap();
        let error = read().unwrap_err().to_string();
        assert!(error.contains(":2: the checksum does not fit"), "{error}");
        fs::write(&path, "").unwrap();
        let error = read().unwrap_err();
        assert!(matches!(error, JournalError::NoHeader { .. }), "{error}");
    }
}
