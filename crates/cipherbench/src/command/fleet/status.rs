//! `cipherbench fleet status` and `watch`: labs, jobs and their changes, in words or as JSON.

use super::{failure, labels, stop_channel, unknown};
use crate::exit::{Exit, Failure};
use crate::output;
use fleet::{Access, Change, Fleet, Job, LabOffer, Listing, Progress, Record, Row, State};
use guard::{visible, visible_lines};
use std::borrow::Cow;
use std::fmt::Write;
use std::time::Duration;
use units::human::counted;

/// Most listed ended jobs, unless all are requested.
const ENDED: usize = 20;

pub(super) fn status(access: &Access, json: bool, all: bool) -> Result<Exit, Failure> {
    let found = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        let listing = fleet.list((!all).then_some(ENDED)).await?;
        let (offers, repeats) = (fleet.offers().await?, fleet.repeats().await?);
        Ok((offers, repeats, listing, fleet.unreadable()))
    });
    let (offers, repeats, listing, unreadable) = found.map_err(failure)?;
    output::warn(&unreadable);
    let text = if json {
        let jobs: Vec<_> = listing
                .rows
                .iter()
                .map(|row| serde_json::json!({ "job": row.job.id, "campaign": row.job.name, "by": row.job.by, "priority": row.job.priority, "labels": row.job.labels, "progress": row.state, "misfits": row.misfits }))
                .collect();
        let repeated: Vec<_> = repeats
                .iter()
                .map(|job| serde_json::json!({ "job": job.id, "campaign": job.name, "by": job.by, "every_s": job.every }))
                .collect();
        let unreadable: Vec<_> = unreadable
                .iter()
                .map(|entry| serde_json::json!({ "bucket": entry.bucket, "key": entry.key, "reason": entry.reason }))
                .collect();
        let status = serde_json::json!({
            "labs": offers, "repeats": repeated, "jobs": jobs, "left_out": listing.left_out,
            "unreadable": unreadable,
        });
        format!("{}\n", visible_json(&status.to_string()))
    } else {
        in_words(&offers, &repeats, &listing)
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
                printed = output::stdout(&format!("{} {}\n", visible(job), how_far(progress)));
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

/// Prints each line of a job's journal when it arrives, until the job has ended.
pub(super) fn records(access: &Access, job: &str) -> Result<Exit, Failure> {
    let mut printed = Ok(());
    let see = |record: Record| {
        if printed.is_ok() {
            printed = output::stdout(&format!("{}\n", visible_json(&record.text)));
        }
    };
    let followed = fleet::run(async {
        let fleet = Fleet::connect(access).await?;
        fleet.follow_records(job, see).await
    });
    let is_known = followed.map_err(failure)?;
    printed?;
    if is_known {
        Ok(Exit::Done)
    } else {
        Err(unknown(job))
    }
}

/// Replaces characters that a terminal obeys with escapes in JSON, without changing its meaning.
pub(super) fn visible_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match visible(c.encode_utf8(&mut [0; 4])) {
            // None of these is beyond the first 65536 characters.
            Cow::Owned(_) => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            Cow::Borrowed(_) => text.push(c),
        }
    }
    text
}

/// How far a run is: `3 of 20 trials, last CELL #2: measured`.
pub(super) fn how_far(progress: &Progress) -> String {
    let last = progress.last.as_ref().map_or_else(String::new, |last| {
        format!(
            ", last {} #{}: {}",
            visible(&last.cell),
            last.repeat,
            visible(&last.outcome)
        )
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
        let job = offer.job.as_ref().map_or_else(
            || idle(offer).to_owned(),
            |job| format!("runs {}", visible(job)),
        );
        let progress = offer.progress.as_ref().map(how_far);
        let progress = progress.map_or_else(String::new, |far| format!(", {far}"));
        let _ = writeln!(
            text,
            "lab {} ({}{labels}): {job}{progress}",
            visible(&offer.lab),
            visible(&offer.agent)
        );
    }
    for job in repeats {
        let period = units::time::print(Duration::from_secs(job.every.unwrap_or_default()));
        let name = visible(&job.name);
        let _ = writeln!(text, "{} {name} is repeated every {period}", job.id);
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
        ..
    } in &listing.rows
    {
        match state {
            State::Queued { .. } if !misfits.is_empty() => {
                let reasons: Vec<_> = misfits
                    .iter()
                    .map(|(lab, reason)| format!("not in {}: {}", visible(lab), indented(reason)))
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

/// Describes a lab without a job.
pub(super) const fn idle(offer: &LabOffer) -> &'static str {
    if offer.waits {
        "waits while another lab of its machine is measured"
    } else {
        "idle"
    }
}

/// Indents the lines of a reason after the first, so that none looks like a line of the list.
fn indented(reason: &str) -> String {
    visible_lines(reason).replace('\n', "\n    ")
}

/// A job and how far it is, as a line.
fn line(job: &Job, state: &State) -> String {
    let more = match state {
        State::Running(held) => {
            format!(" in {}, attempt {}", visible(&held.lab), held.attempt)
        }
        State::Done { held, exit } => {
            format!(" in {}, exit code {exit}", visible(&held.lab))
        }
        State::Parked { reason } => format!(": {}", indented(reason)),
        State::Queued { .. } | State::Cancelled => String::new(),
    };
    let name = visible(&job.name);
    format!("{} {name} {}{more}\n", job.id, state.word())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fleet::{Assignment, LastTrial, Selector};
    use std::collections::BTreeMap;

    /// Clears the screen, begins a new line, and reverses the order of the text after it.
    const HOSTILE: &str = "x\u{1b}[2J\r\n7 fine.yaml done in lab\u{202e}\u{9b}31m";

    #[test]
    fn texts_of_others_are_no_commands_to_a_terminal_and_no_lines_of_the_list() {
        let hostile = || HOSTILE.to_owned();
        let job = Job {
            id: "1".to_owned(),
            name: hostile(),
            campaign: String::new(),
            quick: false,
            selector: Selector::default(),
            priority: 0,
            labels: BTreeMap::new(),
            by: hostile(),
            every: Some(60),
            period: None,
            signature: None,
        };
        let progress = Progress {
            done: 1,
            planned: 2,
            last: Some(LastTrial {
                cell: hostile(),
                repeat: 1,
                outcome: hostile(),
            }),
        };
        let offer = LabOffer {
            lab: hostile(),
            agent: hostile(),
            incarnation: String::new(),
            labels: BTreeMap::from([(hostile(), hostile())]),
            job: Some(hostile()),
            waits: false,
            progress: Some(progress),
            beats: 1,
        };
        let held = Assignment {
            lab: hostile(),
            agent: hostile(),
            attempt: 1,
        };
        let queued = State::Queued {
            attempts: 0,
            priority: 0,
        };
        let states = [
            queued,
            State::Running(held.clone()),
            State::Done { held, exit: 0 },
            State::Parked { reason: hostile() },
        ];
        let rows = states.map(|state| Row {
            job: job.clone(),
            submitted_at: 0,
            state,
            since: 0,
            misfits: BTreeMap::from([(hostile(), hostile())]),
        });
        let listing = Listing {
            rows: rows.into(),
            left_out: 0,
        };
        let text = in_words(&[offer], &[job], &listing);
        let shown = text.replace('\n', "");
        assert_eq!(visible(&shown), shown);
        assert!(!text.lines().any(|line| line.starts_with('7')), "{text}");
    }

    #[test]
    fn json_for_a_terminal_says_the_same() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE, "ü\u{feff}", "\u{7f}"] });
        let text = visible_json(&value.to_string());
        assert_eq!(visible(&text), text);
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, value);
        // No JSON, as a foreign line of a journal may be.
        assert_eq!(visible_json("a\u{1b}"), "a\\u001b");
    }
}
