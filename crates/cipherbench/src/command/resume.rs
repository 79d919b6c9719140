//! `cipherbench resume RUN`: continues an interrupted run.

use super::live::Pages;
use crate::cli::Resume;
use crate::documents::{conclude, limits_of_stopped, within};
use crate::exit::{Exit, Failure};
use crate::{output, signals, version};
use journal::Writer;
use journal::record::{Record, Resumed};
use session::programs::{self, OnMissing};
use session::{Session, software, trust, unix_ns};
use std::io::{self, BufRead, IsTerminal, Read};
use trial::Done;

/// Longer than any answer on a terminal.
const ANSWER_BYTES_MAX: u64 = 1024;

/// Continues the plan in the journal. Repeats failed trials, and invalid ones only on request.
pub(crate) fn resume(arguments: &Resume) -> Result<Exit, Failure> {
    let Resume {
        run: dir,
        invalid: again,
        skip_missing,
        trust,
        junit,
        output: options,
        watching,
    } = arguments;
    let (mut writer, journal) = Writer::append_to(dir)?;
    output::warn(&journal.warnings);
    let mut done = Done::from(&journal);
    let invalid = journal.invalid_trials();
    if *again {
        // The old records stay in the journal: the report counts the repeats.
        done.trials = &done.trials - &invalid;
    }
    let plan = &journal.header.plan;
    if session::is_complete(&journal, &done) {
        output::stderr("nothing is left to do: all trials are complete\n");
        match invalid.len() {
            0 => {}
            1 => output::stderr("1 was found invalid: `--invalid` repeats it\n"),
            count => {
                output::stderr(&format!(
                    "{count} were found invalid: `--invalid` repeats them\n"
                ));
            }
        }
        return conclude(within(dir), &journal, options.form, junit);
    }
    // Before anything of the plan is carried out: its commands run with this user's rights.
    trust::require(&writer, plan, *trust, agrees)?;
    let reporter = &options.reporter(watching)?;
    let pages = Pages::bound(watching, reporter)?;
    let on_missing = OnMissing::by_option(*skip_missing);
    // First: of a program that is gone, it says since when.
    software::verify(plan)?;
    done.left_out = programs::require(plan, &done, on_missing, reporter)?;
    let session = Session::open(&plan.lab, signals::interrupt()?, reporter)?;
    session.warn_of_load()?;
    let on_hosts = programs::require_on_hosts(&session, plan, &done, on_missing, reporter)?;
    done.left_out.extend(on_hosts);
    // Written only after the lab is up: a resume that measures nothing leaves no trace.
    writer.append(&Record::Resumed(Box::new(Resumed {
        at_unix_ns: unix_ns(),
        program: version::short().to_owned(),
        environment: session.environment()?,
    })))?;
    let pages = pages.serve(dir)?;
    let journal = session.carry_out(plan, &done, writer, dir);
    // An error ends the program only after the pages have shown it.
    let concluded = match journal {
        Ok(journal) => conclude(within(dir), &journal, options.form, junit),
        Err(error) => limits_of_stopped(dir, junit).and(Err(error.into())),
    };
    pages.finish();
    concluded
}

/// Asks on a terminal whether to go on; `None` without one.
pub(crate) fn agrees(question: &str) -> Option<bool> {
    // Without a terminal a pipe could answer by accident.
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    output::stderr(&format!("{question}Go on? [y/N] "));
    let mut answer = String::new();
    // Unreadable input is no agreement.
    let _ = io::stdin()
        .lock()
        .take(ANSWER_BYTES_MAX)
        .read_line(&mut answer);
    Some(matches!(answer.trim(), "y" | "Y" | "yes"))
}
