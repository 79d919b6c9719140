//! A fleet as a page shows it: states and labs, kept current by the server's reports.

use crate::bucket::{Bucket, BucketEvent as Reported, Versioned};
use crate::error::FleetError;
use crate::history::Headline;
use crate::lease::EXPIRY;
use crate::message::{Job, LabOffer, State};
use crate::queue::Listing;
use crate::store::Fleet;
use crate::unreadable::UnreadableEntry;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::time::sleep;

/// Interval between attempts to reach the server.
const RETRY: Duration = Duration::from_secs(1);

/// A fleet, as far as the server has reported it.
#[derive(Debug)]
pub struct Overview {
    known: Mutex<Known>,
    changed: watch::Sender<()>,
    ended: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Known {
    /// Each state with the time it was written.
    states: BTreeMap<String, (State, u64)>,
    labs: BTreeMap<String, (LabStatus, Instant)>,
    /// Why the server does not answer.
    away: Option<String>,
}

/// A lab, and when its agent renewed the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabStatus {
    /// The lease.
    pub offer: LabOffer,
    /// When it was renewed last, by the server's clock, in seconds since 1970.
    pub renewed_at: u64,
    /// Whether it was renewed within the time after which a lab without a job is free.
    pub is_alive: bool,
}

/// A snapshot of a fleet.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Labs by name.
    pub labs: Vec<LabStatus>,
    /// Jobs that are repeated.
    pub repeats: Vec<Job>,
    /// Jobs that have not ended, and the last ones that have.
    pub listing: Listing,
    /// Headlines of jobs that have ended, by job.
    pub headlines: BTreeMap<String, Vec<Headline>>,
    /// Names for people of the cells that running jobs measured last, by id, if the archive has
    /// them.
    pub names: BTreeMap<String, String>,
    /// Entries that cannot be read.
    pub unreadable: Vec<UnreadableEntry>,
}

impl Default for Overview {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            changed: watch::Sender::new(()),
            ended: watch::Sender::new(()),
        }
    }
}

impl Overview {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a receiver that is notified when the snapshot may have changed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns a receiver that is notified when a job has ended.
    #[must_use]
    pub fn ends(&self) -> watch::Receiver<()> {
        self.ended.subscribe()
    }

    /// Returns why the server does not answer; `None` while it does.
    #[must_use]
    pub fn away(&self) -> Option<String> {
        self.known().away.clone()
    }

    /// Keeps it current, without end.
    pub async fn follow(&self, fleet: &Fleet) {
        tokio::join!(
            self.follow_bucket::<State>(&fleet.states, |known, id, found| {
                let found = found.map(|found| (found.value, found.written_at));
                if found.as_ref().is_some_and(|(state, _)| state.is_final()) {
                    self.ended.send_replace(());
                }
                replace(&mut known.states, id, found);
            }),
            self.follow_bucket::<LabOffer>(&fleet.labs, |known, name, found| {
                let found = found.filter(|found| found.value.lab == name);
                let seen = found.map(|found| LabStatus {
                    offer: found.value,
                    renewed_at: found.written_at,
                    is_alive: true,
                });
                // By this machine's clock, which may differ from the server's.
                let seen = seen.map(|seen| (seen, Instant::now()));
                replace(&mut known.labs, name, seen);
            }),
            self.follow_bucket::<BTreeMap<String, String>>(&fleet.misfits, |_, _, _| {}),
            self.follow_bucket::<Job>(&fleet.repeats, |_, _, _| {}),
        );
    }

    async fn follow_bucket<T: DeserializeOwned>(
        &self,
        bucket: &Bucket,
        mut take: impl FnMut(&mut Known, String, Option<Versioned<T>>),
    ) {
        loop {
            let followed = bucket.follow::<T>(|reported| {
                let mut known = self.known();
                // Any report shows that the server answers.
                known.away = None;
                if let Reported::Entry(key, found) = reported {
                    take(&mut known, key, found);
                }
                drop(known);
                self.changed.send_replace(());
                ControlFlow::Continue(())
            });
            if let Err(error) = followed.await {
                self.known().away = Some(error.to_string());
                self.changed.send_replace(());
            }
            sleep(RETRY).await;
        }
    }

    /// Returns a snapshot, with the last `ended` jobs that have ended.
    ///
    /// # Errors
    /// When the server cannot be asked for jobs.
    pub async fn see(&self, fleet: &Fleet, ended: usize) -> Result<Snapshot, FleetError> {
        let (states, labs) = {
            let known = self.known();
            let labs = known.labs.values().map(|(seen, since)| LabStatus {
                // By this machine's clock, from the report on: the server's may differ.
                is_alive: since.elapsed() < EXPIRY,
                ..seen.clone()
            });
            (known.states.clone(), labs.collect::<Vec<_>>())
        };
        let progress = labs.iter().filter_map(|seen| seen.offer.progress.as_ref());
        let last = progress.filter_map(|progress| progress.last.as_ref());
        let measured: BTreeSet<String> = last.map(|last| last.cell.clone()).collect();
        let measured: Vec<String> = measured.into_iter().collect();
        let listing = fleet.list_of(states, Some(ended)).await?;
        let rows = listing.rows.iter();
        let done = rows.filter(|row| matches!(row.state, State::Done { .. }));
        let done: Vec<&str> = done.map(|row| &*row.job.id).collect();
        Ok(Snapshot {
            labs,
            repeats: fleet.repeats().await?,
            headlines: fleet.headlines(&done).await?,
            names: fleet.cell_names(&measured).await?,
            listing,
            unreadable: fleet.unreadable(),
        })
    }
}

fn replace<T>(all: &mut BTreeMap<String, T>, key: String, found: Option<T>) {
    match found {
        Some(found) => all.insert(key, found),
        None => all.remove(&key),
    };
}
