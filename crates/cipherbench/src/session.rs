//! What `run` and `resume` share: the lab, the trials that are left, and the documents at the end.

use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Watch;
use campaign::Plan;
use campaign::plan::LabPlan;
use engine::EngineInfo;
use journal::record::Environment;
use journal::{Journal, Writer};
use lab::{Interrupt, NamespaceLab, Privilege, Setup};
use stats::Results;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use trial::{Conclusion, Done};

/// Builds the lab, and says what a killed run had left behind.
pub(crate) fn build_lab(
    plan: &LabPlan,
    privilege: Privilege,
    interrupt: &Interrupt,
    options: &cli::Output,
) -> Result<NamespaceLab, Failure> {
    let lab = NamespaceLab::build(plan, &Setup::new(privilege, interrupt.clone())?)?;
    if !options.quiet {
        for sentence in lab.swept() {
            output::stderr(&format!("{sentence}\n"));
        }
    }
    Ok(lab)
}

/// The machine, its tools and the engines that can be used on it.
pub(crate) fn environment(privilege: Privilege) -> Environment {
    let usable = |engine: &EngineInfo| Some((engine.name.to_owned(), engine.version.clone().ok()?));
    Environment {
        engines: engine::engines().iter().filter_map(usable).collect(),
        ..lab::host::environment(privilege)
    }
}

/// Makes the trials that are not `done`, takes the lab down, and writes the documents.
pub(crate) fn carry_out(
    plan: &Plan,
    mut lab: NamespaceLab,
    mut writer: Writer,
    done: &Done,
    interrupt: &Interrupt,
    (dir, options): (&Path, &cli::Output),
) -> Result<Exit, Failure> {
    let mut watch = Watch::new(options.quiet);
    let conclusion = trial::run(
        plan,
        &mut lab,
        done,
        &mut |record| writer.append(record),
        &mut |progress| watch.tell(progress),
        interrupt,
    );
    drop(watch);
    drop(lab);
    // What cannot be recorded is not measured either. The journal keeps what it has.
    let conclusion = conclusion.map_err(|error| Failure::new(Exit::Interrupted, error))?;
    let journal = journal::read(dir)?;
    write_documents(dir, &journal)?;
    match conclusion {
        Conclusion::Finished { .. } => {
            print_result(dir, &journal, options.json)?;
            Ok(verdict(&journal))
        }
        Conclusion::Interrupted => Err(interrupted(dir, &journal)),
    }
}

/// Writes every document of a run into its folder.
pub(crate) fn write_documents(dir: &Path, journal: &Journal) -> Result<(), Failure> {
    report::build(journal).write_all(dir)?;
    Ok(())
}

/// Prints the result of a run whose documents are in `dir`: tables, or JSON for machines.
pub(crate) fn print_result(dir: &Path, journal: &Journal, json: bool) -> Result<(), Failure> {
    let text = match json {
        true => report::build(journal).json,
        false => {
            let terminal = console::Term::stdout();
            let width = terminal.size().1;
            report::terminal(journal, Some(dir), width.into(), console::colors_enabled())
        }
    };
    Ok(output::stdout(&text)?)
}

/// The exit code that the figures of a run ask for.
pub(crate) fn verdict(journal: &Journal) -> Exit {
    let progress = Results::of(journal).progress;
    if progress.trials_invalid + progress.trials_failed > 0 {
        Exit::CriterionFailed
    } else if progress.trials_not_run > 0 {
        Exit::Inconclusive
    } else {
        Exit::Done
    }
}

fn interrupted(dir: &Path, journal: &Journal) -> Failure {
    let made = journal.latest_trials().len();
    let planned = journal.header.plan.trials().count();
    let dir = dir.display();
    let text = format!(
        "interrupted after {made} of {planned} trials; the lab is taken down\n\
         help: to go on: cipherbench resume {dir}"
    );
    Failure::new(Exit::Interrupted, text)
}

/// Now, in nanoseconds since the Unix epoch.
pub(crate) fn unix_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
