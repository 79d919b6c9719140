//! How often a thread's operation came to a result, for another thread to read at any time.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a thread did so far. Alone in its cache lines, so that threads do not wait for each other.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    done: AtomicU64,
    failed: AtomicU64,
}

impl Tally {
    /// Operations that came to a result.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Operations that did not.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// The only one that counts on a tally: it remembers both numbers, and so need not read what it
/// writes.
pub struct Count<'a> {
    tally: &'a Tally,
    done: u64,
    failed: u64,
}

impl<'a> Count<'a> {
    /// Goes on from what the tally says.
    pub(crate) fn new(tally: &'a Tally) -> Self {
        Self {
            tally,
            done: tally.done(),
            failed: tally.failed(),
        }
    }

    /// Counts an operation; `came`: to a result.
    #[inline]
    pub(crate) fn add(&mut self, came: bool) {
        if came {
            self.done += 1;
            self.tally.done.store(self.done, Ordering::Relaxed);
        } else {
            self.failed += 1;
            self.tally.failed.store(self.failed, Ordering::Relaxed);
        }
    }
}
