//! A bisection at work: its journal, its programs, its pairs.

mod pairs;
mod request;

pub use request::{Request, Resume, Source};

use crate::build::{Builder, Built};
use crate::conclusion::Conclusion;
use crate::figures::Figures;
use crate::file::digest;
use crate::others::{self, Others};
use crate::record::{FILE_NAME, Header, Made, Record};
use crate::{BisectingError, Measurer, Question, Subject, Version};
use bisect::{Bisection, Entry, Outcome, Step};
use guard::Component;
use journal::{JournalError, Lines};
use plan::Plan;
use session::{Reporter, Session, SessionError, software, unix_ns};
use stats::Quantity;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use testbed::{Interrupt, LabError};
use units::human::{counted, duration_ns};

/// A bisection that was begun or resumed.
pub struct Work {
    dir: PathBuf,
    lines: Lines,
    header: Header,
    bisection: Bisection,
    /// `None` for programs and settings.
    builder: Option<Builder>,
    /// Versions that were made or checked since this start.
    subjects: BTreeMap<usize, Subject>,
    /// SHA-256 of the program that all sets of settings run, if the campaign names one.
    digest: Option<String>,
    /// Why versions were skipped.
    reasons: BTreeMap<usize, String>,
    figures: Figures,
    /// Trials of a version without a figure since its last one.
    faults: BTreeMap<usize, u32>,
    /// The run of all cells of the device, in the folder of the bisection.
    others: Option<String>,
    has_ended: bool,
    reporter: Reporter,
    interrupt: Interrupt,
}

impl Work {
    /// The campaign.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.header.plan
    }

    /// The figure that it is about.
    #[must_use]
    pub fn question(&self) -> &Question {
        &self.header.question
    }

    /// Its folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The plan of one trial, to check this machine for programs.
    #[must_use]
    pub fn trial(&self) -> Plan {
        let subject = match &self.header.versions[0] {
            Version::Settings { dut, .. } => Subject::Dut(dut.clone()),
            // With any existing program: the versions need not be built yet.
            Version::Revision { .. } | Version::Program { .. } => {
                Subject::Program(std::env::current_exe().unwrap_or_default())
            }
        };
        self.header.question.trial(&self.header.plan, &subject)
    }

    /// Whether nothing is left to be measured.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        match self.bisection.step() {
            Step::Measure(_) => false,
            Step::Done(outcome) => match **outcome {
                // The other cells are measured only for a located change, and the end is recorded
                // after them.
                Outcome::Found(_) => self.has_ended || self.header.repeats == 0,
                _ => true,
            },
        }
    }

    /// Describes what will be done.
    pub fn announce(&self) {
        let versions = &self.header.versions;
        let trial = self.trial();
        let pair_ns = trial.estimate_ns().saturating_mul(2);
        let [good, bad] = [0, versions.len() - 1].map(|at| versions[at].in_words());
        self.reporter.notice(&format!(
            "bisection of {}, gate `{}`\n  cell  {}, a pair takes about {}\n  good  {good}\n  bad   {bad}\n  in    {}\n",
            counted(versions.len() as u64, self.noun()),
            self.header.question.gate,
            self.header.question.cell,
            duration_ns(pair_ns as f64),
            self.dir.display()
        ));
    }

    /// Makes the programs of both ends, before anything else: without them nothing can be
    /// compared. For sets of settings, the program of the device.
    ///
    /// # Errors
    /// When one cannot be made, when both are the same, and when the user interrupted it.
    pub fn make_ends(&mut self) -> Result<(), BisectingError> {
        if matches!(self.header.versions[0], Version::Settings { .. }) {
            return self.prepare_sets();
        }
        let last = self.header.versions.len() - 1;
        let mut digests = Vec::new();
        for (end, version) in [("good", 0), ("bad", last)] {
            match self.subject(version)? {
                Ok(Subject::Program(program)) => digests.push(digest(&program)?),
                Ok(Subject::Dut(_)) => {}
                Err(problem) => return Err(self.end(end, version, problem)),
            }
        }
        // A build that ignores the revision would have hundreds of pairs compare a program with
        // itself.
        if let [good, bad] = &digests[..]
            && good == bad
        {
            return Err(BisectingError::mistake(
                format!(
                    "the programs of both ends are equal, byte by byte: {} and {}",
                    self.header.versions[0].name(),
                    self.header.versions[last].name()
                ),
                "nothing can have changed between them: name other ends, or check what the build leaves",
            ));
        }
        Ok(())
    }

    /// Records that a lab is up.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn opened(
        &mut self,
        program: &str,
        environment: journal::record::Environment,
    ) -> Result<(), BisectingError> {
        let record = Record::Opened {
            at_unix_ns: unix_ns(),
            program: program.to_owned(),
            environment: Box::new(environment),
        };
        Ok(self.lines.append(&record)?)
    }

    /// Asks until the bisection has its outcome.
    ///
    /// # Errors
    /// When an end cannot be measured, and when it broke off: it can be resumed then.
    pub fn search(&mut self, measurer: &mut dyn Measurer) -> Result<(), BisectingError> {
        while let Step::Measure(ask) = self.bisection.step().clone() {
            let mut subjects = Vec::new();
            let mut broken = None;
            // Both are built before the first trial: a build between the trials of a pair would
            // heat and load the machine for one of them.
            for version in [ask.candidate, ask.reference] {
                match self.subject(version)? {
                    Ok(subject) => subjects.push(subject),
                    Err(problem) => {
                        broken = Some((version, problem));
                        break;
                    }
                }
            }
            if let Some((version, problem)) = broken {
                self.skip(&ask, version, problem)?;
                continue;
            }
            let answer = self.measure(&ask, [&subjects[0], &subjects[1]], measurer);
            // Pairs that are complete count, also if the last one broke off.
            if !answer.ratios.is_empty() {
                self.bisection.record(&answer.ratios)?;
                self.answer(ask.test, None)?;
                self.show(&ask, &answer.ratios);
            }
            match answer.end {
                pairs::End::Whole => {}
                pairs::End::Faulty(version, problem) => self.skip(&ask, version, problem)?,
                pairs::End::Broken(error) => return Err(self.broke_off(error)),
            }
        }
        Ok(())
    }

    /// Measures all cells of the device for the changed version and the one before, if the change
    /// was found.
    ///
    /// # Errors
    /// When the run cannot be begun, or it broke off.
    pub fn measure_others(&mut self, session: Session) -> Result<(), BisectingError> {
        let Some((before, changed)) = self.found().filter(|_| self.header.repeats > 0) else {
            return Ok(());
        };
        let mut pair = Vec::new();
        for version in [before, changed] {
            match self.subject(version)? {
                Ok(subject) => pair.push((self.header.versions[version].clone(), subject)),
                Err(problem) => return Err(self.end("measured", version, problem)),
            }
        }
        let [before, changed] = [&pair[0], &pair[1]];
        let mut plan = others::plan(&self.header, before, changed);
        // The program of sets is prepared already.
        if matches!(before.1, Subject::Program(_)) {
            software::prepare(&mut plan, &BTreeMap::new(), &self.interrupt, &self.reporter)?;
        }
        self.reporter.notice(&format!(
            "what else changed: {} of {}, {} each\n",
            counted(plan.cells.len() as u64, "cell"),
            self.header.question.dut,
            counted(plan.repeats, "repeat")
        ));
        let run = self.others.clone();
        // The record follows the folder: a resume that found a record without its run could not go
        // on.
        let begun = others::begin(&self.dir, run.as_deref(), plan, &self.header, &session)?;
        if self.others.as_ref() != Some(&begun.name) {
            let run = begun.name.clone();
            self.lines.append(&Record::Others { run })?;
            self.others = Some(begun.name.clone());
        }
        let carried = begun.carry_out(session);
        carried.map(drop).map_err(|error| self.broke_off(error))
    }

    /// The result, once everything is measured.
    ///
    /// # Errors
    /// When the run of the other cells cannot be read, or the journal cannot be written.
    pub fn conclude(mut self) -> Result<Conclusion, BisectingError> {
        // Before the end is recorded: if the run cannot be read, a resume concludes again.
        let others = match (&self.others, self.found()) {
            (Some(run), Some(_)) => {
                let [before, changed] = self.names();
                Some(Others::of(&self.dir.join(run), &before, &changed)?)
            }
            _ => None,
        };
        if !self.has_ended {
            let at_unix_ns = unix_ns();
            self.lines.append(&Record::End { at_unix_ns })?;
        }
        let Step::Done(outcome) = self.bisection.step().clone() else {
            unreachable!("it is concluded after the search")
        };
        Ok(Conclusion::new(
            &self.dir,
            self.header,
            &self.bisection,
            *outcome,
            self.reasons,
            &self.figures,
            others,
        ))
    }

    /// Names of the devices in the run of all cells: without and with the change.
    fn names(&self) -> [String; 2] {
        let (before, changed) = self.found().unwrap_or_default();
        let name = |version: usize| others::name(&self.header, &self.header.versions[version]);
        [name(before), name(changed)]
    }

    /// The version before the change, and the changed one.
    fn found(&self) -> Option<(usize, usize)> {
        let found = self.bisection.found()?;
        Some((found.first - 1, found.last))
    }

    /// Finds or builds the program of the device that has the sets of settings, and checks that it
    /// is the one that the bisection began with.
    fn prepare_sets(&mut self) -> Result<(), BisectingError> {
        let mut plan = self.header.plan.clone();
        let versions = &self.header.versions;
        plan.cells.retain(|cell| {
            let is_dut = |version: &Version| matches!(version, Version::Settings { dut, .. } if *dut == cell.dut.name);
            versions.iter().any(is_dut)
        });
        software::prepare(&mut plan, &BTreeMap::new(), &self.interrupt, &self.reporter)
            .map_err(|error| self.broke_off(error.into()))?;
        for prepared in plan.cells {
            let mut cells = self.header.plan.cells.iter_mut();
            if let Some(cell) = cells.find(|cell| cell.id == prepared.id) {
                cell.dut = prepared.dut;
            }
        }
        let trial = self.trial();
        let found = trial.cells.first();
        let Some(found) = found.and_then(|cell| cell.dut.software.found.as_ref()) else {
            return Ok(());
        };
        match &self.digest {
            Some(digest) if *digest == found.sha256 => {}
            // Answers about another program would be mixed with those about this one.
            Some(_) => {
                return Err(BisectingError::mistake(
                    format!("{} has changed since the bisection began", found.path),
                    "restore it, or begin another bisection",
                ));
            }
            None => {
                let made = Made {
                    sha256: found.sha256.clone(),
                    was_cached: false,
                    duration_ns: 0,
                };
                self.lines.append(&Record::Built { version: 0, made })?;
                self.digest = Some(found.sha256.clone());
            }
        }
        Ok(())
    }

    /// A version to measure; an inner error is the reason for a missing program.
    fn subject(&mut self, version: usize) -> Result<Result<Subject, String>, BisectingError> {
        if let Some(subject) = self.subjects.get(&version) {
            return Ok(Ok(subject.clone()));
        }
        let of = &self.header.versions[version];
        let program = match (of, &self.builder) {
            (Version::Settings { dut, .. }, _) => return Ok(Ok(Subject::Dut(dut.clone()))),
            (Version::Program { path, sha256 }, _) => {
                let program = PathBuf::from(path);
                // Answers about another program would be mixed with those about this one.
                if digest(&program)? != *sha256 {
                    return Err(BisectingError::mistake(
                        format!("{path} has changed since the bisection began"),
                        "restore it, or begin another bisection",
                    ));
                }
                program
            }
            (Version::Revision { .. }, Some(builder)) => {
                self.reporter
                    .notice(&format!("build   {}\n", of.in_words()));
                match builder.program(of, &self.interrupt) {
                    Ok(Built::Program(program, made)) => {
                        self.lines.append(&Record::Built { version, made })?;
                        program
                    }
                    Ok(Built::Broken(problem)) => return Ok(Err(problem)),
                    Err(error) => return Err(self.broke_off(error)),
                }
            }
            (Version::Revision { .. }, None) => unreachable!("revisions have a build"),
        };
        let subject = Subject::Program(program);
        self.subjects.insert(version, subject.clone());
        Ok(Ok(subject))
    }

    fn skip(
        &mut self,
        ask: &bisect::Ask,
        version: usize,
        problem: String,
    ) -> Result<(), BisectingError> {
        // The ask named this version, so only an end is refused.
        if self.bisection.skip(version).is_err() {
            let end = if version == 0 { "good" } else { "bad" };
            return Err(self.end(end, version, problem));
        }
        let first = problem.lines().next().unwrap_or_default();
        let name = self.header.versions[version].name();
        self.reporter.notice(&format!("skipped {name}: {first}\n"));
        self.reasons.insert(version, first.to_owned());
        self.answer(ask.test, Some(problem))
    }

    /// Records the last answer.
    fn answer(&mut self, test: bisect::Test, reason: Option<String>) -> Result<(), BisectingError> {
        // As the bisection keeps it, since a resume must give it back unchanged.
        let Some(answer) = self.bisection.entries().last().cloned() else {
            return Ok(());
        };
        let record = Record::Answer {
            test,
            answer,
            reason,
        };
        Ok(self.lines.append(&record)?)
    }

    fn end(&self, end: &'static str, version: usize, problem: String) -> BisectingError {
        BisectingError::End {
            end,
            version: self.header.versions[version].name().to_owned(),
            problem,
            help: format!(
                "everything is compared with the ends: name others, or correct the {}",
                match self.header.versions[version] {
                    Version::Settings { .. } => "settings",
                    Version::Revision { .. } | Version::Program { .. } => "build",
                }
            ),
        }
    }

    /// An error after which the bisection can be resumed, if it is one.
    fn broke_off(&self, error: BisectingError) -> BisectingError {
        let reason = match error {
            BisectingError::Session(SessionError::Lab(LabError::Interrupted)) => {
                "interrupted; nothing of the lab is left".to_owned()
            }
            BisectingError::Session(SessionError::Interrupted(reason)) => {
                // Its remedy is about a run.
                reason.lines().next().unwrap_or_default().to_owned()
            }
            other => return other,
        };
        BisectingError::BrokeOff {
            reason,
            dir: self.dir.clone(),
        }
    }

    fn noun(&self) -> &'static str {
        self.header.versions[0].noun()
    }
}

/// Replays the records of a bisection.
fn replayed(
    path: &Path,
    records: Vec<Record>,
) -> Result<(Header, Vec<Entry>, Replayed), BisectingError> {
    let mut records = records.into_iter();
    let Some(Record::Header(header)) = records.next() else {
        return Err(JournalError::NoHeader { path: path.into() }.into());
    };
    let mut replayed = Replayed::default();
    let mut entries = Vec::new();
    for record in records {
        match record {
            Record::Answer { answer, reason, .. } => {
                if let (Entry::Skipped { candidate }, Some(reason)) = (&answer, reason) {
                    let first = reason.lines().next().unwrap_or_default().to_owned();
                    replayed.reasons.insert(*candidate, first);
                }
                // Only answers are replayed. Trials of a pair that was cut off are without one and
                // measured again.
                entries.push(answer);
            }
            Record::Trial {
                version,
                figure: Some(figure),
                quantity,
                ..
            } => {
                let quantity = Quantity::ALL.into_iter().find(|it| it.key() == quantity);
                if let Some(quantity) = quantity {
                    replayed.figures.add(version, quantity, figure);
                }
            }
            // Its name becomes a path.
            Record::Others { run } => {
                replayed.others = Component::new(run).ok().map(|run| run.as_str().to_owned());
            }
            Record::End { .. } => replayed.has_ended = true,
            // All sets run one program, recorded as that of version 0. Other kinds have a digest
            // per version.
            Record::Built { version: 0, made } => replayed.digest = Some(made.sha256),
            Record::Header(_)
            | Record::Opened { .. }
            | Record::Built { .. }
            | Record::Trial { .. } => {}
        }
    }
    Ok((*header, entries, replayed))
}

#[derive(Default)]
struct Replayed {
    digest: Option<String>,
    reasons: BTreeMap<usize, String>,
    figures: Figures,
    others: Option<String>,
    has_ended: bool,
}

/// The path of the records.
fn records_path(dir: &Path) -> PathBuf {
    dir.join(FILE_NAME)
}
