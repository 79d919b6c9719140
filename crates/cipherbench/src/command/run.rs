//! `cipherbench run [CAMPAIGN]` and `calibrate [CAMPAIGN]`: from a campaign to its report.

use super::live::Pages;
use crate::cli::{Junit, Output, Run, Watching};
use crate::documents::{conclude, limits_of_stopped, within};
use crate::exit::{Exit, Failure};
use crate::{signals, version};
use journal::record::{FORMAT_VERSION, Header};
use plan::Plan;
use session::programs::{self, OnMissing};
use session::{Session, software, trust, unix_ns};
use std::path::Path;
use trial::Done;

/// Nothing is left behind unless measuring has begun: first missing programs are reported, then the
/// lab is built, then the run's folder is created with every file that will be written at the end,
/// then the trials run.
pub(crate) fn run(arguments: &Run) -> Result<Exit, Failure> {
    let plan = with_limits(arguments, plan(arguments)?)?;
    let on_missing = OnMissing::by_option(arguments.skip_missing);
    let Run {
        out,
        output,
        watching,
        junit,
        ..
    } = arguments;
    carry_out(out, (output, watching), junit, plan, on_missing)
}

/// Runs only the calibration of a campaign: its frame tests with nothing in the path.
pub(crate) fn calibrate(arguments: &Run) -> Result<Exit, Failure> {
    // The campaign is planned as a whole first, so that its mistakes are the same as with `run`.
    let plan = plan(arguments)?.calibration_only();
    if plan.cells.is_empty() {
        let text = "this campaign has nothing to calibrate: it has no frame tests\n\
                    help: `throughput`, `latency` and their kin are; see docs/campaign.md";
        return Err(Failure::new(Exit::Usage, text));
    }
    let plan = with_limits(arguments, plan)?;
    let on_missing = OnMissing::by_option(arguments.skip_missing);
    let Run {
        out,
        output,
        watching,
        junit,
        ..
    } = arguments;
    carry_out(out, (output, watching), junit, plan, on_missing)
}

/// The plan with the options about its limits, which a plan without limits refuses before anything
/// is measured.
fn with_limits(arguments: &Run, mut plan: Plan) -> Result<Plan, Failure> {
    let asked = [
        (arguments.until_decided.is_some(), "--until-decided"),
        (arguments.junit.file.is_some(), "--junit"),
    ];
    if let Some((_, option)) = asked.iter().find(|(is_asked, _)| *is_asked)
        && plan.expect.is_empty()
    {
        let text = format!(
            "`{option}` is about limits, and this campaign has none\n\
             help: add its key `expect` (docs/campaign.md), or leave the option out"
        );
        return Err(Failure::new(Exit::Usage, text));
    }
    plan.expect.until_decided_ns = arguments.until_decided.map(plan::nanos);
    Ok(plan)
}

fn plan(arguments: &Run) -> Result<Plan, Failure> {
    let Run {
        campaign,
        lab,
        quick,
        repeats,
        ..
    } = arguments;
    let plan = session::plan(campaign.as_deref(), lab.as_deref(), *quick, *repeats);
    Ok(plan?)
}

/// Runs a plan; its folder is created in `out`.
pub(crate) fn carry_out(
    out: &Path,
    (options, watching): (&Output, &Watching),
    junit: &Junit,
    mut plan: Plan,
    on_missing: OnMissing,
) -> Result<Exit, Failure> {
    let reporter = &options.reporter(watching)?;
    // Before the lab is built: a port that is in use is reported before anything is made.
    let pages = Pages::bound(watching, reporter)?;
    let mut done = Done {
        left_out: programs::require(&plan, &Done::default(), on_missing, reporter)?,
        ..Done::default()
    };
    let lab = &plan.lab.name;
    reporter.notice(&format!("{}, in lab {lab}\n", session::summary(&plan)));
    let interrupt = signals::interrupt()?;
    // Before the lab is built, which must not wait for a build.
    software::prepare(&mut plan, &done.left_out, &interrupt, reporter)?;
    // The lab is built before the folder is made: a lab that fails leaves nothing behind.
    let session = Session::open(&plan.lab, interrupt, reporter)?;
    session.warn_of_load()?;
    let on_hosts = programs::require_on_hosts(&session, &plan, &done, on_missing, reporter)?;
    done.left_out.extend(on_hosts);
    let started_unix_ns = unix_ns();
    // The seed need not be secret, only not chosen: the low bits of the time are enough.
    plan.order = plan.order.with_seed(started_unix_ns as u32);
    let header = Header {
        format: FORMAT_VERSION,
        started_unix_ns,
        command: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        program: version::short().to_owned(),
        environment: session.environment()?,
        plan,
    };
    let (dir, writer) = session::begin(out, &header)?;
    // Only a plan that runs commands has to be trusted when it is resumed.
    if !header.plan.demands().is_empty() {
        trust::register(&writer, reporter);
    }
    // Only now, as the lab needs a process with one thread.
    let pages = pages.serve(&dir)?;
    let journal = session.carry_out(&header.plan, &done, writer, &dir);
    // An error ends the program only after the pages have shown it.
    let concluded = match journal {
        Ok(journal) => conclude(within(&dir), &journal, options.form, junit),
        Err(error) => limits_of_stopped(&dir, junit).and(Err(error.into())),
    };
    pages.finish();
    concluded
}
