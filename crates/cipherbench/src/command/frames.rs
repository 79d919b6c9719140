//! `cipherbench frames`: one station's part in one frame trial.

use crate::exit::{Exit, Failure};
use crate::input;
use crate::signals;
use std::io;

/// Carries out the spec on standard input until it is done or a termination signal arrives, and
/// reports in either case.
pub(crate) fn frames() -> Result<Exit, Failure> {
    let stop = signals::stop()?;
    let spec = input::spec()?;
    traffic::serve(&spec, io::stdout(), &stop)
        .map_err(|error| Failure::new(Exit::CannotBuild, error))?;
    Ok(Exit::Done)
}
