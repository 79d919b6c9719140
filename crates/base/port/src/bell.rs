//! Wake-ups for the reader of a ring in memory: an eventfd that costs nothing while no reader
//! sleeps.
//!
//! The reader arms the bell before it waits and checks its ring again; the writer, after each
//! write, rings only an armed bell. While the reader never waits, neither side makes a system call.

use crate::kernel;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering, fence};

/// No reader waits.
const IDLE: u8 = 0;
/// The reader waits, or is about to.
const ARMED: u8 = 1;
/// A writer is about to make the event readable.
const RINGING: u8 = 2;
/// The event is readable.
const RUNG: u8 = 3;

/// Shared by the two ends of a ring.
#[derive(Debug)]
pub(crate) struct Bell {
    state: AtomicU8,
    event: OwnedFd,
}

impl Bell {
    /// A bell that is not armed.
    ///
    /// # Panics
    /// When the process is out of file descriptors.
    pub(crate) fn new() -> Self {
        let event = kernel::eventfd();
        let event =
            event.unwrap_or_else(|error| panic!("cannot make an eventfd for a ring: {error}"));
        Self {
            state: AtomicU8::new(IDLE),
            event,
        }
    }

    /// Rings if the reader waits: for the writer, once its data is visible.
    #[inline]
    pub(crate) fn ring_if_armed(&self) {
        // Either this load sees the reader's `ARMED`, or the reader's second check sees the written
        // data: both have a full fence between their store and their load.
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) == ARMED {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        // Only one rings, so that a late write is never mistaken for the answer to the next arming.
        let first =
            self.state
                .compare_exchange(ARMED, RINGING, Ordering::AcqRel, Ordering::Relaxed);
        if first.is_ok() {
            let one = 1u64.to_ne_bytes();
            // SAFETY: the descriptor is open as long as `self`, and `one` holds the 8 bytes that
            // are read.
            unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
            self.state.store(RUNG, Ordering::Release);
        }
    }

    /// Arms the bell: for the reader, before each wait for the descriptor. `is_empty` checks the
    /// ring.
    pub(crate) fn arm(&self, is_empty: impl FnOnce() -> bool) -> BorrowedFd<'_> {
        match self.state.load(Ordering::Acquire) {
            // The event is about to become readable.
            RINGING => return self.event.as_fd(),
            RUNG => self.silence(),
            _ => {}
        }
        self.state.store(ARMED, Ordering::Release);
        fence(Ordering::SeqCst);
        if !is_empty() {
            self.ring();
        }
        self.event.as_fd()
    }

    fn silence(&self) {
        let mut count = 0u64;
        // SAFETY: the descriptor is open as long as `self`, and `count` takes the 8 bytes that are
        // written. The call does not block; an error needs no action, and costs one needless
        // wake-up.
        unsafe { libc::read(self.event.as_raw_fd(), ptr::from_mut(&mut count).cast(), 8) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_readable;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    fn is_readable(fd: BorrowedFd<'_>) -> bool {
        wait_readable(&[fd], Some(Duration::ZERO)).unwrap()
    }

    #[test]
    fn only_an_armed_bell_rings() {
        let bell = Bell::new();
        bell.ring_if_armed();
        assert!(!is_readable(bell.event.as_fd()));
        assert!(!is_readable(bell.arm(|| true)));
        bell.ring_if_armed();
        assert!(is_readable(bell.event.as_fd()));
        assert!(!is_readable(bell.arm(|| true)), "arming silences it");
    }

    #[test]
    fn data_written_before_arming_is_noticed() {
        let bell = Bell::new();
        assert!(is_readable(bell.arm(|| false)));
    }

    #[test]
    fn no_wake_up_is_lost_between_two_threads() {
        const ROUNDS: u64 = 3000;
        let shared = Arc::new((Bell::new(), AtomicU64::new(0), AtomicU64::new(0)));
        let writer = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let (bell, written, read) = &*writer;
            for round in 1..=ROUNDS {
                written.store(round, Ordering::Release);
                bell.ring_if_armed();
                while read.load(Ordering::Acquire) < round {
                    std::thread::yield_now();
                }
            }
        });
        let (bell, written, read) = &*shared;
        let mut seen = 0;
        while seen < ROUNDS {
            let empty = || written.load(Ordering::Acquire) == seen;
            if empty() {
                let fd = bell.arm(empty);
                assert!(wait_readable(&[fd], Some(Duration::from_secs(10))).unwrap());
            } else {
                seen += 1;
                read.store(seen, Ordering::Release);
            }
        }
        thread.join().unwrap();
    }
}
