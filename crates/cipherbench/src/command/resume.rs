//! `cipherbench resume RUN`: continues an interrupted run.

use crate::cli::Resume;
use crate::exit::{Exit, Failure};
use crate::programs::{self, OnMissing};
use crate::session::{Session, conclude, unix_ns, within};
use crate::{output, trust, version};
use journal::Writer;
use journal::record::{Record, Resumed};
use trial::Done;

/// Continues the plan in the journal. Repeats failed trials, and invalid ones only on request.
pub(crate) fn resume(arguments: &Resume) -> Result<Exit, Failure> {
    let Resume {
        run: dir,
        invalid: again,
        skip_missing,
        trust,
        output: options,
    } = arguments;
    let (mut writer, journal) = Writer::append_to(dir)?;
    output::warn(&journal.warnings);
    let mut done = Done::from(&journal);
    let invalid = journal.invalid_trials();
    if *again {
        done.trials = &done.trials - &invalid;
    }
    let plan = &journal.header.plan;
    if journal.end.is_some() && done.trials.len() == plan.trial_count() {
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
        return conclude(within(dir), &journal, options.form);
    }
    trust::require(&writer, plan, *trust)?;
    let on_missing = OnMissing::by_option(*skip_missing);
    done.left_out = programs::require(plan, &done, on_missing)?;
    let session = Session::open(&plan.lab, options)?;
    session.warn_of_load(options)?;
    let on_hosts = programs::require_on_hosts(&session, plan, &done, on_missing)?;
    done.left_out.extend(on_hosts);
    writer.append(&Record::Resumed(Box::new(Resumed {
        at_unix_ns: unix_ns(),
        program: version::short().to_owned(),
        environment: session.environment()?,
    })))?;
    session.carry_out(plan, &done, writer, dir, options)
}
