//! Repeated jobs: one job per period, submitted by any agent that is running.
//!
//! Any agent submits the job of a period that has begun. The job's id ends with the number of the
//! period and ids are unique, so each period has one job. The clock is the server's: it stamps the
//! entry that began the repetition, and each renewal of a lease.

use crate::bucket::{BucketEvent, Swap, Versioned};
use crate::error::FleetError;
use crate::lease::BEAT;
use crate::message::{Job, LabOffer, is_id};
use crate::queue::{keep_job, submit};
use crate::store::Fleet;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tokio::time::sleep;

/// Repetitions, as an agent knows them.
#[derive(Default)]
pub(crate) struct Repeats {
    all: RefCell<BTreeMap<String, Versioned<Job>>>,
    /// The last submitted period of each job.
    made: RefCell<BTreeMap<String, u64>>,
}

impl Fleet {
    /// Begins to repeat a job; another call with the same job changes nothing.
    ///
    /// # Errors
    /// When the server cannot be asked, or the user may not.
    pub async fn repeat(&self, job: &Job) -> Result<(), FleetError> {
        keep_job(&self.repeats, job).await
    }

    /// Returns the repeated jobs.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn repeats(&self) -> Result<Vec<Job>, FleetError> {
        let found = self.repeats.read_all::<Job>().await?;
        let found = found
            .into_iter()
            .filter(|(id, found)| is_repeated(id, &found.value));
        Ok(found.map(|(_, found)| found.value).collect())
    }

    /// Ends the repetition of a job; jobs of periods that have begun stay. Returns whether it was
    /// repeated.
    ///
    /// # Errors
    /// When the server cannot be asked, or the user may not.
    pub async fn end_repeat(&self, id: &str) -> Result<bool, FleetError> {
        loop {
            let found = self.repeats.read_known::<Job>(id).await?;
            let Some(found) = found.filter(|found| found.value.every.is_some()) else {
                return Ok(false);
            };
            // The entry stays, without a period, so that its id is never used again.
            let ended = Job {
                every: None,
                ..found.value
            };
            if self.repeats.swap(id, found.revision, &ended).await? != Swap::Lost {
                return Ok(true);
            }
        }
    }
}

/// Whether an entry is a repeated job with this id.
fn is_repeated(id: &str, job: &Job) -> bool {
    job.every.is_some() && job.id == id && is_id(id)
}

impl Repeats {
    /// Submits due jobs, without end.
    pub(crate) async fn serve(&self, fleet: &Fleet, labs: Vec<String>) {
        let follow = async {
            loop {
                let followed = fleet.repeats.follow::<Job>(|seen| {
                    if let BucketEvent::Entry(id, found) = seen {
                        let mut all = self.all.borrow_mut();
                        match found.filter(|found| is_repeated(&id, &found.value)) {
                            Some(found) => all.insert(id, found),
                            None => all.remove(&id),
                        };
                    }
                    ControlFlow::Continue(())
                });
                // It ends only if the server is unreachable or a change was missed.
                let _ = followed.await;
                sleep(BEAT).await;
            }
        };
        let submit = async {
            loop {
                // A failure is tried again with the next beat.
                let _ = self.submit_due(fleet, &labs).await;
                sleep(BEAT).await;
            }
        };
        tokio::join!(follow, submit);
    }

    async fn submit_due(&self, fleet: &Fleet, labs: &[String]) -> Result<(), FleetError> {
        let all: Vec<Versioned<Job>> = self.all.borrow().values().cloned().collect();
        if all.is_empty() {
            return Ok(());
        }
        let leases = fleet.labs.read_each::<LabOffer>(labs.to_vec()).await?;
        // The newest of them: a lab may have been away.
        let Some(now) = leases.values().map(|found| found.written_at).max() else {
            return Ok(());
        };
        for found in all {
            let Some(every) = found.value.every.filter(|every| *every > 0) else {
                continue;
            };
            // Both times are the server's, so no clock of an agent shifts a period.
            let period = now.saturating_sub(found.written_at) / every;
            let id = &found.value.id;
            if self.made.borrow().get(id).is_none_or(|made| *made < period) {
                submit(fleet, &found.value.in_period(period)).await?;
                self.made.borrow_mut().insert(id.clone(), period);
            }
        }
        Ok(())
    }
}
