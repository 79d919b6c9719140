//! Changes of jobs as they happen, for people.

use crate::bucket::BucketEvent;
use crate::error::FleetError;
use crate::message::{Job, LabOffer, State};
use crate::progress::Progress;
use crate::store::Fleet;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// Interval between attempts to reach the server.
const RETRY: Duration = Duration::from_secs(1);

/// A change in a watched fleet.
#[derive(Debug)]
pub enum Change<'a> {
    /// A job that has not ended when the watch begins, or that has a new state.
    Job(&'a Job, &'a State),
    /// Another trial of the job with this id has ended.
    Progress(&'a str, &'a Progress),
    /// The server does not answer, for this reason; missed changes are reported once it does.
    Away(&'a str),
}

enum Event {
    State(String, State),
    Lab(LabOffer),
    Current,
    Away(FleetError),
}

impl Fleet {
    /// Calls `see` with each job that has not ended, then with each change, until `stop` is true.
    /// With `until_done` it also returns once every job has ended. Retries while the server does
    /// not answer.
    pub async fn watch(
        &self,
        until_done: bool,
        mut stop: watch::Receiver<bool>,
        mut see: impl FnMut(Change<'_>),
    ) {
        let (sender, mut events) = mpsc::unbounded_channel();
        // The receiver is not dropped before, so this does not fail.
        let send = |event| drop(sender.send(event));
        let follow = async {
            loop {
                let followed = self.states.follow::<State>(|seen| {
                    match seen {
                        BucketEvent::Entry(id, Some(found)) => send(Event::State(id, found.value)),
                        BucketEvent::Entry(..) => {}
                        BucketEvent::Current => send(Event::Current),
                    }
                    ControlFlow::Continue(())
                });
                if let Err(error) = followed.await {
                    send(Event::Away(error));
                }
                sleep(RETRY).await;
            }
        };
        // Each lease has the progress of its job's run.
        let follow_labs = async {
            loop {
                // The same failure ends the watch of the states, which reports it.
                let _ = self
                    .labs
                    .follow::<LabOffer>(|seen| {
                        if let BucketEvent::Entry(_, Some(found)) = seen {
                            send(Event::Lab(found.value));
                        }
                        ControlFlow::Continue(())
                    })
                    .await;
                sleep(RETRY).await;
            }
        };
        let show = async {
            let mut progress: BTreeMap<String, Progress> = BTreeMap::new();
            let mut open: BTreeMap<String, State> = BTreeMap::new();
            let mut is_current = false;
            while let Some(event) = events.recv().await {
                match event {
                    Event::State(id, state) => {
                        let known = open.get(&id);
                        // Jobs that ended before the watch are not reported.
                        if known == Some(&state)
                            || state.is_final() && known.is_none() && !is_current
                        {
                            continue;
                        }
                        // A state has no name; people know a job by it.
                        if let Some(job) = self.job_at_last(&id).await {
                            see(Change::Job(&job, &state));
                        }
                        if state.is_final() {
                            open.remove(&id);
                            progress.remove(&id);
                        } else {
                            open.insert(id, state);
                        }
                    }
                    Event::Lab(LabOffer {
                        job: Some(id),
                        progress: Some(now),
                        ..
                    }) if open.contains_key(&id) && progress.get(&id) != Some(&now) => {
                        see(Change::Progress(&id, &now));
                        progress.insert(id, now);
                    }
                    Event::Lab(_) => {}
                    Event::Current => is_current = true,
                    Event::Away(error) => {
                        is_current = false;
                        see(Change::Away(&error.to_string()));
                    }
                }
                // Not before all states were reported: an unknown job may be open.
                if until_done && is_current && open.is_empty() {
                    break;
                }
            }
        };
        tokio::select! {
            () = follow => {}
            () = follow_labs => {}
            () = show => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// Returns a job, and retries until the server answers.
    async fn job_at_last(&self, id: &str) -> Option<Job> {
        loop {
            match self.job(id).await {
                Ok(job) => return job,
                Err(_) => sleep(RETRY).await,
            }
        }
    }
}
