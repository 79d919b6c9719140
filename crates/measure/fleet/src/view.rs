//! What an agent knows of the queue without asking: the server reports each change.

use crate::bucket::{Bucket, Seen};
use crate::message::State;
use crate::queue::Queued;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::sync::watch;

/// Between attempts to reach a server that is away.
const RETRY: Duration = Duration::from_secs(1);

/// The jobs that wait.
pub(crate) struct QueueView {
    queued: RefCell<BTreeMap<String, Queued>>,
    changed: watch::Sender<()>,
}

impl QueueView {
    pub(crate) fn new() -> Self {
        Self {
            queued: RefCell::default(),
            changed: watch::Sender::new(()),
        }
    }

    /// The jobs that wait, without these.
    pub(crate) fn queued(&self, but: impl Fn(&str) -> bool) -> Vec<Queued> {
        let queued = self.queued.borrow();
        let others = queued.values().filter(|queued| !but(&queued.id));
        others.cloned().collect()
    }

    pub(crate) fn is_queued(&self, id: &str) -> bool {
        self.queued.borrow().contains_key(id)
    }

    /// Notices that a job more waits.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Keeps it true, for ever.
    pub(crate) async fn follow(&self, states: &Bucket) {
        loop {
            // What it shows meanwhile may be old: whoever takes a job compares its revision.
            let mut anew = BTreeMap::new();
            let mut is_current = false;
            let followed = states.follow::<State>(|seen| {
                match seen {
                    Seen::Entry(id, found) => {
                        let waits = found.and_then(|found| match found.value {
                            State::Queued { attempts, priority } => Some(Queued {
                                id: id.clone(),
                                attempts,
                                priority,
                                revision: found.revision,
                            }),
                            _ => None,
                        });
                        let mut queued = self.queued.borrow_mut();
                        let all = if is_current { &mut *queued } else { &mut anew };
                        match waits {
                            None => {
                                all.remove(&id);
                            }
                            Some(waits) => {
                                all.insert(id, waits);
                                if is_current {
                                    self.changed.send_replace(());
                                }
                            }
                        }
                    }
                    Seen::Current => {
                        is_current = true;
                        *self.queued.borrow_mut() = std::mem::take(&mut anew);
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
