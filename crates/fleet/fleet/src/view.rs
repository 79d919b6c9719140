//! An agent's view of the queue, kept current by the server's reports.

use crate::bucket::{Bucket, BucketEvent, Versioned};
use crate::message::State;
use crate::queue::Queued;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::watch;

/// Interval between attempts to reach the server.
const RETRY: Duration = Duration::from_secs(1);

/// The queued jobs, and the jobs that an agent holds.
pub(crate) struct QueueView {
    agent: String,
    jobs: RefCell<Jobs>,
    changed: watch::Sender<()>,
}

/// The jobs by id, without ended ones.
#[derive(Default)]
struct Jobs {
    queued: BTreeMap<String, Queued>,
    /// The lab of each job that the agent holds.
    held: BTreeMap<String, String>,
}

impl Jobs {
    /// Records a job's state. Returns whether the agent may have something to do for it.
    fn note(&mut self, agent: &str, id: String, found: Option<Versioned<State>>) -> bool {
        self.queued.remove(&id);
        self.held.remove(&id);
        let Some(Versioned {
            value, revision, ..
        }) = found
        else {
            return false;
        };
        match value {
            State::Queued { attempts, priority } => {
                let queued = Queued {
                    id: id.clone(),
                    attempts,
                    priority,
                    revision,
                };
                self.queued.insert(id, queued);
                true
            }
            State::Running(held) if held.agent == agent => {
                self.held.insert(id, held.lab);
                true
            }
            _ => false,
        }
    }
}

impl QueueView {
    pub(crate) fn new(agent: String) -> Self {
        Self {
            agent,
            jobs: RefCell::default(),
            changed: watch::Sender::new(()),
        }
    }

    /// Returns the queued jobs, except the ids that `but` selects.
    pub(crate) fn queued(&self, but: impl Fn(&str) -> bool) -> Vec<Queued> {
        let jobs = self.jobs.borrow();
        let others = jobs.queued.values().filter(|queued| !but(&queued.id));
        others.cloned().collect()
    }

    pub(crate) fn is_queued(&self, id: &str) -> bool {
        self.jobs.borrow().queued.contains_key(id)
    }

    /// Returns the jobs that the agent holds in a lab, or held until a moment ago.
    pub(crate) fn held(&self, lab: &str) -> Vec<String> {
        let jobs = self.jobs.borrow();
        let its = jobs.held.iter().filter(|(_, its)| *its == lab);
        its.map(|(id, _)| id.clone()).collect()
    }

    /// Returns a receiver that is notified when a job is queued, or is the agent's.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Keeps it current, without end.
    pub(crate) async fn follow(&self, states: &Bucket) {
        loop {
            // The view may be outdated meanwhile: an agent that takes a job compares its revision.
            let mut anew = Jobs::default();
            let mut is_current = false;
            let followed = states.follow::<State>(|seen| {
                match seen {
                    BucketEvent::Entry(id, found) if is_current => {
                        let mut jobs = self.jobs.borrow_mut();
                        if jobs.note(&self.agent, id, found) {
                            self.changed.send_replace(());
                        }
                    }
                    BucketEvent::Entry(id, found) => drop(anew.note(&self.agent, id, found)),
                    BucketEvent::Current => {
                        is_current = true;
                        // As a whole, or a job that is gone would stay: the reports name only
                        // entries that exist.
                        *self.jobs.borrow_mut() = std::mem::take(&mut anew);
                        self.changed.send_replace(());
                    }
                }
                ControlFlow::Continue(())
            });
            // It ends only if the server is unreachable or a change was missed.
            let _ = followed.await;
            tokio::time::sleep(RETRY).await;
        }
    }
}
