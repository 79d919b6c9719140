//! What other threads want of the control thread: a set, not a queue, so it never grows beyond one entry a tunnel.

use keying::message::Cause;
use std::collections::BTreeMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Shared between the control thread and whoever asks.
#[derive(Default)]
pub(crate) struct Requests {
    wanted: Mutex<Wanted>,
    notify: Notify,
}

/// What is wanted and not yet done.
#[derive(Default)]
pub(super) struct Wanted {
    /// New keys of all tunnels.
    pub(super) all: Option<Cause>,
    /// New keys of single ones.
    pub(super) tunnels: BTreeMap<usize, Cause>,
    /// The end.
    pub(super) stop: bool,
}

impl Requests {
    pub(crate) fn rekey(&self, tunnel: Option<usize>, cause: Cause) {
        let mut wanted = self.lock();
        // Who asked first is the cause.
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

    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.notify.notify_one();
    }

    /// Waits until something is wanted, and takes it. Nothing is lost if it is dropped meanwhile.
    pub(super) async fn next(&self) -> Wanted {
        self.notify.notified().await;
        mem::take(&mut self.lock())
    }

    /// Each change is made in one step, so what a panicking thread leaves is whole.
    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
