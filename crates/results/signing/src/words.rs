//! What signing and verifying found, in words.

use crate::{Signature, Signed, Verified};
use std::fmt::Display;
use std::path::Path;

/// Names listed in one line; more are counted.
const LISTED: usize = 5;

impl Signed {
    /// Returns the result, with the command that verifies it.
    #[must_use]
    pub fn text(&self, run: &Path) -> String {
        let Self {
            files,
            key,
            not_run,
        } = self;
        let more = if *not_run > 0 {
            format!(
                "trials of the plan that are not run yet: {not_run}; after `cipherbench resume`, sign again by `--force`\n"
            )
        } else {
            String::new()
        };
        format!(
            "signed {files} files by the key {key}; others verify it by\n  cipherbench verify {} --key KEY.pub\n{more}",
            run.display()
        )
    }
}

impl Verified {
    /// Returns a line for the documents, the signature and the files, the worst of each with its
    /// place.
    #[must_use]
    pub fn text(&self) -> String {
        let mut lines = Lines::default();
        for warning in &self.warnings {
            lines.add("journal", format_args!("DAMAGED: {warning}"));
        }
        for difference in &self.differences {
            lines.add("documents", format_args!("WRONG: {difference}"));
        }
        if self.differences.is_empty() {
            lines.add("documents", "every figure agrees with the journal");
        }
        match &self.signature {
            Signature::None => lines.add("signature", "none"),
            Signature::NotVerified { key } => lines.add(
                "signature",
                format_args!(
                    "NOT VERIFIED: it names the key {key}; give the signer's public key by `--key`"
                ),
            ),
            Signature::Wrong { key, reason } => {
                lines.add(
                    "signature",
                    format_args!("WRONG: it names the key {key}, and {reason}"),
                );
            }
            Signature::Good {
                key,
                comment,
                files,
                changes,
                not_covered,
            } => {
                lines.add(
                    "signature",
                    format_args!("good, by the key {key}: {comment}"),
                );
                for (what, names) in [
                    ("CHANGED since", &changes.changed),
                    ("MISSING", &changes.missing),
                ] {
                    if !names.is_empty() {
                        lines.add("files", format_args!("{what}: {}", listed(names)));
                    }
                }
                if !not_covered.is_empty() {
                    lines.add("files", format_args!("NOT SIGNED: {}", listed(not_covered)));
                }
                if changes.changed.is_empty() && changes.missing.is_empty() {
                    lines.add("files", format_args!("as signed: all {files}"));
                }
                if !changes.added.is_empty() {
                    lines.add(
                        "files",
                        format_args!(
                            "not signed, and no part of the run: {}",
                            listed(&changes.added)
                        ),
                    );
                }
            }
        }
        lines.text
    }
}

#[derive(Default)]
struct Lines {
    text: String,
}

impl Lines {
    fn add(&mut self, subject: &str, what: impl Display) {
        // The subject of the longest name and two spaces.
        self.text += &format!("{subject:<11}{what}\n");
    }
}

fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let mut text: Vec<&str> = names.iter().take(LISTED).map(AsRef::as_ref).collect();
    let more = format!("and {} more", names.len().saturating_sub(LISTED));
    if names.len() > LISTED {
        text.push(&more);
    }
    text.join(", ")
}
