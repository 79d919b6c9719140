//! What an agent knows of the queue without asking: the server reports each change.

use crate::bucket::{Bucket, Found, Seen};
use crate::message::State;
use crate::queue::Queued;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::watch;

/// Between attempts to reach a server that is away.
const RETRY: Duration = Duration::from_secs(1);

/// The jobs that wait, and those that an agent has.
pub(crate) struct QueueView {
    agent: String,
    jobs: RefCell<Jobs>,
    changed: watch::Sender<()>,
}

/// Those that have ended take no memory.
#[derive(Default)]
struct Jobs {
    queued: BTreeMap<String, Queued>,
    /// With the lab where each runs.
    held: BTreeMap<String, String>,
}

impl Jobs {
    /// Takes note of a job's state. Returns whether the agent can do something with it.
    fn note(&mut self, agent: &str, id: String, found: Option<Found<State>>) -> bool {
        self.queued.remove(&id);
        self.held.remove(&id);
        let Some(Found {
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

    /// The jobs that wait, without these.
    pub(crate) fn queued(&self, but: impl Fn(&str) -> bool) -> Vec<Queued> {
        let jobs = self.jobs.borrow();
        let others = jobs.queued.values().filter(|queued| !but(&queued.id));
        others.cloned().collect()
    }

    pub(crate) fn is_queued(&self, id: &str) -> bool {
        self.jobs.borrow().queued.contains_key(id)
    }

    /// The jobs that the agent has in a lab, or had until a moment ago.
    pub(crate) fn held(&self, lab: &str) -> Vec<String> {
        let jobs = self.jobs.borrow();
        let its = jobs.held.iter().filter(|(_, its)| *its == lab);
        its.map(|(id, _)| id.clone()).collect()
    }

    /// Notices that a job more waits, or is the agent's.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Keeps it true, for ever.
    pub(crate) async fn follow(&self, states: &Bucket) {
        loop {
            // What it shows meanwhile may be old: whoever takes a job compares its revision.
            let mut anew = Jobs::default();
            let mut is_current = false;
            let followed = states.follow::<State>(|seen| {
                match seen {
                    Seen::Entry(id, found) if is_current => {
                        let mut jobs = self.jobs.borrow_mut();
                        if jobs.note(&self.agent, id, found) {
                            self.changed.send_replace(());
                        }
                    }
                    Seen::Entry(id, found) => drop(anew.note(&self.agent, id, found)),
                    Seen::Current => {
                        is_current = true;
                        *self.jobs.borrow_mut() = std::mem::take(&mut anew);
                        self.changed.send_replace(());
                    }
                }
                ControlFlow::Continue(())
            });
            // It ends only when the server is away or has missed something.
            let _ = followed.await;
            tokio::time::sleep(RETRY).await;
        }
    }
}
