//! `cipherbench lint FILE…`: what published tables, or results, cannot support.

use crate::cli::Lint;
use crate::exit::{Exit, Failure};
use crate::{output, version};
use lint::{Checked, RESULTS_BYTES_MAX, Severity};
use std::path::Path;
use yaml::Mistakes;

/// Prints all findings, and on standard error the mistakes of files that cannot be read.
pub(crate) fn lint(arguments: &Lint) -> Result<Exit, Failure> {
    let mut files = Vec::new();
    let mut exit = Exit::Done;
    for path in &arguments.files {
        match checked(path) {
            Ok(file) => files.push(file),
            Err(mistakes) => {
                output::stderr(&format!("{mistakes}\n"));
                exit = Exit::Usage;
            }
        }
    }
    let text = match (arguments.json, arguments.sarif) {
        (true, _) => lint::json(&files),
        (_, true) => lint::sarif(&files, &version::word()),
        _ => lint::text(&files),
    };
    output::stdout(&text)?;
    let mut findings = files.iter().flat_map(|file| &file.findings);
    let has_error = findings.any(|finding| finding.rule.severity() == Severity::Error);
    Ok(match exit {
        Exit::Done if has_error => Exit::CriterionFailed,
        exit => exit,
    })
}

fn checked(path: &Path) -> Result<Checked, Mistakes> {
    let text = yaml::load_text(path, RESULTS_BYTES_MAX)?;
    lint::lint(&path.display().to_string(), &text)
}
