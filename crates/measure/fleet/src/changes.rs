//! Changes of jobs as they happen, for people.

use crate::bucket::Seen;
use crate::error::FleetError;
use crate::message::{Job, LabOffer, State};
use crate::progress::Progress;
use crate::store::Fleet;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// Between attempts to reach a server that is away.
const RETRY: Duration = Duration::from_secs(1);

/// What somebody who watches a fleet sees.
#[derive(Debug)]
pub enum Change<'a> {
    /// A job has not ended when the watch begins, or its state is another now.
    Job(&'a Job, &'a State),
    /// Of the job with this id a trial more has ended.
    Progress(&'a str, &'a Progress),
    /// The server does not answer; what happened meanwhile is seen when it does.
    Away(&'a str),
}

enum Event {
    State(String, State),
    Lab(LabOffer),
    Current,
    Away(FleetError),
}

impl Fleet {
    /// Calls `see` with each job that has not ended, then with each change, until `stop` is true;
    /// with `until_done` until no job is left that has not ended.
    /// A server that is away is awaited.
    pub async fn watch(
        &self,
        until_done: bool,
        mut stop: watch::Receiver<bool>,
        mut see: impl FnMut(Change<'_>),
    ) {
        let (sender, mut events) = mpsc::unbounded_channel();
        // The receiver lives as long as this.
        let send = |event| drop(sender.send(event));
        let follow = async {
            loop {
                let followed = self.states.follow::<State>(|seen| {
                    match seen {
                        Seen::Entry(id, Some(found)) => send(Event::State(id, found.value)),
                        Seen::Entry(..) => {}
                        Seen::Current => send(Event::Current),
                    }
                    ControlFlow::Continue(())
                });
                if let Err(error) = followed.await {
                    send(Event::Away(error));
                }
                sleep(RETRY).await;
            }
        };
        // Each lease has how far the run of its job is.
        let follow_labs = async {
            loop {
                // What keeps it from going on is reported of the states.
                let _ = self
                    .labs
                    .follow::<LabOffer>(|seen| {
                        if let Seen::Entry(_, Some(found)) = seen {
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
                        // What ended before is not news.
                        if known == Some(&state)
                            || state.is_final() && known.is_none() && !is_current
                        {
                            continue;
                        }
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

    /// A job, once the server answers.
    async fn job_at_last(&self, id: &str) -> Option<Job> {
        loop {
            match self.job(id).await {
                Ok(job) => return job,
                Err(_) => sleep(RETRY).await,
            }
        }
    }
}
