//! `cipherbench report RUN`: rebuilds every document from the journal.

use super::given;
use crate::cli::Report;
use crate::documents;
use crate::exit::{Exit, Failure};
use crate::output;
use report::Folders;
use std::fs;

pub(crate) fn report(arguments: &Report) -> Result<Exit, Failure> {
    let Report {
        run,
        out,
        junit,
        form,
    } = arguments;
    let dir = &given::folder_of(run)?;
    let journal = journal::read(dir)?;
    // A journal with a damaged tail still gives a report, but never silently.
    output::warn(&journal.warnings);
    if let Some(out) = out {
        fs::create_dir_all(out).map_err(|error| {
            let out = out.display();
            let text = format!(
                "cannot create the folder {out}: {error}\nhelp: name a folder that can be written to with `--out`"
            );
            Failure::new(Exit::Usage, text)
        })?;
    }
    // Captures and logs stay in the run's folder, and documents elsewhere link to them.
    let folders = Folders {
        run: dir,
        documents: out.as_ref().unwrap_or(dir),
    };
    documents::conclude(folders, &journal, *form, junit)
}
