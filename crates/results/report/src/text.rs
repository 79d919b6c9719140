//! Documents in plain text.

pub(crate) mod brief;
pub(crate) mod markdown;
pub(crate) mod terminal;

use crate::format::{command_line, counted};
use crate::layout::Run;

/// Explains the commands in a document, which may be moved and does not know its folder.
pub(crate) const RUN: &str = "RUN in a command is the folder of this run, which has its journal";

/// Time and place: `2026-11-20T11:30:00Z, Intel Xeon, 2 cores, Linux 6.18.44, cipherbench 0.1.0`.
pub(crate) fn provenance(run: &Run<'_>) -> String {
    let header = &run.journal.header;
    let mut parts = vec![journal::time::utc(header.started_unix_ns)];
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
pub(crate) fn command(run: &Run<'_>) -> String {
    command_line(&run.journal.header.command)
}
