//! The clock for sending and timing frames.

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
pub const SECOND_NS: u64 = 1_000_000_000;
/// The last part of a wait is spent spinning, since a sleeper wakes up late: this long, unless the
/// clock has measured the delay.
const SPIN_NS_MAX: u64 = 60_000;
/// The shortest spin.
const SPIN_NS_MIN: u64 = 5_000;
/// The share of a wait that is added to the measured delay: the longer a sleep, the later it ends.
const WAITS_PER_MARGIN: u64 = 10;
/// Number of sleeps in the measurement.
const TRIES: usize = 10;
/// Length of each, in nanoseconds.
const TRY_NS: u64 = 50_000;
/// Longer waits can be interrupted by the stop flag.
const INTERRUPTIBLE_NS: u64 = 4_000_000;

/// A monotonic clock that can wait until a time.
pub trait Clock {
    /// Nanoseconds since some moment in the past.
    fn now_ns(&self) -> u64;

    /// Returns at `time_ns`, as exactly as possible; earlier when `stop` is raised.
    fn wait_until(&self, time_ns: u64, stop: &Stop);

    /// Measures the wake-up delay so that later waits are exact and use less CPU time. Takes about
    /// a millisecond. Threads with a schedule call it first.
    fn settle(&self) {}
}

/// CLOCK_MONOTONIC, common to all processes of a host.
///
/// A wait sleeps first and spins at the end: for 60 µs, or, once [settled](Clock::settle), only for
/// this machine's wake-up delay. Bursts of a schedule often follow each other after 50 µs, and a
/// core that spins all the time between them is lost to a DUT on the same machine.
#[derive(Debug)]
pub struct Monotonic {
    /// Measured wake-up delay.
    late_ns: AtomicU64,
}

impl Monotonic {
    /// The clock. From now on the calling thread and the threads that it starts wake up without
    /// timer slack.
    #[must_use]
    pub fn new() -> Self {
        // If the kernel refuses, wake-ups are later, which the generator measures and reports.
        let _ = set_timerslack(1);
        Self {
            late_ns: AtomicU64::new(SPIN_NS_MAX),
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
        // CLOCK_MONOTONIC exists on every Linux and is never negative.
        clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
            now.tv_sec().cast_unsigned() * SECOND_NS + now.tv_nsec().cast_unsigned()
        })
    }

    fn wait_until(&self, time_ns: u64, stop: &Stop) {
        let wait_ns = time_ns.saturating_sub(self.now_ns());
        let spin_ns = spin_ns(self.late_ns.load(Relaxed), wait_ns);
        while !stop.is_raised() {
            let left = time_ns.saturating_sub(self.now_ns());
            if left == 0 {
                return;
            } else if left > INTERRUPTIBLE_NS {
                // Ends early. Only the clock decides, not the call's result.
                let limit = Duration::from_nanos(left - INTERRUPTIBLE_NS / 2);
                let _ = wait_readable(&[stop.as_fd()], Some(limit));
            } else if left > spin_ns {
                sleep_until(time_ns - spin_ns);
            } else {
                // Leaves the core's other hardware thread more of its units.
                spin_loop();
            }
        }
    }

    fn settle(&self) {
        // As long as the waits between bursts: a longer sleep ends later, as the core then enters a
        // deeper idle state.
        let mut late_ns: [_; TRIES] = from_fn(|_| {
            let time_ns = self.now_ns() + TRY_NS;
            sleep_until(time_ns);
            self.now_ns().saturating_sub(time_ns)
        });
        late_ns.sort_unstable();
        // The median: the highest delays come from other load on the core, which spinning cannot
        // help.
        self.late_ns.store(late_ns[TRIES / 2], Relaxed);
    }
}

/// How long to spin in a wait of this length with this wake-up delay.
fn spin_ns(late_ns: u64, wait_ns: u64) -> u64 {
    late_ns
        .saturating_add(wait_ns / WAITS_PER_MARGIN)
        .clamp(SPIN_NS_MIN, SPIN_NS_MAX)
}

/// Sleeps until a time or a signal: the caller checks the clock.
fn sleep_until(time_ns: u64) {
    let time = TimeSpec::from_duration(Duration::from_nanos(time_ns));
    // Absolute: if the thread is preempted between its look at the clock and this call, a relative
    // sleep would end that much later.
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
            late_ns in 0..=SPIN_NS_MAX,
            wait_ns in prop_oneof![
                0..2 * SPIN_NS_MAX,
                0..2 * INTERRUPTIBLE_NS,
            ],
        ) {
            let (clock, stop) = (Monotonic::new(), Stop::new().unwrap());
            clock.late_ns.store(late_ns, Relaxed);
            let time_ns = clock.now_ns() + wait_ns;
            clock.wait_until(time_ns, &stop);
            prop_assert!(clock.now_ns() >= time_ns);
        }
    }

    #[test]
    fn it_spins_as_long_as_sleepers_are_late_and_a_tenth_of_the_wait() {
        assert_eq!(spin_ns(0, 0), SPIN_NS_MIN);
        assert_eq!(spin_ns(12_000, 50_000), 17_000);
        assert_eq!(spin_ns(12_000, 100_000), 22_000);
        assert_eq!(spin_ns(12_000, 1_000_000), SPIN_NS_MAX);
        assert_eq!(spin_ns(u64::MAX, u64::MAX), SPIN_NS_MAX);
    }

    #[test]
    fn it_finds_out_how_late_sleepers_are() {
        let clock = Monotonic::new();
        assert_eq!(clock.late_ns.load(Relaxed), SPIN_NS_MAX);
        clock.settle();
        // Sleepers never wake up on the exact nanosecond.
        assert!((1..1_000_000_000).contains(&clock.late_ns.load(Relaxed)));
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
