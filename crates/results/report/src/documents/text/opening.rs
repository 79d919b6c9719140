//! The first sentences of a run, read back from its Markdown document.

/// The first sentences of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// How far the run can be relied on.
    pub soundness: String,
    /// The finding, without its limit and certainty; `None` without any figure.
    pub answer: Option<String>,
}

/// Reads the first sentences from the beginning of a document
/// [`MARKDOWN_NAME`](crate::MARKDOWN_NAME), which is enough for a list of runs; `None` if it is
/// none.
#[must_use]
pub fn opening(markdown: &str) -> Option<Opening> {
    // Title, provenance, soundness, answer (`markdown::head`). Their texts have no empty lines.
    let mut paragraphs = markdown.strip_prefix("# ")?.split("\n\n").skip(2);
    let soundness = paragraphs.next()?.trim_end().to_owned();
    let answer = paragraphs.next();
    // Without a figure a list or a device follows, which has no limit.
    let answer = answer.and_then(|text| text.split_once(". Limit: "));
    Some(Opening {
        soundness,
        answer: answer.map(|(finding, _)| format!("{}.", plain(finding))),
    })
}

/// Reverts [`in_markdown`](units::human::in_markdown).
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        // Every backslash of the text is escaped itself.
        plain.extend(if c == '\\' {
            characters.next()
        } else {
            Some(c)
        });
    }
    // The ampersand last, or `&amp;lt;` would become `<`.
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    entities
        .iter()
        .fold(plain, |text, (entity, c)| text.replace(entity, c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::human::in_markdown;

    #[test]
    fn escapes_are_reverted() {
        for text in ["a\\*b", "x &lt; y & z <b>", "~`_#|[1]", ""] {
            assert_eq!(plain(&in_markdown(text)), text);
        }
    }

    #[test]
    fn what_is_no_report_has_no_opening() {
        assert_eq!(opening(""), None);
        assert_eq!(opening("# title\n\nprovenance"), None);
        assert_eq!(opening("text\n\na\n\nb\n\nc. Limit: x"), None);
    }
}
