//! The commands that only show a fleet.

use super::{stop_channel, unknown};
use crate::exit::{Exit, Failure};
use crate::output;
use fleet::{Access, Change, Fleet, FleetError, Record};
use std::net::SocketAddr;
use view::{Status, visible_json};

pub(super) fn status(access: &Access, json: bool, all: bool) -> Result<Exit, Failure> {
    let status = fleet::run(async { Status::of(&Fleet::connect(access).await?, all).await })?;
    output::warn(status.unreadable());
    output::done(&if json { status.json() } else { status.text() })
}

pub(super) fn watch(access: &Access, until_done: bool) -> Result<Exit, Failure> {
    let stop = stop_channel()?;
    let mut printed = Ok(());
    let see = |change: Change<'_>| {
        let line = match change {
            Change::Job(job, state) => view::job_line(job, state),
            Change::Progress(job, progress) => view::progress_line(job, progress),
            Change::Away(reason) => return output::stderr(&format!("{reason}\n")),
        };
        // After a failed print the watch goes on silently; its end reports the failure.
        if printed.is_ok() {
            printed = output::stdout(&line);
        }
    };
    fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        fleet.watch(until_done, stop, see).await;
        Ok::<_, FleetError>(())
    })?;
    printed?;
    Ok(Exit::Done)
}

/// Prints each line of a job's journal when it arrives, until the job has ended.
pub(super) fn records(access: &Access, job: &str) -> Result<Exit, Failure> {
    let mut printed = Ok(());
    let see = |record: Record| {
        if printed.is_ok() {
            printed = output::stdout(&format!("{}\n", visible_json(&record.text)));
        }
    };
    // A job that has ended has its records too; only an unknown id is a mistake.
    let is_known = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        fleet.follow_records(job, see).await
    })?;
    printed?;
    if is_known {
        Ok(Exit::Done)
    } else {
        Err(unknown(job))
    }
}

pub(super) fn history(access: &Access, cell: Option<&str>, as_json: bool) -> Result<Exit, Failure> {
    let text = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        match cell {
            Some(cell) => view::history(&fleet, cell, as_json).await,
            None => Ok(view::cells(&fleet).await?),
        }
    })?;
    output::done(&text)
}

pub(super) fn serve(
    access: &Access,
    listen: SocketAddr,
    names: &[String],
) -> Result<Exit, Failure> {
    let stop = stop_channel()?;
    let ready = |address| {
        // The service continues if standard output is closed.
        let _ = output::stdout(&format!("ready url=http://{address}/\n"));
    };
    fleet::run(view::serve(access, listen, names, stop, ready))?;
    Ok(Exit::Done)
}
