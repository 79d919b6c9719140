//! `cipherbench export RUN`: a run's figures for monitoring systems.

use super::given;
use crate::cli::{Export, ExportFormat};
use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn export(arguments: &Export) -> Result<Exit, Failure> {
    let journal = given::journal_of(&arguments.run)?;
    output::warn(&journal.warnings);
    let format = match arguments.format {
        ExportFormat::OpenMetrics => report::ExportFormat::OpenMetrics,
        ExportFormat::Influx => report::ExportFormat::Influx,
        ExportFormat::Csv => report::ExportFormat::Csv,
    };
    let text = report::export(&journal, format);
    match &arguments.out {
        Some(path) => output::file(path, &text)?,
        None => output::stdout(&text)?,
    }
    Ok(Exit::Done)
}
