//! Lists for a terminal of any width.

use guard::visible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Gap between columns.
const GAP: usize = 2;
/// Minimum width of the text in a table; in a narrower terminal it has lines for itself.
const TEXT_WIDTH_MIN: usize = 40;
/// Minimum width, regardless of the terminal.
const WIDTH_MIN: usize = 40;
const INDENT: &str = "  ";

/// An entry of a list.
pub(crate) struct Entry {
    /// Short values, a column each.
    pub(crate) columns: Vec<String>,
    /// A text, which fills the rest of the width.
    pub(crate) text: String,
}

/// Returns a list as a table, or with some lines for each entry if the terminal is narrow. Texts
/// are cut after `lines_max` lines. There is a heading for each column, and one for the text.
pub(crate) fn write(
    headings: &[&str],
    entries: &[Entry],
    lines_max: usize,
    width: usize,
) -> String {
    let width = width.max(WIDTH_MIN);
    let widths: Vec<usize> = (0..headings.len() - 1)
        .map(|column| {
            let values = entries.iter().map(|entry| entry.columns[column].width());
            values.max().unwrap_or(0).max(headings[column].width())
        })
        .collect();
    let before: usize = widths.iter().map(|width| width + GAP).sum();
    let mut text = String::new();
    if before + TEXT_WIDTH_MIN > width {
        for entry in entries {
            narrow(&mut text, entry, lines_max, width);
        }
        return text;
    }
    let mut row = |columns: &mut dyn Iterator<Item = &str>, last: &str, lines_max| {
        let mut lead = String::new();
        for (value, width) in columns.zip(&widths) {
            lead += value;
            lead += &" ".repeat(width - value.width() + GAP);
        }
        for part in wrapped(last, width - before, lines_max) {
            line(&mut text, &format!("{lead}{part}"));
            lead = " ".repeat(before);
        }
    };
    // The caller gives one heading more than there are columns.
    if let Some((last, others)) = headings.split_last() {
        row(&mut others.iter().copied(), last, 1);
    }
    for entry in entries {
        let mut columns = entry.columns.iter().map(String::as_str);
        row(&mut columns, &entry.text, lines_max);
    }
    text
}

/// The columns one after the other, and the text below them.
fn narrow(text: &mut String, entry: &Entry, lines_max: usize, width: usize) {
    let mut head = String::new();
    let values = entry.columns.iter().filter(|value| !value.is_empty());
    for value in values {
        // A value is not broken, so that it can be copied: a long name is left to the terminal.
        if !head.is_empty() && head.width() + GAP + value.width() > width {
            line(text, &head);
            head = INDENT.to_owned() + value;
        } else {
            if !head.is_empty() {
                head += &" ".repeat(GAP);
            }
            head += value;
        }
    }
    line(text, &head);
    if !entry.text.is_empty() {
        for part in wrapped(&entry.text, width - INDENT.len(), lines_max) {
            line(text, &format!("{INDENT}{part}"));
        }
    }
}

fn line(text: &mut String, line: &str) {
    *text += line.trim_end();
    text.push('\n');
}

/// Returns a text in at most `lines_max` lines, broken at spaces, at least one. A text that is cut
/// ends in `…`.
pub(crate) fn wrapped(text: &str, width: usize, lines_max: usize) -> Vec<String> {
    // Texts of files have lines of their own.
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut lines = report::wrap(&words.join(" "), width);
    if lines.len() > lines_max {
        let rest = lines.split_off(lines_max);
        if let (Some(last), Some(next)) = (lines.last_mut(), rest.first()) {
            *last += " ";
            *last += next;
            // Cut in any case, although the next word may just fit.
            *last += &" ".repeat(width);
        }
    }
    lines.iter().map(|line| cut(line, width)).collect()
}

/// Returns a text that is no wider than `width`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fitting = text.chars().take_while(|c| {
        let fits = c.width().unwrap_or(0) <= room;
        room = room.saturating_sub(c.width().unwrap_or(0));
        fits
    });
    let fitting: String = fitting.collect();
    format!("{}…", fitting.trim_end())
}

/// A text of a file, on one line and without control characters.
pub(crate) fn shown(text: &str) -> String {
    visible(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_broken_at_spaces_and_cut_at_their_last_line() {
        assert_eq!(wrapped("a bb ccc", 4, 9), ["a bb", "ccc"]);
        assert_eq!(wrapped("a bb ccc dd", 4, 1), ["a b…"]);
        assert_eq!(wrapped("one two three", 7, 1), ["one tw…"]);
        assert_eq!(wrapped("abcdefgh i", 4, 9), ["abcd", "efgh", "i"]);
        assert_eq!(wrapped("日本語の本", 5, 1), ["日本…"]);
        assert_eq!(wrapped("", 4, 1), [""]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let entries = [Entry {
            columns: vec!["20261120T113000Z-quick".to_owned(), "finished".to_owned()],
            text: "cipherbench carries 42 to 49 % of the TCP payload of direct".to_owned(),
        }];
        for width in [40, 60, 80, 120] {
            let text = write(&["Run", "State", "Result"], &entries, 2, width);
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
            assert!(text.contains("payload of"), "{text}");
            assert_eq!(text.starts_with("Run"), width >= 80, "{text}");
        }
    }
}
