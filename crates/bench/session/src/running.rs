//! A run: its folder, its lab, and the trials that remain.

use crate::error::SessionError;
use crate::progress::{Phase, State, in_seconds};
use crate::reporter::Reporter;
use crate::watch::Watch;
use engine::EngineInfo;
use journal::record::{Added, Environment, Header, Record};
use journal::{Journal, Writer};
use lab::programs::{Missing, search_path};
use lab::{NamespaceLab, Privilege, Setup, privilege};
use memory_lab::InMemory;
use plan::{Cell, LabKind, LabPlan, Plan};
use report::Report;
use stats::{Results, Round};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fs, thread};
use testbed::{Interrupt, LabError};
use trial::{Conclusion, Done, Measurer, OnBench, OnDevices};
use units::human::counted;

/// A lab that is up, with its privilege and interrupt.
pub struct Session {
    /// `None` if the lab needs none.
    privilege: Option<Privilege>,
    interrupt: Interrupt,
    place: Place,
    reporter: Reporter,
}

/// Between two attempts to reach hosts that went away.
const RECONNECT_STEP: Duration = Duration::from_secs(1);

/// The lab that trials run in.
enum Place {
    Namespaces(Box<NamespaceLab>),
    Memory(InMemory),
    Devices(OnDevices),
    /// While hosts that went away are awaited.
    Nowhere,
}

impl Session {
    /// Acquires the privilege, builds the lab, and reports the remains of a killed run. From here
    /// on Ctrl-C takes the lab down. The process must have one thread.
    ///
    /// # Errors
    /// When the lab cannot be built here.
    pub fn open(
        plan: &LabPlan,
        interrupt: Interrupt,
        reporter: &Reporter,
    ) -> Result<Self, SessionError> {
        let reporter = reporter.clone();
        // The labs in memory and of crypto devices build no network, so they need no root privilege
        // and leave nothing behind.
        if plan.kind == LabKind::Memory {
            return Ok(Self {
                privilege: None,
                interrupt,
                place: Place::Memory(InMemory),
                reporter,
            });
        }
        if plan.kind == LabKind::Device {
            let program = env::current_exe().map_err(SessionError::NoProgramPath)?;
            let worker = vec![program.into(), "device".into()];
            return Ok(Self {
                privilege: None,
                interrupt,
                place: Place::Devices(OnDevices::new(worker, search_path())),
                reporter,
            });
        }
        // If the whole lab is on other hosts, this process needs no root privilege, and a user's
        // ssh must run as the user.
        let elsewhere = plan
            .hosts
            .as_ref()
            .filter(|hosts| !hosts.include_this_machine());
        let privilege = match elsewhere {
            Some(_) => privilege::current(),
            None => Some(privilege::acquire()?),
        };
        let setup = Setup::new(privilege, interrupt.clone())?;
        let lab = NamespaceLab::build(plan, &setup)?;
        for sentence in lab.swept() {
            reporter.notice(&format!("{sentence}\n"));
        }
        Ok(Self {
            privilege,
            interrupt,
            place: Place::Namespaces(Box::new(lab)),
            reporter,
        })
    }

    /// Warns of machines that are busy before anything is measured.
    ///
    /// # Errors
    /// When a host does not answer.
    pub fn warn_of_load(&self) -> Result<(), SessionError> {
        // Each machine is observed for a moment, which is not done if nobody reads the result.
        if self.reporter.is_quiet && self.reporter.log.is_none() {
            return Ok(());
        }
        let loads = match &self.place {
            Place::Namespaces(lab) => lab.loads()?,
            _ => vec![("this machine".to_owned(), lab::host::load())],
        };
        for (machine, load) in loads.iter().filter(|(_, load)| load.is_high()) {
            self.reporter.notice(&format!(
                "warning: {machine} is busy: {}\nhelp: figures get lower and trials invalid; stop what else runs \
                 there, or measure when it has ended\n",
                load.in_words()
            ));
        }
        Ok(())
    }

    /// Returns the machine, its tools and the usable engines.
    ///
    /// # Errors
    /// When a host does not answer.
    pub fn environment(&self) -> Result<Environment, SessionError> {
        // Engines that this host lacks are left out: the journal has the ones that a trial could
        // have used.
        let usable =
            |engine: &EngineInfo| Some((engine.name.to_owned(), engine.version.clone().ok()?));
        let hosts = match &self.place {
            Place::Namespaces(lab) => lab.host_environments()?,
            _ => BTreeMap::new(),
        };
        Ok(Environment {
            engines: engine::engines().iter().filter_map(usable).collect(),
            hosts,
            ..lab::host::environment(self.privilege)
        })
    }

    /// The programs that cells need and that a host of the lab lacks.
    pub(crate) fn missing(
        &self,
        plan: &LabPlan,
        cells: &[&Cell],
    ) -> Result<Vec<Missing>, SessionError> {
        match &self.place {
            Place::Namespaces(lab) => Ok(lab.missing(plan, cells)?),
            _ => Ok(Vec::new()),
        }
    }

    /// Runs the trials that are not `done`, and takes the lab down. Returns the journal;
    /// its documents remain to be written.
    ///
    /// # Errors
    /// When the run ended before its last trial: the documents of the finished ones are then in
    /// `dir`.
    pub fn carry_out(
        self,
        plan: &Plan,
        done: &Done,
        writer: Writer,
        dir: &Path,
    ) -> Result<Journal, SessionError> {
        let reporter = self.reporter.clone();
        let mut state = State::of(&journal::read(dir)?, dir);
        let result = self.measure_all(plan, done, writer, dir, &mut state);
        state.now = None;
        state.phase = Phase::Ended(match &result {
            Ok(_) => "finished".to_owned(),
            // The first line has the reason; the others name commands for a terminal.
            Err(error) => {
                let text = error.to_string();
                text.lines().next().unwrap_or_default().to_owned()
            }
        });
        reporter.board.show_last(state);
        reporter.check_log();
        result
    }

    fn measure_all(
        mut self,
        plan: &Plan,
        done: &Done,
        mut writer: Writer,
        dir: &Path,
        state: &mut State,
    ) -> Result<Journal, SessionError> {
        // Each round measures until the plan is finished, the user interrupts it, or a host goes
        // away. After a host has come back, the next round makes the trials that remain.
        let (mut plan, mut done) = (plan.clone(), done.clone());
        let conclusion = loop {
            let conclusion = self.measure(&plan, &done, (&mut writer, dir), state)?;
            match &conclusion {
                Conclusion::LabLost { reason, made } => {
                    state.phase = Phase::Waiting(reason.clone());
                    self.reporter.board.show(state);
                    if !self.reconnect(&plan.lab, reason)? {
                        break conclusion;
                    }
                    // Without the trial during which the host failed, and not the device: it is
                    // repeated.
                    done = done.and_made(made.clone(), &journal::read(dir)?);
                }
                Conclusion::Finished { .. } => {
                    let journal = journal::read(dir)?;
                    let Some(round) = next_round(&journal) else {
                        break conclusion;
                    };
                    done = self.add(&round, &journal, &mut writer, done)?;
                    let added = round.cells.into_iter().map(|cell| (cell, round.repeats));
                    plan.expect.added.extend(added);
                }
                Conclusion::Busy { .. } | Conclusion::Interrupted => break conclusion,
            }
        };
        // The lab goes before the documents are written: the messages below say that it is removed,
        // and a long report does not keep its interfaces.
        drop(self.place);
        let journal = journal::read(dir)?;
        match conclusion {
            Conclusion::Finished { .. } => Ok(journal),
            Conclusion::Busy { trials } => {
                Report::of(&journal).write_all(dir)?;
                Err(too_busy(dir, &journal, trials))
            }
            Conclusion::Interrupted => {
                Report::of(&journal).write_all(dir)?;
                Err(interrupted(dir, &journal))
            }
            Conclusion::LabLost { reason, .. } => {
                Report::of(&journal).write_all(dir)?;
                Err(lab_lost(dir, &journal, &reason))
            }
        }
    }

    /// Records a round of further repeats. Returns what is not made in it: the trials of the cells
    /// so far, but the ones without a figure, which kept a limit undecided.
    fn add(
        &self,
        round: &Round,
        journal: &Journal,
        writer: &mut Writer,
        done: Done,
    ) -> Result<Done, SessionError> {
        let cells = counted(round.cells.len() as u64, "cell");
        self.reporter.notice(&format!(
            "limits are undecided: {cells} measured again, up to {} repeats\n",
            round.repeats
        ));
        let added = Added {
            at_unix_ns: unix_ns(),
            repeats: round.repeats,
            cells: round.cells.clone(),
        };
        writer
            .append(&Record::Added(added))
            .map_err(SessionError::JournalLost)?;
        let again = |(cell, _): &(String, u32)| round.cells.contains(cell);
        let mut done = Done {
            left_out: done.left_out,
            ..Done::from(journal)
        };
        // A trial that failed in a cell of no limit is not made again.
        let failed = journal.latest_trials().into_keys();
        let failed = failed.map(|(cell, repeat)| (cell.to_owned(), repeat));
        done.trials.extend(failed.filter(|trial| !again(trial)));
        let invalid = journal.invalid_trials();
        done.trials
            .retain(|trial| !(again(trial) && invalid.contains(trial)));
        Ok(done)
    }

    /// Runs the trials that are not `done`, while the lab is usable.
    fn measure(
        &mut self,
        plan: &Plan,
        done: &Done,
        (writer, dir): (&mut Writer, &Path),
        state: &mut State,
    ) -> Result<Conclusion, SessionError> {
        let mut watch = Watch::new(&self.reporter, state);
        let interrupt = self.interrupt.clone();
        let conclusion = self.place.with_measurer(Some(dir), |measurer| {
            trial::run(
                plan,
                measurer,
                done,
                &mut |record| writer.append(record),
                &mut |progress| watch.show(progress),
                &interrupt,
            )
        });
        // The run ends if the journal cannot be written. Recorded trials are kept.
        conclusion.map_err(SessionError::JournalLost)
    }

    /// Makes the trials of a plan for a caller who keeps the records: without a journal, progress
    /// and captures.
    ///
    /// # Errors
    /// When the user interrupted them, or the lab cannot measure any more.
    pub fn measure_alone(
        &mut self,
        plan: &Plan,
        done: &Done,
        records: &mut Vec<Record>,
    ) -> Result<(), SessionError> {
        let interrupt = self.interrupt.clone();
        let conclusion = self.place.with_measurer(None, |measurer| {
            trial::run(
                plan,
                measurer,
                done,
                &mut |record| {
                    records.push(record.clone());
                    Ok::<_, Infallible>(())
                },
                &mut |_| (),
                &interrupt,
            )
        });
        match conclusion {
            Ok(Conclusion::Finished { .. } | Conclusion::Busy { .. }) => Ok(()),
            Ok(Conclusion::Interrupted) => Err(LabError::Interrupted.into()),
            Ok(Conclusion::LabLost { reason, .. }) => Err(SessionError::Interrupted(reason)),
            Err(never) => match never {},
        }
    }

    /// Waits for hosts that went away, up to the lab's time limit, and builds the lab again.
    /// Returns whether it is up.
    fn reconnect(&mut self, plan: &LabPlan, reason: &str) -> Result<bool, SessionError> {
        let Some(hosts) = &plan.hosts else {
            return Ok(false);
        };
        let limit = Duration::from_nanos(hosts.reconnect_ns);
        // A lab file turns reconnecting off by a limit of 0.
        if limit.is_zero() {
            return Ok(false);
        }
        let longest = in_seconds(limit);
        self.reporter.warn(&format!(
            "{reason}\nthe trial is recorded as failed; waiting for the host, {longest} at most\n"
        ));
        // Its names must be free on the hosts.
        self.place = Place::Nowhere;
        let setup = Setup::new(self.privilege, self.interrupt.clone())?;
        // The limit begins after the old lab is gone, since taking it down may itself wait for the
        // lost host.
        let lost = Instant::now();
        loop {
            match NamespaceLab::build(plan, &setup) {
                Ok(lab) => {
                    self.place = Place::Namespaces(Box::new(lab));
                    let waited = in_seconds(lost.elapsed());
                    self.reporter
                        .warn(&format!("the lab is up again after {waited}\n"));
                    return Ok(true);
                }
                Err(LabError::Interrupted) => return Ok(false),
                // While a host starts, the error changes from one attempt to the next (no route,
                // then no ssh), so only the last one is reported.
                Err(_) if lost.elapsed() < limit => thread::sleep(RECONNECT_STEP),
                Err(error) => {
                    self.reporter.warn(&format!("{error}\n"));
                    return Ok(false);
                }
            }
        }
    }
}

/// Whether nothing is left of a run: all trials are complete, and no limit asks for more.
#[must_use]
pub fn is_complete(journal: &Journal, done: &Done) -> bool {
    // An interrupt just before a round leaves the end of the trials that were planned so far.
    journal.end.is_some()
        && done.trials.len() == journal.header.plan.trial_count()
        && next_round(journal).is_none()
}

impl Place {
    /// Calls `act` with the lab as a measurer; captures go to `folder`.
    fn with_measurer<R>(
        &mut self,
        folder: Option<&Path>,
        act: impl FnOnce(&mut dyn Measurer) -> R,
    ) -> R {
        match self {
            Self::Namespaces(lab) => act(&mut OnBench {
                bench: &mut **lab,
                folder,
            }),
            Self::Memory(in_memory) => act(in_memory),
            Self::Devices(on_devices) => act(on_devices),
            Self::Nowhere => unreachable!("trials are made once the lab is up"),
        }
    }
}

/// The next round of further repeats, if the run adds some and a limit is undecided.
fn next_round(journal: &Journal) -> Option<Round> {
    // Without this the results would be computed once more at the end of every run.
    journal.header.plan.expect.until_decided_ns?;
    let results = Results::of(journal);
    results.expect.as_ref()?.next_round(journal, &results)
}

fn interrupted(dir: &Path, journal: &Journal) -> SessionError {
    let made = journal.latest_trials().len();
    let planned = journal.header.plan.trial_count();
    let text = format!(
        "interrupted after {made} of {planned} trials; the lab is removed\nhelp: to continue: {}; to read what was \
         measured so far: cipherbench report {}",
        going_on(dir, journal),
        dir.display()
    );
    SessionError::Interrupted(text)
}

fn too_busy(dir: &Path, journal: &Journal, trials: usize) -> SessionError {
    let planned = journal.header.plan.trial_count();
    let dir = dir.display();
    let text = format!(
        "ended after {trials} of {planned} trials: other programs or the hypervisor took cores from all of them; the \
         lab is removed\nhelp: stop what else runs there, then repeat them: cipherbench resume --invalid {dir}; to go \
         on with the others as the machine is: cipherbench resume {dir}; to read what was measured: cipherbench report \
         {dir}"
    );
    SessionError::Interrupted(text)
}

fn lab_lost(dir: &Path, journal: &Journal, reason: &str) -> SessionError {
    let text = format!(
        "{reason}\nhelp: finished trials are recorded; to continue: {}; to read them: cipherbench report {}",
        going_on(dir, journal),
        dir.display()
    );
    SessionError::Interrupted(text)
}

/// The command to continue. If all trials are complete, invalid ones were being repeated.
fn going_on(dir: &Path, journal: &Journal) -> String {
    // Without the option `resume` would find nothing to do then.
    let all = journal.finished_trials().len() == journal.header.plan.trial_count();
    let invalid = if all { "--invalid " } else { "" };
    format!("cipherbench resume {invalid}{}", dir.display())
}

/// Returns the current time in nanoseconds since the Unix epoch.
#[must_use]
pub fn unix_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Creates the run's folder with its journal and a first version of every document, so that an
/// unwritable place is reported now and not after hours of measuring.
///
/// # Errors
/// When a file cannot be written; the folder is then removed.
pub fn begin(out: &Path, header: &Header) -> Result<(PathBuf, Writer), SessionError> {
    let dir = journal::run_dir(out, header.started_unix_ns, &header.plan.name)?;
    let writer = Writer::create(&dir, header)?;
    if let Err(error) = Report::of(&Journal::new(header.clone())).write_all(&dir) {
        // It contains no measurements. Best effort: the first error is reported.
        let _ = fs::remove_dir_all(&dir);
        return Err(SessionError::NoRoom {
            path: error.path,
            error: error.source,
        });
    }
    Ok((dir, writer))
}
