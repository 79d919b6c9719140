//! Journal and estimates to documents: terminal, HTML, Markdown, CSV, JSON.
//!
//! ```text
//! Journal -> stats::Results -> tables and charts -> documents
//! ```
//!
//! Every document is a pure function of the journal: no clock, no environment, no order that
//! changes. Each table is built once and printed by every document, so that all agree. All texts of
//! a journal are escaped.
//!
//! To add a section: a file in `sections/` and its line in `sections.rs`, which every document
//! reads; its tables in `tables`, its charts in `chart`.

#![forbid(unsafe_code)]

mod chart;
mod csv;
mod documents;
mod evidence;
mod export;
mod format;
mod headline;
mod html;
mod layout;
mod order;
mod prose;
mod result;
mod rich;
mod sections;
mod table;
mod tables;
mod text;

pub use chart::course::{Course, CourseChange, CoursePoint, course};
pub use documents::{
    CSV_NAME, Documents, ForPeople, HTML_NAME, JSON_NAME, MARKDOWN_NAME, Report, WriteError,
};
pub use export::{ExportFormat, export};

use journal::Journal;
use layout::Run;
use std::path::Path;

/// The style sheets of pages and charts: light, dark and print, for narrow and wide screens.
pub const STYLES: [&str; 2] = [html::STYLE, chart::STYLE];

/// The Content-Security-Policy of a run's page, for a server that sends it as a header too.
pub const PAGE_POLICY: &str = html::POLICY;

/// Builds every document of a run, complete or not.
#[must_use]
pub fn build(journal: &Journal) -> Documents {
    Report::of(journal).documents()
}

/// Where the files of a run are.
#[derive(Debug, Clone, Copy)]
pub struct Folders<'a> {
    /// The run's folder, with its journal.
    pub run: &'a Path,
    /// The folder of its documents, which may be another one.
    pub documents: &'a Path,
}

/// All tables of a run in text, for a terminal of `width` columns. `files` tells where
/// its documents are; `None` when none were written. With `color`, ANSI escapes; without,
/// plain text.
#[must_use]
pub fn terminal(
    journal: &Journal,
    files: Option<Folders<'_>>,
    width: usize,
    color: bool,
) -> String {
    text::terminal::write(&Run::of(journal), files, width, color)
}

/// The same in 80 lines at most: the answer of each device, what makes it doubtful, and a table for
/// each kind of trial.
#[must_use]
pub fn brief(journal: &Journal, files: Option<Folders<'_>>, width: usize, color: bool) -> String {
    text::brief::write(&Run::of(journal), files, width, color)
}

/// The published JSON Schema of `results.json`.
#[must_use]
pub fn json_schema() -> String {
    result::json_schema()
}

/// What the columns of `results.csv` mean, as Markdown.
#[must_use]
pub fn csv_documentation() -> String {
    csv::documentation()
}
