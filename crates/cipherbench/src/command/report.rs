//! `cipherbench report RUN`: rebuilds every document from the journal.

use crate::cli::Report;
use crate::exit::{Exit, Failure};
use crate::{output, session};

pub(crate) fn report(arguments: &Report) -> Result<Exit, Failure> {
    let Report { run: dir, json } = arguments;
    let journal = journal::read(dir)?;
    output::warn(&journal.warnings);
    session::conclude(dir, &journal, *json)
}
