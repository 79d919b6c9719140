//! An agent: offers its labs, takes jobs that fit, runs each as a person would, and archives it.
//!
//! After a crash the agent's folder ([`kept`](crate::kept)) has the unfinished job: it is resumed
//! before any other is taken, and uploaded before it is forgotten.

mod measuring;
mod taking;

use crate::archive::upload;
use crate::bucket::{Swap, Versioned};
use crate::connection::Access;
use crate::error::FleetError;
use crate::kept::{Disk, JOURNAL, StoredJob, identity, pin};
use crate::lease::{BEAT, Lease};
use crate::message::{Job, LabOffer, State};
use crate::ran::Ran;
use crate::random_word;
use crate::records::Sender;
use crate::repeat::Repeats;
use crate::serving::Serving;
use crate::signing::{Trust, now};
use crate::store::Fleet;
use crate::turn::Turn;
use crate::view::QueueView;
use futures_util::future::join_all;
use guard::{Component, visible};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Interval between attempts to reach the server.
const RETRY: Duration = Duration::from_secs(1);
/// How long an agent that is stopped waits for the server once no run is left.
const GOODBYE: Duration = Duration::from_secs(3);
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
    /// Names of the machines that it runs on. Labs that share a machine are measured one at a time.
    pub machines: BTreeSet<String>,
}

/// An agent on the machine of its labs.
#[derive(Debug, Clone)]
pub struct Agent {
    /// The program that measures: this one.
    pub program: PathBuf,
    /// The agent's folder, with its identity and its jobs.
    pub folder: PathBuf,
    /// The folder of locks with which the labs of a machine take turns.
    pub turns: PathBuf,
    /// How to reach the server.
    pub access: Access,
    /// The labs.
    pub labs: Vec<AgentLab>,
    /// A file of the commands that campaigns may run here, as `cipherbench check --allow` reads
    /// it; without one they may run none.
    pub allow: Option<PathBuf>,
    /// The keys that must have signed a job. `None` runs all jobs.
    pub trust: Option<Trust>,
}

/// How a run ended.
enum Ended {
    /// With this exit code, and the last lines of its standard error.
    Exit(i32, String),
    /// The agent is to stop; the run can be resumed.
    Stopped,
    /// Somebody cancelled the job, or another agent has it.
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
        for lab in &self.labs {
            // A folder is named after it.
            Component::new(&lab.name).map_err(|error| FleetError::Mistake {
                file: lab.file.clone(),
                reason: error.to_string(),
                help: "give the lab another name: `lab: NAME`".to_owned(),
            })?;
        }
        // Before the server is reached: a folder that cannot be used is an error of the start.
        let identity = identity(&self.folder)?;
        let fleet = Fleet::connect(&self.access).await?;
        let ran = match &self.trust {
            Some(_) => {
                // A signature names its fleet, so a server cannot pass for another one later.
                pin(&self.folder, &self.access.url, fleet.id())?;
                Some(Ran::read(&self.folder, now())?)
            }
            None => {
                // Not an error: on one machine, or in a closed network, that may be intended.
                if fleet.is_open() {
                    say(format!(
                        "warning: the server at {} accepts everybody who reaches it, and this agent runs their campaigns\n\
                         help: use a server with users, or run only jobs that known keys signed: --trust FILE",
                        self.access.url
                    ));
                }
                None
            }
        };
        let view = QueueView::new(identity.clone());
        // Cloned by each run, so that the end can wait for all of them.
        let measuring = Rc::new(());
        let repeats = Repeats::default();
        let serving = Serving::new(self.folder.join("serving"), self.labs.len());
        let tender = |lab: &AgentLab| Tender {
            agent: &self,
            identity: identity.clone(),
            disk: Disk::new(self.folder.join(&lab.name)),
            lab: lab.clone(),
            fleet: fleet.clone(),
            view: &view,
            stop: stop.clone(),
            measuring: &measuring,
            serving: &serving,
            turn: RefCell::new(Turn::new(&self.turns, &lab.machines)),
            waits: Cell::new(false),
            refused: RefCell::default(),
            ran: ran.as_ref(),
        };
        let labs = self.labs.iter().map(|lab| lab.name.clone()).collect();
        // Requests to an unreachable server would otherwise keep the agent from ending.
        let gone = async {
            let mut stop = stop.clone();
            let _ = stop.wait_for(|stop| *stop).await;
            // Runs end by themselves once `stop` is raised; they must not be cut off here.
            while Rc::strong_count(&measuring) > 1 {
                sleep(RETRY).await;
            }
            sleep(GOODBYE).await;
        };
        // One task for all, since they mostly wait. Only the first and the last end.
        tokio::select! {
            _ = join_all(self.labs.iter().map(|lab| tender(lab).serve(&say))) => {}
            () = view.follow(&fleet.states) => {}
            () = repeats.serve(&fleet, labs) => {}
            () = report(&fleet, &say) => {}
            () = gone => {}
        }
        Ok(())
    }
}

/// Reports unreadable entries, refusals and silences of the server, without end.
async fn report(fleet: &Fleet, say: &impl Fn(String)) {
    let mut refusals = fleet.denials.refusals();
    let mut silences = fleet.denials.silences();
    let mut unreadable = fleet.unreadable.changes();
    let mut left_out = Vec::new();
    loop {
        tokio::select! {
            Ok(()) = unreadable.changed() => {
                unreadable.mark_unchanged();
                let now = fleet.unreadable();
                for entry in now.iter().filter(|entry| !left_out.contains(*entry)) {
                    say(entry.to_string());
                }
                // Only entries that are new are reported, also when another one was mended
                // meanwhile.
                left_out = now;
            }
            Ok(()) = refusals.changed() => say(match &*refusals.borrow_and_update() {
                None => "the server accepts this agent again".to_owned(),
                Some(reason) => format!(
                    "the server does not accept this agent: {reason}\nhelp: replace the file of its key or credentials; \
                     runs go on meanwhile, and are uploaded then"
                ),
            }),
            Ok(()) = silences.changed() => say(match &*silences.borrow_and_update() {
                None => "the server answers again".to_owned(),
                Some(reason) => format!(
                    "the server does not answer: {reason}; runs go on meanwhile, and are uploaded once it does"
                ),
            }),
            else => return,
        }
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
    /// Cloned by each run that is under way, which its reference count shows.
    measuring: &'a Rc<()>,
    /// Shows that this lab is on offer or at work.
    serving: &'a Serving,
    /// The lab's turn on its machines.
    turn: RefCell<Turn>,
    /// Whether the lab has a job to run while another lab of its machines is being measured.
    waits: Cell<bool>,
    /// Jobs that do not fit the lab: neither they nor it change while the agent runs.
    refused: RefCell<BTreeSet<String>>,
    /// Signed jobs that began on this agent; `None` if unsigned jobs are run too.
    ran: Option<&'a Ran>,
}

impl Tender<'_> {
    async fn serve(mut self, say: &impl Fn(String)) {
        let mut last = String::new();
        while !*self.stop.borrow() {
            let served = self.serve_once(say).await;
            self.turn.borrow_mut().give_back();
            self.waits.set(false);
            if let Err(error) = served {
                let text = format!("{}: {error}", self.lab.name);
                // A server that is away gives the same error each second.
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
            waits: false,
            progress: None,
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
        // The first look at the queue needs no change: jobs may have waited before.
        let mut changes = self.view.changes();
        changes.mark_changed();
        let mut since = Instant::now();
        let mut has_room = true;
        let mut said_that_it_waits = false;
        while !*self.stop.borrow() {
            // At each step, since other programs fill disks too.
            let lack = self.disk.lack();
            if has_room != lack.is_none() {
                has_room = lack.is_none();
                say(match &lack {
                    None => format!("{name}: there is room again"),
                    Some(lack) => format!(
                        "{name}: {lack}: no run begins or goes on\nhelp: make room there; what has ended is uploaded"
                    ),
                });
            }
            // Cleared before the queue is read, so that later entries count as a change.
            let is_changed = has_room && changes.has_changed().unwrap_or(false);
            if has_room {
                changes.mark_unchanged();
            } else {
                self.waits.set(false);
            }
            // Its turn has come, or another agent took the waiting job.
            let is_changed =
                is_changed || self.waits.get() && (self.has_turn()? || !self.has_work());
            let left = self.disk.left()?;
            // The lease names it, so that no other agent takes a lab with an unfinished job.
            let of_left = left.as_ref().map(|kept| kept.job.id.clone());
            let next = match left {
                // A run that has ended is only uploaded.
                Some(kept) if kept.exit.is_some() || has_room && self.has_turn()? => {
                    self.again(kept).await?
                }
                None if is_changed => self.next(&lease.offer).await?,
                _ => None,
            };
            // Without a job, the machine's other labs may go on.
            if next.is_none() && !self.waits.get() {
                self.turn.borrow_mut().give_back();
            }
            if self.waits.get() && !said_that_it_waits {
                say(format!(
                    "{name}: waits for its turn: another lab of its machine is measured"
                ));
            }
            said_that_it_waits = self.waits.get();
            match next {
                Some(kept) => {
                    if !self.work(&mut lease, kept, say).await? {
                        return Ok(());
                    }
                    // Jobs may have been queued meanwhile.
                    changes.mark_changed();
                }
                None => tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => {}
                    _ = changes.changed(), if has_room => changes.mark_changed(),
                    () = sleep(self.pause_before(BEAT.saturating_sub(since.elapsed()))) => {}
                },
            }
            if since.elapsed() >= BEAT {
                since = Instant::now();
                lease.offer.waits = self.waits.get();
                if !lease.renew(&self.fleet, of_left.as_deref(), None).await? {
                    say(format!("{name}: another agent has the lab now"));
                    return Ok(());
                }
                if has_room {
                    self.serving.note(&name);
                }
            }
        }
        lease.end(&self.fleet).await;
        Ok(())
    }

    /// Runs a job to its end and archives it. Returns whether this agent still has the lab.
    async fn work(
        &mut self,
        lease: &mut Lease,
        mut kept: StoredJob,
        say: &impl Fn(String),
    ) -> Result<bool, FleetError> {
        let id = kept.job.id.clone();
        let name = self.lab.name.clone();
        lease.offer.waits = false;
        if !lease.renew(&self.fleet, Some(&id), None).await? {
            return Ok(false);
        }
        if kept.exit.is_none() {
            say(format!(
                "{name}: job {id} ({}), attempt {}",
                visible(&kept.job.name),
                kept.held.attempt
            ));
            let ended = self.measure(lease, &kept).await;
            self.turn.borrow_mut().give_back();
            match ended? {
                Ended::Stopped => {
                    // Interrupted otherwise, as by a signal of somebody: that counts as an attempt.
                    kept.stopped = *self.stop.borrow();
                    self.disk.keep(&kept)?;
                    return Ok(true);
                }
                Ended::Taken => {
                    say(format!("{name}: job {id} was taken away"));
                    // Only a final state ends a signed job; one that was released may come back.
                    let state = self.fleet.states.read_known::<State>(&id).await?;
                    self.note_end(&kept.job, state.is_some_and(|found| found.value.is_final()))?;
                    self.disk.forget(&id)?;
                    return lease.renew(&self.fleet, None, None).await;
                }
                Ended::Exit(exit, said)
                    if !WITH_A_RUN.contains(&exit) && self.disk.lack().is_some() =>
                {
                    say(format!(
                        "{name}: job {id} ended for want of room, and goes on once there is some (exit code {exit}: {said})"
                    ));
                    // It counts as an attempt only if not even this can be written.
                    kept.stopped = true;
                    let _ = self.disk.keep(&kept);
                    return Ok(true);
                }
                Ended::Exit(exit, said) if !WITH_A_RUN.contains(&exit) => {
                    let reason = format!("`cipherbench run` ended with exit code {exit}: {said}");
                    say(format!("{name}: job {id}: {reason}"));
                    let parked = State::Parked { reason };
                    match self.disk.trials_of(&id) {
                        // It measured nothing, for example because the lab was busy. It may run
                        // once it is queued again, up to the limit of attempts.
                        0 => self.end(&id, &parked).await?,
                        _ => self.end_for_good(&kept.job, &parked).await?,
                    }
                    self.disk.forget(&id)?;
                    return lease.renew(&self.fleet, None, None).await;
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
        // Somebody has removed it, as the program had ended with a run.
        let Some(run) = self.disk.run_of(&id) else {
            let folder = self.disk.job_folder(&id)?;
            let reason = format!("its run is not in {}", folder.display());
            self.end_for_good(&kept.job, &State::Parked { reason })
                .await?;
            self.disk.forget(&id)?;
            return Ok(true);
        };
        loop {
            if !lease.renew(&self.fleet, Some(&id), None).await? {
                return Ok(false);
            }
            match upload(&self.fleet, &id, &run).await {
                Ok(_) => break,
                // It would be refused each time, and this is the only copy.
                Err(error @ FleetError::Unfit { .. }) => {
                    let reason = format!("{error}; it stays in {}", run.display());
                    say(format!("{name}: job {id}: {reason}"));
                    self.end_for_good(&kept.job, &State::Parked { reason })
                        .await?;
                    self.disk.leave(&id)?;
                    return lease.renew(&self.fleet, None, None).await;
                }
                Err(error) => {
                    say(format!("{name}: job {id}: {error}"));
                    self.pause(RETRY).await;
                    if *self.stop.borrow() {
                        return Ok(true);
                    }
                }
            }
        }
        // After the upload: records are a copy for watchers only.
        let journal = || Some(run.join(JOURNAL));
        Sender::new(&self.fleet, &id, &journal).finish().await;
        // They are derived from the archived run, so a failure does not hold up the job.
        if let Some(figures) = self.figures(&run).await {
            let labels = &self.lab.labels;
            let added = self.fleet.add_figures(&kept.job, &name, labels, &figures);
            if let Err(error) = added.await {
                say(format!("{name}: job {id}: {error}"));
            }
        }
        let held = kept.held.clone();
        self.end_for_good(&kept.job, &State::Done { held, exit })
            .await?;
        say(format!("{name}: job {id} is done (exit code {exit})"));
        self.disk.forget(&id)?;
        lease.renew(&self.fleet, None, None).await
    }

    /// Records that a signed job has ended, and writes the job's end.
    async fn end_for_good(&self, job: &Job, state: &State) -> Result<(), FleetError> {
        // On this disk first: if the server is not reached, the job must still not run twice.
        self.note_end(job, true)?;
        self.end(&job.id, state).await
    }

    /// Records that a signed job has ended, so that it is not begun here again.
    fn note_end(&self, job: &Job, has_ended: bool) -> Result<(), FleetError> {
        match self.ran {
            Some(ran) if has_ended => ran.end(job),
            _ => Ok(()),
        }
    }

    /// Writes a job's end, unless the job is no longer this agent's.
    async fn end(&self, id: &str, state: &State) -> Result<(), FleetError> {
        loop {
            let revision = match self.fleet.states.look::<State>(id).await? {
                None => 0,
                Some(Versioned {
                    value: Ok(State::Running(held)),
                    revision,
                    ..
                }) if held.agent == self.identity => revision,
                // It was this agent's when it was read last.
                Some(Versioned {
                    value: Err(_),
                    revision,
                    ..
                }) => revision,
                Some(_) => return Ok(()),
            };
            if self.fleet.states.swap(id, revision, state).await? != Swap::Lost {
                return Ok(());
            }
        }
    }
}
