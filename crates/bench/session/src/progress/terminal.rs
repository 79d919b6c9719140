//! The screen on the terminal of standard error.
//!
//! A thread draws it, so that a terminal that is slow or stopped holds up no trial.

use super::board::Board;
use super::screen::lines;
use console::Term;
use std::io::{self, IsTerminal, stderr};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Interval for redrawing: long enough not to affect measurements.
const TICK: Duration = Duration::from_secs(1);

/// The screen of a run, until it is dropped.
#[derive(Debug)]
pub(crate) struct Screen {
    /// Ends the thread when it is dropped.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Screen {
    /// Whether standard error is a terminal that can be redrawn.
    pub(crate) fn is_possible() -> bool {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
        stderr().is_terminal() && !is_dumb
    }

    /// Draws the board's states; `None` if no thread can be started.
    pub(crate) fn start(board: Board) -> Option<Self> {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("screen".to_owned())
            .spawn(move || draw(&board, &stopped));
        Some(Self {
            stop: Some(stop),
            thread: Some(thread.ok()?),
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A screen that could not be drawn is no fault of the run.
            let _ = thread.join();
        }
    }
}

fn draw(board: &Board, stopped: &mpsc::Receiver<()>) {
    let term = Term::buffered_stderr();
    let mut drawing = Drawing::default();
    loop {
        if let Some(state) = board.read() {
            let (rows, columns) = term.size();
            let size = (usize::from(rows), usize::from(columns));
            // The last column and the last line stay free: a character there may move the cursor.
            let (rows, columns) = (size.0.saturating_sub(1), size.1.saturating_sub(1));
            let lines = lines(&state, Instant::now(), columns, rows);
            // A terminal that has gone away ends the run by a signal.
            let _ = drawing.draw(&term, lines, size);
        }
        if stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    let _ = drawing.clear(&term);
}

/// The lines that are on a terminal. The cursor is below the last one.
#[derive(Debug, Default)]
pub(super) struct Drawing {
    lines: Vec<String>,
    /// Rows and columns of the terminal.
    size: (usize, usize),
}

impl Drawing {
    /// Replaces the lines.
    pub(super) fn draw(
        &mut self,
        term: &Term,
        lines: Vec<String>,
        size: (usize, usize),
    ) -> io::Result<()> {
        if self.lines == lines && self.size == size {
            return Ok(());
        }
        self.go_to_top(term, size)?;
        for line in &lines {
            // `clear_line` also goes to its beginning.
            term.clear_line()?;
            term.write_line(line)?;
        }
        term.clear_to_end_of_screen()?;
        term.flush()?;
        self.lines = lines;
        self.size = size;
        Ok(())
    }

    /// Removes the lines.
    pub(super) fn clear(&mut self, term: &Term) -> io::Result<()> {
        self.go_to_top(term, self.size)?;
        term.clear_line()?;
        term.clear_to_end_of_screen()?;
        self.lines.clear();
        term.flush()
    }

    fn go_to_top(&self, term: &Term, size: (usize, usize)) -> io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        // A terminal may have wrapped the lines anew, or not: only the whole screen has a known
        // place then.
        if self.size != size {
            return term.clear_screen();
        }
        term.move_cursor_up(self.lines.len())
    }
}
