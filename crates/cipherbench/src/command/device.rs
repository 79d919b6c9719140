//! `cipherbench device`: one worker of a trial on a crypto device.

use crate::exit::{Exit, Failure};
use std::io;

/// Runs the test in the first line of standard input, and reports its result line by line.
pub(crate) fn device() -> Result<Exit, Failure> {
    device::serve(io::stdin(), io::stdout()).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot report on the device: {error}"))
    })?;
    Ok(Exit::Done)
}
