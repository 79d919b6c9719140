//! Errors of journals. Each message names the failure, its place and the remedy.

use crate::record::FORMAT_VERSION_OLDEST;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why a journal cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// An error of the operating system: no permission, a missing folder, disk full.
    #[error("cannot {action} {}: {source}\nhelp: {}", path.display(), help(source, path))]
    Io {
        /// The action, as a verb: `write`, `read`, `create`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The folder exists, but has no recorded run.
    #[error("no journal in {}\nhelp: {}", path.display(), run_within(path))]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// The journal exists already; it is never overwritten.
    #[error("{} exists already\nhelp: give the run another folder, or go on with it: {}",
            path.display(), going_on(path))]
    Exists {
        /// The journal.
        path: PathBuf,
    },
    /// Another process is writing this journal.
    #[error("{} is being written by another process\nhelp: wait until that run has ended, or stop \
             it", path.display())]
    InUse {
        /// The journal.
        path: PathBuf,
    },
    /// The run was interrupted before its first line was complete: the journal is empty.
    #[error("{} has no header: the run broke off before it began\nhelp: nothing was measured; \
             delete the folder and run again", path.display())]
    NoHeader {
        /// The journal.
        path: PathBuf,
    },
    /// The journal was written by a program with another format.
    #[error("{} has journal format {found}, this program reads formats {FORMAT_VERSION_OLDEST} to \
             {supported}\nhelp: use the version of cipherbench that wrote it, or a newer one",
            path.display())]
    Version {
        /// The journal.
        path: PathBuf,
        /// The format in its header.
        found: u64,
        /// [`FORMAT_VERSION`](crate::record::FORMAT_VERSION) of this program.
        supported: u32,
    },
    /// A complete line that is no record of this format: the file was damaged or edited.
    #[error("{}:{line}: {problem}\nhelp: a journal is only ever appended to; restore this file \
             from a copy{}", path.display(), without_copy(*line, path))]
    Line {
        /// The journal.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The defect of the line.
        problem: String,
    },
    /// An earlier write failed, and its partial line could not be removed.
    #[error("{} ends in a broken line since an earlier write failed; nothing more is written to \
             it\nhelp: mend the cause, then go on: {}", path.display(), going_on(path))]
    Broken {
        /// The journal.
        path: PathBuf,
    },
}

impl JournalError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.into(),
            source,
        }
    }
}

/// Whether a path is a journal's.
fn has_run(path: &Path) -> bool {
    // By its name alone: errors are also about journals that do not exist.
    path.extension()
        .is_some_and(|extension| extension == "jsonl")
}

/// The hint for a folder that is no run: mostly the one above, as `--out` names it.
fn run_within(path: &Path) -> String {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.map(|entry| entry.path());
    let mut runs: Vec<PathBuf> = folders
        // As `FILE_NAME` of a module that imports this one.
        .filter(|folder| folder.join("journal.jsonl").is_file())
        .collect();
    // Names of runs begin with their time.
    runs.sort();
    match runs.as_slice() {
        [] => "give the folder of a run, such as runs/20261120T113000Z-quick".to_owned(),
        [run] => format!("give the folder of the run in it: {}", run.display()),
        [.., last] => format!(
            "give the folder of one of the {} runs in it; the last one is {}",
            runs.len(),
            last.display()
        ),
    }
}

/// The command that continues the run of a journal, given the journal or its folder.
fn going_on(path: &Path) -> String {
    let folder = path.parent().filter(|_| has_run(path)).unwrap_or(path);
    let command = match path.file_name() {
        Some(name) if name == "bisect.jsonl" => "bisect --resume",
        _ => "resume",
    };
    format!("cipherbench {command} {}", folder.display())
}

/// Returns the hint for a damaged line without a copy of the file.
fn without_copy(line: usize, path: &Path) -> String {
    let before = match line {
        // Without a header there is nothing to keep.
        0 | 1 => return String::new(),
        2 => "the line before it (head -n 1)".to_owned(),
        _ => format!("the {0} lines before it (head -n {0})", line - 1),
    };
    format!(
        "; without a copy, keep {before} and go on: {}",
        going_on(path)
    )
}

/// Returns the hint for an error of the operating system.
fn help(error: &io::Error, path: &Path) -> String {
    let words = match error.kind() {
        // With a journal there is a run to continue; otherwise nothing has begun.
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded if has_run(path) => {
            return format!(
                "free some space, then go on with the run ({}), or choose another place with --out",
                going_on(path)
            );
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, or choose another place with --out"
        }
        // EFBIG, by RLIMIT_FSIZE or by the file system.
        ErrorKind::FileTooLarge => {
            return format!(
                "raise the limit on file sizes (ulimit -f), then go on: {}",
                going_on(path)
            );
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "check who owns it (a run made as root belongs to root), or choose another place with \
             --out"
        }
        ErrorKind::NotFound => {
            "check the path; runs are kept under runs/ unless --out said otherwise"
        }
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            "a part of the path is a file: name a folder, which need not exist"
        }
        _ => "check the path and the disk, then try again",
    };
    words.to_owned()
}
