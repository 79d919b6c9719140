//! `cipherbench compare A B …`: what changed between runs, and whether gates hold.

use super::given;
use crate::cli::Compare;
use crate::exit::{Exit, Failure};
use crate::output;
use compare::{Detail, Gate, Options, Outcome, Run};
use journal::Journal;

pub(crate) fn compare(arguments: &Compare) -> Result<Exit, Failure> {
    let usage = |error: &dyn ToString| Failure::new(Exit::Usage, error.to_string());
    // Before any journal is read, so that a mistake in a rule is reported immediately.
    let gates = arguments.gates.iter().map(|rule| rule.parse::<Gate>());
    let options = Options {
        gates: gates
            .collect::<Result<_, _>>()
            .map_err(|error| usage(&error))?,
        matches: arguments.matches.clone(),
        margin_percent: arguments.margin,
    };
    let runs = arguments.runs.iter();
    // The journals outlive the comparison, which borrows from them: hence two lists.
    let runs: Vec<(String, Journal)> = runs
        .map(|dir| {
            let journal = given::journal_of(dir)?;
            Ok((dir.display().to_string(), journal))
        })
        .collect::<Result<_, Failure>>()?;
    let runs: Vec<Run<'_>> = runs
        .iter()
        .map(|(name, journal)| Run { name, journal })
        .collect();
    let comparison = compare::compare(&runs, &options).map_err(|error| usage(&error))?;
    // Files are written before anything is printed: a result on the screen means that they are
    // there.
    if let Some(path) = &arguments.junit {
        output::file(path, &compare::junit(&comparison))?;
    }
    if let Some(path) = &arguments.markdown {
        output::file(path, &compare::markdown(&comparison))?;
    }
    let detail = if arguments.full {
        Detail::Full
    } else {
        Detail::Short
    };
    output::stdout(&if arguments.json {
        comparison.json()
    } else {
        compare::text_within(&comparison, detail, output::width())
    })?;
    Ok(match comparison.outcome() {
        Outcome::Violated => Exit::CriterionFailed,
        Outcome::Undecided => Exit::Inconclusive,
        // A gate over nothing has not been kept; a pipeline with a misspelt device must not pass.
        Outcome::Passed if comparison.is_empty() => Exit::Inconclusive,
        Outcome::Passed => Exit::Done,
    })
}
