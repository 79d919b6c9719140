//! Progress of a run: its state, which a screen on a terminal and pages of a browser show, and its
//! lines for everything else.
//!
//! ```text
//! events of trials ─► State ─► Board ─► screen, on a thread ─► terminal
//!        │                       └────► other viewers (crate `live`)
//!        └─► lines ─► standard error without a terminal, log
//! ```

mod board;
mod frames;
mod lines;
mod outcome;
mod screen;
mod state;
mod step;
mod terminal;

#[cfg(test)]
mod tests;

pub use board::Board;
pub use state::{Now, Phase, ResultKind, Row, State, TrialResult};

use crate::reporter::Reporter;
use lines::Lines;
use std::time::{Duration, Instant};
use units::human;
use terminal::Screen;
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
        reporter.board.show(state);
        let has_screen = !reporter.is_quiet && Screen::is_possible();
        let screen = has_screen.then(|| Screen::start(reporter.board.clone()));
        Self {
            state,
            lines: Lines::default(),
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

/// A time in whole seconds, as a countdown has it: `65 s`, `2 min 5 s`, `1 h 31 min`.
pub(crate) fn in_seconds(time: Duration) -> String {
    match time.as_secs_f64().round() {
        // Else in the smallest unit.
        seconds if seconds < 1.0 => "0 s".to_owned(),
        seconds => human::duration_ns(seconds * 1e9),
    }
}
