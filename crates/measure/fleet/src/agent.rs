//! An agent: offers its labs, takes jobs that fit, runs each as a person would, and archives it.
//!
//! After a crash the agent's folder ([`kept`](crate::kept)) says what was under way: a job whose
//! folder is there is resumed before any other is taken, and uploaded before it is forgotten.

mod measuring;

use crate::archive::upload;
use crate::bucket::{Found, Swap};
use crate::connection::Access;
use crate::error::FleetError;
use crate::kept::{Disk, JOURNAL, Kept, identity};
use crate::lease::{BEAT, Lease};
use crate::message::{Job, LabOffer, State};
use crate::queue::{ATTEMPTS_MAX, is_id};
use crate::random_word;
use crate::records::Sender;
use crate::repeat::Repeats;
use crate::signing::Trust;
use crate::store::Fleet;
use crate::view::QueueView;
use futures_util::future::join_all;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// Between attempts to reach a server that is away.
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
        let view = QueueView::new(identity.clone());
        let measuring = Rc::new(());
        let repeats = Repeats::default();
        let tender = |lab: &AgentLab| Tender {
            agent: &self,
            identity: identity.clone(),
            disk: Disk::new(self.folder.join(&lab.name)),
            lab: lab.clone(),
            fleet: fleet.clone(),
            view: &view,
            stop: stop.clone(),
            measuring: &measuring,
            refused: RefCell::default(),
        };
        let labs = self.labs.iter().map(|lab| lab.name.clone()).collect();
        // What is under way with a server that is away would be awaited for ever.
        let gone = async {
            let mut stop = stop.clone();
            let _ = stop.wait_for(|stop| *stop).await;
            while Rc::strong_count(&measuring) > 1 {
                sleep(RETRY).await;
            }
            sleep(GOODBYE).await;
        };
        // One task for all: what they do is wait. Only the first and the last come to an end.
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

/// Reports what the server refuses, and whether it answers, for ever.
async fn report(fleet: &Fleet, say: &impl Fn(String)) {
    let mut refusals = fleet.denials.refusals();
    let mut silences = fleet.denials.silences();
    loop {
        tokio::select! {
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
    /// One more of it for each run that is under way.
    measuring: &'a Rc<()>,
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
        let mut changes = self.view.changes();
        changes.mark_changed();
        let mut since = Instant::now();
        let mut has_room = true;
        while !*self.stop.borrow() {
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
            // Before the queue is looked at: what comes later is a change.
            let is_changed = has_room && changes.has_changed().unwrap_or(false);
            if has_room {
                changes.mark_unchanged();
            }
            let left = self.disk.left()?;
            let of_left = left.as_ref().map(|kept| kept.job.id.clone());
            let next = match left {
                Some(kept) if has_room || kept.exit.is_some() => self.again(kept).await?,
                None if is_changed => self.next(&lease.offer).await?,
                _ => None,
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
                    _ = changes.changed(), if has_room => changes.mark_changed(),
                    () = sleep(BEAT.saturating_sub(since.elapsed())) => {}
                },
            }
            if since.elapsed() >= BEAT {
                since = Instant::now();
                if !lease.renew(&self.fleet, of_left.as_deref(), None).await? {
                    say(format!("{name}: another agent has the lab now"));
                    return Ok(());
                }
            }
        }
        lease.end(&self.fleet).await;
        Ok(())
    }

    /// Keeps a job that an earlier start of this agent took, and was killed before it was on its
    /// disk.
    async fn adopt(&self, offer: &LabOffer, id: &str) -> Result<Option<Kept>, FleetError> {
        if !is_id(id) || self.disk.has(id) {
            return Ok(None);
        }
        // It may have ended since.
        let Some(Found {
            value: State::Running(held),
            ..
        }) = self.fleet.states.read::<State>(id).await?
        else {
            return Ok(None);
        };
        if held.agent != self.identity || held.lab != self.lab.name {
            return Ok(None);
        }
        let Some(job) = self.fleet.job(id).await?.filter(|job| job.id == id) else {
            return Ok(None);
        };
        // It may be somebody else who wrote that this agent has it.
        if let Some(reason) = self.misfit(offer, &job).await? {
            self.end(id, &State::Parked { reason }).await?;
            return Ok(None);
        }
        let kept = Kept::new(job, held);
        self.disk.keep(&kept)?;
        Ok(Some(kept))
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
                // A run that has measured a trial since was not ended by its own job.
                let trials = self.disk.trials_of(&id);
                let in_vain = !kept.stopped && trials <= kept.trials;
                kept.held.attempt = held.attempt + u32::from(in_vain);
                (kept.stopped, kept.trials) = (false, trials);
                if kept.held.attempt > ATTEMPTS_MAX {
                    let reason = format!(
                        "{} runs of it ended with their agent, and measured no trial",
                        held.attempt
                    );
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

    /// Takes a job of the queue, or one that is this lab's already.
    async fn next(&self, offer: &LabOffer) -> Result<Option<Kept>, FleetError> {
        for id in self.view.held(&self.lab.name) {
            if let Some(kept) = self.adopt(offer, &id).await?
                && let Some(kept) = self.again(kept).await?
            {
                return Ok(Some(kept));
            }
        }
        let fits = async |job: &Job| {
            let Some(reason) = self.misfit(offer, job).await? else {
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
        let kept = Kept::new(job, held);
        self.disk.keep(&kept)?;
        Ok(Some(kept))
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
        if !lease.renew(&self.fleet, Some(&id), None).await? {
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
                    return lease.renew(&self.fleet, None, None).await;
                }
                Ended::Exit(exit, said)
                    if !WITH_A_RUN.contains(&exit) && self.disk.lack().is_some() =>
                {
                    say(format!(
                        "{name}: job {id} ended for want of room, and goes on once there is some (exit code {exit}: {said})"
                    ));
                    // It counts as an attempt only where not even this can be written.
                    kept.stopped = true;
                    let _ = self.disk.keep(&kept);
                    return Ok(true);
                }
                Ended::Exit(exit, said) if !WITH_A_RUN.contains(&exit) => {
                    let reason = format!("`cipherbench run` ended with exit code {exit}: {said}");
                    say(format!("{name}: job {id}: {reason}"));
                    self.end(&id, &State::Parked { reason }).await?;
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
        let Some(run) = self.disk.run_of(&id) else {
            let reason = format!("its run is not in {}", self.disk.job_folder(&id).display());
            self.end(&id, &State::Parked { reason }).await?;
            self.disk.forget(&id)?;
            return Ok(true);
        };
        loop {
            if !lease.renew(&self.fleet, Some(&id), None).await? {
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
        let journal = || Some(run.join(JOURNAL));
        Sender::new(&self.fleet, &id, &journal).finish().await;
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
        lease.renew(&self.fleet, None, None).await
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
}
