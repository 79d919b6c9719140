//! How an agent takes jobs: first one that it left, then from the queue once its lab has the turn.

use super::Tender;
use crate::bucket::{Swap, Versioned};
use crate::error::{FleetError, disk};
use crate::kept::StoredJob;
use crate::message::{Assignment, Job, LabOffer, State, is_id};
use crate::queue::ATTEMPTS_MAX;
use crate::signing::Objection;
use std::time::Duration;

/// Interval between checks whether another lab of the machine is still being measured.
const TURN_STEP: Duration = Duration::from_millis(100);

impl Tender<'_> {
    /// Takes the turn if it is free. Returns whether the lab has it; otherwise the lab counts as
    /// waiting.
    pub(super) fn has_turn(&self) -> Result<bool, FleetError> {
        let taken = self.turn.borrow_mut().take();
        let has_it = taken.map_err(disk("use", &self.agent.turns))?;
        self.waits.set(!has_it);
        Ok(has_it)
    }

    /// Returns the longest pause: short while the lab waits for its turn, which is not announced.
    pub(super) fn pause_before(&self, most: Duration) -> Duration {
        if self.waits.get() {
            most.min(TURN_STEP)
        } else {
            most
        }
    }

    /// Whether the lab holds a job, or the queue has one that was not refused here.
    pub(super) fn has_work(&self) -> bool {
        let is_refused = |id: &str| self.refused.borrow().contains(id);
        !self.view.held(&self.lab.name).is_empty() || !self.view.queued(is_refused).is_empty()
    }

    /// Keeps a job that an earlier start of this agent took before it was killed, without a copy on
    /// its disk.
    async fn adopt(&self, offer: &LabOffer, id: &str) -> Result<Option<StoredJob>, FleetError> {
        // An id names a folder, and anyone with the rights may have written it.
        if !is_id(id) || self.disk.has(id) {
            return Ok(None);
        }
        // It may have ended since.
        let Some(Versioned {
            value: State::Running(held),
            ..
        }) = self.fleet.states.read_known::<State>(id).await?
        else {
            return Ok(None);
        };
        if held.agent != self.identity || held.lab != self.lab.name {
            return Ok(None);
        }
        let Some(job) = self.fleet.job(id).await? else {
            return Ok(None);
        };
        // Somebody else may have written the state that names this agent.
        if let Some(Objection { reason, .. }) = self.misfit(offer, &job).await? {
            self.end(id, &State::Parked { reason }).await?;
            return Ok(None);
        }
        self.begin(job, held).map(Some)
    }

    /// Takes up a job from the disk; `None` if it is no longer this lab's.
    pub(super) async fn again(&self, mut kept: StoredJob) -> Result<Option<StoredJob>, FleetError> {
        let id = kept.job.id.clone();
        match self.fleet.states.look::<State>(&id).await? {
            Some(Versioned {
                value: Ok(State::Running(held)),
                revision,
                ..
            }) if held.lab == kept.held.lab && held.agent == kept.held.agent => {
                // Its run has ended; the upload takes neither an attempt nor the turn.
                if kept.exit.is_some() {
                    return Ok(Some(kept));
                }
                // Only an attempt that measured no trial counts: its job may be the reason why the
                // agent ended.
                let trials = self.disk.trials_of(&id);
                let in_vain = !kept.stopped && trials <= kept.trials;
                kept.held.attempt = held.attempt + u32::from(in_vain);
                (kept.stopped, kept.trials) = (false, trials);
                if kept.held.attempt > ATTEMPTS_MAX {
                    let reason = format!(
                        "{} runs of it ended with their agent, and measured no trial",
                        held.attempt
                    );
                    self.end_for_good(&kept.job, &State::Parked { reason })
                        .await?;
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
            // The server lost an acknowledged entry, or has one that cannot be read: this disk is
            // authoritative.
            lost @ (None | Some(Versioned { value: Err(_), .. })) => {
                // The job before its state, as in `submit`.
                self.fleet.jobs.swap(&id, 0, &kept.job).await?;
                let running = State::Running(kept.held.clone());
                let revision = lost.map_or(0, |lost| lost.revision);
                self.fleet.states.swap(&id, revision, &running).await?;
                Ok(None)
            }
            Some(found) => {
                self.note_end(&kept.job, found.value.is_ok_and(|state| state.is_final()))?;
                self.disk.forget(&id)?;
                Ok(None)
            }
        }
    }

    /// Takes a job that this lab already holds, or one from the queue.
    pub(super) async fn next(&self, offer: &LabOffer) -> Result<Option<StoredJob>, FleetError> {
        self.waits.set(false);
        let held = self.view.held(&self.lab.name);
        // Jobs that it holds come first, and wait for the turn as well.
        if !held.is_empty() && !self.has_turn()? {
            return Ok(None);
        }
        for id in held {
            if let Some(kept) = self.adopt(offer, &id).await?
                && let Some(kept) = self.again(kept).await?
            {
                return Ok(Some(kept));
            }
        }
        let fits = async |job: &Job| {
            // Even the check would disturb a measurement on the machine.
            if self.objection(offer, job).is_none() && !self.has_turn()? {
                return Ok(false);
            }
            let Some(Objection { reason, is_lasting }) = self.misfit(offer, job).await? else {
                return Ok(true);
            };
            // A lasting objection is not checked again: each check starts a program.
            if is_lasting {
                self.refused.borrow_mut().insert(job.id.clone());
            }
            self.fleet.note_misfit(&job.id, &offer.lab, &reason).await?;
            Ok(false)
        };
        // Forgets refusals of jobs that are no longer queued.
        self.refused
            .borrow_mut()
            .retain(|id| self.view.is_queued(id));
        let queued = self.view.queued(|id| self.refused.borrow().contains(id));
        let claimed = self.fleet.claim(offer, queued, fits).await?;
        let Some((job, held)) = claimed else {
            return Ok(None);
        };
        self.begin(job, held).map(Some)
    }

    /// Keeps a job that this agent now holds, and records it if it is signed.
    fn begin(&self, job: Job, held: Assignment) -> Result<StoredJob, FleetError> {
        if let Some(ran) = self.ran {
            // Before the job is kept: after a crash in between it counts as begun.
            ran.begin(&job)?;
        }
        let kept = StoredJob::new(job, held);
        self.disk.keep(&kept)?;
        Ok(kept)
    }
}
