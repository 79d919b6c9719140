//! Sentences with `code` between backticks, as in warnings, reasons and this crate's prose.

/// A part of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span<'a> {
    Text(&'a str),
    /// Code, without its backticks.
    Code(&'a str),
}

/// Splits a sentence into its parts. A backtick without a partner is text.
pub(crate) fn spans(mut text: &str) -> Vec<Span<'_>> {
    let mut spans = Vec::new();
    while let Some((before, rest)) = text.split_once('`') {
        let Some((code, after)) = rest.split_once('`') else {
            break;
        };
        // Two adjacent backticks enclose no code, so both remain in the text.
        if code.is_empty() {
            spans.push(Span::Text(&text[..before.len() + 2]));
        } else {
            spans.extend([Span::Text(before), Span::Code(code)]);
        }
        text = after;
    }
    // The rest, which has at most one backtick.
    spans.push(Span::Text(text));
    spans
}

#[cfg(test)]
mod tests {
    use super::Span::{Code, Text};
    use super::*;

    #[test]
    fn backticks_come_in_pairs_or_are_text() {
        assert_eq!(
            spans("use `a` and `b`."),
            [Text("use "), Code("a"), Text(" and "), Code("b"), Text(".")]
        );
        assert_eq!(spans("it`s"), [Text("it`s")]);
        assert_eq!(spans("a `` b"), [Text("a ``"), Text(" b")]);
        assert_eq!(spans("`a` `b"), [Text(""), Code("a"), Text(" `b")]);
    }
}
