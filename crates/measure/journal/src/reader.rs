//! Reading a journal back.
//!
//! A line is finished when its newline is on the disk. An unfinished last line is what a kill or a
//! full disk leaves: it is dropped with a [`Warning`]. Everything else that does not fit the format
//! is an error with its line number, because an append-only file that fails there was damaged and
//! must not be summed up as if it were whole.

use crate::JournalError;
use crate::folder::FILE_NAME;
use crate::record::{
    End, FORMAT_VERSION, FORMAT_VERSION_OLDEST, FatigueProgress, Header, Outcome, Record, Resumed,
    SoakProgress, TrialRecord, Tuned,
};
use campaign::Plan;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A run as far as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// How the run came to be.
    pub header: Header,
    /// Each time the run was taken up again, in order.
    pub resumed: Vec<Resumed>,
    /// Every search for tool parameters, in order; see [`Journal::tuned`].
    pub tuned: Vec<Tuned>,
    /// Every trial in the order made, those repeated after a resume included; see
    /// [`Journal::latest_trials`].
    pub trials: Vec<TrialRecord>,
    /// Segments of soaks whose trial has not ended, in order; see [`Journal::unfinished_soak`].
    pub soaked: Vec<SoakProgress>,
    /// Fatigue trials that have not ended, the last snapshot of each start, in order; see
    /// [`Journal::unfinished_fatigue`].
    pub fatigued: Vec<FatigueProgress>,
    /// Set when the run came to its end and nothing was recorded after it.
    pub end: Option<End>,
    /// What the reader has to say; belongs into the report.
    pub warnings: Vec<Warning>,
}

/// Something odd that does not keep a journal from being used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The last line had no end: the run was killed, or the disk full, while it was written.
    UnfinishedLine {
        /// From 1.
        line: usize,
        /// How many bytes of it there were.
        bytes: usize,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnfinishedLine { line, bytes } => write!(
                f,
                "line {line} of the journal is unfinished ({bytes} B) and was dropped: \
                 the run was stopped while it was written"
            ),
        }
    }
}

/// Reads the journal in the folder of a run. A run that is still going on can be read too.
///
/// # Errors
/// When the folder holds no journal, cannot be read, has a format version that this program does
/// not know, or a finished line of the journal is not a record of this format. An unfinished last
/// line is a [`Warning`], never an error.
pub fn read(dir: &Path) -> Result<Journal, JournalError> {
    let path = dir.join(FILE_NAME);
    match fs::read(&path) {
        Ok(bytes) => parse(&path, &bytes).map(|(journal, _)| journal),
        Err(error) => Err(open_error(dir, path, error)),
    }
}

/// Tells a folder without a journal from a journal that cannot be opened.
pub(crate) fn open_error(dir: &Path, path: PathBuf, error: std::io::Error) -> JournalError {
    match error.kind() {
        ErrorKind::NotFound if dir.is_dir() => JournalError::NotARun { path: dir.into() },
        ErrorKind::NotADirectory => JournalError::NotARun { path: dir.into() },
        ErrorKind::NotFound => JournalError::io("read", dir, error),
        _ => JournalError::io("read", path, error),
    }
}

/// Reads a journal's bytes; also returns how many of them are finished lines. `path` is for
/// messages only.
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<(Journal, usize), JournalError> {
    let finished = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |last| last + 1);
    let mut lines = bytes[..finished]
        .split_inclusive(|&byte| byte == b'\n')
        .map(|line| &line[..line.len() - 1]);
    let header = lines
        .next()
        .ok_or_else(|| JournalError::NoHeader { path: path.into() })?;
    let mut journal = Journal::new(read_header(path, header)?);
    // A plan can have thousands of cells, and a journal many times as many trials.
    let planned: BTreeSet<String> = journal
        .header
        .plan
        .cells
        .iter()
        .map(|cell| cell.id.clone())
        .collect();
    let mut count = 1;
    for line in lines {
        count += 1;
        let record: Record = serde_json::from_slice(line)
            .map_err(|error| json_problem(&error))
            .and_then(|record| {
                check(&record, &journal.header.plan, |id| planned.contains(id)).map(|()| record)
            })
            .map_err(|problem| JournalError::Line {
                path: path.into(),
                line: count,
                problem,
            })?;
        journal.push(record);
    }
    if finished < bytes.len() {
        let bytes = bytes.len() - finished;
        journal.warnings.push(Warning::UnfinishedLine {
            line: count + 1,
            bytes,
        });
    }
    Ok((journal, finished))
}

/// Whether a record may follow a header with that plan; else a sentence that says why not.
fn check(record: &Record, plan: &Plan, planned: impl Fn(&str) -> bool) -> Result<(), String> {
    let cell = match record {
        Record::Header(_) => return Err("a second header".into()),
        Record::Resumed(_) | Record::End(_) => return Ok(()),
        Record::Tuned(tuned) => &tuned.cell,
        Record::Soaked(soaked) => &soaked.cell,
        Record::Fatigued(fatigued) => &fatigued.cell,
        Record::Trial(trial) => &trial.cell,
    };
    if !planned(cell) {
        return Err(format!("cell `{cell}` is not in the plan"));
    }
    let repeat = match record {
        Record::Trial(trial) => trial.repeat,
        Record::Soaked(soaked) => soaked.repeat,
        Record::Fatigued(fatigued) => fatigued.repeat,
        _ => return Ok(()),
    };
    match (1..=plan.repeats).contains(&repeat) {
        true => Ok(()),
        false => Err(format!(
            "repeat {repeat} of {} is not planned",
            plan.repeats
        )),
    }
}

/// The version is looked at before anything else: a header of another format need not have our
/// fields.
fn read_header(path: &Path, line: &[u8]) -> Result<Header, JournalError> {
    #[derive(Deserialize)]
    struct Probe {
        record: String,
        #[serde(default)]
        format: u64,
    }
    let bad = |problem| JournalError::Line {
        path: path.into(),
        line: 1,
        problem,
    };
    let probe: Probe = serde_json::from_slice(line).map_err(|error| {
        bad(format!(
            "not a cipherbench journal: {}",
            json_problem(&error)
        ))
    })?;
    if probe.record != "header" {
        return Err(bad(format!(
            "the first record is a `{}`, expected `header`",
            probe.record
        )));
    }
    let known = u64::from(FORMAT_VERSION_OLDEST)..=u64::from(FORMAT_VERSION);
    if !known.contains(&probe.format) {
        let (found, supported) = (probe.format, FORMAT_VERSION);
        return Err(JournalError::Version {
            path: path.into(),
            found,
            supported,
        });
    }
    match serde_json::from_slice(line) {
        Ok(Record::Header(header)) => Ok(*header),
        Ok(_) => Err(bad("the first record is not a header".into())),
        Err(error) => Err(bad(json_problem(&error))),
    }
}

/// What `serde_json` says, with its line (always 1 here) left out.
fn json_problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    match text.strip_suffix(&place) {
        Some(what) => format!("column {}: {what}", error.column()),
        None => text,
    }
}

impl Journal {
    /// A run in which nothing has happened yet.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self {
            header,
            resumed: Vec::new(),
            tuned: Vec::new(),
            trials: Vec::new(),
            soaked: Vec::new(),
            fatigued: Vec::new(),
            end: None,
            warnings: Vec::new(),
        }
    }

    /// Takes the next record of the run.
    ///
    /// # Errors
    /// A sentence, when the record cannot follow: a second header, or a cell or repeat that is not
    /// planned.
    pub fn accept(&mut self, record: Record) -> Result<(), String> {
        let plan = &self.header.plan;
        check(&record, plan, |id| {
            plan.cells.iter().any(|cell| cell.id == id)
        })?;
        self.push(record);
        Ok(())
    }

    /// Takes a record that was checked.
    fn push(&mut self, record: Record) {
        self.end = None;
        match record {
            Record::Header(header) => self.header = *header,
            Record::Resumed(resumed) => self.resumed.push(resumed),
            Record::Tuned(tuned) => self.tuned.push(tuned),
            Record::Soaked(soaked) => self.soaked.push(*soaked),
            Record::Fatigued(fatigued) => {
                let key = |of: &FatigueProgress| (of.cell.clone(), of.repeat, of.segment.start);
                let new = key(&fatigued);
                self.fatigued.retain(|old| key(old) != new);
                self.fatigued.push(*fatigued);
            }
            Record::Trial(trial) => {
                // It has its segments in it; one that failed begins anew.
                let (cell, repeat) = (&trial.cell, trial.repeat);
                self.soaked
                    .retain(|soaked| (&soaked.cell, soaked.repeat) != (cell, repeat));
                self.fatigued
                    .retain(|fatigued| (&fatigued.cell, fatigued.repeat) != (cell, repeat));
                self.trials.push(*trial);
            }
            Record::End(end) => self.end = Some(end),
        }
    }

    /// The records that count: of each cell and repeat the last one written.
    #[must_use]
    pub fn latest_trials(&self) -> BTreeMap<(&str, u32), &TrialRecord> {
        self.trials
            .iter()
            .map(|trial| ((trial.cell.as_str(), trial.repeat), trial))
            .collect()
    }

    /// The trials, by cell and repeat, that need not be run again: those whose last record is
    /// measured or invalid. A failed one is tried again by `resume`, because its cause may have
    /// gone.
    #[must_use]
    pub fn finished_trials(&self) -> BTreeSet<(String, u32)> {
        self.trials_that(|outcome| !matches!(outcome, Outcome::Failed { .. }))
    }

    /// Of the finished trials those without a figure: their last record is invalid.
    #[must_use]
    pub fn invalid_trials(&self) -> BTreeSet<(String, u32)> {
        self.trials_that(|outcome| matches!(outcome, Outcome::Invalid { .. }))
    }

    /// The trials, by cell and repeat, whose last outcome is of a kind.
    fn trials_that(&self, are: impl Fn(&Outcome) -> bool) -> BTreeSet<(String, u32)> {
        let latest = self.latest_trials().into_iter();
        let such = latest.filter(|(_, trial)| are(&trial.outcome));
        such.map(|((cell, repeat), _)| (cell.to_owned(), repeat))
            .collect()
    }

    /// The segments of a soak that broke off, in order; none of one that ended, or has not begun.
    pub fn unfinished_soak(&self, cell: &str, repeat: u32) -> impl Iterator<Item = &SoakProgress> {
        let is_of = move |soaked: &&SoakProgress| (&*soaked.cell, soaked.repeat) == (cell, repeat);
        self.soaked.iter().filter(is_of)
    }

    /// What came of a fatigue trial that broke off: the last snapshot of each start, in order;
    /// nothing of one that ended, or has not begun.
    pub fn unfinished_fatigue(
        &self,
        cell: &str,
        repeat: u32,
    ) -> impl Iterator<Item = &FatigueProgress> {
        let is_of = move |of: &&FatigueProgress| (&*of.cell, of.repeat) == (cell, repeat);
        self.fatigued.iter().filter(is_of)
    }

    /// The parameters found for a cell; the last search counts.
    #[must_use]
    pub fn tuned(&self, cell: &str) -> Option<&Tuned> {
        self.tuned.iter().rev().find(|tuned| tuned.cell == cell)
    }
}
