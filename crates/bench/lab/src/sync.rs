//! Locks and time limits.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Locks a mutex even if poisoned: it guards plain data, which a panic leaves usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a notification, or until `deadline`; may return early.
pub(crate) fn wait<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    deadline: Deadline,
) -> MutexGuard<'a, T> {
    match deadline.left() {
        None => condvar.wait(guard).unwrap_or_else(PoisonError::into_inner),
        // Whether the time is over does not matter here: callers look at the deadline.
        Some(left) => {
            condvar
                .wait_timeout(guard, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0
        }
    }
}

/// Calls `look` every `interval` until it returns true; returns false after `limit`.
pub(crate) fn await_true<E>(
    limit: Duration,
    interval: Duration,
    mut look: impl FnMut() -> Result<bool, E>,
) -> Result<bool, E> {
    let deadline = Deadline::after(limit);
    while !look()? {
        if deadline.is_over() {
            return Ok(false);
        }
        std::thread::sleep(interval);
    }
    Ok(true)
}

/// The end of a wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// No deadline.
    pub(crate) const NEVER: Self = Self(None);

    /// Ends `limit` from now; never if that overflows.
    pub(crate) fn after(limit: Duration) -> Self {
        Self(Instant::now().checked_add(limit))
    }

    pub(crate) fn is_over(self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// Returns the remaining time, zero once it is over; `None` without a deadline.
    pub(crate) fn left(self) -> Option<Duration> {
        self.0
            .map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// Returns this deadline or `limit` from now, the sooner of the two.
    pub(crate) fn at_most(self, limit: Duration) -> Self {
        match self.left() {
            Some(left) if left <= limit => self,
            _ => Self::after(limit),
        }
    }
}

/// Waits for a thread and propagates its panic.
pub(crate) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
