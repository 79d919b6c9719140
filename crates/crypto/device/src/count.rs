//! The inputs of repeated operations, and per-thread counts of completed and failed ones, readable
//! by other threads at any time.

use std::sync::atomic::{AtomicU64, Ordering};

/// A thread's counts. Aligned so that threads share no cache line and do not contend.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Tally {
    done: AtomicU64,
    failed: AtomicU64,
}

impl Tally {
    /// Operations that succeeded.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Operations that failed.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// The only writer of a `Tally`. It keeps a copy of both counts, so that it never reads the shared
/// ones.
pub struct Count<'a> {
    tally: &'a Tally,
    done: u64,
    failed: u64,
}

impl<'a> Count<'a> {
    /// Continues from the tally's counts.
    pub(crate) fn new(tally: &'a Tally) -> Self {
        Self {
            tally,
            done: tally.done(),
            failed: tally.failed(),
        }
    }

    /// Counts an operation.
    #[inline]
    pub(crate) fn add(&mut self, succeeded: bool) {
        if succeeded {
            self.done += 1;
            self.tally.done.store(self.done, Ordering::Relaxed);
        } else {
            self.failed += 1;
            self.tally.failed.store(self.failed, Ordering::Relaxed);
        }
    }
}

/// Inputs that operations take in turn.
pub struct Inputs<'a> {
    ring: &'a [&'a [u8]],
    next: usize,
}

impl<'a> Inputs<'a> {
    /// Begins with the first one. There is at least one.
    pub(crate) const fn new(ring: &'a [&'a [u8]]) -> Self {
        Self { ring, next: 0 }
    }

    /// Returns the next input with its index.
    #[inline]
    pub(crate) fn next(&mut self) -> (usize, &'a [u8]) {
        let index = self.next;
        self.next = if index + 1 < self.ring.len() {
            index + 1
        } else {
            0
        };
        (index, self.ring[index])
    }
}
