//! What tests of several crates share: other programs that they run, and how one that is missing is
//! reported. Only tests depend on it.

#![forbid(unsafe_code)]

use std::fmt::Display;
use std::io::{self, Write};

/// Reports that a test, or a part of one, is skipped, and why.
///
/// # Panics
/// In CI (`CI=true`), whose set-up installs all that tests need.
#[track_caller]
pub fn skip(test: impl Display, reason: impl Display) {
    // Past the test harness, which captures the output of tests that pass. A closed standard error
    // must not fail a test.
    let _ = writeln!(io::stderr(), "SKIPPED: {test}: {reason}");
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!in_ci, "CI must not skip {test}: {reason}");
}

/// Reports that a test is skipped because something is not installed, and what installs it.
///
/// # Panics
/// As [`skip`].
#[track_caller]
pub fn lacks(test: impl Display, program: impl Display, install: impl Display) {
    skip(test, format_args!("no {program} here: {install}"));
}
