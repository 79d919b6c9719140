//! The progress of a run, to the user's terminal, the log and the board.

use crate::progress::{Lines, Phase, Screen, State};
use crate::reporter::Reporter;
use std::time::Instant;
use trial::Progress;

/// Shows the progress of a run while trials are made.
pub(crate) struct Watch<'a> {
    state: &'a mut State,
    lines: Lines,
    reporter: &'a Reporter,
    screen: Option<Screen>,
}

impl<'a> Watch<'a> {
    /// Shows a screen if standard error is a terminal and the reporter is not quiet.
    pub(crate) fn new(reporter: &'a Reporter, state: &'a mut State) -> Self {
        state.phase = Phase::Measuring;
        let lines = Lines::of(&state.rows);
        reporter.board.show(state);
        let has_screen = !reporter.is_quiet && Screen::is_possible();
        let screen = has_screen.then(|| Screen::start(reporter.board.clone()));
        Self {
            state,
            lines,
            reporter,
            screen: screen.flatten(),
        }
    }

    /// Shows an event.
    pub(crate) fn show(&mut self, progress: Progress<'_>) {
        if let Some(line) = self.lines.next(progress) {
            match self.screen {
                Some(_) => self.reporter.to_log(&line),
                None => self.reporter.notice(&line),
            }
        }
        self.state.apply(&progress, Instant::now());
        self.reporter.board.show(self.state);
    }
}
