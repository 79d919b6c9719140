//! Standard output and standard error, when whoever reads them may have gone.

use std::io::{self, Write};

/// Prints to standard output. A reader that has gone (`cipherbench plan | head`) wants no more: no error.
pub(crate) fn stdout(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Prints to standard error; where that fails there is nowhere left to say so.
pub(crate) fn stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
