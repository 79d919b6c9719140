//! `cipherbench capture`: frames of an interface.

use crate::exit::{Exit, Failure};
use crate::input;
use crate::signals;
use std::io;

/// Carries out the spec on standard input until a termination signal arrives, and reports.
pub(crate) fn capture() -> Result<Exit, Failure> {
    let stop = signals::stop()?;
    let spec = input::spec()?;
    ::capture::serve(&spec, traffic_spec::READY, io::stdout(), &stop)
        .map_err(|error| Failure::new(Exit::CannotBuild, error))?;
    Ok(Exit::Done)
}
