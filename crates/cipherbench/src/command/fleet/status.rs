//! `cipherbench fleet status` and `watch`: labs, jobs and their changes, in words or as JSON.

use super::{failure, labels, stop_channel, unknown};
use crate::exit::{Exit, Failure};
use crate::output;
use fleet::{Access, Change, Fleet, Job, LabOffer, Listing, Progress, Record, Row, State};
use std::fmt::Write;
use std::time::Duration;
use units::human::counted;

/// Ended jobs that are listed unless all are asked for.
const ENDED: usize = 20;

pub(super) fn status(access: &Access, json: bool, all: bool) -> Result<Exit, Failure> {
    let found = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        let listing = fleet.list((!all).then_some(ENDED)).await?;
        Ok((fleet.offers().await?, fleet.repeats().await?, listing))
    });
    let (offers, repeats, listing) = found.map_err(failure)?;
    let text = match json {
        true => {
            let jobs: Vec<_> = listing
                .rows
                .iter()
                .map(|row| serde_json::json!({ "job": row.job.id, "campaign": row.job.name, "by": row.job.by, "priority": row.job.priority, "labels": row.job.labels, "progress": row.state, "misfits": row.misfits }))
                .collect();
            let repeated: Vec<_> = repeats
                .iter()
                .map(|job| serde_json::json!({ "job": job.id, "campaign": job.name, "by": job.by, "every_s": job.every }))
                .collect();
            format!(
                "{}\n",
                serde_json::json!({ "labs": offers, "repeats": repeated, "jobs": jobs, "left_out": listing.left_out })
            )
        }
        false => in_words(&offers, &repeats, &listing),
    };
    output::stdout(&text)?;
    Ok(Exit::Done)
}

pub(super) fn watch(access: &Access, until_done: bool) -> Result<Exit, Failure> {
    let stop = stop_channel()?;
    let mut printed = Ok(());
    let watched = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        let see = |change: Change<'_>| match change {
            Change::Job(job, state) if printed.is_ok() => {
                printed = output::stdout(&line(job, state));
            }
            Change::Progress(job, progress) if printed.is_ok() => {
                printed = output::stdout(&format!("{job} {}\n", how_far(progress)));
            }
            Change::Job(..) | Change::Progress(..) => {}
            Change::Away(reason) => output::stderr(&format!("{reason}\n")),
        };
        fleet.watch(until_done, stop, see).await;
        Ok(())
    });
    watched.map_err(failure)?;
    printed?;
    Ok(Exit::Done)
}

/// Prints each line of a job's journal as it comes, until the job has ended.
pub(super) fn records(access: &Access, job: &str) -> Result<Exit, Failure> {
    let mut printed = Ok(());
    let see = |record: Record| {
        if printed.is_ok() {
            printed = output::stdout(&format!("{}\n", record.text));
        }
    };
    let followed = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        fleet.follow_records(job, see).await
    });
    let is_known = followed.map_err(failure)?;
    printed?;
    match is_known {
        true => Ok(Exit::Done),
        false => Err(unknown(job)),
    }
}

/// How far a run is: `3 of 20 trials, last CELL #2: measured`.
pub(super) fn how_far(progress: &Progress) -> String {
    let last = progress.last.as_ref().map_or_else(String::new, |last| {
        format!(", last {} #{}: {}", last.cell, last.repeat, last.outcome)
    });
    format!("{} of {} trials{last}", progress.done, progress.planned)
}

fn in_words(offers: &[LabOffer], repeats: &[Job], listing: &Listing) -> String {
    let mut text = String::new();
    if offers.is_empty() {
        text.push_str("No lab is on offer: `cipherbench fleet agent LAB` offers one\n");
    }
    for offer in offers {
        let labels = labels(&offer.labels);
        let job = offer
            .job
            .as_ref()
            .map_or_else(|| "idle".to_owned(), |job| format!("runs {job}"));
        let progress = offer.progress.as_ref().map(how_far);
        let progress = progress.map_or_else(String::new, |far| format!(", {far}"));
        let _ = writeln!(
            text,
            "lab {} ({}{labels}): {job}{progress}",
            offer.lab, offer.agent
        );
    }
    for job in repeats {
        let period = units::time::print(Duration::from_secs(job.every.unwrap_or_default()));
        let _ = writeln!(text, "{} {} is repeated every {period}", job.id, job.name);
    }
    if listing.left_out > 0 {
        let left_out = counted(listing.left_out as u64, "job");
        let _ = writeln!(
            text,
            "{left_out} that ended before these: `--all` lists them too"
        );
    }
    for Row {
        job,
        state,
        misfits,
    } in &listing.rows
    {
        match state {
            State::Queued { .. } if !misfits.is_empty() => {
                let reasons: Vec<_> = misfits
                    .iter()
                    .map(|(lab, reason)| format!("not in {lab}: {reason}"))
                    .collect();
                let _ = writeln!(
                    text,
                    "{}; {}",
                    line(job, state).trim_end(),
                    reasons.join("; ")
                );
            }
            _ => text.push_str(&line(job, state)),
        }
    }
    text
}

/// A job and how far it is, as a line.
fn line(job: &Job, state: &State) -> String {
    let more = match state {
        State::Running(held) => format!(" in {}, attempt {}", held.lab, held.attempt),
        State::Done { held, exit } => format!(" in {}, exit code {exit}", held.lab),
        State::Parked { reason } => format!(": {reason}"),
        State::Queued { .. } | State::Cancelled => String::new(),
    };
    format!("{} {} {}{more}\n", job.id, job.name, state.word())
}
