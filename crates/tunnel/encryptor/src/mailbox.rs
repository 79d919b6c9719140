//! Where the control plane leaves things for one lane: the lane looks with one load, and never waits.

use super::sync::atomic::{AtomicBool, Ordering, fence};
use super::sync::{Mutex, MutexGuard, PoisonError};

/// Things on their way to a lane.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    /// Something is in, or was taken out a moment ago.
    flag: AtomicBool,
    things: Mutex<Vec<T>>,
    /// The lane does nothing, and will look here before it does.
    resting: AtomicBool,
}

impl<T> Mailbox<T> {
    pub(crate) fn new() -> Self {
        Self {
            flag: AtomicBool::new(false),
            things: Mutex::new(Vec::new()),
            resting: AtomicBool::new(false),
        }
    }

    /// Leaves a thing, and takes back what it `replaces` and the lane has not taken yet: so what waits for a lane that
    /// does nothing for days stays as little as there are things.
    pub(crate) fn put(&self, thing: T, replaces: impl Fn(&T) -> bool) {
        let mut things = self.lock();
        things.retain(|old| !replaces(old));
        things.push(thing);
        drop(things);
        self.flag.store(true, Ordering::Release);
    }

    /// Whether the lane does nothing any more without the last thing that was put: it has taken it, or rests.
    pub(crate) fn is_up_to_date(&self) -> bool {
        // With the other fence: either the lane is seen to have woken, or it sees what was put before.
        fence(Ordering::SeqCst);
        self.resting.load(Ordering::Acquire) || self.lock().is_empty()
    }

    /// The lane says that it does nothing until it [wakes](Self::wake); then it looks here first.
    pub(crate) fn rest(&self) {
        self.resting.store(true, Ordering::Release);
    }

    /// The lane is to look here next.
    pub(crate) fn wake(&self) {
        self.resting.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
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
