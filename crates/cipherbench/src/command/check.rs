//! `cipherbench check FILE…`: all mistakes of campaigns, labs, and configurations of encryptors and
//! KMEs.

use crate::cli::Check;
use crate::exit::{Exit, Failure};
use crate::output;
use session::Allowed;

/// Prints a line for each file without a mistake, warnings of programs that this host lacks, and
/// the mistakes of the others.
pub(crate) fn check(arguments: &Check) -> Result<Exit, Failure> {
    let allowed = arguments.allow.as_deref().map(Allowed::read).transpose()?;
    let lab = arguments
        .lab
        .as_deref()
        .map(session::load_lab)
        .transpose()?;
    // One bad file decides the exit code, but all files are checked: an author wants every mistake
    // in one go.
    let checked = session::check(&arguments.files, lab, allowed.as_ref());
    let summary = session::check_summary(&arguments.files, &checked);
    // Good files go to standard output and mistakes to standard error, so that each can be piped
    // separately.
    output::stdout(&summary.good)?;
    output::stderr(&summary.bad);
    Ok(if summary.is_refused {
        Exit::Usage
    } else {
        Exit::Done
    })
}
