//! Mailbox from the control plane to one lane: the lane checks it with one load, and never waits.

use super::sync::atomic::{AtomicBool, Ordering, fence};
use super::sync::{Mutex, MutexGuard, PoisonError};

/// Items on their way to a lane.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    /// Set if there are items, or were a moment ago.
    flag: AtomicBool,
    things: Mutex<Vec<T>>,
    /// The lane is idle, and checks the mailbox before it does anything.
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

    /// Adds an item, and removes untaken items that it `replaces`, so that the mailbox of a lane
    /// that is idle for days does not grow.
    pub(crate) fn put(&self, thing: T, replaces: impl Fn(&T) -> bool) {
        let mut things = self.lock();
        things.retain(|old| !replaces(old));
        things.push(thing);
        drop(things);
        // After the item is in: a lane that sees the flag finds the item.
        self.flag.store(true, Ordering::Release);
    }

    /// Whether the lane no longer works without the last item: it has taken the item, or is idle.
    pub(crate) fn is_up_to_date(&self) -> bool {
        // Pairs with the fence in `wake`: either this sees that the lane has woken, or the lane
        // sees all earlier items.
        fence(Ordering::SeqCst);
        self.resting.load(Ordering::Acquire) || self.lock().is_empty()
    }

    /// Marks the lane as idle until it [wakes](Self::wake) and then checks the mailbox first.
    pub(crate) fn rest(&self) {
        // Release: a reader that sees the lane at rest also sees all that it did before.
        self.resting.store(true, Ordering::Release);
    }

    /// Marks the lane as running; it must check the mailbox next.
    pub(crate) fn wake(&self) {
        self.resting.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Takes all items, in the order of insertion. Costs one load if the mailbox is empty.
    #[inline]
    pub(crate) fn take(&self) -> Vec<T> {
        if !self.flag.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.take_all()
    }

    #[cold]
    fn take_all(&self) -> Vec<T> {
        // Before the items are taken: one that is put in between raises the flag again.
        self.flag.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
