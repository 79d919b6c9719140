//! The queue: jobs and their states.

use crate::bucket::{Bucket, Swap, Versioned};
use crate::error::FleetError;
use crate::message::{Assignment, Job, LabOffer, State, is_id};
use crate::store::Fleet;
use guard::visible;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Attempts after which a job that ends its agent each time is parked.
pub(crate) const ATTEMPTS_MAX: u32 = 3;

/// A job in a list.
#[derive(Debug, Clone)]
pub struct Row {
    /// As submitted.
    pub job: Job,
    /// When it was submitted, by the server's clock, in seconds since 1970.
    pub submitted_at: u64,
    /// Its state.
    pub state: State,
    /// When the state was written, by the server's clock, in seconds since 1970.
    pub since: u64,
    /// Why it does not fit a lab, by lab.
    pub misfits: BTreeMap<String, String>,
}

/// Jobs of a fleet.
#[derive(Debug, Clone)]
pub struct Listing {
    /// In the order of submission.
    pub rows: Vec<Row>,
    /// Number of further jobs, which have ended.
    pub left_out: usize,
}

/// A queued job, as an agent knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Queued {
    pub(crate) id: String,
    pub(crate) attempts: u32,
    pub(crate) priority: i32,
    pub(crate) revision: u64,
}

/// Puts a job into the queue; submitting it again changes nothing.
///
/// # Errors
/// When the server cannot be asked, or the user may not.
pub async fn submit(fleet: &Fleet, job: &Job) -> Result<(), FleetError> {
    // The state is written second, so that a reader of the state finds the job.
    keep_job(&fleet.jobs, job).await?;
    let queued = State::Queued {
        attempts: 0,
        priority: job.priority,
    };
    fleet.states.swap(&job.id, 0, &queued).await?;
    // A server that was killed may have lost an acknowledged entry.
    match fleet.states.read::<State>(&job.id).await? {
        Some(_) => Ok(()),
        None => Err(FleetError::Refused {
            what: format!("keep job {}", job.id),
            reason: "it is not there".to_owned(),
        }),
    }
}

/// Writes a job into a bucket, unless it is there.
pub(crate) async fn keep_job(bucket: &Bucket, job: &Job) -> Result<(), FleetError> {
    if !is_id(&job.id) {
        return Err(FleetError::Unfit {
            what: format!("job {}", visible(&job.id)),
            reason: "its id has other characters than letters, digits and hyphens".to_owned(),
        });
    }
    // Revision 0: the entry must not exist, so that no id is used twice.
    let kept = bucket.swap(&job.id, 0, job).await;
    kept.map(drop).map_err(|error| match error {
        FleetError::Unfit { reason, .. } => FleetError::Unfit {
            what: format!("campaign {}", visible(&job.name)),
            reason: format!("as an entry of the fleet {reason}: divide the campaign"),
        },
        error => error,
    })
}

impl Fleet {
    /// Returns every job's state, in the order of submission.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn states(&self) -> Result<BTreeMap<String, State>, FleetError> {
        let states = self.states.read_all::<State>().await?;
        let states = states.into_iter();
        Ok(states.map(|(id, found)| (id, found.value)).collect())
    }

    /// Returns the jobs that have not ended, and the last `ended` of the others (`None`: all).
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn list(&self, ended: Option<usize>) -> Result<Listing, FleetError> {
        let states = self.states.read_all::<State>().await?.into_iter();
        let states = states.map(|(id, found)| (id, (found.value, found.written_at)));
        self.list_of(states.collect(), ended).await
    }

    /// As `list`, from known states, each with the time it was written.
    pub(crate) async fn list_of(
        &self,
        mut states: BTreeMap<String, (State, u64)>,
        ended: Option<usize>,
    ) -> Result<Listing, FleetError> {
        let finals = states.values().filter(|(state, _)| state.is_final());
        let finals = finals.count();
        let left_out = ended.map_or(0, |ended| finals.saturating_sub(ended));
        let mut leave = left_out;
        // The oldest ended ones, since ids sort by time.
        states.retain(|_, (state, _)| {
            let is_left = state.is_final() && leave > 0;
            leave -= usize::from(is_left);
            !is_left
        });
        let queued = states
            .iter()
            .filter(|(_, (state, _))| matches!(state, State::Queued { .. }));
        let queued: Vec<String> = queued.map(|(id, _)| id.clone()).collect();
        let mut jobs = self.jobs.read_each::<Job>(states.keys().cloned()).await?;
        let mut misfits: BTreeMap<String, Versioned<BTreeMap<String, String>>> =
            self.misfits.read_each(queued).await?;
        let rows = states.into_iter().filter_map(|(id, (state, since))| {
            let job = jobs.remove(&id);
            // An entry under another key was not written by this program.
            let job = job.filter(|found| found.value.id == id && is_id(&id))?;
            Some(Row {
                job: job.value,
                submitted_at: job.written_at,
                state,
                since,
                misfits: misfits
                    .remove(&id)
                    .map_or_else(BTreeMap::new, |it| it.value),
            })
        });
        Ok(Listing {
            rows: rows.collect(),
            left_out,
        })
    }

    /// Returns a job's state.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn state(&self, id: &str) -> Result<Option<State>, FleetError> {
        let found = self.states.read(id).await?;
        Ok(found.map(|found| found.value))
    }

    /// Returns a job; `None` if absent or unreadable.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn job(&self, id: &str) -> Result<Option<Job>, FleetError> {
        let found = self.jobs.read_known::<Job>(id).await?;
        let job = found.map(|found| found.value);
        Ok(job.filter(|job| job.id == id && is_id(id)))
    }

    /// Returns all labs on offer.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn offers(&self) -> Result<Vec<LabOffer>, FleetError> {
        let offers = self.labs.read_all::<LabOffer>().await?.into_iter();
        let offers = offers.filter(|(lab, found)| *lab == found.value.lab);
        Ok(offers.map(|(_, found)| found.value).collect())
    }

    /// Cancels a job. If it runs, its agent then ends the run. Returns the previous state; `None`
    /// if the job does not exist.
    ///
    /// # Errors
    /// When the server cannot be asked, or the user may not.
    pub async fn cancel(&self, id: &str) -> Result<Option<State>, FleetError> {
        loop {
            let Some(found) = self.states.read::<State>(id).await? else {
                return Ok(None);
            };
            if found.value.is_final()
                || self
                    .states
                    .swap(id, found.revision, &State::Cancelled)
                    .await?
                    != Swap::Lost
            {
                return Ok(Some(found.value));
            }
        }
    }

    /// Queues a running job again, if its lab will not come back. Returns the previous state;
    /// `None` if the job does not exist. A job that does not run is not changed.
    ///
    /// # Errors
    /// When the server cannot be asked, or the user may not.
    pub async fn release(&self, id: &str) -> Result<Option<State>, FleetError> {
        loop {
            let Some(found) = self.states.read::<State>(id).await? else {
                return Ok(None);
            };
            let State::Running(held) = &found.value else {
                return Ok(Some(found.value));
            };
            let job = self.job(id).await?;
            let queued = State::Queued {
                // The attempt counts: the job may be the reason why the lab went away.
                attempts: held.attempt,
                priority: job.map_or(0, |job| job.priority),
            };
            if self.states.swap(id, found.revision, &queued).await? != Swap::Lost {
                return Ok(Some(found.value));
            }
        }
    }

    /// Takes the first of these jobs, by priority and then by age, that fits a lab, by `fits`.
    pub(crate) async fn claim(
        &self,
        offer: &LabOffer,
        mut queued: Vec<Queued>,
        mut fits: impl AsyncFnMut(&Job) -> Result<bool, FleetError>,
    ) -> Result<Option<(Job, Assignment)>, FleetError> {
        // By the server's revisions: ids begin with the submitter's clock, which may be wrong.
        queued.sort_by_key(|queued| (Reverse(queued.priority), queued.revision));
        for Queued {
            id,
            attempts,
            revision,
            ..
        } in queued
        {
            if attempts >= ATTEMPTS_MAX {
                let reason = format!("{attempts} runs of it began, and none came to an end");
                let parked = State::Parked { reason };
                self.states.swap(&id, revision, &parked).await?;
                continue;
            }
            let Some(job) = self.job(&id).await? else {
                continue;
            };
            if !fits(&job).await? {
                continue;
            }
            let held = Assignment {
                lab: offer.lab.clone(),
                agent: offer.agent.clone(),
                attempt: attempts + 1,
            };
            let running = State::Running(held.clone());
            if self.states.swap(&id, revision, &running).await? != Swap::Lost {
                return Ok(Some((job, held)));
            }
        }
        Ok(None)
    }

    /// Records for people why a job does not fit a lab.
    pub(crate) async fn note_misfit(
        &self,
        job: &str,
        lab: &str,
        reason: &str,
    ) -> Result<(), FleetError> {
        loop {
            let found = self.misfits.look::<BTreeMap<String, String>>(job).await?;
            let (mut all, revision) = found.map_or_else(Default::default, |found| {
                (found.value.unwrap_or_default(), found.revision)
            });
            // No write without a change: each one wakes everybody who follows the bucket.
            if all.get(lab).is_some_and(|known| known == reason) {
                return Ok(());
            }
            all.insert(lab.to_owned(), reason.to_owned());
            if self.misfits.swap(job, revision, &all).await? != Swap::Lost {
                return Ok(());
            }
        }
    }
}
