//! `cipherbench probe`: one station's part in a probe of a path's offloads.

use crate::exit::{Exit, Failure};
use crate::input;
use std::io;

/// Plays the part of the spec on standard input: serves callers, or calls and reports.
pub(crate) fn probe() -> Result<Exit, Failure> {
    let spec = input::spec()?;
    ::probe::play(&spec, io::stdout()).map_err(|error| Failure::new(Exit::CannotBuild, error))?;
    Ok(Exit::Done)
}
