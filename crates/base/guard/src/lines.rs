//! Lines of unknown length.

use std::io::{self, BufRead, ErrorKind};

/// One line, without its line feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its beginning, up to the limit; invalid UTF-8 is replaced by `�`.
    pub text: String,
    /// Whether it was longer than the limit: the rest was read and discarded.
    pub cut: bool,
}

/// Reads lines like [`BufRead::lines`], but keeps at most `bytes_max` bytes of each.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    bytes_max: usize,
}

impl<R: BufRead> Lines<R> {
    /// Reads lines of at most `bytes_max` bytes.
    pub const fn new(source: R, bytes_max: usize) -> Self {
        Self { source, bytes_max }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<io::Result<Line>> {
        let (mut kept, mut cut, mut begun) = (Vec::new(), false, false);
        loop {
            let part = match self.source.fill_buf() {
                Ok(part) => part,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Some(Err(error)),
            };
            if part.is_empty() {
                break;
            }
            begun = true;
            let end = part.iter().position(|byte| *byte == b'\n');
            let content = &part[..end.unwrap_or(part.len())];
            // Not negative: no more than `bytes_max` are ever kept.
            let room = self.bytes_max - kept.len();
            cut |= content.len() > room;
            kept.extend_from_slice(&content[..content.len().min(room)]);
            let consumed = content.len() + usize::from(end.is_some());
            // The whole part is consumed, also what exceeds the limit: the next call begins at
            // the next line.
            self.source.consume(consumed);
            if end.is_some() {
                break;
            }
        }
        // A last line without a line feed counts, as in `BufRead::lines`; the end of the source
        // does not.
        begun.then(|| {
            let text = String::from_utf8_lossy(&kept).into_owned();
            Ok(Line { text, cut })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::{BufReader, Read};

    fn read(bytes: &[u8], bytes_max: usize) -> Vec<(String, bool)> {
        // A small buffer, so that lines span several of them.
        let source = BufReader::with_capacity(3, bytes);
        let lines = Lines::new(source, bytes_max).map(Result::unwrap);
        lines.map(|line| (line.text, line.cut)).collect()
    }

    #[test]
    fn long_lines_are_cut_and_the_next_ones_are_whole() {
        let lines = read(b"abc\nabcdefgh\n\nxy", 4);
        let expected = [("abc", false), ("abcd", true), ("", false), ("xy", false)];
        assert_eq!(lines, expected.map(|(text, cut)| (text.to_owned(), cut)));
        assert!(read(b"", 4).is_empty());
    }

    #[test]
    fn a_line_without_an_end_takes_no_more_memory_than_the_limit() {
        let endless = BufReader::new(io::repeat(b'x').take(1 << 26));
        let line = Lines::new(endless, 100).next().unwrap().unwrap();
        assert!(line.cut && line.text.len() == 100 && line.text.capacity() <= 256);
    }

    proptest! {
        #[test]
        fn short_lines_are_those_of_the_standard_library(text in "[ab\n]{0,40}") {
            let expected: Vec<_> = text.as_bytes().lines().map(|line| (line.unwrap(), false)).collect();
            prop_assert_eq!(read(text.as_bytes(), 40), expected);
        }
    }
}
