//! `cipherbench history RUN…`: changes of figures over many runs.

use super::given;
use crate::cli::History;
use crate::exit::{Exit, Failure};
use crate::output;
use compare::Run;
use journal::{FILE_NAME, Journal};
use session::runs;
use std::path::{Path, PathBuf};

pub(crate) fn history(arguments: &History) -> Result<Exit, Failure> {
    let mut folders = Vec::new();
    for given in &arguments.runs {
        folders.extend(folders_of(given)?);
    }
    // The journals outlive the history, which borrows from them: hence two lists.
    let journals: Vec<(String, Journal)> = folders
        .iter()
        .map(|dir| Ok((dir.display().to_string(), given::journal_of(dir)?)))
        .collect::<Result<_, Failure>>()?;
    let all: Vec<Run<'_>> = journals
        .iter()
        .map(|(name, journal)| Run { name, journal })
        .collect();
    let history =
        compare::history(&all).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    let text = if arguments.json {
        history.json()
    } else {
        compare::history_text(&history)
    };
    output::stdout(&text)?;
    Ok(Exit::Done)
}

/// The runs in a folder; the folder itself if it is a run, or is not there, which is reported when
/// it is read.
fn folders_of(given: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !given.is_dir() || given.join(FILE_NAME).exists() {
        return Ok(vec![given.to_owned()]);
    }
    let runs = runs::list(given)?;
    // A damaged run among many is left out, with a warning; one that is named is an error.
    let (damaged, readable): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| run.is_damaged());
    for run in damaged {
        output::stderr(&format!(
            "warning: {} is left out: {}\n",
            run.path.display(),
            run.state()
        ));
    }
    if readable.is_empty() {
        let text = format!(
            "{} has no run\nhelp: name folders of runs, or the folder that `--out` named",
            given.display()
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    Ok(readable.into_iter().map(|run| run.path).collect())
}
