//! `cipherbench capture`: frames of an interface.

use crate::exit::{Exit, Failure};
use crate::signals;
use std::io;

/// Carries out the spec on standard input until a termination signal arrives, and reports.
pub(crate) fn capture() -> Result<Exit, Failure> {
    let stop = signals::stop()?;
    let spec = io::read_to_string(io::stdin()).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read standard input: {error}"))
    })?;
    ::capture::serve(&spec, traffic::report::READY, io::stdout(), &stop)
        .map_err(|error| Failure::new(Exit::CannotBuild, error))?;
    Ok(Exit::Done)
}
