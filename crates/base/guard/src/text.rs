//! Texts for a terminal.

use std::borrow::Cow;

/// Returns text for one line of a terminal: `�` replaces each control character, which could move
/// the cursor, clear the screen or type commands, and each character that reorders or hides its
/// neighbours.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, is_hidden)
}

/// Like [`visible`], for a text of several lines: line feeds and tabs stay.
#[must_use]
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_hidden(c) && c != '\n' && c != '\t')
}

/// Like [`visible_lines`], for program output on a terminal: tabs, line feeds with or without a
/// carriage return, and sequences that set colours and weight (SGR) stay. Sequences that conceal
/// text do not.
#[must_use]
pub fn visible_styled(text: &str) -> Cow<'_, str> {
    // The usual text has neither, and is not copied.
    if !text.contains(['\u{1b}', '\r']) {
        return visible_lines(text);
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(['\u{1b}', '\r']) {
        shown.push_str(&visible_lines(&rest[..at]));
        let kept = match &rest[at..] {
            ended if ended.starts_with("\r\n") => 2,
            sequence => style_bytes(sequence).unwrap_or(0),
        };
        if kept == 0 {
            shown.push('\u{fffd}');
        } else {
            shown.push_str(&rest[at..at + kept]);
        }
        // A refused one has one byte: both characters are ASCII.
        rest = &rest[at + kept.max(1)..];
    }
    shown.push_str(&visible_lines(rest));
    Cow::Owned(shown)
}

/// Returns the length of the sequence that begins here, if it only sets colours or weight.
fn style_bytes(text: &str) -> Option<usize> {
    /// Each part of a long sequence has at most three digits.
    const BYTES_MAX: usize = 24;
    const CONCEAL: &str = "8";
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let is_style = parameters[end..].starts_with('m') && end <= BYTES_MAX;
    let mut numbers = parameters[..end].split(';');
    // Terminals read `08` as 8. Of `38;5;8`, a colour, the last number is refused too, which only
    // costs the colour.
    let conceals = numbers.any(|number| number.trim_start_matches('0') == CONCEAL);
    (is_style && !conceals).then_some("\u{1b}[".len() + end + 1)
}

fn replaced(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().map(|c| if hidden(c) { '\u{fffd}' } else { c });
    Cow::Owned(shown.collect())
}

/// Returns a name for one line of a terminal, which [`unescaped`] reverses: each backslash and each
/// character that [`visible`] replaces becomes `\u{…}` with its number.
#[must_use]
pub fn escaped(name: &str) -> Cow<'_, str> {
    // Backslashes too: otherwise a name with the text of a sequence could not be distinguished
    // from an escaped one.
    let is_replaced = |c: char| is_hidden(c) || c == '\\';
    if !name.contains(is_replaced) {
        return Cow::Borrowed(name);
    }
    let mut shown = String::with_capacity(name.len());
    for c in name.chars() {
        if is_replaced(c) {
            shown.extend(c.escape_unicode())
        } else {
            shown.push(c)
        }
    }
    Cow::Owned(shown)
}

/// Reverses [`escaped`]. Text that it never writes is unchanged.
#[must_use]
pub fn unescaped(shown: &str) -> Cow<'_, str> {
    const BEGIN: &str = "\\u{";
    if !shown.contains(BEGIN) {
        return Cow::Borrowed(shown);
    }
    let (mut name, mut rest) = (String::with_capacity(shown.len()), shown);
    while let Some((before, after)) = rest.split_once(BEGIN) {
        name.push_str(before);
        let sequence = after.split_once('}').and_then(|(digits, after)| {
            let number = u32::from_str_radix(digits, 16).ok()?;
            Some((char::from_u32(number)?, after))
        });
        // A name that somebody types may hold anything, so nothing here is an error.
        rest = match sequence {
            Some((c, after)) => {
                name.push(c);
                after
            }
            None => {
                name.push_str(BEGIN);
                after
            }
        };
    }
    name.push_str(rest);
    Cow::Owned(name)
}

/// Control characters (C0, DEL, C1), line and paragraph separators, and the marks, embeddings,
/// overrides and isolates of the bidirectional algorithm (Unicode UAX #9).
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_sequences_lose_their_effect() {
        assert_eq!(visible("a\x1b[2Jb\r\n"), "a\u{fffd}[2Jb\u{fffd}\u{fffd}");
        assert_eq!(visible("\u{9b}31m"), "\u{fffd}31m");
        assert_eq!(visible("user\u{202e}gpj.exe"), "user\u{fffd}gpj.exe");
        assert_eq!(visible_lines("a\tb\nc\x07"), "a\tb\nc\u{fffd}");
    }

    #[test]
    fn of_sequences_only_colours_and_weight_stay() {
        for text in [
            "\x1b[1mbold\x1b[0m",
            "\x1b[38;5;208mx\x1b[m",
            "a,b\r\n\tc\n",
        ] {
            assert_eq!(visible_styled(text), text);
        }
        for (text, shown) in [
            ("\x1b[8mhidden", "\u{fffd}[8mhidden"),
            ("\x1b[0;08mhidden", "\u{fffd}[0;08mhidden"),
            ("\x1b[2J", "\u{fffd}[2J"),
            (
                "\x1b[1m\x1b]0;title\x07x",
                "\x1b[1m\u{fffd}]0;title\u{fffd}x",
            ),
            ("over\rwritten", "over\u{fffd}written"),
            ("\x1b", "\u{fffd}"),
            ("\x1b[1", "\u{fffd}[1"),
            ("é\x1b[31é\u{9b}2J", "é\u{fffd}[31é\u{fffd}2J"),
        ] {
            assert_eq!(visible_styled(text), shown);
        }
    }

    #[test]
    fn ordinary_text_is_not_copied() {
        for text in ["", "5 Gbit/s ± 1 %", "Šifrátor 密码"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn an_escaped_name_is_visible_and_can_be_given_back() {
        assert_eq!(escaped("evil\u{1b}[2J"), "evil\\u{1b}[2J");
        assert_eq!(unescaped("evil\\u{1b}[2J"), "evil\u{1b}[2J");
        for name in [
            "",
            "plain-1_2=/.x",
            "\u{1b}]0;x\u{7}",
            "a\\u{1b}b",
            "\\",
            "\u{202e}gpj.é",
        ] {
            let shown = escaped(name);
            assert_eq!(visible(&shown), shown, "{name:?}");
            assert_eq!(unescaped(&shown), name);
        }
        for typed in ["\\u{", "\\u{x}", "\\u{110000}", "\\u{d800}y", "\\n"] {
            assert_eq!(unescaped(typed), typed);
        }
    }
}
