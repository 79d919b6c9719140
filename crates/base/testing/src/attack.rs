//! What an attack achieved, against the bound that `docs/security.md` states.

use std::fmt::Display;
use std::io::{self, Write};

/// Reports the result of an attack as one line, which `make attack` collects, and fails if it is
/// above the bound that `docs/security.md` states.
///
/// # Panics
/// If the attack achieved more than the bound.
#[track_caller]
pub fn attack<T: PartialOrd + Display>(what: &str, achieved: T, bound: T) {
    // Past the test harness, which captures the output of tests that pass. A closed standard error
    // must not fail a test.
    let _ = writeln!(io::stderr(), "attack: {what}: {achieved} (at most {bound})");
    assert!(
        achieved <= bound,
        "{what}: {achieved}, but at most {bound} is promised"
    );
}
