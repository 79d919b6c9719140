//! What is known of a machine, what follows from it, and how that is shown.

use super::machine::Machine;
use super::probes::Probes;
use super::tuning::Change;
use crate::{Privilege, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Everything that a verdict is made from.
#[derive(Debug)]
pub struct Facts {
    /// What [`privilege::acquire`](crate::privilege::acquire) said.
    pub privilege: Result<Privilege>,
    /// The machine.
    pub machine: Machine,
    /// Tools with their versions.
    pub tools: BTreeMap<String, String>,
    /// Kernel features; `None` without privilege, an error when there was no namespace to try them
    /// in.
    pub probes: Result<Option<Probes>, String>,
    /// Parameters that can be tuned, as they are.
    pub tuning: Vec<Change>,
}

/// How good a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// As it should be.
    Good,
    /// It works, with a limit that one must know.
    Warning,
    /// Not there.
    Missing,
}

impl Status {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warning => "warning",
            Self::Missing => "missing",
        }
    }
}

/// One thing about this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub name: String,
    /// How good it is.
    pub status: Status,
    /// Whether no lab can be built without it.
    pub needed: bool,
    /// What was found.
    pub found: String,
    /// Why it matters.
    pub why: String,
    /// What to do; empty when there is nothing to do.
    pub advice: String,
}

/// Findings as a table for a terminal: what is good on one line, what is not with reason and
/// advice.
#[must_use]
pub fn render(findings: &[Finding]) -> String {
    let width = findings
        .iter()
        .map(|finding| finding.name.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for Finding {
        name,
        status,
        found,
        why,
        advice,
        ..
    } in findings
    {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:<8} {name:<width$}  {found}", status.name());
        if *status != Status::Good {
            let indent = width + 11;
            let _ = writeln!(text, "{:indent$}{why}", "");
            if !advice.is_empty() {
                let _ = writeln!(text, "{:indent$}help: {advice}", "");
            }
        }
    }
    text
}
