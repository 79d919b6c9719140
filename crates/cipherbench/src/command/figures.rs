//! `cipherbench figures RUN`: a run's figures by cell, for the archive of a fleet.

use crate::cli::Figures;
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn figures(arguments: &Figures) -> Result<Exit, Failure> {
    let journal = journal::read(&arguments.run)?;
    let text = serde_json::to_string(&view::figures(&journal));
    // Plain data with string keys always has a JSON form.
    output::done(&(text.expect("figures can be written as JSON") + "\n"))
}
