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

pub(crate) use lines::Lines;
pub(crate) use terminal::Screen;

use std::time::Duration;
use units::human;

/// A time in whole seconds, as a countdown has it: `65 s`, `2 min 5 s`, `1 h 31 min`.
pub(crate) fn in_seconds(time: Duration) -> String {
    match time.as_secs_f64().round() {
        // Else in the smallest unit.
        seconds if seconds < 1.0 => "0 s".to_owned(),
        seconds => human::duration_ns(seconds * 1e9),
    }
}
