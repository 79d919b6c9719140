//! Turns a journal and its estimates into documents: terminal, HTML, Markdown, CSV, JSON.
//!
//! ```text
//! Journal -> stats::Results -> tables and charts -> documents
//! ```
//!
//! Every document is a pure function of the journal: it depends on no clock, environment or
//! unstable order. Each table is built once and printed in every document, so that all agree. All
//! texts of a journal are escaped.
//!
//! `layout` groups the cells of a run, `kit` has the parts of tables and charts, `topic` the
//! sections with their figures, and `documents` the formats. To add a section, write a file in
//! `topic/` and list it in `topic.rs`, which every document reads.

#![forbid(unsafe_code)]

mod documents;
mod kit;
mod layout;
mod order;
mod topic;

pub use documents::export::{ExportFormat, export};
pub use documents::text::opening::{Opening, opening};
pub use documents::text::wrap::wrap;
pub use documents::{
    CSV_NAME, Documents, ForPeople, HTML_NAME, JSON_NAME, MARKDOWN_NAME, Report, WriteError,
};
pub use kit::chart::course::{Course, CourseChange, CoursePoint, course};

use journal::Journal;
use std::path::Path;

/// The style sheets of pages and charts: light, dark and print, narrow and wide screens.
pub const STYLES: [&str; 2] = [documents::html::STYLE, kit::chart::STYLE];

/// The Content-Security-Policy of a run's page, for servers that also send it as a header.
pub const PAGE_POLICY: &str = documents::html::POLICY;

/// Builds every document of a run, complete or not.
#[must_use]
pub fn build(journal: &Journal) -> Documents {
    Report::of(journal).documents()
}

/// The folders of a run.
#[derive(Debug, Clone, Copy)]
pub struct Folders<'a> {
    /// The run's folder, with its journal.
    pub run: &'a Path,
    /// The folder of its documents, which may differ.
    pub documents: &'a Path,
}

/// Returns the published JSON Schema of `results.json`.
#[must_use]
pub fn json_schema() -> String {
    documents::json::json_schema()
}

/// Returns the meaning of the columns of `results.csv`, as Markdown.
#[must_use]
pub fn csv_documentation() -> String {
    documents::csv::documentation()
}
