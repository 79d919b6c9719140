//! The lease of a lab: one agent has it, as long as it shows that it lives.
//!
//! An entry that changes is alive. A contender looks at it for [`EXPIRY`] by its own monotonic
//! clock; whose clocks are wrong by a day does not matter. The entry's revision is the fencing
//! token: whoever renews with an old one has lost the lab. A lab with a job in it is not taken by
//! another agent at all: its boxes may be under load, behind a cut network.

use crate::bucket::{Found, Swap};
use crate::error::FleetError;
use crate::message::LabOffer;
use crate::progress::Progress;
use crate::store::Fleet;
use guard::visible;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Between renewals.
pub(crate) const BEAT: Duration = Duration::from_secs(2);
/// Without a renewal for this long a lab without a job is free.
pub(crate) const EXPIRY: Duration = Duration::from_secs(10);
/// Between looks at a lab that another agent has.
const LOOK: Duration = Duration::from_millis(500);

/// A lab that this agent has.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) offer: LabOffer,
    revision: u64,
    /// A renewal whose answer was not awaited.
    pending: Option<LabOffer>,
}

impl Lease {
    /// Takes a lab, and waits while another agent has it; `tell` gets the reason each time it
    /// changes.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub(crate) async fn take(
        fleet: &Fleet,
        offer: LabOffer,
        mut tell: impl FnMut(&str),
    ) -> Result<Self, FleetError> {
        let (mut seen, mut since) = (0, Instant::now());
        let mut last = String::new();
        loop {
            let found: Option<Found<Result<LabOffer, String>>> =
                fleet.labs.look(&offer.lab).await?;
            let revision = found.as_ref().map_or(0, |found| found.revision);
            let holder = found.map(|found| found.value);
            let may_take = match &holder {
                None => true,
                // Of an earlier start of this very agent: a folder has one, by its lock.
                Some(Ok(holder)) if holder.agent == offer.agent => true,
                Some(holder) => {
                    if revision != seen {
                        (seen, since) = (revision, Instant::now());
                    }
                    let has_job = holder.as_ref().is_ok_and(|holder| holder.job.is_some());
                    !has_job && since.elapsed() >= EXPIRY
                }
            };
            if may_take {
                let swapped = fleet.labs.swap(&offer.lab, revision, &offer).await?;
                if let Swap::Made(revision) = swapped {
                    return Ok(Self {
                        offer,
                        revision,
                        pending: None,
                    });
                }
                continue;
            }
            let Some(Ok(holder)) = holder else {
                // Nobody's lease: it is replaced unless it changes.
                sleep(LOOK).await;
                continue;
            };
            let is_silent = since.elapsed() >= EXPIRY;
            let agent = visible(&holder.agent);
            let why = match holder.job.as_deref().map(visible) {
                Some(job) if is_silent => format!(
                    "agent {agent} runs job {job} there and has not been heard of for {} s: it is awaited; if it will \
                     not come back, `cipherbench fleet release {job}` queues the job again",
                    EXPIRY.as_secs()
                ),
                Some(job) => format!("agent {agent} runs job {job} there"),
                None => format!("agent {agent} has it"),
            };
            if why != last {
                tell(&why);
                last = why;
            }
            sleep(LOOK).await;
        }
    }

    /// Renews it, with the job that runs there and how far its run is. Returns whether this agent
    /// still has the lab.
    ///
    /// # Errors
    /// When the user may not.
    pub(crate) async fn renew(
        &mut self,
        fleet: &Fleet,
        job: Option<&str>,
        progress: Option<Progress>,
    ) -> Result<bool, FleetError> {
        // It may have been made: only the same one again shows whether it was.
        if let Some(pending) = self.pending.clone()
            && !self.swap(fleet, pending).await?
        {
            return Ok(false);
        }
        let offer = LabOffer {
            job: job.map(str::to_owned),
            progress,
            beats: self.offer.beats + 1,
            ..self.offer.clone()
        };
        self.swap(fleet, offer).await
    }

    async fn swap(&mut self, fleet: &Fleet, offer: LabOffer) -> Result<bool, FleetError> {
        self.pending = Some(offer.clone());
        let swapped = fleet.labs.swap(&offer.lab, self.revision, &offer).await?;
        self.pending = None;
        Ok(match swapped {
            Swap::Made(revision) => {
                (self.offer, self.revision) = (offer, revision);
                true
            }
            Swap::Lost => false,
        })
    }

    /// Gives it back.
    pub(crate) async fn end(self, fleet: &Fleet) {
        // Otherwise it expires.
        fleet.labs.remove(&self.offer.lab, self.revision).await;
    }
}
