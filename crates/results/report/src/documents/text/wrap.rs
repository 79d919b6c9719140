//! Text broken into lines, and padded to columns.

use unicode_width::UnicodeWidthStr;

pub(super) fn pad(text: &str, width: usize, right: bool) -> String {
    let fill = " ".repeat(width.saturating_sub(text.width()));
    if right {
        fill + text
    } else {
        text.to_owned() + &fill
    }
}

/// Breaks text at spaces into lines no wider than `width`, at least one; wider words are broken
/// after a sign that joins parts of an id, or anywhere.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word = word;
        loop {
            // The vector begins with one line and only grows.
            let line = lines.last_mut().expect("there is always a last line");
            let space = usize::from(!line.is_empty());
            if line.width() + space + word.width() <= width {
                if space == 1 {
                    line.push(' ');
                }
                line.push_str(word);
                break;
            }
            // A long word is broken only if it has a whole line.
            if line.is_empty() {
                let (head, rest) = split_at_width(word, width);
                line.push_str(head);
                word = rest;
                if word.is_empty() {
                    break;
                }
            }
            lines.push(String::new());
        }
    }
    lines
}

/// Splits off the longest beginning no wider than `width`, but at least one character. It ends
/// after a sign that joins parts of an id, if that leaves at least a third of the width.
fn split_at_width(word: &str, width: usize) -> (&str, &str) {
    let ends = word.char_indices().map(|(start, c)| start + c.len_utf8());
    let fitting = || ends.clone().take_while(|&end| word[..end].width() <= width);
    let is_joint = |&end: &usize| {
        word[..end].ends_with(['/', '-', ',', '_', '=']) && word[..end].width() >= width / 3
    };
    let joint = fitting().filter(is_joint).last();
    let end = joint.or_else(|| fitting().last());
    // At least one character, or `wrap` would not end.
    word.split_at(end.or_else(|| ends.clone().next()).unwrap_or(word.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_spaces_and_long_words_at_joints_or_anywhere() {
        assert_eq!(wrap("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(
            wrap("tcp/mtu=1500/cipherbench", 12),
            ["tcp/mtu=", "1500/", "cipherbench"]
        );
        assert_eq!(wrap("日本語", 4), ["日本", "語"]);
        assert_eq!(wrap("日本", 1), ["日", "本"]);
    }
}
