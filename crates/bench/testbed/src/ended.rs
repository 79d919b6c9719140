//! The end of a program in words.

use crate::protocol::Ended;
use nix::sys::signal::Signal;

impl Ended {
    /// Describes the end of the program: `exit status 1`, `SIGKILL`.
    #[must_use]
    pub fn how(&self) -> String {
        match (self.code, self.signal) {
            (Some(code), _) => format!("exit status {code}"),
            // The real-time signals have no names.
            (None, Some(number)) => Signal::try_from(number)
                .map_or_else(|_| format!("signal {number}"), |signal| signal.to_string()),
            (None, None) => "ended in an unknown way".to_owned(),
        }
    }

    /// Whether a signal ended it that a program does not raise by a fault of its own. Then its last
    /// lines are routine.
    #[must_use]
    pub fn was_killed(&self) -> bool {
        let signals = [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT];
        let is = |number| signals.iter().any(|signal| *signal as i32 == number);
        self.signal.is_some_and(is)
    }

    /// Returns the end of its output for an error message: `": "` and the last lines of standard
    /// error, or of standard output if standard error is empty; empty if both are.
    #[must_use]
    pub fn last_words(&self) -> String {
        const LINES: usize = 4;
        let said = |text: &str| {
            let lines: Vec<String> = text
                .lines()
                .map(|line| line.trim().to_owned())
                .filter(|l| !l.is_empty())
                .collect();
            // Programs say at their end why they failed; earlier lines are of what succeeded.
            lines[lines.len().saturating_sub(LINES)..].join("; ")
        };
        // Some write their errors to standard output, as iperf3 does with `-J`.
        let words = [&self.stderr, &self.stdout].map(|text| said(text));
        words
            .iter()
            .find(|words| !words.is_empty())
            .map_or_else(String::new, |w| format!(": {w}"))
    }
}
