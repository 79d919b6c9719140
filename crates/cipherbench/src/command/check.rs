//! `cipherbench check FILE…`: all mistakes of campaigns, labs, and configurations of encryptors and
//! KMEs.

use crate::cli::Check;
use crate::exit::{Exit, Failure};
use crate::output;
use session::Allowed;

/// Prints a line for each file without a mistake, with a warning if this host lacks programs that
/// it needs, and all mistakes of the others.
pub(crate) fn check(arguments: &Check) -> Result<Exit, Failure> {
    let allowed = arguments.allow.as_deref().map(Allowed::read).transpose()?;
    let lab = arguments
        .lab
        .as_deref()
        .map(session::load_lab)
        .transpose()?;
    // One bad file decides the exit code, but all files are checked: an author wants every mistake
    // in one go.
    let mut exit = Exit::Done;
    let checked = session::check(&arguments.files, lab, allowed.as_ref());
    for (path, checked) in arguments.files.iter().zip(checked) {
        match checked {
            Ok(checked) => {
                // Good files go to standard output and mistakes to standard error, so that each can
                // be piped separately.
                output::stdout(&format!("ok  {}  {}\n", path.display(), checked.summary))?;
                output::stderr(&checked.warning(path).unwrap_or_default());
            }
            Err(mistakes) => {
                output::stderr(&format!("{mistakes}\n"));
                exit = Exit::Usage;
            }
        }
    }
    Ok(exit)
}
