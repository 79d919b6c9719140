//! Warnings on standard error.

use std::io::{self, Write as _};

/// Logs a warning. A closed standard error must not end the thread.
pub(crate) fn warn(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "warning: {text}");
}
