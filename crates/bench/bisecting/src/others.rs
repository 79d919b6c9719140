//! What else the change changed: a run of all cells of the device, with the changed version and the
//! one before in the same blocks.

use crate::question::{bare, with_program};
use crate::record::Header as Bisected;
use crate::{BisectingError, Subject, Version};
use compare::{CellChange, Direction, Match, Options, Run};
use journal::record::{FORMAT_VERSION, Header, Record, Resumed};
use journal::{Journal, Writer};
use plan::{Cell, Plan};
use report::Report;
use serde::Serialize;
use session::{Session, begin as begin_run, unix_ns};
use std::path::{Path, PathBuf};
use trial::Done;

/// The other changes, from a run of all cells of the device.
#[derive(Debug, Clone, Serialize)]
pub struct Others {
    /// Folder of the run, with its report.
    pub run: PathBuf,
    /// Repeats of each cell.
    pub repeats: u32,
    /// Quantities of cells that were compared.
    pub compared: usize,
    /// Quantities that surely changed: their simultaneous intervals contain no 1.
    pub changes: Vec<CellChange>,
    /// Ids of cells without a comparison.
    pub without: Vec<String>,
}

impl Others {
    /// Reads the run in a folder; `before` and `changed` are its devices.
    pub(crate) fn of(run: &Path, before: &str, changed: &str) -> Result<Self, BisectingError> {
        // Read anew, since the run may be from an earlier start.
        let journal = journal::read(run)?;
        let options = Options {
            matches: vec![Match {
                old: before.to_owned(),
                new: changed.to_owned(),
            }],
            ..Options::default()
        };
        let name = run.display().to_string();
        let runs = [Run {
            name: &name,
            journal: &journal,
        }];
        let compared = compare::compare(&runs, &options).map_err(|error| {
            BisectingError::mistake(
                format!("the run {name} cannot be compared: {error}"),
                "begin the bisection again",
            )
        })?;
        let mut pairs = compared.pairs;
        let pair = pairs.pop();
        let (changes, without) = pair.map_or_else(Default::default, |pair| {
            let without = pair.without_change.into_iter().map(|one| one.cell);
            (pair.changes, without.collect())
        });
        let count = changes.len();
        let is_sure = |change: &CellChange| {
            matches!(
                change.direction,
                Direction::Regression | Direction::Improvement
            )
        };
        Ok(Self {
            run: run.to_owned(),
            repeats: journal.header.plan.repeats,
            compared: count,
            changes: changes.into_iter().filter(is_sure).collect(),
            without,
        })
    }
}

/// The name of the device as a version.
pub(crate) fn name(header: &Bisected, version: &Version) -> String {
    let dut = &header.question.dut;
    match version {
        Version::Revision { .. } => format!("{dut}-{}", version.name()),
        // A path is no name.
        Version::Program { .. } => {
            let at = header.versions.iter().position(|one| one == version);
            format!("{dut}-{}", at.unwrap_or(0) + 1)
        }
        Version::Settings { dut, .. } => dut.clone(),
    }
}

/// The plan of all cells of the device by two versions.
pub(crate) fn plan(
    header: &Bisected,
    before: &(Version, Subject),
    changed: &(Version, Subject),
) -> Plan {
    let mut plan = bare(&header.plan);
    plan.repeats = header.repeats;
    let mut cells = Vec::new();
    for cell in header.plan.cells.iter().filter(|cell| !cell.calibration) {
        for (version, subject) in [before, changed] {
            cells.extend(of_version(header, cell, version, subject));
        }
    }
    plan.cells = cells;
    plan
}

/// A cell of the campaign, measured as a version; `None` if it is another device's.
fn of_version(
    header: &Bisected,
    cell: &Cell,
    version: &Version,
    subject: &Subject,
) -> Option<Cell> {
    let program = match subject {
        Subject::Program(program) => program,
        Subject::Dut(dut) => return (cell.dut.name == *dut).then(|| cell.clone()),
    };
    // Other devices do not run the versions, so nothing of theirs can have changed.
    if cell.dut.name != header.question.dut {
        return None;
    }
    let name = name(header, version);
    let mut cell = cell.clone();
    cell.id = format!("{}/{name}", cell.group);
    cell.dut = with_program(&cell.dut, Some(version.name()), &program.to_string_lossy());
    cell.dut.name = name;
    Some(cell)
}

/// A run that has begun.
pub(crate) struct Begun {
    /// Its folder's name, in the folder of the bisection.
    pub(crate) name: String,
    dir: PathBuf,
    plan: Plan,
    done: Done,
    writer: Writer,
}

/// Begins the run, or continues the one of an earlier start.
pub(crate) fn begin(
    dir: &Path,
    run: Option<&str>,
    mut plan: Plan,
    header: &Bisected,
    session: &Session,
) -> Result<Begun, BisectingError> {
    let environment = session.environment()?;
    if let Some(run) = run {
        let run_dir = dir.join(run);
        // This also locks the journal: two resumed bisections must not measure the same run.
        let (mut writer, journal) = Writer::append_to(&run_dir)?;
        writer.append(&Record::Resumed(Box::new(Resumed {
            at_unix_ns: unix_ns(),
            program: header.program.clone(),
            environment,
        })))?;
        return Ok(Begun {
            name: run.to_owned(),
            dir: run_dir,
            done: Done::from(&journal),
            // The programs of this bisection, even if that file was changed.
            plan: Plan {
                // The trials that are done follow the order that was drawn then.
                order: journal.header.plan.order,
                ..plan
            },
            writer,
        });
    }
    let started_unix_ns = unix_ns();
    // The low bits are enough: the seed is no secret, and is in the journal.
    plan.order = plan.order.with_seed(started_unix_ns as u32);
    let first = Header {
        format: FORMAT_VERSION,
        started_unix_ns,
        command: header.command.clone(),
        program: header.program.clone(),
        environment,
        plan: plan.clone(),
    };
    let (run_dir, writer) = begin_run(dir, &first)?;
    let name = run_dir.file_name().unwrap_or_default();
    Ok(Begun {
        name: name.to_string_lossy().into_owned(),
        dir: run_dir,
        plan,
        done: Done::default(),
        writer,
    })
}

impl Begun {
    /// Makes its trials, and writes its documents.
    pub(crate) fn carry_out(self, session: Session) -> Result<Journal, BisectingError> {
        let Self {
            dir,
            plan,
            done,
            writer,
            ..
        } = self;
        let journal = session.carry_out(&plan, &done, writer, &dir)?;
        let written = Report::of(&journal).write_all(&dir);
        written.map_err(session::SessionError::from)?;
        Ok(journal)
    }
}
