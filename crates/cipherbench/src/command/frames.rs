//! `cipherbench frames`: one station's part in one frame trial.

use crate::exit::{Exit, Failure};
use crate::signals;
use std::io;

/// Carries out the spec on standard input until it is done or a termination signal arrives, and
/// reports in either case.
pub(crate) fn frames() -> Result<Exit, Failure> {
    let stop = signals::stop()?;
    let spec = io::read_to_string(io::stdin()).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read standard input: {error}"))
    })?;
    traffic::serve(&spec, io::stdout(), &stop)
        .map_err(|error| Failure::new(Exit::CannotBuild, error))?;
    Ok(Exit::Done)
}
