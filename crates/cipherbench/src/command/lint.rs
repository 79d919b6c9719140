//! `cipherbench lint FILE…`: what published tables, or results, cannot support.

use crate::cli::Lint;
use crate::exit::{Exit, Failure};
use crate::{output, version};
use lint::{Checked, RESULTS_BYTES_MAX, Severity};
use std::path::Path;
use yaml::Mistakes;

/// Prints all findings, and on standard error the mistakes of files that cannot be read.
pub(crate) fn lint(arguments: &Lint) -> Result<Exit, Failure> {
    // A file that cannot be read is part of the result: a table of findings without it would look
    // clean.
    let (mut files, mut unreadable) = (Vec::new(), Vec::new());
    for path in &arguments.files {
        match checked(path) {
            Ok(file) => files.push(file),
            Err(mistakes) => {
                output::stderr(&format!("{mistakes}\n"));
                unreadable.push(mistakes);
            }
        }
    }
    let text = match (arguments.json, arguments.sarif) {
        (true, _) => lint::json(&files, &unreadable),
        (_, true) => lint::sarif(&files, &unreadable, &version::word()),
        _ => lint::text(&files, &unreadable),
    };
    output::stdout(&text)?;
    let mut findings = files.iter().flat_map(|file| &file.findings);
    let has_error = findings.any(|finding| finding.rule.severity() == Severity::Error);
    Ok(match (unreadable.is_empty(), has_error) {
        // An unread file outweighs findings: nobody knows what it has.
        (false, _) => Exit::Usage,
        (true, true) => Exit::CriterionFailed,
        (true, false) => Exit::Done,
    })
}

fn checked(path: &Path) -> Result<Checked, Mistakes> {
    let text = yaml::load_text(path, RESULTS_BYTES_MAX)?;
    lint::lint(&path.display().to_string(), &text)
}
