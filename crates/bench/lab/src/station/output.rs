//! A program's output: always read, so that the program never blocks, and kept up to a limit.

use std::collections::VecDeque;
use testbed::protocol::OUTPUT_LIMIT_BYTES;

/// Keeps the beginning and the end of a stream; omits the middle of a stream that is too long.
#[derive(Debug, Default)]
pub(super) struct Capped {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    left_out: u64,
}

/// Room for the note on omitted bytes.
const NOTE_BYTES: usize = 64;
const HEAD_BYTES: usize = OUTPUT_LIMIT_BYTES / 2;
const TAIL_BYTES: usize = OUTPUT_LIMIT_BYTES - HEAD_BYTES - NOTE_BYTES;

impl Capped {
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        // At least 0: the head never gets more than its room.
        let room = HEAD_BYTES - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        bytes = rest;
        // Cut only afterwards: of a part that is longer than the room its end must remain.
        self.tail.extend(bytes);
        let excess = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..excess);
        self.left_out += excess as u64;
    }

    /// The kept bytes as text; invalid UTF-8 is replaced.
    pub(super) fn text(&self) -> String {
        let mut bytes = self.head.clone();
        if self.left_out > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes left out]\n", self.left_out).as_bytes());
        }
        let (front, back) = self.tail.as_slices();
        bytes.extend_from_slice(front);
        bytes.extend_from_slice(back);
        // Valid text, the usual case, is not copied again.
        match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }

    /// Returns the first whole line of the kept beginning that starts with `prefix`, without its
    /// newline.
    pub(super) fn line(&self, prefix: &str) -> Option<String> {
        let lines = self.head.split_inclusive(|byte| *byte == b'\n');
        let mut whole = lines.filter_map(|line| line.strip_suffix(b"\n"));
        let line = whole.find(|line| line.starts_with(prefix.as_bytes()))?;
        Some(String::from_utf8_lossy(line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_too_long_keeps_its_beginning_and_its_end() {
        let mut output = Capped::default();
        output.push(b"first\n");
        for _ in 0..40 {
            output.push(&vec![b'x'; OUTPUT_LIMIT_BYTES / 16]);
        }
        output.push(b"\nlast");
        let text = output.text();
        assert!(text.len() <= OUTPUT_LIMIT_BYTES);
        assert!(text.starts_with("first\n") && text.ends_with("\nlast"));
        assert!(text.contains("bytes left out]"));
    }

    #[test]
    fn a_short_stream_is_kept_whole_and_made_text() {
        let mut output = Capped::default();
        output.push(b"ab");
        output.push(b"c\xff");
        assert_eq!(output.text(), "abc\u{fffd}");
    }

    #[test]
    fn only_a_whole_line_counts() {
        let mut output = Capped::default();
        assert_eq!(output.line(""), None);
        output.push(b"starting\nready versi");
        assert_eq!(output.line("ready"), None);
        output.push(b"on=1\n");
        assert_eq!(output.line("ready").as_deref(), Some("ready version=1"));
        assert_eq!(output.line("version"), None);
    }
}
