//! The documents of a run.

use crate::exit::{Exit, Failure};
use crate::{cli, output};
use journal::Journal;
use report::{Folders, Report};
use stats::{Expected, LimitOutcome, Progress};
use std::path::Path;

/// Writes every document of a run, prints its result, and returns the exit code.
pub(crate) fn conclude(
    folders: Folders<'_>,
    journal: &Journal,
    form: cli::Form,
    junit: &cli::Junit,
) -> Result<Exit, Failure> {
    let report = Report::of(journal);
    let limits = report.expected();
    let exit = first_of(
        limits.map(|found| found.outcome),
        verdict(report.progress()),
    );
    let limits = match &junit.file {
        Some(path) => Some((path, compare::junit_of_limits(asked(limits)?))),
        None => None,
    };
    // The machine-readable document first: if the disk fills up, it matters most.
    report.write_json(folders.documents)?;
    let json = form.json.then(|| report.json());
    let report = report.for_people();
    let printed = json.unwrap_or_else(|| {
        let width = output::width();
        let color = console::colors_enabled();
        if form.full {
            report.terminal(Some(folders), width, color)
        } else {
            report.brief(Some(folders), width, color)
        }
    });
    // Written before anything is printed: the text names these files.
    report.write(folders.documents)?;
    if let Some((path, text)) = &limits {
        output::file(path, text)?;
    }
    output::stdout(&printed)?;
    Ok(exit)
}

/// Writes the limits of a run that stopped early, undecided as far as trials are missing: a program
/// that waits for the file would take its absence for a fault of its own. A run that cannot be read
/// has another error, which is about to be printed.
pub(crate) fn limits_of_stopped(dir: &Path, junit: &cli::Junit) -> Result<(), Failure> {
    let Some(path) = &junit.file else {
        return Ok(());
    };
    let Ok(journal) = journal::read(dir) else {
        return Ok(());
    };
    match Report::of(&journal).expected() {
        Some(limits) => output::file(path, &compare::junit_of_limits(limits)),
        None => Ok(()),
    }
}

/// The documents of a run are in its folder.
pub(crate) const fn within(dir: &Path) -> Folders<'_> {
    Folders {
        run: dir,
        documents: dir,
    }
}

/// The limits of a run, of which a file was asked.
fn asked(limits: Option<&Expected>) -> Result<&Expected, Failure> {
    limits.ok_or_else(|| {
        let text = "`--junit` has the limits of a campaign, and this one has none\n\
                    help: add its key `expect` (docs/campaign.md), or leave the option out";
        Failure::new(Exit::Usage, text)
    })
}

/// The exit code for a run's limits and trials. A limit whose trials were refused is undecided, not
/// violated: a pipeline repeats it.
const fn first_of(limits: Option<LimitOutcome>, trials: Exit) -> Exit {
    match limits {
        Some(LimitOutcome::Violated) => Exit::CriterionFailed,
        Some(LimitOutcome::Undecided) => Exit::Inconclusive,
        Some(LimitOutcome::Met) | None => trials,
    }
}

/// The exit code for the trials of a run.
fn verdict(progress: &Progress) -> Exit {
    // A single bad trial decides, however many are good: pipelines look at this code only.
    let bad = progress.trials_invalid + progress.trials_failed + progress.trials_with_bad_device;
    if bad > 0 {
        Exit::CriterionFailed
    } else if progress.trials_not_run > 0 || progress.trials_measured == 0 {
        Exit::Inconclusive
    } else {
        Exit::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_trials_leave_a_limit_undecided_and_never_violate_it() {
        let refused = Exit::CriterionFailed;
        let undecided = Some(LimitOutcome::Undecided);
        assert_eq!(first_of(undecided, refused), Exit::Inconclusive);
        assert_eq!(first_of(Some(LimitOutcome::Met), refused), refused);
        assert_eq!(first_of(None, refused), refused);
        let violated = Some(LimitOutcome::Violated);
        assert_eq!(
            first_of(violated, Exit::Inconclusive),
            Exit::CriterionFailed
        );
    }
}
