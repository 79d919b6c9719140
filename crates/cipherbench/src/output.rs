//! Standard output and standard error. Control sequences from a journal, a file or a host are made
//! visible here, before they reach a terminal. The reader may be gone.

use crate::exit::{Exit, Failure};
use guard::{visible_lines, visible_styled};
use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Prints to standard output. A reader that has closed its end (`cipherbench plan | head`) is no
/// error.
pub(crate) fn stdout(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    match output
        .write_all(visible_styled(text).as_bytes())
        // Standard output is buffered by line: without this an error would be lost at the exit.
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let help = "see where standard output leads";
            let text = format!("cannot print the result: {error}\nhelp: {help}");
            Err(Failure::new(Exit::Usage, text))
        }
        _ => Ok(()),
    }
}

/// The width of the output: that of the terminal; without one `COLUMNS`, as some shells and CI set
/// it, or the usual 80 columns.
pub(crate) fn width() -> usize {
    let terminal = console::Term::stdout();
    if let Some((_, width)) = terminal.size_checked() {
        return width.into();
    }
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.trim().parse().ok());
    // A value that leaves no room for a word is a mistake.
    columns
        .filter(|columns| *columns >= COLUMNS_MIN)
        .unwrap_or(80)
}

/// Least value of `COLUMNS` that counts.
const COLUMNS_MIN: usize = 20;

/// Prints a result to standard output: the command is done.
pub(crate) fn done(text: &str) -> Result<Exit, Failure> {
    stdout(text).map(|()| Exit::Done)
}

/// Writes a file, over an existing one.
pub(crate) fn file(path: &Path, text: &str) -> Result<(), Failure> {
    // Not by rename: the path may be a pipe or a device, such as /dev/stderr.
    fs::write(path, text).map_err(|error| {
        let help = "check the path, its owner and the disk";
        let text = format!("cannot write {}: {error}\nhelp: {help}", path.display());
        Failure::new(Exit::Usage, text)
    })
}

/// Prints to standard error, without colours: this program sets none there. A failure is ignored,
/// since it cannot be reported.
pub(crate) fn stderr(text: &str) {
    let _ = io::stderr()
        .lock()
        .write_all(visible_lines(text).as_bytes());
}

/// Prints warnings to standard error.
pub(crate) fn warn(warnings: &[impl Display]) {
    for warning in warnings {
        stderr(&format!("warning: {warning}\n"));
    }
}
