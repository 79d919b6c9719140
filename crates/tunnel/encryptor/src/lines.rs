//! Rate-limited lines on standard error.

use std::fmt::Arguments;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};

/// Maximum rate of lines about strangers.
pub const LINES_PER_SECOND: u32 = 20;

/// Writes lines up to the limit, and counts those left out.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Start of the current second.
    since: Option<Instant>,
    /// Lines written in that second.
    written: u32,
    left_out: u64,
    #[cfg(test)]
    heard: Vec<String>,
}

impl Lines {
    /// Writes a line, or counts it as left out; returns whether it was written.
    pub(crate) fn log(&mut self, line: Arguments<'_>) -> bool {
        let now = Instant::now();
        let is_over = |since: Instant| now.duration_since(since) >= Duration::from_secs(1);
        if self.since.is_none_or(is_over) {
            self.since = Some(now);
            self.written = 0;
            let left_out = std::mem::take(&mut self.left_out);
            if left_out > 0 {
                self.write(format_args!("{left_out} more events were not logged"));
            }
        }
        if self.written == LINES_PER_SECOND {
            self.left_out += 1;
            return false;
        }
        self.written += 1;
        self.write(line);
        true
    }

    /// A closed standard error must not end a thread.
    fn write(&mut self, line: Arguments<'_>) {
        #[cfg(test)]
        self.heard.push(line.to_string());
        let _ = writeln!(io::stderr(), "{line}");
    }

    /// Ends the current second.
    #[cfg(test)]
    pub(crate) fn next_second(&mut self) {
        self.since = Some(Instant::now() - Duration::from_secs(2));
    }

    /// All lines so far.
    #[cfg(test)]
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_limited_and_omitted_lines_are_counted() {
        let mut lines = Lines::default();
        for number in 0..100 {
            lines.log(format_args!("line {number}"));
        }
        let left_out = lines.left_out;
        assert!(lines.heard.len() as u64 + left_out >= 100);
        assert!(lines.heard.len() >= LINES_PER_SECOND as usize);
        if left_out > 0 {
            lines.next_second();
            lines.log(format_args!("again"));
            let expected = [
                format!("{left_out} more events were not logged"),
                "again".to_owned(),
            ];
            assert!(lines.heard.ends_with(&expected), "{:?}", lines.heard);
        }
    }
}
