//! The clock that frames are sent and timed by.

use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use port::{Stop, wait_readable};
use std::array::from_fn;
use std::hint::spin_loop;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Nanoseconds in a second.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;
/// The last part of a wait is spent spinning, since a sleeper wakes up late: so much of it, unless the clock has
/// found out how late that is.
const SPIN_NS_MAX: u64 = 60_000;
/// What the clock adds to what it has found.
const SPIN_MARGIN_NS: u64 = 5_000;
/// Sleeps by which the clock finds out.
const TRIES: usize = 10;
/// How long each is.
const TRY_NS: u64 = 50_000;
/// A longer wait is interrupted by the stop flag.
const INTERRUPTIBLE_NS: u64 = 4_000_000;

/// A clock that only goes forward, and a way to wait by it.
pub trait Clock {
    /// Nanoseconds since some moment in the past.
    fn now_ns(&self) -> u64;

    /// Returns at `time_ns`, as exactly as can be; earlier when `stop` is raised.
    fn wait_until(&self, time_ns: u64, stop: &Stop);

    /// Finds out how to wait for less CPU time and as exactly, which takes about a millisecond. Whoever keeps a
    /// schedule calls it first.
    fn settle(&self) {}
}

/// CLOCK_MONOTONIC, which all processes of a host share.
///
/// It waits asleep for the most part, and spins at the end: for 60 µs, or, once [settled](Clock::settle), only as long
/// as this machine needs to wake a sleeper up. Bursts of a schedule often follow each other after 50 µs, and a core
/// that spins all the time between them is one that a DUT on the same machine has not.
#[derive(Debug)]
pub struct Monotonic {
    spin_ns: AtomicU64,
}

impl Monotonic {
    /// The clock, for use by the calling thread and those that it starts, which from now on wake up from sleep
    /// without slack.
    #[must_use]
    pub fn new() -> Self {
        // Where the kernel refuses, wakes are later, which the generator measures and tells.
        let _ = set_timerslack(1);
        Self {
            spin_ns: AtomicU64::new(SPIN_NS_MAX),
        }
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
        let spin_ns = self.spin_ns.load(Relaxed);
        while !stop.is_raised() {
            let left = time_ns.saturating_sub(self.now_ns());
            if left == 0 {
                return;
            } else if left > INTERRUPTIBLE_NS {
                // In whole milliseconds, and one of them early. Whatever it says, the time decides.
                let limit = Duration::from_nanos(left - INTERRUPTIBLE_NS / 2);
                let _ = wait_readable(&[stop.as_fd()], Some(limit));
            } else if left > spin_ns {
                sleep_until(time_ns - spin_ns);
            } else {
                spin_loop();
            }
        }
    }

    fn settle(&self) {
        let late_ns = from_fn(|_| {
            let time_ns = self.now_ns() + TRY_NS;
            sleep_until(time_ns);
            self.now_ns().saturating_sub(time_ns)
        });
        self.spin_ns.store(spin_for(late_ns), Relaxed);
    }
}

/// How long to spin where sleepers woke up so late. The median counts: the latest were kept from their core by something
/// else, which no spinning mends.
fn spin_for(mut late_ns: [u64; TRIES]) -> u64 {
    late_ns.sort_unstable();
    (late_ns[TRIES / 2] + SPIN_MARGIN_NS).min(SPIN_NS_MAX)
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
    use proptest::prelude::*;
    use std::thread;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn no_wait_ends_early(
            spin_ns in prop_oneof![Just(0u64), SPIN_MARGIN_NS..=SPIN_NS_MAX],
            wait_ns in prop_oneof![
                0..2 * SPIN_NS_MAX,
                0..2 * INTERRUPTIBLE_NS,
            ],
        ) {
            let (clock, stop) = (Monotonic::new(), Stop::new().unwrap());
            clock.spin_ns.store(spin_ns, Relaxed);
            let time_ns = clock.now_ns() + wait_ns;
            clock.wait_until(time_ns, &stop);
            prop_assert!(clock.now_ns() >= time_ns);
        }
    }

    #[test]
    fn it_spins_as_long_as_sleepers_are_late() {
        // Some were kept from their core by something else.
        let late_ns = |late_ns| from_fn(|at| if at % 3 == 0 { 3_000_000 } else { late_ns });
        assert_eq!(spin_for(late_ns(12_000)), 12_000 + SPIN_MARGIN_NS);
        assert_eq!(spin_for([0; TRIES]), SPIN_MARGIN_NS);
        assert_eq!(spin_for(late_ns(900_000)), SPIN_NS_MAX);
        let clock = Monotonic::new();
        clock.settle();
        let spin_ns = clock.spin_ns.load(Relaxed);
        assert!((SPIN_MARGIN_NS..=SPIN_NS_MAX).contains(&spin_ns));
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
