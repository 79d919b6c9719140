//! Steps of the system's clock (CLOCK_REALTIME) during a trial.
//!
//! Figures rest on CLOCK_MONOTONIC, which cannot be set; times of day do not, nor does a tool's
//! reading of the time of day. The kernel cancels a timer when the clock is set, also when it is
//! set back before the trial ends; a clock that is slewed is not set.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use port::ClockOffset;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Changes of the clock by less are not worth a word: a time server corrects them now and then.
const LEAST_NS: u64 = 100_000_000;
/// In the year 2255, nearly the latest time that fits in nanoseconds.
const NEVER_UNIX_S: i64 = 9_000_000_000;

/// Watches the clock on a thread that sleeps until the clock is set.
pub(crate) struct ClockWatch {
    before_ns: i64,
    watcher: Option<(Arc<EventFd>, JoinHandle<i64>)>,
}

impl ClockWatch {
    pub(crate) fn begin() -> Self {
        let before_ns = ahead_ns();
        Self {
            before_ns,
            watcher: watch(before_ns).ok(),
        }
    }

    /// Ends the watch. Returns the largest change of the clock since its beginning; 0 if it was not
    /// set, or by less than 100 ms.
    pub(crate) fn end(self) -> i64 {
        let found = self.watcher.and_then(|(stop, thread)| {
            stop.write(1).ok()?;
            thread.join().ok()
        });
        // Without a timer that the kernel cancels, a clock that was set back is not noticed.
        let found = found.unwrap_or_else(|| ahead_ns() - self.before_ns);
        if found.unsigned_abs() < LEAST_NS {
            0
        } else {
            found
        }
    }
}

fn watch(before_ns: i64) -> nix::Result<(Arc<EventFd>, JoinHandle<i64>)> {
    let timer = TimerFd::new(
        ClockId::CLOCK_REALTIME,
        TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK,
    )?;
    // Before the thread starts, which may take a while on a busy machine.
    arm(&timer)?;
    let stop = Arc::new(EventFd::from_flags(EfdFlags::EFD_CLOEXEC)?);
    let stopped = Arc::clone(&stop);
    let thread = std::thread::Builder::new().name("clock".to_owned());
    let thread = thread.spawn(move || largest_step(&timer, &stopped, before_ns));
    Ok((stop, thread.map_err(|_| nix::Error::EAGAIN)?))
}

/// Sets the timer to a time that never comes.
fn arm(timer: &TimerFd) -> nix::Result<()> {
    timer.set(
        Expiration::OneShot(TimeSpec::new(NEVER_UNIX_S, 0)),
        TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET,
    )
}

/// Waits for the order to stop; returns the largest change of the clock until then.
fn largest_step(timer: &TimerFd, stop: &EventFd, before_ns: i64) -> i64 {
    let mut largest = 0_i64;
    loop {
        let mut fds = [
            PollFd::new(stop.as_fd(), PollFlags::POLLIN),
            PollFd::new(timer.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut fds, PollTimeout::NONE) {
            Err(nix::Error::EINTR) => continue,
            Err(_) => return largest,
            Ok(_) => {}
        }
        let [stopped, set] = fds.map(|fd| fd.any().unwrap_or(true));
        if set {
            // It fails with ECANCELED, for any change of the clock.
            let _ = timer.wait();
            let step = ahead_ns() - before_ns;
            if step.unsigned_abs() > largest.unsigned_abs() {
                largest = step;
            }
        }
        // A canceled timer has to be armed again. A change between reading the clock and arming is
        // seen at the next one, or not at all if it is undone immediately.
        if stopped || (set && arm(timer).is_err()) {
            return largest;
        }
    }
}

/// Returns by how much CLOCK_REALTIME is ahead of CLOCK_MONOTONIC.
fn ahead_ns() -> i64 {
    ClockOffset::read().ahead_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_left_alone_makes_no_step_and_the_watch_ends_at_once() {
        let watch = ClockWatch::begin();
        assert!(watch.watcher.is_some(), "no timer");
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert_eq!(watch.end(), 0);
    }

    #[test]
    fn without_a_timer_the_clock_is_compared_before_and_after() {
        let watch = |before_ns| ClockWatch {
            before_ns,
            watcher: None,
        };
        assert_eq!(watch(ahead_ns()).end(), 0);
        let hour_ns = 3_600_000_000_000;
        let found = watch(ahead_ns() - hour_ns).end();
        assert!(found.abs_diff(hour_ns) < LEAST_NS, "{found}");
    }
}
