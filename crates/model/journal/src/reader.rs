//! Reading a journal.
//!
//! A line is complete when its newline is on the disk. A kill or a full disk can leave an
//! incomplete last line: it is dropped with a [`Warning`]. Any other violation of the format is an
//! error with its line number, because a damaged file must not be evaluated as if it were whole.
//! Checksums detect every change of a line (`checksum`).

use crate::JournalError;
use crate::checksum::Chain;
use crate::folder::{FILE_BYTES_MAX, FILE_NAME};
use crate::possible::{contradictions, impossible_plan};
use crate::record::{
    Added, End, FORMAT_CHECKED, FORMAT_VERSION, FORMAT_VERSION_OLDEST, FatigueProgress, Header,
    Outcome, Record, Resumed, SoakProgress, TrialRecord, Tuned,
};
use guard::visible;
use plan::{Cell, Plan};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A run as recorded so far.
#[derive(Debug, Clone, PartialEq)]
pub struct Journal {
    /// The plan and the environment of the run.
    pub header: Header,
    /// Each resume of the run, in order.
    pub resumed: Vec<Resumed>,
    /// Rounds of repeats that were added to cells, in order.
    pub added: Vec<Added>,
    /// Every search for tool parameters, in order; see [`Journal::tuned`].
    pub tuned: Vec<Tuned>,
    /// Every trial in the order made, including those repeated after a resume; see
    /// [`Journal::latest_trials`].
    pub trials: Vec<TrialRecord>,
    /// Segments of soaks in unfinished trials, in order; see [`Journal::unfinished_soak`].
    pub soaked: Vec<SoakProgress>,
    /// Fatigue trials that have not ended, the last snapshot of each start, in order; see
    /// [`Journal::unfinished_fatigue`].
    pub fatigued: Vec<FatigueProgress>,
    /// The end of the run, if it is the last record.
    pub end: Option<End>,
    /// Warnings of the reader, for the report.
    pub warnings: Vec<Warning>,
}

/// A defect of a journal that can still be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The last line is incomplete: the run was killed, or the disk full, while it was written.
    UnfinishedLine {
        /// From 1.
        line: usize,
        /// Its length.
        bytes: usize,
    },
    /// The lines have no checksums: a change to the file cannot be noticed.
    NoChecksums {
        /// The journal's format version.
        format: u32,
    },
    /// An intermediate record that contradicts itself is not used: `resume` measures it again.
    Contradiction {
        /// Its kind: `soaked`, `fatigued`, `tuned`.
        record: &'static str,
        /// Id of its cell.
        cell: String,
        /// The contradictions.
        problem: String,
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
            Self::NoChecksums { format } => write!(
                f,
                "the journal has format {format}, whose lines have no checksums: \
                 a line that was changed since it was written cannot be noticed"
            ),
            Self::Contradiction {
                record,
                cell,
                problem,
            } => write!(
                f,
                "a record `{record}` of the cell `{cell}` contradicts itself and is not used: {problem}"
            ),
        }
    }
}

/// Reads the journal in the folder of a run, which may still be in progress.
///
/// # Errors
/// When the folder has no journal, cannot be read, has an unsupported format version, or a complete
/// line of the journal is not a record of this format. An incomplete last line is a [`Warning`],
/// never an error.
pub fn read(dir: &Path) -> Result<Journal, JournalError> {
    let path = dir.join(FILE_NAME);
    match guard::read_bytes(&path, FILE_BYTES_MAX) {
        Ok(bytes) => from_bytes(&path, &bytes),
        Err(error) => Err(open_error(dir, path, error)),
    }
}

/// Reads a journal from its bytes. `path` is for messages only.
///
/// # Errors
/// As [`read`], except for errors of the file.
pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Journal, JournalError> {
    parse(path, bytes).map(|(journal, _)| journal)
}

/// Converts an error of opening: a folder without a journal, or a journal that cannot be opened.
pub(crate) fn open_error(dir: &Path, path: PathBuf, error: std::io::Error) -> JournalError {
    match error.kind() {
        // The usual mistake: the folder above, or one that is no run.
        ErrorKind::NotFound if dir.is_dir() => JournalError::NotARun { path: dir.into() },
        ErrorKind::NotADirectory => JournalError::NotARun { path: dir.into() },
        ErrorKind::NotFound => JournalError::io("read", dir, error),
        _ => JournalError::io("read", path, error),
    }
}

/// The part of a journal that a writer continues.
pub(crate) struct Finished {
    /// Length of the complete lines.
    pub(crate) bytes: usize,
    /// The checksums up to there.
    pub(crate) chain: Chain,
}

/// Parses a journal. `path` is for messages only.
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<(Journal, Finished), JournalError> {
    // Only lines with their newline count: the writer reports a record as written after newline
    // and sync.
    let finished = bytes
        .iter()
        // Searched from the end: the last line is the only one that can be incomplete.
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |last| last + 1);
    // Iterated anew for each line that does not match, to find its place. A file that is whole
    // needs no second pass.
    let all_lines = || {
        let lines = bytes[..finished].split_inclusive(|&byte| byte == b'\n');
        lines.map(|line| &line[..line.len() - 1])
    };
    let mut lines = all_lines();
    let header = lines
        .next()
        .ok_or_else(|| JournalError::NoHeader { path: path.into() })?;
    let bad = |line: usize, problem: String| JournalError::Line {
        path: path.into(),
        line,
        problem,
    };
    // The header comes first: its format decides whether lines have checksums.
    let mut journal = Journal::new(read_header(path, header)?);
    let mut chain = Chain::new(&journal.header);
    chain
        .check(header, all_lines())
        .map_err(|problem| bad(1, problem))?;
    // A map, since a plan can have thousands of cells, and a journal a multiple of that in trials.
    // Cloned, since records are added to the journal while their cells are looked up.
    let plan = journal.header.plan.clone();
    let cells: BTreeMap<&str, &Cell> = plan
        .cells
        .iter()
        .map(|cell| (cell.id.as_str(), cell))
        .collect();
    let mut count = 1;
    for line in lines {
        count += 1;
        chain
            .check(line, all_lines())
            // The checksum before the record: a changed line is reported as changed, not as bad
            // JSON.
            .and_then(|()| serde_json::from_slice(line).map_err(|error| json_problem(&error)))
            .and_then(|record: Record| {
                let repeats = &journal.header.plan;
                let cell = check(&record, repeats, |id| cells.get(id).copied())?;
                journal.read_record(record, cell);
                Ok(())
            })
            .map_err(|problem| bad(count, problem))?;
    }
    if finished < bytes.len() {
        // Bytes without a newline are no record, even if they are valid JSON: their sync did not
        // end.
        let bytes = bytes.len() - finished;
        journal.warnings.push(Warning::UnfinishedLine {
            line: count + 1,
            bytes,
        });
    }
    let format = journal.header.format;
    if format < FORMAT_CHECKED {
        journal.warnings.push(Warning::NoChecksums { format });
    }
    let bytes = finished;
    Ok((journal, Finished { bytes, chain }))
}

/// Checks that a record may follow a header with this plan, and returns its cell, if it is of one.
/// The error is a sentence.
fn check<'p>(
    record: &Record,
    plan: &Plan,
    planned: impl Fn(&str) -> Option<&'p Cell>,
) -> Result<Option<&'p Cell>, String> {
    let cell = match record {
        // Two runs in one file: nobody could say which plan a trial belongs to.
        Record::Header(_) => return Err("a second header".into()),
        // These are of the whole run.
        Record::Resumed(_) | Record::End(_) => return Ok(None),
        Record::Added(added) => {
            return check_added(added, plan, planned).map(|()| None);
        }
        Record::Tuned(tuned) => &tuned.cell,
        Record::Soaked(soaked) => &soaked.cell,
        Record::Fatigued(fatigued) => &fatigued.cell,
        Record::Trial(trial) => &trial.cell,
    };
    let Some(cell) = planned(cell) else {
        return Err(format!("cell `{}` is not in the plan", visible(cell)));
    };
    let repeat = match record {
        Record::Trial(trial) => trial.repeat,
        Record::Soaked(soaked) => soaked.repeat,
        Record::Fatigued(fatigued) => fatigued.repeat,
        _ => return Ok(Some(cell)),
    };
    let repeats = plan.repeats_of(&cell.id);
    if (1..=repeats).contains(&repeat) {
        Ok(Some(cell))
    } else {
        Err(format!("repeat {repeat} of {repeats} is not planned"))
    }
}

/// Checks that repeats may be added to these cells of a plan.
fn check_added<'p>(
    added: &Added,
    plan: &Plan,
    planned: impl Fn(&str) -> Option<&'p Cell>,
) -> Result<(), String> {
    let repeats = added.repeats;
    if added.cells.is_empty() {
        return Err("repeats are added to no cell".into());
    }
    for id in &added.cells {
        if planned(id).is_none() {
            return Err(format!("cell `{}` is not in the plan", visible(id)));
        }
        if !(plan.repeats_of(id)..=Plan::REPEATS_MAX).contains(&repeats) {
            return Err(format!(
                "{repeats} repeats of `{}` are none more",
                visible(id)
            ));
        }
    }
    Ok(())
}

/// Parses the header. Checks the version first: a header of another format may have other fields.
fn read_header(path: &Path, line: &[u8]) -> Result<Header, JournalError> {
    #[derive(Deserialize)]
    // Unknown fields are ignored, so any version's header can be probed.
    struct Probe {
        record: String,
        #[serde(default)]
        // Wider than the field of the header: a number that is too large is an unknown version
        // too.
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
            visible(&probe.record)
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
        // Before anything uses the plan: a loop over its repeats, for example, must end.
        Ok(Record::Header(header)) => match impossible_plan(&header.plan) {
            None => Ok(*header),
            Some(problem) => Err(bad(problem)),
        },
        // The probe has seen `header`: reached only if both disagree.
        Ok(_) => Err(bad("the first record is not a header".into())),
        Err(error) => Err(bad(json_problem(&error))),
    }
}

/// Returns the error of `serde_json` without its line, which is always 1 here.
pub(crate) fn json_problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    // It quotes the line, for instance an unknown variant.
    match text.strip_suffix(&place) {
        Some(what) => format!("column {}: {}", error.column(), visible(what)),
        None => visible(&text).into_owned(),
    }
}

impl Journal {
    /// A run without records after its header.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self {
            header,
            resumed: Vec::new(),
            added: Vec::new(),
            tuned: Vec::new(),
            trials: Vec::new(),
            soaked: Vec::new(),
            fatigued: Vec::new(),
            end: None,
            warnings: Vec::new(),
        }
    }

    /// Adds the next record of the run, as it is: only records read from a file are checked for
    /// contradictions.
    ///
    /// # Errors
    /// A sentence if the record is invalid here: a second header, or a cell or repeat that is not
    /// planned.
    pub fn accept(&mut self, record: Record) -> Result<(), String> {
        let plan = &self.header.plan;
        let find = |id: &str| plan.cells.iter().find(|cell| cell.id == id);
        check(&record, plan, find)?;
        self.push(record);
        Ok(())
    }

    /// Adds a record of this cell that was read from a file. A trial that contradicts itself
    /// becomes invalid; another record that does is not used, with a [`Warning`].
    fn read_record(&mut self, record: Record, cell: Option<&Cell>) {
        let problems = contradictions(&record, cell);
        match record {
            Record::Trial(mut trial) if !problems.is_empty() => {
                // Kept, with its figures: a report lists invalid trials, and `resume --invalid`
                // repeats them.
                trial.refuse(problems);
                self.push(Record::Trial(trial));
            }
            record if problems.is_empty() => self.push(record),
            record => {
                // As after any other record, the run had not ended when it was written.
                self.end = None;
                self.warnings.push(Warning::Contradiction {
                    record: record.name(),
                    cell: cell.map_or_else(String::new, |cell| cell.id.clone()),
                    problem: problems.join("; "),
                });
            }
        }
    }

    /// Adds a checked record.
    fn push(&mut self, record: Record) {
        // A run that is resumed after its end has a record behind the end.
        self.end = None;
        match record {
            Record::Header(header) => self.header = *header,
            Record::Resumed(resumed) => self.resumed.push(*resumed),
            Record::Added(added) => {
                // From here on the plan has these repeats, for everything that counts trials.
                let repeats = &mut self.header.plan.expect.added;
                repeats.extend(added.cells.iter().map(|cell| (cell.clone(), added.repeats)));
                self.added.push(added);
            }
            Record::Tuned(tuned) => self.tuned.push(tuned),
            Record::Soaked(soaked) => self.soaked.push(*soaked),
            Record::Fatigued(fatigued) => {
                // Snapshots count from the beginning of their start, so the last one has all of
                // the earlier ones.
                let key = |of: &FatigueProgress| (of.cell.clone(), of.repeat, of.segment.start);
                let new = key(&fatigued);
                self.fatigued.retain(|old| key(old) != new);
                self.fatigued.push(*fatigued);
            }
            Record::Trial(trial) => {
                // The trial includes its segments; a failed trial starts again without them.
                let (cell, repeat) = (&trial.cell, trial.repeat);
                self.soaked
                    // Otherwise a resume would go on with a soak that has ended.
                    .retain(|soaked| (&soaked.cell, soaked.repeat) != (cell, repeat));
                self.fatigued
                    .retain(|fatigued| (&fatigued.cell, fatigued.repeat) != (cell, repeat));
                self.trials.push(*trial);
            }
            Record::End(end) => self.end = Some(end),
        }
    }

    /// The valid records: the last one of each cell and repeat.
    #[must_use]
    pub fn latest_trials(&self) -> BTreeMap<(&str, u32), &TrialRecord> {
        self.trials
            .iter()
            // Later trials replace earlier ones of the same key.
            .map(|trial| ((trial.cell.as_str(), trial.repeat), trial))
            .collect()
    }

    /// Finished trials by cell and repeat: their last record is measured or invalid. `resume`
    /// repeats failed trials, because their cause may be gone.
    #[must_use]
    pub fn finished_trials(&self) -> BTreeSet<(String, u32)> {
        // An invalid trial is finished: what made it invalid is usually still there.
        self.trials_with(|outcome| !matches!(outcome, Outcome::Failed { .. }))
    }

    /// Finished trials without a figure: their last record is invalid.
    #[must_use]
    pub fn invalid_trials(&self) -> BTreeSet<(String, u32)> {
        self.trials_with(|outcome| matches!(outcome, Outcome::Invalid { .. }))
    }

    /// Trials by cell and repeat with a last outcome that satisfies a condition.
    fn trials_with(&self, condition: impl Fn(&Outcome) -> bool) -> BTreeSet<(String, u32)> {
        let latest = self.latest_trials().into_iter();
        latest
            .filter(|(_, trial)| condition(&trial.outcome))
            .map(|((cell, repeat), _)| (cell.to_owned(), repeat))
            .collect()
    }

    /// Segments of an unfinished soak, in order; none if it ended or has not begun.
    pub fn unfinished_soak(&self, cell: &str, repeat: u32) -> impl Iterator<Item = &SoakProgress> {
        let is_of = move |soaked: &&SoakProgress| (&*soaked.cell, soaked.repeat) == (cell, repeat);
        self.soaked.iter().filter(is_of)
    }

    /// Last snapshots of each start of an unfinished fatigue trial, in order; none if it ended or
    /// has not begun.
    pub fn unfinished_fatigue(
        &self,
        cell: &str,
        repeat: u32,
    ) -> impl Iterator<Item = &FatigueProgress> {
        let is_of = move |of: &&FatigueProgress| (&*of.cell, of.repeat) == (cell, repeat);
        self.fatigued.iter().filter(is_of)
    }

    /// The parameters found for a cell by the last search.
    #[must_use]
    pub fn tuned(&self, cell: &str) -> Option<&Tuned> {
        // A resumed run on a changed machine may have searched again.
        self.tuned.iter().rev().find(|tuned| tuned.cell == cell)
    }
}
