//! An agent: offers its labs, takes jobs that fit, runs each as a person would, and archives it.
//!
//! ```text
//! FOLDER/agent                    identity, made once
//! FOLDER/LAB/JOB/campaign.yaml    as submitted
//! FOLDER/LAB/JOB/job.json         the job, and what is known of its end
//! FOLDER/LAB/JOB/runs/RUN/        the run, as `cipherbench run` writes it
//! ```
//!
//! After a crash the folder says what was under way: a job whose folder is there is resumed before
//! any other is taken, and uploaded before it is forgotten.

use crate::archive::{hex, upload};
use crate::lease::{BEAT, Lease};
use crate::message::{Held, Job, LabOffer, State};
use crate::queue::ATTEMPTS_MAX;
use crate::store::{Access, Fleet, FleetError, Found, Swap, read, swap};
use futures_util::future::join_all;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{interval, sleep, timeout};

/// Between looks at the queue.
const LOOK: Duration = Duration::from_millis(500);
/// Between attempts to reach a server that is away.
const RETRY: Duration = Duration::from_secs(1);
/// Between looks whether a run has ended.
const STEP: Duration = Duration::from_millis(50);
/// How long a run may take to end after SIGTERM, giving its lab back, before SIGKILL.
const END_LIMIT: Duration = Duration::from_secs(60);
/// The program ends so when it was interrupted: the run can be resumed.
const INTERRUPTED: i32 = 4;
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
}

/// What an agent's disk knows of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    job: Job,
    held: Held,
    /// The program's exit code, once it has ended with a run.
    exit: Option<i32>,
    /// Whether the agent was stopped in order while it ran.
    stopped: bool,
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
        let identity = self.identity()?;
        let fleet = Fleet::connect(&self.access).await?;
        let tender = |lab: &AgentLab| Tender {
            agent: self.clone(),
            identity: identity.clone(),
            lab: lab.clone(),
            fleet: fleet.clone(),
            stop: stop.clone(),
            refused: RefCell::default(),
        };
        // One task for all: what they do is wait.
        join_all(self.labs.iter().map(|lab| tender(lab).serve(&say))).await;
        Ok(())
    }

    /// Lasts as long as the folder.
    fn identity(&self) -> Result<String, FleetError> {
        let path = self.folder.join("agent");
        let disk = |error| FleetError::Disk {
            what: format!("cannot use {}", path.display()),
            error,
        };
        fs::create_dir_all(&self.folder).map_err(disk)?;
        if let Ok(found) = fs::read_to_string(&path) {
            return Ok(found.trim().to_owned());
        }
        let host = nix::unistd::gethostname().map_or_else(
            |_| "host".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        let identity = format!("{host}-{}", random_word());
        write_whole(&path, identity.as_bytes()).map_err(disk)?;
        Ok(identity)
    }
}

/// Eight random hexadecimal digits.
pub(crate) fn random_word() -> String {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes)
        .unwrap_or_else(|error| panic!("the kernel has no random bytes: {error}"));
    hex(&bytes)
}

/// Replaces a file at once.
fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    io::Write::write_all(&mut file, content)?;
    file.sync_all()?;
    fs::rename(new, path)
}

/// One lab's part of an agent.
struct Tender {
    agent: Agent,
    identity: String,
    lab: AgentLab,
    fleet: Fleet,
    stop: watch::Receiver<bool>,
    /// Jobs that do not fit the lab: neither they nor it change while the agent runs.
    refused: RefCell<BTreeSet<String>>,
}

impl Tender {
    async fn serve(mut self, say: &impl Fn(String)) {
        while !*self.stop.borrow() {
            if let Err(error) = self.serve_once(say).await {
                say(format!("{}: {error}", self.lab.name));
                self.pause(RETRY).await;
            }
        }
    }

    async fn pause(&mut self, time: Duration) {
        // A sender that is gone has stopped the agent.
        let _ = timeout(time, self.stop.wait_for(|stop| *stop)).await;
    }

    fn folder(&self) -> PathBuf {
        self.agent.folder.join(&self.lab.name)
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
        let mut since = std::time::Instant::now();
        while !*self.stop.borrow() {
            let next = match self.left()? {
                Some(kept) => self.again(kept).await?,
                None => self.next(&lease.offer).await?,
            };
            match next {
                Some(kept) => {
                    if !self.work(&mut lease, kept, say).await? {
                        return Ok(());
                    }
                }
                None => self.pause(LOOK).await,
            }
            if since.elapsed() >= BEAT {
                since = std::time::Instant::now();
                if !lease.renew(&self.fleet, None).await {
                    say(format!("{name}: another agent has the lab now"));
                    return Ok(());
                }
            }
        }
        lease.end(&self.fleet).await;
        Ok(())
    }

    /// The job that an earlier start of the agent left.
    fn left(&self) -> Result<Option<Kept>, FleetError> {
        let Ok(entries) = fs::read_dir(self.folder()) else {
            return Ok(None);
        };
        for entry in entries.flatten() {
            let path = entry.path().join("job.json");
            let Ok(text) = fs::read(&path) else { continue };
            return serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| FleetError::Disk {
                    what: format!("cannot read {}", path.display()),
                    error: error.into(),
                });
        }
        Ok(None)
    }

    /// Takes up a job that was left; `None` if it is not this lab's any more.
    async fn again(&self, mut kept: Kept) -> Result<Option<Kept>, FleetError> {
        let id = kept.job.id.clone();
        match read::<State>(&self.fleet.states, &id).await? {
            Some(Found {
                value: State::Running(held),
                revision,
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
                    self.forget(&id)?;
                    return Ok(None);
                }
                let running = State::Running(kept.held.clone());
                if swap(&self.fleet.states, &id, revision, &running).await == Swap::Lost {
                    return Ok(None);
                }
                self.keep(&kept)?;
                Ok(Some(kept))
            }
            // The server has lost what it acknowledged: this disk is the truth.
            None => {
                swap(&self.fleet.jobs, &id, 0, &kept.job).await;
                swap(
                    &self.fleet.states,
                    &id,
                    0,
                    &State::Running(kept.held.clone()),
                )
                .await;
                Ok(None)
            }
            Some(_) => {
                self.forget(&id)?;
                Ok(None)
            }
        }
    }

    /// Takes a job of the queue.
    async fn next(&self, offer: &LabOffer) -> Result<Option<Kept>, FleetError> {
        let fits = async |job: &Job| {
            if self.refused.borrow().contains(&job.id) {
                return false;
            }
            let Some(reason) = self.misfit(offer, job).await else {
                return true;
            };
            self.refused.borrow_mut().insert(job.id.clone());
            // For people only.
            let key = format!("{}.{}", job.id, offer.lab);
            swap(&self.fleet.misfits, &key, 0, &reason).await;
            false
        };
        let claimed = self.fleet.claim(offer, fits).await?;
        let Some((job, held)) = claimed else {
            return Ok(None);
        };
        let kept = Kept {
            job,
            held,
            exit: None,
            stopped: false,
        };
        self.keep(&kept)?;
        Ok(Some(kept))
    }

    /// Why a job cannot run in this lab: what it asks for, or what `cipherbench check` says.
    async fn misfit(&self, offer: &LabOffer, job: &Job) -> Option<String> {
        let asked = job.selector.misfit(offer);
        if asked.is_some() {
            return asked;
        }
        let file = tempfile::Builder::new().suffix(".yaml").tempfile().ok()?;
        fs::write(file.path(), &job.campaign).ok()?;
        let mut check = Command::new(&self.agent.program);
        check
            .args(["check", "--lab", &self.lab.file])
            .arg(file.path())
            .stdin(Stdio::null());
        let checked = spawn_blocking(move || check.output()).await.ok()?.ok()?;
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        let name = file.path().display().to_string();
        (!checked.status.success()).then(|| said.replace(&name, &job.name).trim().to_owned())
    }

    fn job_folder(&self, id: &str) -> PathBuf {
        self.folder().join(id)
    }

    fn keep(&self, kept: &Kept) -> Result<(), FleetError> {
        let folder = self.job_folder(&kept.job.id);
        let write = || {
            fs::create_dir_all(&folder)?;
            write_whole(&folder.join("campaign.yaml"), kept.job.campaign.as_bytes())?;
            let text = serde_json::to_vec_pretty(kept)?;
            write_whole(&folder.join("job.json"), &text)
        };
        write().map_err(|error| FleetError::Disk {
            what: format!("cannot write into {}", folder.display()),
            error,
        })
    }

    fn forget(&self, id: &str) -> Result<(), FleetError> {
        let folder = self.job_folder(id);
        // First what makes it a job: half a folder is no job.
        let removed =
            fs::remove_file(folder.join("job.json")).and_then(|()| fs::remove_dir_all(&folder));
        removed.map_err(|error| FleetError::Disk {
            what: format!("cannot remove {}", folder.display()),
            error,
        })
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
        if !lease.renew(&self.fleet, Some(&id)).await {
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
                    self.keep(&kept)?;
                    return Ok(true);
                }
                Ended::Taken => {
                    say(format!("{name}: job {id} was taken away"));
                    self.forget(&id)?;
                    return Ok(lease.renew(&self.fleet, None).await);
                }
                Ended::Exit(exit, said) if !WITH_A_RUN.contains(&exit) => {
                    let reason = format!("`cipherbench run` ended with exit code {exit}: {said}");
                    say(format!("{name}: job {id}: {reason}"));
                    self.end(&id, &State::Parked { reason }).await?;
                    self.forget(&id)?;
                    return Ok(lease.renew(&self.fleet, None).await);
                }
                Ended::Exit(exit, _) => {
                    kept.exit = Some(exit);
                    self.keep(&kept)?;
                }
            }
        }
        let Some(exit) = kept.exit else {
            return Ok(true);
        };
        let Some(run) = self.run_of(&id) else {
            let reason = format!("its run is not in {}", self.job_folder(&id).display());
            self.end(&id, &State::Parked { reason }).await?;
            self.forget(&id)?;
            return Ok(true);
        };
        loop {
            if !lease.renew(&self.fleet, Some(&id)).await {
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
        let held = kept.held.clone();
        self.end(&id, &State::Done { held, exit }).await?;
        say(format!("{name}: job {id} is done (exit code {exit})"));
        self.forget(&id)?;
        Ok(lease.renew(&self.fleet, None).await)
    }

    /// Writes a job's end, unless it is not this agent's any more.
    async fn end(&self, id: &str, state: &State) -> Result<(), FleetError> {
        loop {
            match read::<State>(&self.fleet.states, id).await? {
                Some(Found {
                    value: State::Running(held),
                    revision,
                }) if held.agent == self.identity => {
                    if swap(&self.fleet.states, id, revision, state).await != Swap::Lost {
                        return Ok(());
                    }
                }
                None => {
                    swap(&self.fleet.states, id, 0, state).await;
                }
                Some(_) => return Ok(()),
            }
        }
    }

    /// The run's folder.
    fn run_of(&self, id: &str) -> Option<PathBuf> {
        let runs = fs::read_dir(self.job_folder(id).join("runs")).ok()?;
        let mut runs: Vec<PathBuf> = runs.flatten().map(|entry| entry.path()).collect();
        runs.retain(|run| run.join("journal.jsonl").is_file());
        runs.sort();
        runs.pop()
    }

    /// Runs the program, or resumes what it began, and renews the lease meanwhile.
    async fn measure(&mut self, lease: &mut Lease, kept: &Kept) -> Result<Ended, FleetError> {
        let id = &kept.job.id;
        let folder = self.job_folder(id);
        let log = folder.join("log");
        let cannot_start = |error| FleetError::Disk {
            what: format!("cannot start {}", self.agent.program.display()),
            error,
        };
        let mut command = match self.run_of(id) {
            Some(run) => {
                let mut command = self.command();
                command.arg("resume").arg(run);
                command
            }
            None => {
                let mut command = self.command();
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
                    if has_lab == Ok(false) || has_job == Ok(false) {
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

    /// The program, which ends with the agent where that can be had.
    fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM"])
            .arg(&self.agent.program);
        command
    }

    /// Whether the job is still this agent's, as far as the server says: while it is away, yes.
    async fn is_ours(&self, id: &str) -> bool {
        match read::<State>(&self.fleet.states, id).await {
            Ok(Some(Found {
                value: State::Running(held),
                ..
            })) => held.agent == self.identity,
            Ok(Some(_)) => false,
            Ok(None) | Err(_) => true,
        }
    }
}

fn code(status: ExitStatus) -> i32 {
    // A run that was killed is as one that was interrupted.
    status.code().unwrap_or(INTERRUPTED)
}

/// Waits for a program's end.
async fn ended(child: &mut Child) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        sleep(STEP).await;
    }
}

/// Ends a run by SIGTERM, or by SIGKILL after [`END_LIMIT`].
async fn end(child: &mut Child) {
    // It is not reaped yet, so the number is its own.
    let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
    if timeout(END_LIMIT, ended(child)).await.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
}
