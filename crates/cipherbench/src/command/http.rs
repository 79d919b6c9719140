//! `cipherbench http`: one station's part in one trial over HTTP.

use crate::exit::{Exit, Failure};
use std::io;

/// Plays the part of the spec on standard input: becomes the server, or fetches and reports.
pub(crate) fn http() -> Result<Exit, Failure> {
    let spec = io::read_to_string(io::stdin()).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read standard input: {error}"))
    })?;
    ::http::play(&spec, io::stdout()).map_err(|error| Failure::new(Exit::CannotBuild, error))?;
    Ok(Exit::Done)
}
