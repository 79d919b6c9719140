//! `cipherbench run [CAMPAIGN]`: from a campaign to its report.

use crate::cli::Run;
use crate::exit::{Exit, Failure};
use crate::session::{self, unix_ns};
use crate::{planning, signals, version};
use journal::Writer;
use journal::record::{FORMAT_VERSION, Header};
use lab::privilege;
use std::path::{Path, PathBuf};
use trial::Done;

/// Nothing is left behind unless measuring has begun: the lab comes first, then the run's folder with every
/// file that will be written at the end, then the trials.
pub(crate) fn run(arguments: &Run) -> Result<Exit, Failure> {
    let Run {
        campaign,
        lab,
        out,
        repeats,
        output,
    } = arguments;
    let plan = planning::plan(campaign.as_deref(), lab.as_deref(), *repeats)?;
    let interrupt = signals::interrupt()?;
    let privilege = privilege::acquire()?;
    let lab = session::build_lab(&plan.lab, privilege, &interrupt, output)?;
    let header = Header {
        format: FORMAT_VERSION,
        started_unix_ns: unix_ns(),
        command: std::env::args().collect(),
        program: version::short().to_owned(),
        environment: session::environment(privilege),
        plan,
    };
    let (dir, writer) = begin(out, &header)?;
    let done = Done::default();
    session::carry_out(&header.plan, lab, writer, &done, &interrupt, (&dir, output))
}

/// Makes the run's folder with its journal and, of what it holds so far, every document: a place that cannot
/// be written to is found out now, not after hours of measuring.
fn begin(out: &Path, header: &Header) -> Result<(PathBuf, Writer), Failure> {
    let dir = journal::run_dir(out, header.started_unix_ns, &header.plan.name)?;
    let writer = Writer::create(&dir, header)?;
    let written = journal::read(&dir)
        .map_err(Failure::from)
        .and_then(|journal| session::write_documents(&dir, &journal));
    if let Err(error) = written {
        // It holds nothing that was measured. Best effort: the error to report is the first one.
        let _ = std::fs::remove_dir_all(&dir);
        return Err(error);
    }
    Ok((dir, writer))
}
