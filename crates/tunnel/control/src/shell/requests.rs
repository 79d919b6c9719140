//! Requests of other threads to the control thread: a set, not a queue, so it never exceeds one
//! entry per tunnel.

use keying::message::Cause;
use std::collections::BTreeMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The requests, shared between the control thread and its clients.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    wanted: Mutex<Wanted>,
    notify: Notify,
}

/// Requests that are not yet handled.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// New keys for all tunnels.
    pub(super) all: Option<Cause>,
    /// New keys for single tunnels.
    pub(super) tunnels: BTreeMap<usize, Cause>,
    /// The certificate is to be read again.
    pub(super) reload: bool,
    /// The control thread is to end.
    pub(super) stop: bool,
}

impl Requests {
    pub(crate) fn rekey(&self, tunnel: Option<usize>, cause: Cause) {
        let mut wanted = self.lock();
        // The first request determines the cause.
        match tunnel {
            Some(tunnel) => {
                wanted.tunnels.entry(tunnel).or_insert(cause);
            }
            None => {
                wanted.all.get_or_insert(cause);
            }
        }
        drop(wanted);
        self.notify.notify_one();
    }

    pub(crate) fn reload(&self) {
        self.lock().reload = true;
        self.notify.notify_one();
    }

    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.notify.notify_one();
    }

    /// Waits for requests and takes them. Cancel safe: no request is lost.
    pub(super) async fn next(&self) -> Wanted {
        // A notification before this call is kept, so a request is never overlooked.
        self.notify.notified().await;
        mem::take(&mut self.lock())
    }

    /// Locks the set. Each change is one step, so a panic elsewhere leaves it consistent.
    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
