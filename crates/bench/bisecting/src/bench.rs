//! Pairs on the real bench.

use crate::question::trial_of;
use crate::{BisectingError, Fault, Measured, Measurer, Question, Subject};
use journal::record::{Environment, Outcome, Record};
use plan::Plan;
use session::Session;
use std::time::Duration;
use trial::{Done, is_of_machine};

/// A lab that measures versions.
pub struct Bench<'a> {
    session: Session,
    plan: &'a Plan,
    question: &'a Question,
    /// Parameters of the tools that were searched for at the first trial: all versions get the
    /// same.
    done: Done,
}

impl<'a> Bench<'a> {
    /// Measures in a lab that is up.
    #[must_use]
    pub fn new(session: Session, plan: &'a Plan, question: &'a Question) -> Self {
        Self {
            session,
            plan,
            question,
            done: Done::default(),
        }
    }

    /// The machine and its tools.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn environment(&self) -> Result<Environment, BisectingError> {
        Ok(self.session.environment()?)
    }

    /// The lab, for a run.
    #[must_use]
    pub fn into_session(self) -> Session {
        self.session
    }
}

/// Longest pause after a spoilt trial: others may compile for minutes.
const PAUSE_MAX: Duration = Duration::from_secs(30);

impl Measurer for Bench<'_> {
    fn pause_after(&self, spoilt: u32) -> Duration {
        // 1, 2, 4 s and so on; a shift of 64 bits or more is longer than the limit in any case.
        let doubled = 1_u64.checked_shl(spoilt.saturating_sub(1));
        doubled.map_or(PAUSE_MAX, |seconds| {
            Duration::from_secs(seconds).min(PAUSE_MAX)
        })
    }

    fn measure(&mut self, subject: &Subject) -> Result<Measured, BisectingError> {
        let plan = self.question.trial(self.plan, subject);
        // Sets of settings are different cells.
        // A new search for each version would compare the parameters of the tools as well.
        if let Some(best) = self.done.tuned.values().next().cloned() {
            let cells = plan.cells.iter().map(|cell| cell.id.clone());
            self.done.tuned.extend(cells.map(|id| (id, best.clone())));
        }
        let mut records = Vec::new();
        self.session
            .measure_alone(&plan, &self.done, &mut records)?;
        for record in &records {
            if let Record::Tuned(tuned) = record {
                let best = tuned.best.clone();
                self.done.tuned.insert(tuned.cell.clone(), best);
            }
        }
        let Some(trial) = trial_of(records) else {
            let reason = "the trial left no record".to_owned();
            return Ok(Measured {
                figure: Err(Fault::Version(reason)),
                trial: None,
            });
        };
        // The machine first: a trial that it spoilt says nothing about the version.
        let figure = match &trial.outcome {
            outcome if is_of_machine(outcome) => Err(Fault::Machine(reason(outcome))),
            Outcome::Measured(_) => self
                .question
                .figure(&plan, &trial)
                // A figure of 0 has no logarithm: nothing came through, as with a version that does
                // not work.
                .filter(|(_, figure)| *figure > 0.0)
                .ok_or_else(|| Fault::Version("the trial has no such figure".to_owned())),
            outcome => Err(Fault::Version(reason(outcome))),
        };
        Ok(Measured {
            figure,
            trial: Some(trial),
        })
    }
}

/// Why there is no figure, in a line.
fn reason(outcome: &Outcome) -> String {
    let text = match outcome {
        Outcome::Measured(_) => "",
        Outcome::Invalid { reasons, .. } => reasons.first().map_or("", String::as_str),
        Outcome::Failed { reason } => reason,
    };
    text.lines().collect::<Vec<_>>().join("; ")
}
