//! The removal of old runs.

use super::{Run, State};
use nix::fcntl::OFlag;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// When a run has ended, its documents are still being written.
const CONCLUDING: Duration = Duration::from_secs(60);

/// Which runs are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Those that began longer ago.
    OlderThan(Duration),
    /// All but this many of the newest.
    Keep(usize),
}

/// Selects the runs to remove of a list with the newest first. Never one that is running or ended a
/// moment ago, nor one whose journal has no readable header: that may be anything.
#[must_use]
pub fn select(runs: Vec<Run>, rule: Rule, now: SystemTime) -> Vec<Run> {
    let since = |ns: u64| now.duration_since(UNIX_EPOCH + Duration::from_nanos(ns));
    let old = runs.into_iter().enumerate().filter(|(place, run)| {
        let Some(started) = run.started_unix_ns else {
            return false;
        };
        let is_meant = match rule {
            Rule::Keep(newest) => *place >= newest,
            // A run from the future has no age.
            Rule::OlderThan(age) => since(started).is_ok_and(|passed| passed > age),
        };
        // A clock that was set back shows a change in the future.
        let changed = now.duration_since(run.changed).unwrap_or_default();
        let is_in_use = matches!(run.state, State::Running { .. }) || changed < CONCLUDING;
        is_meant && !is_in_use
    });
    old.map(|(_, run)| run).collect()
}

/// Removes a run with everything in its folder. No link is followed.
///
/// # Errors
/// When the run is being continued, the folder is no run any more, or something in it cannot be
/// removed.
pub fn remove(run: &Run) -> io::Result<()> {
    let open = |path: PathBuf, flags: OFlag| {
        let mut options = OpenOptions::new();
        // Another may have put a link in its place since the list was made.
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        options.read(true).custom_flags(flags.bits()).open(path)
    };
    let folder = open(run.path.clone(), OFlag::O_DIRECTORY)?;
    // All paths begin at the open folder, which no renaming can replace.
    let inside = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    let path = inside.join(journal::FILE_NAME);
    let journal: File = open(path.clone(), OFlag::empty())?;
    if !journal.metadata()?.is_file() {
        return Err(io::Error::other("its journal is no file"));
    }
    // Held until the end, so that nobody resumes the run meanwhile.
    match journal.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(io::Error::other("it is running")),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    for entry in fs::read_dir(&inside)? {
        let entry = entry?;
        // The journal last: what an interrupt leaves is still a run, which the next call removes.
        if entry.file_name() == journal::FILE_NAME {
            continue;
        }
        if entry.file_type()?.is_dir() {
            // It does not follow links, at no depth.
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(path)?;
    // Fails for a link, and for a folder that is not empty.
    fs::remove_dir(&run.path)
}
