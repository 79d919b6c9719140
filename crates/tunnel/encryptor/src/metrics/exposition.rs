//! The syntax of the exposition text.

use std::fmt::{Display, Write as _};

/// Appends a metric: each sample is its labels, without braces, and its value.
pub(super) fn metric<V: Display>(
    out: &mut String,
    kind: &str,
    name: &str,
    help: &str,
    samples: impl IntoIterator<Item = (String, V)>,
) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in samples {
        let _ = if labels.is_empty() {
            writeln!(out, "{name} {value}")
        } else {
            writeln!(out, "{name}{{{labels}}} {value}")
        };
    }
}

/// The samples of a metric without labels.
pub(super) fn single<V>(value: V) -> [(String, V); 1] {
    [(String::new(), value)]
}

pub(super) fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
