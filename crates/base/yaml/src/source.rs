//! The text of a file, and the positions of its lines.

use crate::{Mistake, Mistakes, Place, Spot};
use std::sync::Arc;

/// A file's name and lines.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) file: Arc<str>,
    /// Messages must not show the file's content.
    pub(crate) secret: bool,
    lines: Vec<Line>,
}

/// A line, and its length in characters without trailing blanks: counted once, since every stored
/// value gets a place.
#[derive(Debug)]
struct Line {
    text: Arc<str>,
    chars: usize,
}

/// A place in a source: a line and a column from 1, and a length in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) length: usize,
}

impl Source {
    /// Splits a text into lines and rejects control characters.
    pub(crate) fn new(file: &str, text: &str, secret: bool) -> Result<Self, Mistakes> {
        // The parser does not count a byte order mark as a column.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let line = |text: &str| Line {
            text: text.into(),
            chars: text.trim_end().chars().count(),
        };
        let source = Self {
            file: file.into(),
            secret,
            lines: lines(text).map(line).collect(),
        };
        match source.first_control_character() {
            Some(mistake) => Err(mistake.into()),
            None => Ok(source),
        }
    }

    fn first_control_character(&self) -> Option<Mistake> {
        // Line ends are gone by now. Other controls could move the cursor of a terminal that
        // shows the line.
        let is_refused = |c: char| c.is_control() && c != '\t';
        let mut lines = self.lines.iter().enumerate();
        let (line, text) = lines.find(|(_, line)| line.text.contains(is_refused))?;
        let (column, found) = text
            .text
            .chars()
            .enumerate()
            .find(|(_, c)| is_refused(*c))?;
        let place = self.place(
            Region {
                line: line + 1,
                column: column + 1,
                length: 1,
            },
            String::new(),
        );
        let what = format!(
            "the control character U+{:04X} is not text",
            u32::from(found)
        );
        Some(place.mistake(
            what,
            "remove it; in double quotes it can be written as an escape",
        ))
    }

    /// The first line before line `line` that starts with `%`.
    pub(crate) fn directive_before(&self, line: usize) -> Option<usize> {
        let before = self.lines.iter().take(line.saturating_sub(1));
        before
            .zip(1..)
            .find(|(line, _)| line.text.starts_with('%'))
            .map(|(_, number)| number)
    }

    /// A region as shown to users: cut to its line and at least one character long.
    pub(crate) fn place(&self, region: Region, path: String) -> Place {
        let line = self.lines.get(region.line.saturating_sub(1));
        // Regions of several lines have the length `usize::MAX`, so the end is computed from the
        // line.
        let room = line.map_or(0, |line| (line.chars + 1).saturating_sub(region.column));
        let spot = Spot {
            line: region.line,
            column: region.column,
            length: region.length.clamp(1, room.max(1)),
            source_line: line.filter(|_| !self.secret).map(|line| line.text.clone()),
        };
        Place {
            file: self.file.clone(),
            spot: Some(spot),
            path,
        }
    }

    /// A text of the file as quoted in messages, or `instead` when the file holds secrets.
    pub(crate) fn quote(&self, text: &str, instead: &str) -> String {
        if self.secret {
            instead.to_owned()
        } else {
            format!("`{}`", shown(text))
        }
    }

    /// A noun and the name in question, or the noun alone when the file holds secrets.
    pub(crate) fn the(&self, noun: &str, name: &str) -> String {
        if self.secret {
            format!("the {noun}")
        } else {
            format!("the {noun} `{}`", shown(name))
        }
    }
}

/// The lines of a text as YAML 1.2 §5.4 breaks them: at LF, CR LF and CR.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n')
        .flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
}

/// A text for messages: one line, limited in length, without characters that move the cursor.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN_CHARS: usize = 60;
    let mut chars = text.chars();
    let mut shown = String::new();
    for c in chars.by_ref().take(SHOWN_CHARS) {
        // Quotes and letters of all scripts are not escaped.
        if c.is_control() {
            shown.extend(c.escape_debug())
        } else {
            shown.push(c)
        }
    }
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_lines_as_yaml_does() {
        assert_eq!(
            lines("a\nb\r\nc\rd").collect::<Vec<_>>(),
            ["a", "b", "c", "d"]
        );
        assert_eq!(lines("a\u{85}b\u{2028}c").count(), 1);
    }

    #[test]
    fn a_control_character_is_refused_where_it_stands() {
        let mistakes = Source::new("c.yaml", "a: 1\nb: x\u{1b}[2J\n", false).unwrap_err();
        let mistake = mistakes.iter().next().unwrap();
        assert_eq!(mistake.place.to_string(), "c.yaml:2:5");
        assert_eq!(mistake.what, "the control character U+001B is not text");
        assert!(!mistake.to_string().contains('\u{1b}'));
        assert!(Source::new("c.yaml", "\u{feff}a:\t1\r\n", false).is_ok());
    }
}
