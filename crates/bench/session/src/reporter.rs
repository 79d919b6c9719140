//! The person who started a run.

use crate::progress::Board;
use guard::visible_lines;
use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Texts for the person who started a run, which end in a newline.
#[derive(Debug, Clone)]
pub struct Reporter {
    /// Whether progress and notices are left out; warnings are not.
    pub is_quiet: bool,
    /// Writes a text.
    pub write: fn(&str),
    /// The file that also gets every text, quiet or not.
    pub log: Option<Log>,
    /// The place where the state of the run is shown.
    pub board: Board,
}

impl Reporter {
    /// Reports a text unless it is quiet.
    pub fn notice(&self, text: &str) {
        if !self.is_quiet {
            (self.write)(text);
        }
        self.to_log(text);
    }

    /// Reports a text in any case.
    pub fn warn(&self, text: &str) {
        (self.write)(text);
        self.to_log(text);
    }

    /// Writes a text to the log only.
    pub(crate) fn to_log(&self, text: &str) {
        if let Some(log) = &self.log {
            log.write(text);
        }
    }

    /// Warns once if the log lacks texts.
    pub(crate) fn check_log(&self) {
        let Some(log) = &self.log else {
            return;
        };
        if let Some(error) = log.0.lock().unwrap_or_else(PoisonError::into_inner).lost() {
            (self.write)(&format!("warning: {error}\n"));
        }
    }
}

/// The file of `--log`. A disk that fills up costs its texts, and never the run.
#[derive(Debug, Clone)]
pub struct Log(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    file: File,
    /// The first error; later texts are dropped.
    error: Option<io::Error>,
}

impl Inner {
    fn lost(&mut self) -> Option<String> {
        let error = self.error.as_ref()?;
        let path = self.path.display();
        Some(format!(
            "the log {path} is incomplete: {error}\nhelp: the run's journal has every trial"
        ))
    }
}

impl Log {
    /// Opens a log, to whose end texts are added.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        // A pipe without a reader would hold up the run.
        options.custom_flags(OFlag::O_NONBLOCK.bits());
        let file = options.append(true).create(true).open(path)?;
        Ok(Self(Arc::new(Mutex::new(Inner {
            path: path.to_owned(),
            file,
            error: None,
        }))))
    }

    fn write(&self, text: &str) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.error.is_some() {
            return;
        }
        // The file may be read on a terminal.
        let written = inner.file.write_all(visible_lines(text).as_bytes());
        inner.error = written.err();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_costs_the_log_and_not_the_run() {
        let log = Log::open(Path::new("/dev/full")).unwrap();
        log.write("one\n");
        log.write("two\n");
        let lost = log.0.lock().unwrap().lost().unwrap();
        assert!(
            lost.starts_with("the log /dev/full is incomplete: No space left"),
            "{lost}"
        );
    }

    #[test]
    fn a_log_is_continued() {
        let folder = testing::folder().unwrap();
        let path = folder.path().join("log");
        for text in ["one\n", "two \u{1b}[2J\n"] {
            Log::open(&path).unwrap().write(text);
        }
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text, "one\ntwo \u{fffd}[2J\n");
    }
}
