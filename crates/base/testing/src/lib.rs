//! Helpers shared by the tests of several crates: other programs that they run, and the report of a
//! missing one. Only tests depend on this crate.

#![forbid(unsafe_code)]

mod attack;
mod browser;
pub mod busy;
pub mod charon;
pub mod keys;

pub use attack::attack;
pub use browser::Browser;

use std::fmt::Display;
use std::fs::Permissions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use tempfile::TempDir;

/// Reports that a test, or a part of one, is skipped, and why.
///
/// # Panics
/// In CI (`CI=true`), which installs everything that tests need.
#[track_caller]
pub fn skip(test: impl Display, reason: impl Display) {
    // Bypasses the test harness, which captures the output of passing tests. A closed standard
    // error must not fail a test.
    let _ = writeln!(io::stderr(), "SKIPPED: {test}: {reason}");
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!in_ci, "CI must not skip {test}: {reason}");
}

/// Reports that a test is skipped because a program is missing, and the command that installs it.
///
/// # Panics
/// As [`skip`].
#[track_caller]
pub fn lacks(test: impl Display, program: impl Display, install: impl Display) {
    skip(test, format_args!("no {program} here: {install}"));
}

/// Returns whether the C compiler finds a header, which a package installs. Reports by [`lacks`] if
/// not.
///
/// # Panics
/// As [`skip`].
#[track_caller]
pub fn has_header(test: &str, header: &str, install: &str) -> bool {
    let mut cc = Command::new("cc");
    cc.args(["-fsyntax-only", "-include", header, "-x", "c", "/dev/null"]);
    let finds = cc.output().is_ok_and(|output| output.status.success());
    if !finds {
        lacks(test, header, install);
    }
    finds
}

/// Returns the output of tshark with the arguments from `add`; `None`, reported by [`lacks`], if it
/// is not installed.
///
/// # Panics
/// As for [`skip`], and if tshark fails.
#[track_caller]
pub fn tshark(test: &str, add: impl FnOnce(&mut Command)) -> Option<String> {
    let mut command = Command::new("tshark");
    add(&mut command);
    let output = match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            lacks(test, "tshark", "apt install tshark");
            return None;
        }
        output => output.expect("tshark is started"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    Some(String::from_utf8(output.stdout).expect("tshark prints UTF-8"))
}

/// Creates a temporary folder that only this user can read and write under any umask, as folders of
/// keys and configurations require.
///
/// # Errors
/// Errors of the operating system.
pub fn folder() -> io::Result<TempDir> {
    let private = Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(private).tempdir()
}
