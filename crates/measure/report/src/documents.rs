//! The documents of a run, and how they reach the disk.

use crate::layout::Run;
use crate::result::RunResult;
use crate::{Folders, text};
use journal::Journal;
use stats::{Progress, Results};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The report with charts: one file, no other needed.
pub const HTML_NAME: &str = "report.html";
/// The report as Markdown.
pub const MARKDOWN_NAME: &str = "report.md";
/// One row per trial.
pub const CSV_NAME: &str = "results.csv";
/// Everything for machines.
pub const JSON_NAME: &str = "results.json";

/// All documents of a run. Built from the same journal by the same program they are the same, byte
/// for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// [`HTML_NAME`].
    pub html: String,
    /// [`MARKDOWN_NAME`].
    pub markdown: String,
    /// [`CSV_NAME`].
    pub csv: String,
    /// [`JSON_NAME`].
    pub json: String,
}

/// A document cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}\nhelp: the journal holds everything; fix the cause, then: \
         cipherbench report {}, or write elsewhere with `--out DIR`", path.display(),
        path.parent().unwrap_or(path).display())]
pub struct WriteError {
    /// Path of the document.
    pub path: PathBuf,
    /// Error of the operating system.
    pub source: io::Error,
}

impl Documents {
    /// Writes all documents into a folder, over existing ones. Each is written under a temporary
    /// name first, so that it appears whole or not at all. Returns their paths, the HTML report
    /// first.
    ///
    /// # Errors
    /// When one cannot be written; those before it are in place.
    pub fn write_all(&self, dir: &Path) -> Result<[PathBuf; 4], WriteError> {
        let files = [
            (HTML_NAME, &self.html),
            (MARKDOWN_NAME, &self.markdown),
            (CSV_NAME, &self.csv),
            (JSON_NAME, &self.json),
        ];
        for (name, content) in files {
            let path = dir.join(name);
            replace(&path, content).map_err(|source| WriteError { path, source })?;
        }
        Ok(files.map(|(name, _)| dir.join(name)))
    }
}

/// A run whose results were computed once, for all that is written and printed of it.
pub struct Report<'a> {
    run: Run<'a>,
    /// [`JSON_NAME`], whose names of DUTs are those of the plan.
    json: String,
}

impl<'a> Report<'a> {
    /// Computes the results of a run, complete or not.
    #[must_use]
    pub fn of(journal: &'a Journal) -> Self {
        let results = Results::of(journal);
        let json = json(&RunResult::of(journal, &results));
        Self {
            run: Run::with(journal, results),
            json,
        }
    }

    /// Its trials by outcome.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.run.results.progress
    }

    /// As [`crate::terminal`].
    #[must_use]
    pub fn terminal(&self, files: Option<Folders<'_>>, width: usize, color: bool) -> String {
        text::terminal::write(&self.run, files, width, color)
    }

    /// As [`crate::brief`].
    #[must_use]
    pub fn brief(&self, files: Option<Folders<'_>>, width: usize, color: bool) -> String {
        text::brief::write(&self.run, files, width, color)
    }

    /// Builds its documents.
    #[must_use]
    pub fn documents(self) -> Documents {
        Documents {
            html: crate::html::write(&self.run),
            markdown: text::markdown::write(&self.run),
            csv: crate::csv::write(&self.run),
            json: self.json,
        }
    }
}

/// The text of `results.json`: indented, keys in the order of the schema.
fn json(result: &RunResult<'_>) -> String {
    // Plain data with string keys always has a JSON form.
    let mut text = serde_json::to_string_pretty(result).expect("a result can be written as JSON");
    text.push('\n');
    text
}

/// Replaces a file atomically.
fn replace(path: &Path, content: &str) -> io::Result<()> {
    // With the process id, two programs that rebuild one run do not share a file.
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written = File::create(&part)
        .and_then(|mut file| {
            file.write_all(content.as_bytes())?;
            file.sync_data()
        })
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // Best effort: the error to report is the first one.
        let _ = fs::remove_file(&part);
    }
    written
}
