//! The documents of a run, built and written to disk.

pub(crate) mod csv;
pub(crate) mod export;
pub(crate) mod headline;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod text;

use crate::Folders;
use crate::kit::format::quoted;
use crate::layout::Run;
use journal::Journal;
use json::RunResult;
use stats::{Expected, Progress, Results};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use text::brief;
use text::markdown;
use text::terminal;

/// The report with charts, as one self-contained file.
pub const HTML_NAME: &str = "report.html";

/// The report as Markdown.
pub const MARKDOWN_NAME: &str = "report.md";

/// One row per trial.
pub const CSV_NAME: &str = "results.csv";

/// All results, for programs.
pub const JSON_NAME: &str = "results.json";

/// All documents of a run. The same program builds identical bytes from the same journal.
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
        quoted(&path.parent().unwrap_or(path).display().to_string()))]
pub struct WriteError {
    /// Path of the document.
    pub path: PathBuf,
    /// Error of the operating system.
    pub source: io::Error,
}

/// A run with its results, computed once for everything that is written and printed.
pub struct Report<'a> {
    journal: &'a Journal,
    results: Results,
}

/// A report with the names for documents that people read.
pub struct ForPeople<'a> {
    run: Run<'a>,
}

impl<'a> Report<'a> {
    /// Computes the results of a run, complete or not.
    #[must_use]
    pub fn of(journal: &'a Journal) -> Self {
        let results = Results::of(journal);
        Self { journal, results }
    }

    /// Returns its trials by outcome.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.results.progress
    }

    /// Returns the outcomes of the campaign's limits; `None` without limits.
    #[must_use]
    pub const fn expected(&self) -> Option<&Expected> {
        self.results.expect.as_ref()
    }

    /// Returns the text of [`JSON_NAME`].
    ///
    /// # Panics
    /// Never: plain data with string keys has a JSON form, and writing to memory cannot fail.
    #[must_use]
    pub fn json(&self) -> String {
        let mut text = Vec::new();
        self.json_to(&mut text)
            .expect("a result can be written as JSON");
        String::from_utf8(text).expect("JSON is UTF-8")
    }

    /// Writes indented JSON, with keys in the order of the schema.
    fn json_to(&self, out: &mut impl Write) -> io::Result<()> {
        let result = RunResult::of(self.journal, &self.results);
        // As a stream, since the text of a large run takes much memory.
        serde_json::to_writer_pretty(&mut *out, &result)?;
        out.write_all(b"\n")
    }

    /// Writes [`JSON_NAME`] into a folder, over an existing one, as [`ForPeople::write`] does.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_json(&self, dir: &Path) -> Result<(), WriteError> {
        replace(dir.join(JSON_NAME), |file| self.json_to(file))
    }

    /// Writes all documents into a folder, as [`ForPeople::write`] does.
    ///
    /// # Errors
    /// If one cannot be written; earlier ones remain in place.
    pub fn write_all(self, dir: &Path) -> Result<(), WriteError> {
        self.write_json(dir)?;
        self.for_people().write(dir)
    }

    /// Adds the names for people.
    #[must_use]
    pub fn for_people(self) -> ForPeople<'a> {
        ForPeople {
            run: Run::with(self.journal, self.results),
        }
    }

    /// Builds all documents.
    #[must_use]
    pub fn documents(self) -> Documents {
        // Before `for_people`, which marks the names: programs need the ones of the plan.
        let json = self.json();
        let ForPeople { run } = self.for_people();
        Documents {
            html: html::write(&run),
            markdown: markdown::write(&run),
            csv: csv::write(&run),
            json,
        }
    }
}

impl ForPeople<'_> {
    /// Returns all tables of a run as text, for a terminal of `width` columns. `files` are the
    /// run's folders; `None` if no documents were written. With `color`, the text contains ANSI
    /// escapes.
    #[must_use]
    pub fn terminal(&self, files: Option<Folders<'_>>, width: usize, color: bool) -> String {
        terminal::write(&self.run, files, width, color)
    }

    /// Returns a short form of at most 80 lines: each device's answer, reasons for doubt, and a
    /// table for each kind of trial.
    #[must_use]
    pub fn brief(&self, files: Option<Folders<'_>>, width: usize, color: bool) -> String {
        brief::write(&self.run, files, width, color)
    }

    /// Writes all documents except [`JSON_NAME`] into a folder and replaces existing ones. It
    /// builds one at a time to save memory, and writes each under a temporary name first, so that
    /// it appears complete or not at all.
    ///
    /// # Errors
    /// If one cannot be written; earlier ones remain in place.
    pub fn write(&self, dir: &Path) -> Result<(), WriteError> {
        let write = |name, document: fn(&Run<'_>) -> String| {
            replace(dir.join(name), |file| {
                file.write_all(document(&self.run).as_bytes())
            })
        };
        // JSON is written before, by `write_json`: it has the names of the plan.
        write(HTML_NAME, html::write)?;
        write(MARKDOWN_NAME, markdown::write)?;
        write(CSV_NAME, csv::write)
    }
}

/// Replaces a document.
fn replace(
    path: PathBuf,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), WriteError> {
    guard::replace(&path, write).map_err(|source| WriteError { path, source })
}
