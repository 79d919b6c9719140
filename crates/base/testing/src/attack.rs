//! The result of an attack, checked against its bound in `docs/security.md`.

use std::fmt::Display;
use std::io::{self, Write};

/// Reports the result of an attack as one line, which `make attack` collects, and fails if it
/// exceeds the bound stated in `docs/security.md`.
///
/// # Panics
/// If the attack achieved more than the bound.
#[track_caller]
pub fn attack<T: PartialOrd + Display>(what: &str, achieved: T, bound: T) {
    // Bypasses the test harness, which captures the output of passing tests. A closed standard
    // error must not fail a test.
    let _ = writeln!(io::stderr(), "attack: {what}: {achieved} (at most {bound})");
    assert!(
        achieved <= bound,
        "{what}: {achieved}, but at most {bound} is promised"
    );
}
