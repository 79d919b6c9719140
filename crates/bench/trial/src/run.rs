//! A whole run: every trial of a plan in its interleaved order, each recorded at its end.
//!
//! A cell with tuning is tuned before its first trial. Failed and invalid trials are recorded like
//! any other, and the run continues. Trials that an earlier start of the run has finished are not
//! repeated, and trials of cells that this host cannot measure are recorded as failed without an
//! attempt.

use crate::checkpoint::Checkpoint;
use crate::command;
use crate::event::{Progress, RunEvent, TrialEvent};
use crate::evidence;
use crate::links::links;
use crate::measurer::{Measurer, Trial, unix_ns};
use crate::tune::{self, Gain};
use journal::Journal;
use journal::record::{
    Datagrams, End, Outcome, Record, ToolParameters, Transfer, TrialRecord, in_brief,
};
use plan::{Cell, Measurement, Plan, TrialRef, estimate};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use testbed::{Interrupt, LabError};

/// Maximum measured time of a tuning attempt.
const TUNE_DURATION_NS: u64 = 800_000_000;
/// A run ends early once other work on the machine has spoilt so many trials in a row, and no trial
/// of the run is valid. A load that comes and goes, as of a job every few minutes, leaves one of
/// ten trials alone.
const BUSY_TRIALS: usize = 10;
/// Maximum warm-up of a tuning attempt: with the above, a whole second.
const TUNE_WARMUP_NS: u64 = 200_000_000;

/// Work that is not repeated: the results of earlier starts of a run, and cells that are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Done {
    /// Cell and repeat of the finished trials.
    pub trials: BTreeSet<(String, u32)>,
    /// Tuned parameters by cell.
    pub tuned: BTreeMap<String, ToolParameters>,
    /// Checkpoints of unfinished trials, in order.
    pub checkpoints: Vec<Checkpoint>,
    /// Cells that cannot be measured here, with the reason that their trials fail with.
    pub left_out: BTreeMap<String, String>,
}

impl From<&Journal> for Done {
    fn from(journal: &Journal) -> Self {
        let tuned = journal
            .tuned
            .iter()
            .map(|tuned| (tuned.cell.clone(), tuned.best.clone()));
        Self {
            trials: journal.finished_trials(),
            tuned: tuned.collect(),
            checkpoints: Checkpoint::unfinished(journal),
            left_out: BTreeMap::new(),
        }
    }
}

impl Done {
    /// What is not repeated once a host that went away is back: also the trials that this start
    /// has `made`. The journal alone does not say this, as it has no record of the trials that this
    /// start is to repeat, and a start makes a trial that failed only once.
    #[must_use]
    pub fn and_made(mut self, made: BTreeSet<(String, u32)>, journal: &Journal) -> Self {
        // The journal still has what was tuned, and the checkpoints that the next round resumes.
        self.trials.extend(made);
        Self {
            trials: self.trials,
            left_out: self.left_out,
            ..Self::from(journal)
        }
    }

    /// Whether this repeat of the cell has a trial that need not be made again.
    #[must_use]
    pub fn has(&self, cell: &Cell, repeat: u32) -> bool {
        self.trials.contains(&(cell.id.clone(), repeat))
    }
}

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conclusion {
    /// Every trial has been made. Counts are of this start of the run.
    Finished {
        /// Trials with a valid figure.
        measured: usize,
        /// Trials with failed checks.
        invalid: usize,
        /// Trials that could not be measured.
        failed: usize,
    },
    /// Other work on the machine spoilt the first trials, all of them, and the run ended early; the
    /// trials are recorded, and a later start can resume it.
    Busy {
        /// Trials that were made, in a row.
        trials: usize,
    },
    /// It was interrupted; finished trials are recorded, and a later start can resume it.
    Interrupted,
    /// A station is lost and the lab cannot measure any more; finished trials are recorded, and a
    /// later start can resume it. Between hosts the trial that was being made is recorded as failed
    /// with the reason.
    LabLost {
        /// The station and its last output.
        reason: String,
        /// Cell and repeat of the trials that were made until then: without the one that this
        /// spoilt.
        made: BTreeSet<(String, u32)>,
    },
}

/// Receives records: the journal's writer.
pub type Sink<'a, E> = &'a mut dyn FnMut(&Record) -> Result<(), E>;

/// Makes every trial of `plan` that is not `done`, and records each with `sink` as it ends.
///
/// # Errors
/// Errors of `sink`: a run that cannot be recorded is not continued.
pub fn run<E>(
    plan: &Plan,
    measurer: &mut dyn Measurer,
    done: &Done,
    sink: Sink<'_, E>,
    progress: &mut dyn FnMut(Progress<'_>),
    interrupt: &Interrupt,
) -> Result<Conclusion, E> {
    let forecast = Forecast::new(plan, done);
    let tuned = done.tuned.clone();
    let mut runner = Runner {
        plan,
        measurer,
        sink,
        progress,
        interrupt,
        forecast,
        tuned,
        checkpoints: &done.checkpoints,
        trial: 0,
        made: BTreeSet::new(),
    };
    match runner.run(done) {
        Ok(counts) => Ok(counts),
        Err(Stop::Lab(LabError::Interrupted)) => Ok(Conclusion::Interrupted),
        Err(Stop::Lab(error)) => Ok(Conclusion::LabLost {
            reason: error.to_string(),
            made: runner.made,
        }),
        Err(Stop::Sink(error)) => Err(error),
    }
}

/// Returns the cell of a tuning attempt: as short as the tool allows.
fn tuning_cell(cell: &Cell) -> Cell {
    let mut short = cell.clone();
    // Only these two measurements are ever tuned.
    if let Measurement::Tcp {
        duration_ns,
        warmup_ns,
        ..
    }
    | Measurement::Udp {
        duration_ns,
        warmup_ns,
        ..
    } = &mut short.measurement
    {
        *duration_ns = (*duration_ns).min(TUNE_DURATION_NS);
        *warmup_ns = (*warmup_ns).min(TUNE_WARMUP_NS);
    }
    short
}

/// Why a run stops before its end.
enum Stop<E> {
    Lab(LabError),
    Sink(E),
}

impl<E> From<LabError> for Stop<E> {
    fn from(error: LabError) -> Self {
        Self::Lab(error)
    }
}

struct Runner<'a, E> {
    plan: &'a Plan,
    measurer: &'a mut dyn Measurer,
    sink: Sink<'a, E>,
    progress: &'a mut dyn FnMut(Progress<'_>),
    interrupt: &'a Interrupt,
    forecast: Forecast,
    tuned: BTreeMap<String, ToolParameters>,
    /// Checkpoints of unfinished trials.
    checkpoints: &'a [Checkpoint],
    /// Number of the current trial, from 1.
    trial: usize,
    /// Cell and repeat of the trials made so far, left-out ones included.
    made: BTreeSet<(String, u32)>,
}

impl<E> Runner<'_, E> {
    fn run(&mut self, done: &Done) -> Result<Conclusion, Stop<E>> {
        let plan = self.plan;
        let (mut measured, mut invalid, mut failed) = (0, 0, 0);
        // A start that goes on with other trials has been told, and goes on nevertheless.
        let is_first = done.trials.is_empty();
        let mut spoilt = 0;
        for (index, trial) in plan.trials().enumerate() {
            self.trial = index + 1;
            // Before the interrupt is looked at: a run with nothing left to do is finished.
            if done.has(trial.cell, trial.repeat) {
                continue;
            }
            self.interrupt.check()?;
            // Recorded as failed without an attempt, so that the report names every trial of the
            // plan.
            if let Some(reason) = done.left_out.get(&trial.cell.id) {
                self.end(left_out(trial, reason))?;
                failed += 1;
                continue;
            }
            // Tuning comes right before the first trial of a cell and not before the run: an
            // interrupted run has tuned no more cells than it measures.
            let parameters = self.parameters(trial.cell)?;
            let outcome = self.make(trial, parameters)?;
            spoilt = if is_of_machine(&outcome) {
                spoilt + 1
            } else {
                0
            };
            match outcome {
                Outcome::Measured(_) => measured += 1,
                Outcome::Invalid { .. } => invalid += 1,
                Outcome::Failed { .. } => failed += 1,
            }
            let has_more = self.trial < plan.trial_count();
            if is_first && measured == 0 && spoilt >= BUSY_TRIALS && has_more {
                return Ok(Conclusion::Busy { trials: spoilt });
            }
        }
        self.record(&Record::End(End {
            at_unix_ns: unix_ns(),
        }))?;
        Ok(Conclusion::Finished {
            measured,
            invalid,
            failed,
        })
    }

    /// Makes and records one trial.
    fn make(
        &mut self,
        trial: TrialRef<'_>,
        parameters: ToolParameters,
    ) -> Result<Outcome, Stop<E>> {
        self.report(RunEvent::Started(trial));
        let TrialRef { cell, repeat } = trial;
        let earlier = self.checkpoints.iter();
        let checkpoints: Vec<Checkpoint> =
            earlier.filter(|one| one.is_of(trial)).cloned().collect();
        let started_unix_ns = unix_ns();
        let measured = self.measure(&Trial {
            cell,
            repeat,
            links: links(self.plan, cell),
            parameters,
            checkpoints: &checkpoints,
            capture: self.plan.capture.as_ref(),
            folder: None,
        });
        // Between hosts a machine may go away, and the journal is to have when and why. On one
        // machine a lost station ends the run, and a resumed run makes the trial again.
        if let Err(Stop::Lab(error)) = &measured
            && !matches!(error, LabError::Interrupted)
            && self.plan.lab.hosts.is_some()
        {
            let record = TrialRecord {
                started_unix_ns,
                duration_ns: unix_ns().saturating_sub(started_unix_ns),
                ..left_out(trial, &error.to_string())
            };
            self.record(&Record::Trial(Box::new(record)))?;
        }
        let mut record = measured?;
        record.refuse_the_impossible(cell);
        self.end(record.clone())?;
        let estimated_ns = trial_ns(cell, self.plan.repeats);
        self.forecast.ended(estimated_ns, record.duration_ns);
        self.report(RunEvent::Ended(&record));
        Ok(record.outcome)
    }

    /// Returns the parameters of a cell's trials; tunes the cell if its plan asks for it and no
    /// earlier start has.
    fn parameters(&mut self, cell: &Cell) -> Result<ToolParameters, Stop<E>> {
        // 0 for a cell that is not tuned.
        let attempts_max = estimate::attempts(cell);
        if attempts_max == 0 {
            return Ok(command::parameters(cell));
        }
        if let Some(found) = self.tuned.get(&cell.id) {
            return Ok(found.clone());
        }
        let short = tuning_cell(cell);
        let mut attempt = 0;
        let tuned = tune::tune(cell, |parameters| {
            attempt += 1;
            self.report(RunEvent::Attempt {
                cell,
                parameters,
                attempt,
                attempts_max,
            });
            let record = self.measure(&Trial {
                parameters: parameters.clone(),
                // Without captures and checkpoints, which belong to trials of the plan.
                ..Trial::of(&short, 1, links(self.plan, cell))
            })?;
            self.forecast.ended(ATTEMPT_NS, record.duration_ns);
            Ok::<_, Stop<E>>(gain(record.outcome))
        })?;
        // The search has ended early if fewer attempts were needed than estimated.
        self.forecast
            .spare(ATTEMPT_NS * u64::from(attempts_max.saturating_sub(attempt)));
        self.record(&Record::Tuned(tuned.clone()))?;
        self.report(RunEvent::Tuned(&tuned));
        self.tuned.insert(cell.id.clone(), tuned.best.clone());
        Ok(tuned.best)
    }

    /// Makes a trial, and records its checkpoints.
    fn measure(&mut self, trial: &Trial<'_>) -> Result<TrialRecord, Stop<E>> {
        let (number, trials) = (self.trial, self.plan.trial_count());
        let forecast = (
            self.forecast.left(),
            self.forecast
                .left_without(trial_ns(trial.cell, self.plan.repeats)),
        );
        let began = Instant::now();
        let (progress, sink) = (&mut *self.progress, &mut *self.sink);
        // The event sink cannot fail, so an error of the journal waits here until the trial ends.
        let mut recorded = Ok(());
        let Trial { cell, repeat, .. } = *trial;
        let mut events = |event: TrialEvent<'_>| {
            // A checkpoint that is not recorded is part of the trial's record at its end.
            if let (TrialEvent::Checkpoint(checkpoint), Ok(())) = (event, &recorded) {
                recorded = sink(&checkpoint.record());
            }
            // The time goes on in a trial too. One that takes longer than estimated leaves the time
            // of the others.
            let (left, of_others) = forecast;
            progress(Progress {
                trial: number,
                trials,
                left: left.saturating_sub(began.elapsed()).max(of_others),
                event: RunEvent::InTrial(TrialRef { cell, repeat }, event),
            });
        };
        let record = self.measurer.measure(trial, &mut events, self.interrupt)?;
        recorded.map_err(Stop::Sink)?;
        Ok(record)
    }

    /// Records a trial that this start need not make again.
    fn end(&mut self, trial: TrialRecord) -> Result<(), Stop<E>> {
        let made = (trial.cell.clone(), trial.repeat);
        // Recorded first: a trial that the journal does not have is to be made again.
        self.record(&Record::Trial(Box::new(trial)))?;
        self.made.insert(made);
        Ok(())
    }

    fn record(&mut self, record: &Record) -> Result<(), Stop<E>> {
        (self.sink)(record).map_err(Stop::Sink)
    }

    fn report(&mut self, event: RunEvent<'_>) {
        (self.progress)(Progress {
            trial: self.trial,
            trials: self.plan.trial_count(),
            left: self.forecast.left(),
            event,
        });
    }
}

/// Whether a trial is invalid because other work took the machine from it.
#[must_use]
pub fn is_of_machine(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Invalid { reasons, .. } => {
            let mut checks = reasons.iter().map(|reason| in_brief(reason));
            checks.any(|check| check == evidence::machine::WAS_OURS)
        }
        Outcome::Measured(_) | Outcome::Failed { .. } => false,
    }
}

/// The record of a trial that is not made.
fn left_out(trial: TrialRef<'_>, reason: &str) -> TrialRecord {
    TrialRecord {
        cell: trial.cell.id.clone(),
        repeat: trial.repeat,
        started_unix_ns: unix_ns(),
        duration_ns: 0,
        clock_step_ns: 0,
        commands: Vec::new(),
        outcome: Outcome::Failed {
            reason: reason.to_owned(),
        },
    }
}

/// Returns the gain of an attempt. Failed checks count as a failure, as in trials.
fn gain(outcome: Outcome) -> Gain {
    let error = |reason| Gain {
        error: Some(reason),
        ..Gain::default()
    };
    match outcome {
        Outcome::Failed { reason } => error(reason),
        Outcome::Invalid { reasons, .. } => error(reasons.join("; ")),
        Outcome::Measured(measured) => match measured.transfer() {
            None => error("nothing was transferred".to_owned()),
            Some(transfer) => {
                let bps = |way: &Transfer| {
                    let bits = u128::from(way.received_bytes) * 8 * 1_000_000_000;
                    let bps = bits / u128::from(way.duration_ns.max(1));
                    u64::try_from(bps).unwrap_or(u64::MAX)
                };
                let ppm = |d: Datagrams| d.lost.saturating_mul(1_000_000) / d.sent.max(1);
                // The sum of both ways, and the loss of the worse.
                let losses = transfer.each_way().filter_map(|way| way.datagrams.map(ppm));
                Gain {
                    payload_bps: transfer.each_way().map(bps).fold(0, u64::saturating_add),
                    lost_ppm: losses.max(),
                    error: None,
                }
            }
        },
    }
}

/// Estimated time of one tuning attempt.
const ATTEMPT_NS: u64 = (estimate::TUNE_RUN.as_nanos() + estimate::BRING_UP.as_nanos()) as u64;

/// Returns the estimated time of tuning a cell.
fn search_ns(cell: &Cell) -> u64 {
    ATTEMPT_NS * u64::from(estimate::attempts(cell))
}

/// Returns the estimated time of a trial, without its share of tuning.
fn trial_ns(cell: &Cell, repeats: u32) -> u64 {
    cell.estimate_ns
        .saturating_sub(search_ns(cell) / u64::from(repeats.max(1)))
}

/// Forecast of the remaining time of a run: the plan's estimates, scaled by the times so far.
struct Forecast {
    left_ns: u64,
    estimated_ns: u64,
    took_ns: u64,
}

impl Forecast {
    fn new(plan: &Plan, done: &Done) -> Self {
        let is_done =
            |cell: &Cell, repeat| done.has(cell, repeat) || done.left_out.contains_key(&cell.id);
        let trials = plan
            .trials()
            .filter(|trial| !is_done(trial.cell, trial.repeat));
        let trials_ns: u64 = trials.map(|trial| trial_ns(trial.cell, plan.repeats)).sum();
        // A cell's estimate spreads its tuning over its repeats. Here it is counted apart, since
        // all of it comes before the first repeat.
        let to_tune = plan.cells.iter().filter(|cell| {
            let mut repeats = 1..=plan.repeats_of(&cell.id);
            let all_done = repeats.all(|repeat| is_done(cell, repeat));
            !all_done && !done.tuned.contains_key(&cell.id)
        });
        let left_ns = trials_ns + to_tune.map(search_ns).sum::<u64>();
        // A resumed soak or fatigue trial continues after its last checkpoint.
        let measured_ns = done.checkpoints.iter().map(Checkpoint::elapsed_ns);
        let left_ns = left_ns.saturating_sub(measured_ns.sum());
        Self {
            left_ns,
            estimated_ns: 0,
            took_ns: 0,
        }
    }

    /// Records the time of an ended trial or attempt.
    fn ended(&mut self, estimated_ns: u64, took_ns: u64) {
        self.spare(estimated_ns);
        self.estimated_ns = self.estimated_ns.saturating_add(estimated_ns);
        self.took_ns = self.took_ns.saturating_add(took_ns);
    }

    /// Removes an estimate.
    fn spare(&mut self, estimated_ns: u64) {
        self.left_ns = self.left_ns.saturating_sub(estimated_ns);
    }

    fn left(&self) -> Duration {
        self.left_without(0)
    }

    /// The remaining time without a trial of this estimate.
    fn left_without(&self, estimated_ns: u64) -> Duration {
        let left_ns = self.left_ns.saturating_sub(estimated_ns);
        // Until something has ended, the estimates are all that is known.
        let corrected = match self.estimated_ns {
            0 => left_ns,
            estimated => {
                let left = u128::from(left_ns) * u128::from(self.took_ns);
                u64::try_from(left / u128::from(estimated)).unwrap_or(u64::MAX)
            }
        };
        Duration::from_nanos(corrected)
    }
}
