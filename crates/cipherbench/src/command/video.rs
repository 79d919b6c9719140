//! `cipherbench video`: one station's part in one trial of video.

use crate::exit::{Exit, Failure};
use std::io;

/// Plays the part of the spec on standard input: prepares, serves or plays a clip.
pub(crate) fn video() -> Result<Exit, Failure> {
    let spec = io::read_to_string(io::stdin()).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read standard input: {error}"))
    })?;
    ::video::play(&spec, io::stdout()).map_err(|error| Failure::new(Exit::CannotBuild, error))?;
    Ok(Exit::Done)
}
