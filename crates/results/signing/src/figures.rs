//! Comparison of a run's documents with its journal.

use crate::SigningError;
use guard::visible;
use report::{CSV_NAME, HTML_NAME, JSON_NAME, MARKDOWN_NAME, Report};
use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Characters of a line that an error quotes.
const QUOTED: usize = 80;

/// A document that does not agree with the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Name of the document.
    pub document: &'static str,
    /// The first line that differs; `None` if the document is missing.
    pub line: Option<DifferentLine>,
}

/// A line of a document that differs from the computed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DifferentLine {
    /// Number, from 1.
    pub number: usize,
    /// The beginning of the document's line.
    pub printed: String,
    /// The beginning of the line computed from the journal.
    pub computed: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let document = self.document;
        match &self.line {
            None => write!(f, "there is no {document}"),
            Some(line) => write!(
                f,
                "{document} does not agree with the journal, from line {}: it has `{}`, and computed \
                 is `{}`",
                line.number, line.printed, line.computed
            ),
        }
    }
}

/// Computes every document from the journal, and returns those in the folder that differ.
///
/// # Errors
/// If a document is there and cannot be read.
pub(crate) fn differences(dir: &Path, report: Report<'_>) -> Result<Vec<Difference>, SigningError> {
    let computed = report.documents();
    let documents = [
        (JSON_NAME, computed.json),
        (HTML_NAME, computed.html),
        (MARKDOWN_NAME, computed.markdown),
        (CSV_NAME, computed.csv),
    ];
    let mut found = Vec::new();
    for (document, computed) in documents {
        let path = dir.join(document);
        // A longer document differs, however long it is.
        let read = guard::open_regular(&path).and_then(|file| {
            let mut printed = Vec::new();
            // One byte more shows a longer document, and bounds the memory for one of a forger.
            file.take(computed.len() as u64 + 1)
                .read_to_end(&mut printed)?;
            Ok(printed)
        });
        match read {
            Ok(printed) if printed == computed.as_bytes() => {}
            // The lossy text is for the quote only: bytes were compared above.
            Ok(printed) => found.push(Difference {
                document,
                line: Some(first(&String::from_utf8_lossy(&printed), &computed)),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => found.push(Difference {
                document,
                line: None,
            }),
            Err(source) => {
                return Err(SigningError::File {
                    action: "read",
                    path,
                    source,
                });
            }
        }
    }
    Ok(found)
}

/// The first line that differs in two texts that are not equal.
fn first(printed: &str, computed: &str) -> DifferentLine {
    let mut both = (printed.lines(), computed.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (both.0.next(), both.1.next()) {
            (Some(one), Some(other)) if one == other => {}
            (None, None) => {
                // They differ in bytes that are no text, or in the end of the last line.
                return DifferentLine {
                    number: number - 1,
                    printed: "other bytes".to_owned(),
                    computed: "these".to_owned(),
                };
            }
            (one, other) => {
                let (one, other) = (one.unwrap_or(""), other.unwrap_or(""));
                let begin = beginning(one, other);
                return DifferentLine {
                    number,
                    printed: quoted(one, begin),
                    computed: quoted(other, begin),
                };
            }
        }
    }
}

/// The number of characters after which quotes begin: a little before the first difference, since
/// a line of HTML is long.
fn beginning(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars());
    let same = same.take_while(|(one, other)| one == other).count();
    same.saturating_sub(QUOTED / 4)
}

fn quoted(line: &str, begin: usize) -> String {
    let quote: String = line.chars().skip(begin).take(QUOTED).collect();
    let before = if begin > 0 { "…" } else { "" };
    let after = if line.chars().count() > begin + QUOTED {
        "…"
    } else {
        ""
    };
    format!("{before}{}{after}", visible(&quote))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_digit_is_quoted_with_its_place() {
        let long = "x".repeat(500);
        let found = first(
            &format!("a\n{long}0.44 {long}"),
            &format!("a\n{long}0.64 {long}"),
        );
        assert_eq!(found.number, 2);
        assert!(found.printed.contains("x0.44 x"), "{found:?}");
        assert!(found.computed.contains("x0.64 x"), "{found:?}");
        assert!(found.printed.chars().count() <= QUOTED + 2, "{found:?}");
    }

    #[test]
    fn a_missing_line_and_a_missing_line_end_are_differences() {
        assert_eq!(first("a\n", "a\nb\n").number, 2);
        assert_eq!(first("a", "a\n").number, 1);
    }
}
