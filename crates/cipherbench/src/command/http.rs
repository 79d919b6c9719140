//! `cipherbench http`: one station's part in one trial over HTTP.

use crate::exit::{Exit, Failure};
use crate::input;
use std::io;

/// Plays the part of the spec on standard input: becomes the server, or fetches and reports.
pub(crate) fn http() -> Result<Exit, Failure> {
    let spec = input::spec()?;
    ::http::play(&spec, io::stdout()).map_err(|error| Failure::new(Exit::CannotBuild, error))?;
    Ok(Exit::Done)
}
