//! Documents in plain text.

pub(crate) mod brief;
pub(crate) mod markdown;
pub(crate) mod opening;
pub(crate) mod terminal;
pub(crate) mod wrap;

use crate::kit::format::{command_line, counted};
use crate::layout::Run;

/// Explains the run's folder in the commands of a document, which may be moved.
pub(super) fn folder(run: &Run<'_>) -> &'static str {
    if journal::dir_as_created(&run.journal.header).is_some() {
        "Commands name the run's folder as it was created, from the directory where the run was started: \
         if it was moved, give its new path"
    } else {
        "RUN in a command is the folder of this run, which has its journal"
    }
}

/// Puts the run's folder, if the journal shows it, into the commands of a document.
pub(super) fn with_folder(run: &Run<'_>, page: String) -> String {
    match journal::dir_as_created(&run.journal.header) {
        // This path needs no quoting in HTML or Markdown, so it may follow the escaping of the
        // page.
        Some(folder) => journal::with_run(&page, &folder),
        None => page,
    }
}

/// Time and place: `2026-11-20T11:30:00Z, Intel Xeon, 2 cores, Linux 6.18.44, cipherbench 0.1.0`.
pub(super) fn provenance(run: &Run<'_>) -> String {
    let header = &run.journal.header;
    let mut parts = vec![journal::time::utc(header.started_unix_ns)];
    // Facts that could not be read are left out.
    if !header.environment.cpu_model.is_empty() {
        parts.push(header.environment.cpu_model.clone());
    }
    if let Some(cpus) = run.cpus() {
        parts.push(counted(cpus, "core"));
    }
    if !header.environment.kernel.is_empty() {
        parts.push(header.environment.kernel.clone());
    }
    parts.push(format!("cipherbench {}", header.program));
    parts.join(", ")
}

/// Returns the command line of the run.
pub(super) fn command(run: &Run<'_>) -> String {
    command_line(&run.journal.header.command)
}
