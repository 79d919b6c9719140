//! Labs, jobs and their changes, in words or as JSON.

use crate::text::{labels, visible_json};
use fleet::{Fleet, FleetError, Job, LabOffer, Listing, Progress, Row, State, UnreadableEntry};
use guard::{visible, visible_lines};
use serde_json::json;
use std::fmt::Write;
use std::time::Duration;
use units::human::counted;

/// Most listed ended jobs, unless all are requested.
const ENDED: usize = 20;

/// The labs and jobs of a fleet.
#[derive(Debug)]
pub struct Status {
    offers: Vec<LabOffer>,
    repeats: Vec<Job>,
    listing: Listing,
    unreadable: Vec<UnreadableEntry>,
}

impl Status {
    /// Asks the fleet: for all jobs, or only for those under way and the last ended ones.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn of(fleet: &Fleet, all: bool) -> Result<Self, FleetError> {
        let listing = fleet.list((!all).then_some(ENDED)).await?;
        let (offers, repeats) = (fleet.offers().await?, fleet.repeats().await?);
        Ok(Self {
            offers,
            repeats,
            listing,
            unreadable: fleet.unreadable(),
        })
    }

    /// The entries that are left out, because they cannot be read.
    #[must_use]
    pub fn unreadable(&self) -> &[UnreadableEntry] {
        &self.unreadable
    }

    /// As one JSON document on a line.
    #[must_use]
    pub fn json(&self) -> String {
        let jobs: Vec<_> = self
            .listing
            .rows
            .iter()
            .map(|row| json!({ "job": row.job.id, "campaign": row.job.name, "by": row.job.by, "priority": row.job.priority, "labels": row.job.labels, "progress": row.state, "misfits": row.misfits }))
            .collect();
        let repeated: Vec<_> = self
            .repeats
            .iter()
            .map(|job| json!({ "job": job.id, "campaign": job.name, "by": job.by, "every_s": job.every }))
            .collect();
        let unreadable: Vec<_> = self
            .unreadable
            .iter()
            .map(
                |entry| json!({ "bucket": entry.bucket, "key": entry.key, "reason": entry.reason }),
            )
            .collect();
        let status = json!({
            "labs": self.offers, "repeats": repeated, "jobs": jobs,
            "left_out": self.listing.left_out, "unreadable": unreadable,
        });
        format!("{}\n", visible_json(&status.to_string()))
    }

    /// One line for each lab, repeated job and job.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.offers.is_empty() {
            text.push_str("No lab is on offer: `cipherbench fleet agent LAB` offers one\n");
        }
        for offer in &self.offers {
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
        for job in &self.repeats {
            let period = units::time::print(Duration::from_secs(job.every.unwrap_or_default()));
            let name = visible(&job.name);
            let _ = writeln!(text, "{} {name} is repeated every {period}", job.id);
        }
        if self.listing.left_out > 0 {
            let left_out = counted(self.listing.left_out as u64, "job");
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
        } in &self.listing.rows
        {
            match state {
                // The reasons are on the line of the job, as each job has one line.
                State::Queued { .. } if !misfits.is_empty() => {
                    let reasons: Vec<_> = misfits
                        .iter()
                        .map(|(lab, reason)| {
                            format!("not in {}: {}", visible(lab), indented(reason))
                        })
                        .collect();
                    let _ = writeln!(
                        text,
                        "{}; {}",
                        job_line(job, state).trim_end(),
                        reasons.join("; ")
                    );
                }
                _ => text.push_str(&job_line(job, state)),
            }
        }
        text
    }
}

/// How far a job is: `JOB 3 of 20 trials, last CELL #2: measured`.
#[must_use]
pub fn progress_line(job: &str, progress: &Progress) -> String {
    format!("{} {}\n", visible(job), how_far(progress))
}

/// How far a run is: `3 of 20 trials, last CELL #2: measured`.
fn how_far(progress: &Progress) -> String {
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

/// Describes a lab without a job.
pub(crate) const fn idle(offer: &LabOffer) -> &'static str {
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
#[must_use]
pub fn job_line(job: &Job, state: &State) -> String {
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
        let status = Status {
            offers: vec![offer],
            repeats: vec![job],
            listing,
            unreadable: Vec::new(),
        };
        let text = status.text();
        let shown = text.replace('\n', "");
        assert_eq!(visible(&shown), shown);
        assert!(!text.lines().any(|line| line.starts_with('7')), "{text}");
    }
}
