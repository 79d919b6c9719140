//! The state of a run, as values: what the screen of a terminal and the pages of a browser show.

use super::outcome::{came_of, fatigue, in_words, skipped};
use super::step;
use journal::Journal;
use journal::record::{Outcome, TrialRecord};
use plan::{Cell, Plan, TrialRef};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trial::{Checkpoint, Progress, RunEvent, TrialEvent};
use units::human;

/// The state of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Name of its folder.
    pub run: String,
    /// Name of its campaign.
    pub campaign: String,
    /// Title of its campaign; may be empty.
    pub title: String,
    /// Name of its lab.
    pub lab: String,
    /// Planned trials.
    pub trials: usize,
    /// The trial in progress.
    pub now: Option<Now>,
    /// Estimated time until the run ends, and when it was estimated.
    pub left: Option<(Duration, Instant)>,
    /// The cells, in the order of the plan.
    pub rows: Arc<Vec<Row>>,
    /// Whether trials are made.
    pub phase: Phase,
    /// Number of results so far, which orders them.
    pub(super) results: usize,
}

/// What a run does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It makes trials.
    Measuring,
    /// It waits, with the reason.
    Waiting(String),
    /// It has ended: finished, or the reason for its early end.
    Ended(String),
}

/// A trial in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Now {
    /// Id of its cell.
    pub cell: String,
    /// Its repeat; `None` while parameters of the cell's tool are searched.
    pub repeat: Option<u32>,
    /// When it began.
    pub began: Instant,
    /// Estimated duration.
    pub estimate: Duration,
    /// Its step and its figure so far, the most important part first.
    pub facts: Vec<String>,
    /// Frames lost and time measured so far, of a soak.
    pub(super) soaked: (u64, u64),
}

/// The results of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub cell: String,
    /// Planned repeats.
    pub repeats: u32,
    /// The last result of each repeat that has one.
    pub results: BTreeMap<u32, TrialResult>,
    /// The repeat with the newest result, and that result's number among all of the run.
    pub newest: Option<(u32, usize)>,
    /// Why the campaign leaves it out on this machine, if it does.
    pub skipped: Option<String>,
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialResult {
    /// Its figure, or the reason for its absence.
    pub text: String,
    /// Its kind.
    pub kind: ResultKind,
}

/// Kind of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultKind {
    /// A valid figure.
    Measured,
    /// A check failed.
    Invalid,
    /// The trial could not be measured.
    Failed,
    /// The campaign leaves it out on this machine.
    Skipped,
}

impl Row {
    /// Returns the newest result.
    #[must_use]
    pub fn last(&self) -> Option<&TrialResult> {
        self.results.get(&self.newest?.0)
    }
}

impl State {
    /// The state of a run in this folder, of which nothing is known but its journal.
    #[must_use]
    pub fn of(journal: &Journal, dir: &Path) -> Self {
        let plan = &journal.header.plan;
        let row = |cell: &Cell| Row {
            cell: cell.id.clone(),
            repeats: plan.repeats,
            results: BTreeMap::new(),
            newest: None,
            skipped: journal.header.lacks_cores(cell).map(skipped),
        };
        // `resume .` names the folder without its name.
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let run = dir.file_name().unwrap_or_default();
        let mut state = Self {
            run: run.to_string_lossy().into_owned(),
            campaign: plan.name.clone(),
            title: plan.title.clone(),
            lab: plan.lab.name.clone(),
            trials: plan.trial_count(),
            now: None,
            left: None,
            rows: Arc::new(plan.cells.iter().map(row).collect()),
            phase: Phase::Measuring,
            results: 0,
        };
        let places: BTreeMap<&str, usize> = plan
            .cells
            .iter()
            .enumerate()
            .map(|(place, cell)| (cell.id.as_str(), place))
            .collect();
        let rows = Arc::make_mut(&mut state.rows);
        for record in &journal.trials {
            state.results += 1;
            if let Some(place) = places.get(record.cell.as_str()) {
                add(&mut rows[*place], record, state.results);
            }
        }
        state
    }

    /// The state of a run that another process makes, at `unix_ns` and `instant`: the trial in
    /// progress and the time left follow from the order of the plan and the times so far.
    #[must_use]
    pub fn observed(journal: &Journal, dir: &Path, unix_ns: u64, instant: Instant) -> Self {
        let mut state = Self::of(journal, dir);
        if journal.end.is_some() {
            state.phase = Phase::Ended("finished".to_owned());
            return state;
        }
        let plan = &journal.header.plan;
        // A resumed run begins with the first trial that is not finished.
        let start = journal
            .resumed
            .last()
            .map_or(journal.header.started_unix_ns, |resumed| resumed.at_unix_ns);
        let made = journal.trials.iter();
        let made: Vec<&TrialRecord> = made
            .filter(|record| record.started_unix_ns >= start)
            .collect();
        let remaining = remaining(plan, journal, made.last().copied());
        let Some(first) = remaining.first() else {
            return state;
        };
        let ended = made.last().map_or(start, |last| {
            last.started_unix_ns.saturating_add(last.duration_ns)
        });
        let elapsed = Duration::from_nanos(unix_ns.saturating_sub(ended));
        state.now = Some(Now {
            // A in_seconds that was set may lead to a time before the system's start.
            began: instant.checked_sub(elapsed).unwrap_or(instant),
            ..Now::of(*first, instant)
        });
        let scaled = |trials: &[TrialRef<'_>]| {
            let estimates = trials.iter().map(|trial| trial.cell.estimate_ns);
            scale(estimates.fold(0, u64::saturating_add), plan, &made)
        };
        // A trial that takes longer than estimated leaves the time of the others.
        let left = scaled(&remaining).saturating_sub(elapsed);
        state.left = Some((left.max(scaled(&remaining[1..])), instant));
        state
    }

    /// Applies an event of the run that happened at `now`.
    pub(crate) fn apply(&mut self, progress: &Progress<'_>, now: Instant) {
        self.phase = Phase::Measuring;
        self.left = Some((progress.left, now));
        match progress.event {
            RunEvent::Attempt {
                cell,
                parameters,
                attempt,
                attempts_max,
            } => {
                let fact = format!(
                    "tool parameters, attempt {attempt} of {attempts_max}: {}",
                    in_words(parameters)
                );
                let began = self.now.take().filter(|now| now.cell == cell.id);
                self.now = Some(Now {
                    cell: cell.id.clone(),
                    repeat: None,
                    began: began.map_or(now, |now| now.began),
                    estimate: Duration::ZERO,
                    facts: vec![fact],
                    soaked: (0, 0),
                });
            }
            RunEvent::Started(trial) => {
                let mut begun = Now::of(trial, now);
                let row = self.rows.iter().find(|row| row.cell == trial.cell.id);
                if let Some(before) = row.and_then(Row::last) {
                    begun.facts.push(format!("before {}", before.text));
                }
                self.now = Some(begun);
            }
            RunEvent::InTrial(_, event) => {
                if let Some(now) = &mut self.now {
                    now.apply(event);
                }
            }
            RunEvent::Ended(record) => {
                self.now = None;
                self.results += 1;
                let number = self.results;
                let rows = Arc::make_mut(&mut self.rows);
                if let Some(row) = rows.iter_mut().find(|row| row.cell == record.cell) {
                    add(row, record, number);
                }
            }
            // The next step begins immediately.
            RunEvent::Tuned(_) => {}
        }
    }

    /// Returns the estimated time until the run ends.
    #[must_use]
    pub fn left(&self, now: Instant) -> Option<Duration> {
        let (left, at) = self.left?;
        Some(left.saturating_sub(now.saturating_duration_since(at)))
    }

    /// Returns the number of trials whose result is of this kind.
    #[must_use]
    pub fn count(&self, kind: ResultKind) -> usize {
        let results = self.rows.iter().flat_map(|row| row.results.values());
        results.filter(|result| result.kind == kind).count()
    }

    /// Returns the number of trials that have a result.
    #[must_use]
    pub fn made(&self) -> usize {
        self.rows.iter().map(|row| row.results.len()).sum()
    }

    /// How far the run is, in words.
    #[must_use]
    pub fn far(&self, now: Instant) -> Vec<String> {
        let mut parts = vec![format!("{}/{} trials", self.made(), self.trials)];
        for (kind, word) in [
            (ResultKind::Invalid, "invalid"),
            (ResultKind::Failed, "failed"),
            (ResultKind::Skipped, "skipped"),
        ] {
            let count = self.count(kind);
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        if let (Some(left), Phase::Measuring) = (self.left(now), &self.phase) {
            parts.push(format!("about {} left", super::in_seconds(left)));
        }
        parts
    }
}

impl Now {
    fn of(trial: TrialRef<'_>, now: Instant) -> Self {
        Self {
            cell: trial.cell.id.clone(),
            repeat: Some(trial.repeat),
            began: now,
            estimate: Duration::from_nanos(trial.cell.estimate_ns),
            facts: Vec::new(),
            soaked: (0, 0),
        }
    }

    fn apply(&mut self, event: TrialEvent<'_>) {
        match event {
            TrialEvent::FrameTrial(step) => self.facts = step::parts(step),
            TrialEvent::Checkpoint(Checkpoint::Fatigue(of)) => {
                self.facts = vec![fatigue(&of.segment)];
            }
            TrialEvent::Checkpoint(Checkpoint::Soak(soak)) => {
                let (lost, ns) = self.soaked;
                self.soaked = (
                    lost.saturating_add(soak.trial.lost()),
                    ns.saturating_add(soak.trial.duration_ns),
                );
                let (lost, ns) = self.soaked;
                let time = human::duration_ns(ns as f64);
                self.facts = vec![format!(
                    "{} lost in {time} so far",
                    human::counted(lost, "frame")
                )];
            }
        }
    }

    /// How long it has taken, of how long it should take.
    #[must_use]
    pub fn time(&self, now: Instant) -> String {
        let took = super::in_seconds(now.saturating_duration_since(self.began));
        if self.estimate.is_zero() {
            return format!("for {took}");
        }
        format!("for {took} of about {}", super::in_seconds(self.estimate))
    }
}

pub(super) fn add(row: &mut Row, record: &TrialRecord, number: usize) {
    let (kind, text) = match (&record.outcome, &row.skipped) {
        (Outcome::Failed { .. }, Some(skipped)) => (ResultKind::Skipped, skipped.clone()),
        (Outcome::Measured(_), _) => (ResultKind::Measured, came_of(record)),
        (Outcome::Invalid { .. }, _) => (ResultKind::Invalid, came_of(record)),
        (Outcome::Failed { .. }, _) => (ResultKind::Failed, came_of(record)),
    };
    row.results
        .insert(record.repeat, TrialResult { text, kind });
    row.newest = Some((record.repeat, number));
}

/// The trials that a run still has to make, in order; `last` is the newest one of this start.
fn remaining<'p>(
    plan: &'p Plan,
    journal: &Journal,
    last: Option<&TrialRecord>,
) -> Vec<TrialRef<'p>> {
    let finished: BTreeSet<(String, u32)> = journal.finished_trials();
    let mut trials = plan.trials();
    if let Some(last) = last {
        // Trials before it are not made any more in this start.
        let _ = trials.find(|trial| trial.cell.id == last.cell && trial.repeat == last.repeat);
    }
    trials
        .filter(|trial| !finished.contains(&(trial.cell.id.clone(), trial.repeat)))
        .collect()
}

/// An estimate, scaled by the times that trials took so far.
fn scale(estimate_ns: u64, plan: &Plan, made: &[&TrialRecord]) -> Duration {
    let estimates: BTreeMap<&str, u64> = plan
        .cells
        .iter()
        .map(|cell| (cell.id.as_str(), cell.estimate_ns))
        .collect();
    let (estimated, took) = made.iter().fold((0u64, 0u64), |(estimated, took), record| {
        let estimate = estimates.get(record.cell.as_str()).copied();
        (
            estimated.saturating_add(estimate.unwrap_or_default()),
            took.saturating_add(record.duration_ns),
        )
    });
    if estimated == 0 {
        return Duration::from_nanos(estimate_ns);
    }
    let scaled = u128::from(estimate_ns) * u128::from(took) / u128::from(estimated);
    Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
}
