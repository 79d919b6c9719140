//! The lines of a run: one for each completed trial, and for the beginning of long steps.

use super::in_seconds;
use super::outcome::{came_of, fatigue, in_words};
use super::state::Row;
use super::step;
use journal::record::{Outcome, ToolParameters, TrialRecord};
use plan::Cell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use trial::{Checkpoint, Progress, RunEvent, TrialEvent};
use units::human;

/// After this time without a line the next step is also printed.
const SILENCE: Duration = Duration::from_secs(10);

/// The lines of a run.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// When the last one was.
    printed: Option<Instant>,
    /// Cells that the campaign leaves out on this machine, with the reason; `None` once it is
    /// printed.
    skipped: BTreeMap<String, Option<String>>,
}

impl Lines {
    /// The lines of a run with these cells.
    pub(crate) fn of(rows: &[Row]) -> Self {
        let reason = |row: &Row| Some((row.cell.clone(), Some(row.skipped.clone()?)));
        Self {
            skipped: rows.iter().filter_map(reason).collect(),
            ..Self::default()
        }
    }

    /// Returns the line of an event, if it has one.
    pub(crate) fn next(&mut self, progress: Progress<'_>) -> Option<String> {
        let what = self.line(progress.event)?;
        let Progress {
            trial,
            trials,
            left,
            ..
        } = progress;
        self.printed = Some(Instant::now());
        // The estimate of the time left changes when a step ends. At the beginning of one it would
        // repeat the line before.
        let begins = matches!(
            progress.event,
            RunEvent::Started(_)
                | RunEvent::Attempt { .. }
                | RunEvent::InTrial(_, TrialEvent::FrameTrial(_))
        );
        let left = if begins {
            String::new()
        } else {
            format!(" (about {} left)", in_seconds(left))
        };
        Some(format!("[{trial}/{trials}] {what}{left}\n"))
    }

    /// Describes completed trials and tuned cells, and the beginning of steps that take long or
    /// follow a long silence.
    fn line(&mut self, event: RunEvent<'_>) -> Option<String> {
        let is_silent = self.printed.is_none_or(|at| at.elapsed() >= SILENCE);
        Some(match event {
            // Its end says why, and takes no time.
            RunEvent::Started(trial) if self.skipped.contains_key(&trial.cell.id) => return None,
            RunEvent::Started(trial) => {
                // A longer trial would itself be a silence, so its beginning is printed in any
                // case.
                let time = Duration::from_nanos(trial.cell.estimate_ns);
                if !is_silent && time < SILENCE {
                    return None;
                }
                let time = human::estimate_ns(trial.cell.estimate_ns as f64);
                format!("{} #{} begins, about {time}", trial.cell.id, trial.repeat)
            }
            RunEvent::Attempt { .. } | RunEvent::InTrial(_, TrialEvent::FrameTrial(_))
                if !is_silent =>
            {
                return None;
            }
            RunEvent::Attempt {
                cell,
                parameters,
                attempt,
                attempts_max,
            } => attempted(cell, parameters, (attempt, attempts_max)),
            RunEvent::InTrial(_, TrialEvent::FrameTrial(step)) => step::whole(step),
            RunEvent::InTrial(trial, TrialEvent::Checkpoint(Checkpoint::Soak(soak))) => format!(
                "{}: {} more, {} lost in it",
                trial.cell.id,
                human::duration_ns(soak.trial.duration_ns as f64),
                human::counted(soak.trial.lost(), "frame")
            ),
            RunEvent::InTrial(trial, TrialEvent::Checkpoint(Checkpoint::Fatigue(of))) => {
                format!("{}: {}", trial.cell.id, fatigue(&of.segment))
            }
            RunEvent::Tuned(tuned) => {
                format!("{}: best with {}", tuned.cell, in_words(&tuned.best))
            }
            RunEvent::Ended(record) => {
                match (&record.outcome, self.skipped.get_mut(&record.cell)) {
                    // Once for all repeats of the cell.
                    (Outcome::Failed { .. }, Some(reason)) => {
                        format!("{}: {}", record.cell, reason.take()?)
                    }
                    _ => ended(record),
                }
            }
        })
    }
}

/// Describes an attempt to find better parameters.
fn attempted(cell: &Cell, parameters: &ToolParameters, (attempt, of): (u32, u32)) -> String {
    format!("{}: {} ({attempt} of {of})", cell.id, in_words(parameters))
}

fn ended(record: &TrialRecord) -> String {
    format!("{} #{}: {}", record.cell, record.repeat, came_of(record))
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::{Check, Explanation, Figures, Measured, Transfer};

    #[test]
    fn without_a_terminal_a_long_trial_and_a_long_silence_are_not_silent() {
        let campaign = campaign::Campaign::quick();
        let host = campaign::HostFacts { cores: 2 };
        let plan = campaign.plan(&campaign.usual_lab(), &host).unwrap();
        let mut cell = plan.cells[0].clone();
        let line = |lines: &mut Lines, cell: &Cell| {
            let trial = plan::TrialRef { cell, repeat: 2 };
            lines.line(RunEvent::Started(trial))
        };
        let mut lines = Lines::default();
        cell.estimate_ns = 2_000_000_000;
        let first = line(&mut lines, &cell).unwrap();
        assert_eq!(first, format!("{} #2 begins, about 2 s", cell.id));
        lines.printed = Some(Instant::now());
        assert_eq!(line(&mut lines, &cell), None);
        lines.printed = Instant::now().checked_sub(SILENCE);
        assert!(line(&mut lines, &cell).is_some());
        lines.printed = Some(Instant::now());
        cell.estimate_ns = 60_000_000_000;
        assert!(line(&mut lines, &cell).unwrap().ends_with("about 60 s"));
    }

    #[test]
    fn a_cell_that_the_campaign_skips_has_one_line_and_no_failure() {
        let reason = "skipped: needs 128 cores per station, this machine has 2";
        let mut row = Row {
            cell: "tcp/cores=128/direct".to_owned(),
            repeats: 3,
            results: BTreeMap::new(),
            newest: None,
            skipped: Some(reason.to_owned()),
        };
        let mut lines = Lines::of(std::slice::from_ref(&row));
        let campaign = campaign::Campaign::quick();
        let host = campaign::HostFacts { cores: 2 };
        let plan = campaign.plan(&campaign.usual_lab(), &host).unwrap();
        let cell = Cell {
            id: row.cell.clone(),
            ..plan.cells[0].clone()
        };
        let mut printed = Vec::new();
        for repeat in 1..=3 {
            let begins = RunEvent::Started(plan::TrialRef {
                cell: &cell,
                repeat,
            });
            printed.extend(lines.line(begins));
            let record = TrialRecord {
                cell: row.cell.clone(),
                repeat,
                started_unix_ns: 0,
                duration_ns: 0,
                clock_step_ns: 0,
                commands: Vec::new(),
                outcome: Outcome::Failed {
                    reason: "set `cores` to 2 or less".to_owned(),
                },
            };
            printed.extend(lines.line(RunEvent::Ended(&record)));
            crate::progress::state::add(&mut row, &record, 1);
        }
        assert_eq!(printed, [format!("tcp/cores=128/direct: {reason}")]);
        assert_eq!(row.last().map(|last| last.text.as_str()), Some(reason));
        assert_eq!(
            row.last().map(|last| last.kind),
            Some(crate::progress::ResultKind::Skipped)
        );
    }

    #[test]
    fn transfers_show_their_loss_and_failed_trials_their_reason() {
        let mut record = TrialRecord {
            cell: "udp/direct".to_owned(),
            repeat: 2,
            started_unix_ns: 0,
            duration_ns: 0,
            clock_step_ns: 0,
            commands: Vec::new(),
            outcome: Outcome::Failed {
                reason: "iperf3 is gone\nhelp: install it".to_owned(),
            },
        };
        assert_eq!(
            ended(&record),
            "udp/direct #2: failed: iperf3 is gone; help: install it"
        );
        let datagrams = Some(journal::record::Datagrams {
            sent: 1000,
            lost: 25,
            ..Default::default()
        });
        let (duration_ns, received_bytes) = (2_000_000_000, 250_000_000);
        let transfer = Transfer {
            duration_ns,
            received_bytes,
            datagrams,
            ..Default::default()
        };
        let measured = Measured {
            figures: Figures::Transfer(transfer),
            ..Default::default()
        };
        record.outcome = Outcome::Measured(Box::new(measured.clone()));
        assert_eq!(ended(&record), "udp/direct #2: 1 Gbit/s, 2.5 % lost");
        let reasons = vec!["clear-text".to_owned(), "no ESP".to_owned()];
        record.outcome = Outcome::Invalid {
            reasons,
            measured: Box::new(measured),
        };
        assert_eq!(ended(&record), "udp/direct #2: invalid: clear-text; no ESP");
        let failure = Explanation::new("7 frames were readable", "it is broken", "repair it");
        let check = Check::new("no-clear-text", failure, "7 of 300 frames");
        if let Outcome::Invalid { reasons, measured } = &mut record.outcome {
            *reasons = vec!["no-clear-text: 7 of 300 frames".to_owned()];
            measured.evidence.checks.push(check);
        }
        assert_eq!(
            ended(&record),
            "udp/direct #2: invalid: no-clear-text failed: 7 frames were readable"
        );
    }
}
