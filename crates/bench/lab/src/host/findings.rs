//! The facts about a machine, the findings derived from them, and their text.

use super::cards::Card;
use super::discipline::Discipline;
use super::probes::Probes;
use super::tuning::Change;
use super::versions::Installed;
use crate::Privilege;
use journal::record::Environment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use testbed::Result;
use testbed::protocol::Load;

/// The input of all verdicts.
#[derive(Debug)]
pub struct Facts {
    /// Result of [`privilege::acquire`](crate::privilege::acquire).
    pub privilege: Result<Privilege>,
    /// Who uses the machine's CPUs.
    pub load: Load,
    /// The machine, without privilege, tools and engines.
    pub machine: Environment,
    /// The kernel's clock source.
    pub clock_source: String,
    /// The discipline of the kernel's clock.
    pub discipline: Discipline,
    /// Whether two hardware threads share a core (SMT); `None` when unknown.
    pub threads_share_cores: Option<bool>,
    /// Interfaces that a lab uses.
    pub cards: Vec<Card>,
    /// The installed programs, by name.
    pub tools: BTreeMap<String, Installed>,
    /// Whether the processor's counters can be read; an error is the kernel's refusal.
    pub counters: io::Result<()>,
    /// Kernel features; `None` without privilege, an error when there was no namespace to try them
    /// in.
    pub probes: Result<Option<Probes>, String>,
    /// Current values of the parameters that can be tuned.
    pub tuning: Vec<Change>,
}

/// Grade of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// No limitation.
    Good,
    /// Works with a limitation.
    Warning,
    /// Missing.
    Missing,
}

impl Status {
    /// Returns its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Warning => "warning",
            Self::Missing => "missing",
        }
    }
}

/// One finding about this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The subject.
    pub name: String,
    /// The grade.
    pub status: Status,
    /// Whether a lab requires it.
    pub needed: bool,
    /// The observation.
    pub found: String,
    /// Why it matters.
    pub why: String,
    /// What to do; empty if nothing.
    pub advice: String,
}

/// Renders findings as a table for a terminal: good ones on one line, others with reason and
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
            // The grade has eight characters, one space follows it, and two follow the name.
            let indent = width + 11;
            let _ = writeln!(text, "{:indent$}{why}", "");
            if !advice.is_empty() {
                let _ = writeln!(text, "{:indent$}help: {advice}", "");
            }
        }
    }
    text
}
