//! `cipherbench report RUN`: every document again, from the journal alone.

use crate::cli::Report;
use crate::exit::{Exit, Failure};
use crate::{output, session};

pub(crate) fn report(arguments: &Report) -> Result<Exit, Failure> {
    let Report { run: dir, json } = arguments;
    let journal = journal::read(dir)?;
    for warning in &journal.warnings {
        output::stderr(&format!("warning: {warning}\n"));
    }
    session::write_documents(dir, &journal)?;
    session::print_result(dir, &journal, *json)?;
    Ok(session::verdict(&journal))
}
