//! `cipherbench impair`: an impaired path between two interfaces.

use crate::exit::{Exit, Failure};
use crate::signals;
use std::io;

/// Carries out the spec on standard input until a termination signal arrives, and reports.
pub(crate) fn impair() -> Result<Exit, Failure> {
    let stop = signals::stop()?;
    let spec = io::read_to_string(io::stdin()).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read standard input: {error}"))
    })?;
    traffic::serve_bridge(&spec, io::stdout(), &stop)
        .map_err(|error| Failure::new(Exit::CannotBuild, error))?;
    Ok(Exit::Done)
}
