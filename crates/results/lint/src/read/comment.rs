//! Comments of Markdown: those with keys for lint, and those that only seem to have them.

use crate::source::Source;
use std::ops::Range;

/// The beginning of a comment with keys.
pub(super) const OPEN: &str = "<!-- lint";
/// The end of any comment.
pub(super) const CLOSE: &str = "-->";
const ANY: &str = "<!--";
/// The first word of a comment with keys.
const NAME: &str = "lint";
/// The second word of comments for another program of this name.
const OTHERS: [&str; 3] = ["disable", "enable", "ignore"];
/// Keys that show that a comment is meant for lint.
const KEYS: [&str; 10] = [
    "unit",
    "columns",
    "link",
    "layer",
    "mtu",
    "transport",
    "decimal",
    "parts",
    "baseline",
    "encapsulation",
];

/// Whether a line begins a comment with keys.
pub(super) fn is_ours(line: &str) -> bool {
    let after = line.trim_start().strip_prefix(OPEN);
    let is_whole = |after: &str| {
        after.is_empty() || after.starts_with(CLOSE) || after.starts_with(char::is_whitespace)
    };
    after.is_some_and(|after| is_whole(after) && !is_of_other(after))
}

/// Whether the words are commands of a linter of Markdown: `<!-- lint disable … -->`.
fn is_of_other(after: &str) -> bool {
    let word = after.split_whitespace().next().unwrap_or_default();
    OTHERS.contains(&word)
}

/// Returns the inside of any comment that begins a line; `None` if it has no end.
pub(super) fn inside(text: &str, line: &Range<usize>) -> Option<Range<usize>> {
    let shown = &text[line.clone()];
    let lead = shown.len() - shown.trim_start().len();
    shown.trim_start().strip_prefix(ANY)?;
    let start = line.start + lead + ANY.len();
    let length = text[start..].find(CLOSE)?;
    Some(start..start + length)
}

/// Reports a comment that is probably meant for lint: it has a name like ours, or our keys.
pub(super) fn refuse_alike(source: &Source, line: &Range<usize>, inside: &str) {
    let word = inside.split_whitespace().next().unwrap_or_default();
    let lower = word.to_lowercase();
    let name = lower.trim_matches(|c: char| !c.is_alphanumeric());
    let after = &inside[inside.find(word).unwrap_or(0) + word.len()..];
    let is_key = |line: &str| {
        let key = line.split_once('=').map(|(key, _)| key.trim());
        key.is_some_and(|key| KEYS.contains(&key))
    };
    // Keys may follow the name in its line.
    let has_keys = inside.lines().chain([after]).any(is_key);
    let is_skip = after.trim() == "skip" && name.contains(NAME);
    let is_named = name == NAME && !is_of_other(after);
    if !(is_named || has_keys || is_skip || name.starts_with("cipherbench")) {
        return;
    }
    let shown = if has_keys && is_key(inside.trim().lines().next().unwrap_or_default()) {
        "the comment has keys of a table and no name".to_owned()
    } else {
        format!("the comment `{word}` is not read")
    };
    let help = "its name is `lint`, in small letters and between blanks: a line `<!-- lint`, the keys, a line `-->`";
    source.mistake(&source.place(line), shown, help);
}
