//! Texts of others, for a terminal.

use guard::visible;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Labels behind a lab's name: ` firmware=2.1 site=b`.
#[must_use]
pub fn labels(labels: &BTreeMap<String, String>) -> String {
    let labels = labels.iter();
    labels
        .map(|(key, value)| format!(" {}={}", visible(key), visible(value)))
        .collect()
}

/// Replaces characters that a terminal obeys with escapes in JSON, without changing its meaning.
#[must_use]
pub fn visible_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        // JSON escapes only quotes, backslashes and the control characters below U+0020; a terminal
        // also obeys others, and some reorder a line.
        match visible(c.encode_utf8(&mut [0; 4])) {
            // None of these is beyond the first 65536 characters.
            Cow::Owned(_) => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            Cow::Borrowed(_) => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clears the screen, begins a new line, and reverses the order of the text after it.
    const HOSTILE: &str = "x\u{1b}[2J\r\n7 fine.yaml done in lab\u{202e}\u{9b}31m";

    #[test]
    fn json_for_a_terminal_says_the_same() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE, "ü\u{feff}", "\u{7f}"] });
        let text = visible_json(&value.to_string());
        assert_eq!(visible(&text), text);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, value);
        // No JSON, as a foreign line of a journal may be.
        assert_eq!(visible_json("a\u{1b}"), "a\\u001b");
    }
}
