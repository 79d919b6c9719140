//! The lease of a lab: one agent holds it while it renews it.
//!
//! A lease is alive while its entry changes. A contender watches it for [`EXPIRY`] by its monotonic
//! clock, so wall clocks may be wrong by a day. The entry's revision is the fencing token: an agent
//! that renews with an old one has lost the lab. No other agent takes a lab with a job: its devices
//! may be under load, behind a cut network.

use crate::bucket::{Swap, Versioned};
use crate::error::FleetError;
use crate::message::LabOffer;
use crate::progress::Progress;
use crate::store::Fleet;
use guard::visible;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Interval between renewals.
pub(crate) const BEAT: Duration = Duration::from_secs(2);
/// After this long without a renewal, a lab without a job is free.
pub(crate) const EXPIRY: Duration = Duration::from_secs(10);
/// Interval between checks of a lab that another agent holds.
const LOOK: Duration = Duration::from_millis(500);

/// The lease of a lab that this agent holds.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) offer: LabOffer,
    revision: u64,
    /// A renewal without an answer so far, which may have succeeded.
    pending: Option<LabOffer>,
}

impl Lease {
    /// Takes a lab, and waits while another agent holds it. Calls `tell` whenever the reason
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
            let found: Option<Versioned<Result<LabOffer, String>>> =
                fleet.labs.look(&offer.lab).await?;
            let revision = found.as_ref().map_or(0, |found| found.revision);
            let holder = found.map(|found| found.value);
            let may_take = match &holder {
                None => true,
                // The lease of an earlier start of this agent: a lock admits one agent per folder.
                Some(Ok(holder)) if holder.agent == offer.agent => true,
                Some(holder) => {
                    // By this machine's monotonic clock: only the change of the entry comes from
                    // the holder.
                    if revision != seen {
                        (seen, since) = (revision, Instant::now());
                    }
                    // An unreadable lease shows no job, and must not block the lab for ever.
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
                // An unreadable lease is replaced unless it changes.
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

    /// Renews the lease, with the running job and its progress. Returns whether this agent still
    /// has the lab.
    ///
    /// # Errors
    /// When the user may not.
    pub(crate) async fn renew(
        &mut self,
        fleet: &Fleet,
        job: Option<&str>,
        progress: Option<Progress>,
    ) -> Result<bool, FleetError> {
        // It may have succeeded: only repeating the same one shows whether it did.
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
        // Kept over a timeout of the caller, which drops this future.
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

    /// Releases the lab.
    pub(crate) async fn end(self, fleet: &Fleet) {
        // Otherwise it expires.
        fleet.labs.remove(&self.offer.lab, self.revision).await;
    }
}
