//! The clock that frames are sent and timed by.

use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use port::{Stop, wait_readable};
use std::hint::spin_loop;
use std::os::fd::AsFd;
use std::time::Duration;

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// A shorter wait is spent spinning: that is how late a sleeper may wake up.
const SPIN_NS: u64 = 60_000;
/// A longer wait is interrupted by the stop flag.
const INTERRUPTIBLE_NS: u64 = 4_000_000;

/// A clock that only goes forward, and a way to wait by it.
pub trait Clock {
    /// Nanoseconds since some moment in the past.
    fn now_ns(&self) -> u64;

    /// Returns at `time_ns`, as exactly as can be; earlier when `stop` is raised.
    fn wait_until(&self, time_ns: u64, stop: &Stop);
}

/// CLOCK_MONOTONIC, which all processes of a host share.
#[derive(Debug)]
pub struct Monotonic(());

impl Monotonic {
    /// The clock, for use by the calling thread, which from now on wakes up from sleep without slack.
    #[must_use]
    pub fn new() -> Self {
        // Where the kernel refuses, wakes are later, which the generator measures and tells.
        let _ = set_timerslack(1);
        Self(())
    }
}

impl Default for Monotonic {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for Monotonic {
    #[inline]
    fn now_ns(&self) -> u64 {
        // Every Linux has this clock, and it is never negative.
        clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
            now.tv_sec().cast_unsigned() * SECOND_NS + now.tv_nsec().cast_unsigned()
        })
    }

    fn wait_until(&self, time_ns: u64, stop: &Stop) {
        while !stop.is_raised() {
            let left = time_ns.saturating_sub(self.now_ns());
            if left == 0 {
                return;
            } else if left > INTERRUPTIBLE_NS {
                // In whole milliseconds, and one of them early. Whatever it says, the time decides.
                let limit = Duration::from_nanos(left - INTERRUPTIBLE_NS / 2);
                let _ = wait_readable(&[stop.as_fd()], Some(limit));
            } else if left > SPIN_NS {
                sleep_until(time_ns - SPIN_NS);
            } else {
                spin_loop();
            }
        }
    }
}

/// Sleeps until then, or until a signal: the caller looks at the clock.
fn sleep_until(time_ns: u64) {
    let time = TimeSpec::from_duration(Duration::from_nanos(time_ns));
    let absolute = ClockNanosleepFlags::TIMER_ABSTIME;
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, absolute, &time);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn no_wait_ends_early() {
        let (clock, stop) = (Monotonic::new(), Stop::new().unwrap());
        for wait in [0, 1_000, SPIN_NS + 40_000, INTERRUPTIBLE_NS + 1_500_000] {
            let time = clock.now_ns() + wait;
            clock.wait_until(time, &stop);
            assert!(clock.now_ns() >= time);
        }
    }

    #[test]
    fn the_stop_flag_ends_a_long_wait() {
        let (clock, stop) = (Monotonic::new(), Stop::new().unwrap());
        thread::scope(|scope| {
            let waiter = scope.spawn(|| clock.wait_until(u64::MAX, &stop));
            stop.raise();
            waiter.join().unwrap();
        });
    }
}
