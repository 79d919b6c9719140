//! Lines for people, on the standard error.

use std::io::{self, Write as _};

/// Tells people; a log that nobody reads any more must not end a thread.
pub(crate) fn warn(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "warning: {text}");
}
