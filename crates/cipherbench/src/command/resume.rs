//! `cipherbench resume RUN`: goes on where a run broke off.

use crate::cli::Resume;
use crate::exit::{Exit, Failure};
use crate::session::{self, unix_ns};
use crate::{output, signals, version};
use journal::Writer;
use journal::record::{Record, Resumed};
use lab::privilege;
use trial::Done;

/// Goes on with the plan in the journal. Trials that failed are made again, those found invalid are not.
pub(crate) fn resume(arguments: &Resume) -> Result<Exit, Failure> {
    let Resume {
        run: dir,
        output: options,
    } = arguments;
    let (mut writer, journal) = Writer::append_to(dir)?;
    for warning in &journal.warnings {
        output::stderr(&format!("warning: {warning}\n"));
    }
    let done = Done::from(&journal);
    let plan = &journal.header.plan;
    if journal.end.is_some() && done.trials.len() == plan.trials().count() {
        session::write_documents(dir, &journal)?;
        output::stderr("nothing is left to do: every trial was made\n");
        session::print_result(dir, &journal, options.json)?;
        return Ok(session::verdict(&journal));
    }
    let interrupt = signals::interrupt()?;
    let privilege = privilege::acquire()?;
    let lab = session::build_lab(&plan.lab, privilege, &interrupt, options)?;
    let resumed = Resumed {
        at_unix_ns: unix_ns(),
        program: version::short().to_owned(),
        environment: session::environment(privilege),
    };
    writer.append(&Record::Resumed(resumed))?;
    session::carry_out(plan, lab, writer, &done, &interrupt, (dir, options))
}
