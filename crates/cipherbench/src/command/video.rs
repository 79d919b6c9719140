//! `cipherbench video`: one station's part in one trial of video.

use crate::exit::{Exit, Failure};
use crate::input;
use std::io;

/// Plays the part of the spec on standard input: prepares, serves or plays a clip.
pub(crate) fn video() -> Result<Exit, Failure> {
    let spec = input::spec()?;
    ::video::play(&spec, io::stdout()).map_err(|error| Failure::new(Exit::CannotBuild, error))?;
    Ok(Exit::Done)
}
