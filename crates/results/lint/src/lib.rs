//! Checks published tables of rates for impossible or unsupported figures: text in, findings out.
//!
//! ```text
//! text ─► read ─► Document ─► check ─► Findings ─► text, JSON, SARIF
//! ```
//!
//! A printed figure represents all values that round to it: 9.4 for any from 9.35 to 9.45, `~9.4`
//! for ten times that range ([`figure::APPROXIMATE`]). A finding is made only if none of these
//! values avoids it, so the figures of a careful report make no findings.
//!
//! Nothing is measured, and no figure is compared with the usual figures of devices. A report
//! without findings may still be wrong.

#![forbid(unsafe_code)]

pub mod beside;
mod cause;
pub mod claim;
pub mod document;
pub mod encapsulation;
mod evaluation;
pub mod figure;
mod finding;
mod interval;
mod marks;
mod number;
mod print;
mod read;
mod rules;
mod source;
pub mod unit;

pub use cause::{Cause, causes};
pub use document::{Document, Remark};
pub use finding::{Finding, Likeness, Rule, Severity};
pub use interval::Interval;
pub use print::{json, sarif, text};
pub use read::{RESULTS_BYTES_MAX, read};
pub use rules::check;

pub use yaml::Mistakes;

/// A file that was read, with its findings.
#[derive(Debug)]
pub struct Checked {
    /// Its name.
    pub file: String,
    /// Number of its tables; for a run, of cells with frame rates and of statistics.
    pub tables: usize,
    /// Number of all its tables, including tables of words and skipped ones.
    pub all_tables: usize,
    /// Number of its figures, in tables and outside.
    pub figures: usize,
    /// Its findings, in file order.
    pub findings: Vec<Finding>,
    /// The common causes of several of them.
    pub causes: Vec<Cause>,
    /// Keys that were guessed, and parts that no rule can check.
    pub remarks: Vec<Remark>,
}

/// Reads and checks a file's text.
///
/// # Errors
/// All mistakes of a file that cannot be read, as [`read`].
pub fn lint(file: &str, text: &str) -> Result<Checked, Mistakes> {
    let mut document = read(file, text)?;
    let findings = check(&document);
    // A table of TOML states the kind of its columns for other readers too.
    if !file.ends_with(".toml") {
        let unchecked = rules::unchecked(file, &document);
        document.remarks.extend(unchecked);
    }
    Ok(Checked {
        file: file.to_owned(),
        tables: document.tables.len(),
        all_tables: document.numbered.max(document.tables.len()),
        figures: document.figure_count(),
        causes: causes(&findings),
        findings,
        remarks: document.remarks,
    })
}
