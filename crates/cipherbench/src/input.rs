//! Standard input.

use crate::exit::{Exit, Failure};
use guard::read_from;
use std::io;

/// Specs are requests of a run to a station, which takes no longer ones.
const SPEC_BYTES_MAX: usize = 16 << 20;

/// Reads the spec of one station's part, from standard input.
pub(crate) fn spec() -> Result<String, Failure> {
    // Bounded, although a run writes it: an endless input must not fill the memory.
    let bytes = read_from(io::stdin().lock(), SPEC_BYTES_MAX);
    let text = bytes.map(String::from_utf8).map_err(|error| {
        Failure::new(Exit::Usage, format!("cannot read standard input: {error}"))
    })?;
    text.map_err(|_| Failure::new(Exit::Usage, "standard input is not UTF-8 text"))
}
