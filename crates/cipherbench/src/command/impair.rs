//! `cipherbench impair`: an impaired path between two interfaces.

use crate::exit::{Exit, Failure};
use crate::input;
use crate::signals;
use std::io;

/// Carries out the spec on standard input until a termination signal arrives, and reports.
pub(crate) fn impair() -> Result<Exit, Failure> {
    let stop = signals::stop()?;
    let spec = input::spec()?;
    traffic::serve_bridge(&spec, io::stdout(), &stop)
        .map_err(|error| Failure::new(Exit::CannotBuild, error))?;
    Ok(Exit::Done)
}
