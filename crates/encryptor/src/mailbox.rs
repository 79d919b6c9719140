//! Where the control plane leaves things for one lane: the lane looks with one load, and never waits.

use super::sync::atomic::{AtomicBool, Ordering};
use super::sync::{Mutex, MutexGuard, PoisonError};

/// Things on their way to a lane.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    /// Something is in, or was taken out a moment ago.
    flag: AtomicBool,
    things: Mutex<Vec<T>>,
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Self {
        Self {
            flag: AtomicBool::new(false),
            things: Mutex::new(Vec::new()),
        }
    }

    /// Leaves a thing.
    pub(crate) fn put(&self, thing: T) {
        self.lock().push(thing);
        self.flag.store(true, Ordering::Release);
    }

    /// Takes everything out, in the order in which it was put. Costs one load when there is nothing.
    #[inline]
    pub(crate) fn take(&self) -> Vec<T> {
        if !self.flag.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.take_all()
    }

    #[cold]
    fn take_all(&self) -> Vec<T> {
        // Before the things: what is put in between raises the flag again.
        self.flag.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
