//! The queue: jobs and how far they are.

use crate::message::{Held, Job, LabOffer, State};
use crate::store::{Fleet, FleetError, Found, Swap, read, read_all, swap};
use std::collections::BTreeMap;

/// Attempts after which a job that ends its agent each time is parked.
pub(crate) const ATTEMPTS_MAX: u32 = 3;

/// A job in a list.
#[derive(Debug, Clone)]
pub struct Row {
    /// As submitted.
    pub job: Job,
    /// How far it is.
    pub state: State,
    /// Why it does not fit a lab, by lab.
    pub misfits: BTreeMap<String, String>,
}

/// Puts a job into the queue; the same one again changes nothing.
///
/// # Errors
/// When the server cannot be asked.
pub async fn submit(fleet: &Fleet, job: &Job) -> Result<(), FleetError> {
    // The state comes second: who sees it finds the job.
    swap(&fleet.jobs, &job.id, 0, job).await;
    swap(&fleet.states, &job.id, 0, &State::Queued { attempts: 0 }).await;
    match read::<State>(&fleet.states, &job.id).await? {
        Some(_) => Ok(()),
        None => Err(FleetError::Refused {
            what: format!("keep job {}", job.id),
            reason: "it is not there".to_owned(),
        }),
    }
}

impl Fleet {
    /// All jobs, as they were submitted.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn rows(&self) -> Result<Vec<Row>, FleetError> {
        let states: BTreeMap<String, Found<State>> = read_all(&self.states).await?;
        let mut jobs: BTreeMap<String, Found<Job>> = read_all(&self.jobs).await?;
        let misfits: BTreeMap<String, Found<String>> = read_all(&self.misfits).await?;
        let rows = states.into_iter().filter_map(|(id, state)| {
            let job = jobs.remove(&id)?.value;
            let of_job = misfits.iter().filter_map(|(key, reason)| {
                let (job, lab) = key.split_once('.')?;
                (job == id).then(|| (lab.to_owned(), reason.value.clone()))
            });
            Some(Row {
                misfits: of_job.collect(),
                job,
                state: state.value,
            })
        });
        Ok(rows.collect())
    }

    /// All labs on offer.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn offers(&self) -> Result<Vec<LabOffer>, FleetError> {
        let offers = read_all::<LabOffer>(&self.labs).await?;
        Ok(offers.into_values().map(|found| found.value).collect())
    }

    /// Cancels a job: one that is queued at once; of one that runs the agent ends the run. Returns
    /// the state before; `None` if there is no such job.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn cancel(&self, id: &str) -> Result<Option<State>, FleetError> {
        loop {
            let Some(found) = read::<State>(&self.states, id).await? else {
                return Ok(None);
            };
            if found.value.is_final()
                || swap(&self.states, id, found.revision, &State::Cancelled).await != Swap::Lost
            {
                return Ok(Some(found.value));
            }
        }
    }

    /// Puts a job whose lab will not come back into the queue again. Returns whether it ran.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn release(&self, id: &str) -> Result<bool, FleetError> {
        loop {
            let Some(found) = read::<State>(&self.states, id).await? else {
                return Ok(false);
            };
            let State::Running(held) = &found.value else {
                return Ok(false);
            };
            let queued = State::Queued {
                attempts: held.attempt,
            };
            if swap(&self.states, id, found.revision, &queued).await != Swap::Lost {
                return Ok(true);
            }
        }
    }

    /// Takes the best job that fits a lab, by `fits`.
    pub(crate) async fn claim(
        &self,
        offer: &LabOffer,
        mut fits: impl AsyncFnMut(&Job) -> bool,
    ) -> Result<Option<(Job, Held)>, FleetError> {
        let states: BTreeMap<String, Found<State>> = read_all(&self.states).await?;
        let mut queued = Vec::new();
        for (id, found) in states {
            let State::Queued { attempts } = found.value else {
                continue;
            };
            if attempts >= ATTEMPTS_MAX {
                let reason = format!("{attempts} runs of it began, and none came to an end");
                swap(&self.states, &id, found.revision, &State::Parked { reason }).await;
            } else if let Some(job) = read::<Job>(&self.jobs, &id).await? {
                queued.push((job.value, attempts, found.revision));
            }
        }
        queued.sort_by(|(one, ..), (other, ..)| {
            (other.priority, &one.id).cmp(&(one.priority, &other.id))
        });
        for (job, attempts, revision) in queued {
            if !fits(&job).await {
                continue;
            }
            let held = Held {
                lab: offer.lab.clone(),
                agent: offer.agent.clone(),
                attempt: attempts + 1,
            };
            let running = State::Running(held.clone());
            if swap(&self.states, &job.id, revision, &running).await != Swap::Lost {
                return Ok(Some((job, held)));
            }
        }
        Ok(None)
    }
}
