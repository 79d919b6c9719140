//! An agent: offers its labs, takes jobs that fit, runs each as a person would, and archives it.
//!
//! After a crash the agent's folder ([`kept`](crate::kept)) says what was under way: a job whose
//! folder is there is resumed before any other is taken, and uploaded before it is forgotten.

use crate::archive::upload;
use crate::bucket::{Found, Swap};
use crate::child::{INTERRUPTED, code, command, end, ended};
use crate::error::FleetError;
use crate::history::RunFigures;
use crate::kept::{Disk, Kept, identity};
use crate::lease::{BEAT, Lease};
use crate::message::{Job, LabOffer, State};
use crate::queue::{ATTEMPTS_MAX, is_id};
use crate::random_word;
use crate::repeat::Repeats;
use crate::signing::Trust;
use crate::store::{Access, Fleet};
use crate::view::QueueView;
use futures_util::future::join_all;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{interval, sleep, timeout};

/// Between attempts to reach a server that is away.
const RETRY: Duration = Duration::from_secs(1);
/// Exit codes with a run: figures, failed cells, too few trials.
const WITH_A_RUN: [i32; 3] = [0, 1, 5];

/// A lab of an agent.
#[derive(Debug, Clone)]
pub struct AgentLab {
    /// Its name.
    pub name: String,
    /// Its file, or the name of a built-in lab.
    pub file: String,
    /// What submitters can ask for.
    pub labels: BTreeMap<String, String>,
}

/// An agent on the machine of its labs.
#[derive(Debug, Clone)]
pub struct Agent {
    /// The program that measures: this one.
    pub program: PathBuf,
    /// What the agent keeps.
    pub folder: PathBuf,
    /// How to reach the server.
    pub access: Access,
    /// The labs.
    pub labs: Vec<AgentLab>,
    /// A file of the commands that campaigns may run here, as `cipherbench check --allow` reads
    /// it; without one they may run none.
    pub allow: Option<PathBuf>,
    /// The keys whose jobs are run; without them all are.
    pub trust: Option<Trust>,
}

/// How a run ended.
enum Ended {
    /// With this exit code and its last words.
    Exit(i32, String),
    /// Because the agent is to stop: it can be resumed.
    Stopped,
    /// Because somebody cancelled the job, or has it now.
    Taken,
}

impl Agent {
    /// Serves until `stop` is true.
    ///
    /// # Errors
    /// When the agent's folder cannot be used, or the server has no fleet of this version.
    pub async fn run(
        self,
        stop: watch::Receiver<bool>,
        say: impl Fn(String),
    ) -> Result<(), FleetError> {
        let identity = identity(&self.folder)?;
        let fleet = Fleet::connect(&self.access).await?;
        let view = QueueView::new();
        let repeats = Repeats::default();
        let tender = |lab: &AgentLab| Tender {
            agent: &self,
            identity: identity.clone(),
            disk: Disk::new(self.folder.join(&lab.name)),
            lab: lab.clone(),
            fleet: fleet.clone(),
            view: &view,
            stop: stop.clone(),
            refused: RefCell::default(),
        };
        let labs = self.labs.iter().map(|lab| lab.name.clone()).collect();
        let mut refusals = fleet.denials.refusals();
        let report_refusals = async {
            while refusals.changed().await.is_ok() {
                let refusal = refusals.borrow_and_update().clone();
                say(refusal.map_or_else(
                    || "the server accepts this agent again".to_owned(),
                    |reason| format!(
                        "the server does not accept this agent: {reason}\nhelp: replace the file of its key or credentials; \
                         runs go on meanwhile, and are uploaded then"
                    ),
                ));
            }
        };
        // One task for all: what they do is wait. Only the first comes to an end.
        tokio::select! {
            _ = join_all(self.labs.iter().map(|lab| tender(lab).serve(&say))) => {}
            () = view.follow(&fleet.states) => {}
            () = repeats.serve(&fleet, labs) => {}
            () = report_refusals => {}
        }
        Ok(())
    }
}

/// One lab's part of an agent.
struct Tender<'a> {
    agent: &'a Agent,
    identity: String,
    disk: Disk,
    lab: AgentLab,
    fleet: Fleet,
    view: &'a QueueView,
    stop: watch::Receiver<bool>,
    /// Jobs that do not fit the lab: neither they nor it change while the agent runs.
    refused: RefCell<BTreeSet<String>>,
}

impl Tender<'_> {
    async fn serve(mut self, say: &impl Fn(String)) {
        let mut last = String::new();
        while !*self.stop.borrow() {
            if let Err(error) = self.serve_once(say).await {
                let text = format!("{}: {error}", self.lab.name);
                if text != last {
                    say(text.clone());
                    last = text;
                }
                self.pause(RETRY).await;
            }
        }
    }

    async fn pause(&mut self, time: Duration) {
        // A sender that is gone has stopped the agent.
        let _ = timeout(time, self.stop.wait_for(|stop| *stop)).await;
    }

    /// Takes the lab and works in it until it is lost or the agent stops.
    async fn serve_once(&mut self, say: &impl Fn(String)) -> Result<(), FleetError> {
        let offer = LabOffer {
            lab: self.lab.name.clone(),
            agent: self.identity.clone(),
            incarnation: random_word(),
            labels: self.lab.labels.clone(),
            job: None,
            beats: 0,
        };
        let name = self.lab.name.clone();
        let mut stop = self.stop.clone();
        let taken = tokio::select! {
            taken = Lease::take(&self.fleet, offer, |why| say(format!("{name}: {why}"))) => taken,
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
        };
        let mut lease = taken?;
        say(format!("{name}: on offer"));
        self.adopt(&lease.offer).await?;
        let mut changes = self.view.changes();
        changes.mark_changed();
        let mut since = Instant::now();
        while !*self.stop.borrow() {
            // Before the queue is looked at: what comes later is a change.
            let is_changed = changes.has_changed().unwrap_or(false);
            changes.mark_unchanged();
            let next = match self.disk.left()? {
                Some(kept) => self.again(kept).await?,
                None if is_changed => self.next(&lease.offer).await?,
                None => None,
            };
            match next {
                Some(kept) => {
                    if !self.work(&mut lease, kept, say).await? {
                        return Ok(());
                    }
                    // Whatever came meanwhile.
                    changes.mark_changed();
                }
                None => tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => {}
                    _ = changes.changed() => changes.mark_changed(),
                    () = sleep(BEAT.saturating_sub(since.elapsed())) => {}
                },
            }
            if since.elapsed() >= BEAT {
                since = Instant::now();
                if !lease.renew(&self.fleet, None).await? {
                    say(format!("{name}: another agent has the lab now"));
                    return Ok(());
                }
            }
        }
        lease.end(&self.fleet).await;
        Ok(())
    }

    /// Keeps the jobs that an earlier start of this agent took, and was killed before they were on
    /// its disk.
    async fn adopt(&self, offer: &LabOffer) -> Result<(), FleetError> {
        for (id, state) in self.fleet.states().await? {
            let State::Running(held) = state else {
                continue;
            };
            let is_ours = held.agent == self.identity && held.lab == self.lab.name;
            if !is_ours || !is_id(&id) || self.disk.has(&id) {
                continue;
            }
            let Some(job) = self.fleet.job(&id).await?.filter(|job| job.id == id) else {
                continue;
            };
            // It may be somebody else who wrote that this agent has it.
            if let Some(reason) = self.misfit(offer, &job).await {
                self.end(&id, &State::Parked { reason }).await?;
                continue;
            }
            self.disk.keep(&Kept {
                job,
                held,
                exit: None,
                stopped: false,
            })?;
        }
        Ok(())
    }

    /// Takes up a job that was left; `None` if it is not this lab's any more.
    async fn again(&self, mut kept: Kept) -> Result<Option<Kept>, FleetError> {
        let id = kept.job.id.clone();
        match self.fleet.states.read::<State>(&id).await? {
            Some(Found {
                value: State::Running(held),
                revision,
                ..
            }) if held.lab == kept.held.lab && held.agent == kept.held.agent => {
                if kept.exit.is_some() {
                    return Ok(Some(kept));
                }
                kept.held.attempt = held.attempt + u32::from(!kept.stopped);
                kept.stopped = false;
                if kept.held.attempt > ATTEMPTS_MAX {
                    let reason =
                        format!("{} runs of it began, and none came to an end", held.attempt);
                    self.end(&id, &State::Parked { reason }).await?;
                    self.disk.forget(&id)?;
                    return Ok(None);
                }
                let running = State::Running(kept.held.clone());
                let swapped = self.fleet.states.swap(&id, revision, &running).await?;
                if swapped == Swap::Lost {
                    return Ok(None);
                }
                self.disk.keep(&kept)?;
                Ok(Some(kept))
            }
            // The server has lost what it acknowledged: this disk is the truth.
            None => {
                self.fleet.jobs.swap(&id, 0, &kept.job).await?;
                let running = State::Running(kept.held.clone());
                self.fleet.states.swap(&id, 0, &running).await?;
                Ok(None)
            }
            Some(_) => {
                self.disk.forget(&id)?;
                Ok(None)
            }
        }
    }

    /// Takes a job of the queue.
    async fn next(&self, offer: &LabOffer) -> Result<Option<Kept>, FleetError> {
        let fits = async |job: &Job| {
            let Some(reason) = self.misfit(offer, job).await else {
                return Ok(true);
            };
            self.refused.borrow_mut().insert(job.id.clone());
            self.fleet.note_misfit(&job.id, &offer.lab, &reason).await?;
            Ok(false)
        };
        // What is not queued any more needs no memory.
        self.refused
            .borrow_mut()
            .retain(|id| self.view.is_queued(id));
        let queued = self.view.queued(|id| self.refused.borrow().contains(id));
        let claimed = self.fleet.claim(offer, queued, fits).await?;
        let Some((job, held)) = claimed else {
            return Ok(None);
        };
        let kept = Kept {
            job,
            held,
            exit: None,
            stopped: false,
        };
        self.disk.keep(&kept)?;
        Ok(Some(kept))
    }

    /// Why a job cannot run in this lab: what it asks for, who signed it, or what `cipherbench
    /// check` says, also of commands that are not allowed here.
    async fn misfit(&self, offer: &LabOffer, job: &Job) -> Option<String> {
        let trust = self.agent.trust.as_ref();
        let asked = job.selector.misfit(offer).or_else(|| trust?.objection(job));
        if asked.is_some() {
            return asked;
        }
        let file = tempfile::Builder::new().suffix(".yaml").tempfile().ok()?;
        fs::write(file.path(), &job.campaign).ok()?;
        let mut check = Command::new(&self.agent.program);
        check
            .args(["check", "--lab", &self.lab.file])
            .arg(file.path())
            .arg("--allow")
            .arg(
                self.agent
                    .allow
                    .as_deref()
                    .unwrap_or(Path::new("/dev/null")),
            )
            .stdin(Stdio::null());
        let checked = spawn_blocking(move || check.output()).await.ok()?.ok()?;
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        let name = file.path().display().to_string();
        (!checked.status.success()).then(|| said.replace(&name, &job.name).trim().to_owned())
    }

    /// Runs a job to its end and archives it. Returns whether this agent still has the lab.
    async fn work(
        &mut self,
        lease: &mut Lease,
        mut kept: Kept,
        say: &impl Fn(String),
    ) -> Result<bool, FleetError> {
        let id = kept.job.id.clone();
        let name = self.lab.name.clone();
        if !lease.renew(&self.fleet, Some(&id)).await? {
            return Ok(false);
        }
        if kept.exit.is_none() {
            say(format!(
                "{name}: job {id} ({}), attempt {}",
                kept.job.name, kept.held.attempt
            ));
            match self.measure(lease, &kept).await? {
                Ended::Stopped => {
                    kept.stopped = *self.stop.borrow();
                    self.disk.keep(&kept)?;
                    return Ok(true);
                }
                Ended::Taken => {
                    say(format!("{name}: job {id} was taken away"));
                    self.disk.forget(&id)?;
                    return lease.renew(&self.fleet, None).await;
                }
                Ended::Exit(exit, said) if !WITH_A_RUN.contains(&exit) => {
                    let reason = format!("`cipherbench run` ended with exit code {exit}: {said}");
                    say(format!("{name}: job {id}: {reason}"));
                    self.end(&id, &State::Parked { reason }).await?;
                    self.disk.forget(&id)?;
                    return lease.renew(&self.fleet, None).await;
                }
                Ended::Exit(exit, _) => {
                    kept.exit = Some(exit);
                    self.disk.keep(&kept)?;
                }
            }
        }
        let Some(exit) = kept.exit else {
            return Ok(true);
        };
        let Some(run) = self.disk.run_of(&id) else {
            let reason = format!("its run is not in {}", self.disk.job_folder(&id).display());
            self.end(&id, &State::Parked { reason }).await?;
            self.disk.forget(&id)?;
            return Ok(true);
        };
        loop {
            if !lease.renew(&self.fleet, Some(&id)).await? {
                return Ok(false);
            }
            match upload(&self.fleet, &id, &run).await {
                Ok(_) => break,
                Err(error) => {
                    say(format!("{name}: job {id}: {error}"));
                    self.pause(RETRY).await;
                    if *self.stop.borrow() {
                        return Ok(true);
                    }
                }
            }
        }
        // Made of the run, which is in the archive: a job does not wait for it.
        if let Some(figures) = self.figures(&run).await {
            let labels = &self.lab.labels;
            let added = self.fleet.add_figures(&kept.job, &name, labels, &figures);
            if let Err(error) = added.await {
                say(format!("{name}: job {id}: {error}"));
            }
        }
        let held = kept.held.clone();
        self.end(&id, &State::Done { held, exit }).await?;
        say(format!("{name}: job {id} is done (exit code {exit})"));
        self.disk.forget(&id)?;
        lease.renew(&self.fleet, None).await
    }

    /// A run's figures by cell, by the program; `None` where it has none.
    async fn figures(&self, run: &Path) -> Option<RunFigures> {
        let mut figures = Command::new(&self.agent.program);
        figures
            .arg("figures")
            .arg(run)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let printed = spawn_blocking(move || figures.output()).await.ok()?.ok()?;
        serde_json::from_slice(&printed.stdout).ok()
    }

    /// Writes a job's end, unless it is not this agent's any more.
    async fn end(&self, id: &str, state: &State) -> Result<(), FleetError> {
        loop {
            match self.fleet.states.read::<State>(id).await? {
                Some(Found {
                    value: State::Running(held),
                    revision,
                    ..
                }) if held.agent == self.identity => {
                    let swapped = self.fleet.states.swap(id, revision, state).await?;
                    if swapped != Swap::Lost {
                        return Ok(());
                    }
                }
                None => {
                    self.fleet.states.swap(id, 0, state).await?;
                }
                Some(_) => return Ok(()),
            }
        }
    }

    /// Runs the program, or resumes what it began, and renews the lease meanwhile.
    async fn measure(&mut self, lease: &mut Lease, kept: &Kept) -> Result<Ended, FleetError> {
        let id = &kept.job.id;
        let folder = self.disk.job_folder(id);
        let log = folder.join("log");
        let cannot_start = |error| FleetError::Disk {
            what: format!("cannot start {}", self.agent.program.display()),
            error,
        };
        let mut command = match self.disk.run_of(id) {
            Some(run) => {
                let mut command = command(&self.agent.program);
                command.arg("resume").arg(run);
                command
            }
            None => {
                let mut command = command(&self.agent.program);
                command.args([
                    "run",
                    "campaign.yaml",
                    "--out",
                    "runs",
                    "--lab",
                    &self.lab.file,
                ]);
                command.args(kept.job.quick.then_some("--quick"));
                command
            }
        };
        let errors = fs::File::create(&log).map_err(cannot_start)?;
        let mut child = command
            .arg("--quiet")
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(cannot_start)?;
        let mut beats = interval(BEAT);
        let mut stop = self.stop.clone();
        loop {
            tokio::select! {
                status = ended(&mut child) => {
                    let status = status.map_err(cannot_start)?;
                    let said = fs::read_to_string(&log).unwrap_or_default();
                    let last: Vec<&str> = said.lines().rev().take(3).collect();
                    let said = last.into_iter().rev().collect::<Vec<_>>().join("; ");
                    return Ok(match code(status) {
                        INTERRUPTED => Ended::Stopped,
                        code => Ended::Exit(code, said),
                    });
                }
                _ = beats.tick() => {
                    // A server that is away takes nothing: the run goes on, and the next beat
                    // repeats this one.
                    let has_lab = timeout(BEAT, lease.renew(&self.fleet, Some(id))).await;
                    let has_job = timeout(BEAT, self.is_ours(id)).await;
                    if matches!(has_lab, Ok(Ok(false))) || has_job == Ok(false) {
                        end(&mut child).await;
                        return Ok(Ended::Taken);
                    }
                }
                _ = stop.wait_for(|stop| *stop) => {
                    end(&mut child).await;
                    return Ok(Ended::Stopped);
                }
            }
        }
    }

    /// Whether the job is still this agent's, as far as the server says: while it is away, yes.
    async fn is_ours(&self, id: &str) -> bool {
        match self.fleet.states.read::<State>(id).await {
            Ok(Some(Found {
                value: State::Running(held),
                ..
            })) => held.agent == self.identity,
            Ok(Some(_)) => false,
            Ok(None) | Err(_) => true,
        }
    }
}
