//! The programs that an agent starts: `cipherbench check`, `run`, `resume` and `figures`.

use super::{Ended, Tender};
use crate::bucket::Versioned;
use crate::child::{INTERRUPTED, bound, code, earlier_ended, end, ended};
use crate::error::{FleetError, disk};
use crate::history::RunFigures;
use crate::kept::{JOURNAL, StoredJob};
use crate::lease::{BEAT, Lease};
use crate::message::{Job, LabOffer, State};
use crate::progress::Progress;
use crate::records::Sender;
use crate::signing::{Objection, now};
use guard::{Lines, visible, visible_lines};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs;
use std::future::pending;
use std::io::BufReader;
use std::path::Path;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::rc::Rc;
use tokio::task::spawn_blocking;
use tokio::time::{interval, timeout};

/// Unanswered renewals after which the server counts as unreachable.
const SILENT_MAX: u32 = 3;
/// The longest reason for a misfit or a failure, in bytes. Several fit into one entry.
const REASON_BYTES_MAX: usize = 4 << 10;
/// Lines of a run's standard error that a reason quotes.
const LAST_LINES: usize = 3;

/// Returns the last lines of a run's standard error.
fn last_words(log: &Path) -> String {
    // The reason is then the exit code alone.
    let Ok(file) = fs::File::open(log) else {
        return String::new();
    };
    let mut last = VecDeque::new();
    for line in Lines::new(BufReader::new(file), REASON_BYTES_MAX).map_while(Result::ok) {
        last.push_back(visible(&line.text).into_owned());
        if last.len() > LAST_LINES {
            last.pop_front();
        }
    }
    shortened(&Vec::from(last).join("; "))
}

/// Cuts a reason to `REASON_BYTES_MAX`.
fn shortened(reason: &str) -> String {
    let ends = reason.char_indices().map(|(at, _)| at);
    // At a boundary of a character.
    let end = ends.take_while(|at| *at <= REASON_BYTES_MAX).last();
    match end {
        Some(end) if reason.len() > REASON_BYTES_MAX => format!("{}…", &reason[..end]),
        _ => reason.to_owned(),
    }
}

impl Tender<'_> {
    /// Returns why a job may not run in this lab, from its selector, its signature and the signed
    /// jobs that ran here.
    pub(super) fn objection(&self, offer: &LabOffer, job: &Job) -> Option<Objection> {
        let trust = self.agent.trust.as_ref();
        let (fleet, now) = (self.fleet.id(), now());
        let asked = job.selector.misfit(offer).map(Objection::lasting);
        asked
            // The cheap comparison before the signature.
            .or_else(|| trust?.objection(job, fleet, now))
            .or_else(|| self.ran?.objection(job).map(Objection::lasting))
    }

    /// As `objection`, and then runs `cipherbench check`, which also finds commands that are not
    /// allowed here.
    ///
    /// # Errors
    /// If the check cannot be run; the job is not run either then.
    pub(super) async fn misfit(
        &self,
        offer: &LabOffer,
        job: &Job,
    ) -> Result<Option<Objection>, FleetError> {
        if let Some(objection) = self.objection(offer, job) {
            return Ok(Some(objection));
        }
        let cannot = |error| FleetError::Disk {
            what: format!("cannot check job {}", job.id),
            error,
        };
        let file = tempfile::Builder::new().suffix(".yaml").tempfile();
        let file = file.map_err(cannot)?;
        fs::write(file.path(), &job.campaign).map_err(cannot)?;
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
        // On another thread: the leases of the other labs are renewed meanwhile.
        let checked = spawn_blocking(move || check.output()).await;
        let checked = checked.map_err(std::io::Error::other).flatten();
        let checked = checked.map_err(cannot)?;
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        let name = file.path().display().to_string();
        // The name of the temporary file says nothing to the submitter.
        let said = said.replace(&name, &visible(&job.name));
        let reason = shortened(&visible_lines(said.trim()));
        Ok((!checked.status.success()).then(|| Objection::lasting(reason)))
    }

    /// Returns a run's figures by cell, as `cipherbench figures` prints them; `None` if it prints
    /// none.
    pub(super) async fn figures(&self, run: &Path) -> Option<RunFigures> {
        let mut figures = Command::new(&self.agent.program);
        figures
            .arg("figures")
            .arg(run)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let printed = spawn_blocking(move || figures.output()).await.ok()?.ok()?;
        serde_json::from_slice(&printed.stdout).ok()
    }

    /// Runs the campaign, or resumes its run, and renews the lease meanwhile.
    pub(super) async fn measure(
        &self,
        lease: &mut Lease,
        kept: &StoredJob,
    ) -> Result<Ended, FleetError> {
        let id = &kept.job.id;
        let folder = self.disk.job_folder(id)?;
        let log = folder.join("log");
        let cannot_start = disk("start", &self.agent.program);
        let lock = folder.join("lock");
        // Until this function returns, also by an error.
        let _measuring = Rc::clone(self.measuring);
        let progress = RefCell::default();
        let mut earlier = pin!(earlier_ended(&lock));
        tokio::select! {
            biased;
            free = &mut earlier => free.map_err(cannot_start)?,
            halted = self.halted(lease, id, &progress) => {
                // The lab is in use until then.
                earlier.await.map_err(cannot_start)?;
                return Ok(halted);
            }
        }
        let mut command = {
            let turn = self.turn.borrow();
            bound("TERM", &lock, turn.files(), &self.agent.program)
        };
        match self.disk.run_of(id) {
            // A run with a journal goes on; without one, nothing was measured.
            Some(run) => {
                command.arg("resume").arg(run);
            }
            None => {
                command.args([
                    "run",
                    "campaign.yaml",
                    "--out",
                    "runs",
                    "--lab",
                    &self.lab.file,
                ]);
                command.args(kept.job.quick.then_some("--quick"));
            }
        }
        let errors = fs::File::create(&log).map_err(cannot_start)?;
        let mut child = command
            // Progress comes from the journal, not from the terminal.
            .arg("--quiet")
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(cannot_start)?;
        let find = || Some(self.disk.run_of(id)?.join(JOURNAL));
        let mut sender = Sender::new(&self.fleet, id, &find);
        let sending = async {
            sender.follow(&progress).await;
            // It must not end the select: the run goes on even if no record can be sent.
            pending().await
        };
        tokio::select! {
            status = ended(&mut child) => {
                let status = status.map_err(cannot_start)?;
                // Read after the end, so that the last lines are in it.
                let said = last_words(&log);
                Ok(match code(status) {
                    INTERRUPTED => Ended::Stopped,
                    code => Ended::Exit(code, said),
                })
            }
            halted = self.halted(lease, id, &progress) => {
                // The lab is given back before anybody else may take it.
                end(&mut child).await;
                Ok(halted)
            }
            never = sending => never,
        }
    }

    /// Renews the lease until the agent is to stop, or the lab or the job is no longer this
    /// agent's.
    async fn halted(
        &self,
        lease: &mut Lease,
        id: &str,
        progress: &RefCell<Option<Progress>>,
    ) -> Ended {
        let lost = async {
            let mut beats = interval(BEAT);
            let mut silent = 0;
            loop {
                beats.tick().await;
                // If the server is unreachable, the run goes on and the next beat tries again.
                let now = progress.borrow().clone();
                let has_lab = timeout(BEAT, lease.renew(&self.fleet, Some(id), now)).await;
                // A job may be cancelled while the lab stays with this agent.
                let has_job = timeout(BEAT, self.is_ours(id)).await;
                silent = if has_lab.is_err() { silent + 1 } else { 0 };
                if matches!(has_lab, Ok(Ok(true))) {
                    self.serving.note(&self.lab.name);
                }
                if silent >= SILENT_MAX {
                    self.fleet.denials.silent("it does not renew the lease");
                }
                if matches!(has_lab, Ok(Ok(false))) || has_job == Ok(false) {
                    return;
                }
            }
        };
        let mut stop = self.stop.clone();
        tokio::select! {
            () = lost => Ended::Taken,
            _ = stop.wait_for(|stop| *stop) => Ended::Stopped,
        }
    }

    /// Whether the job is still this agent's. True if the server does not answer or has lost the
    /// entry.
    async fn is_ours(&self, id: &str) -> bool {
        match self.fleet.states.read::<State>(id).await {
            Ok(Some(Versioned {
                value: State::Running(held),
                ..
            })) => held.agent == self.identity,
            Ok(Some(_)) => false,
            // In doubt the run goes on: the journal on this disk is authoritative.
            Ok(None) | Err(_) => true,
        }
    }
}
