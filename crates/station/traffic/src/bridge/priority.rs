//! The priority of a bridge that may never sleep.
//!
//! In real time it gets a core as soon as it wakes. But the kernel stops a thread that has run in
//! real time for 950 ms of a second: no frame passes in the remaining 50 ms. So it is an ordinary
//! thread for a tenth of the time, in short turns, with the largest share of its core. Turns follow
//! the host's clock, so they coincide for all of its bridges, which stay within the limit together.

use port::{run_in_front, run_in_real_time};

/// Length of a turn of both kinds, in nanoseconds.
const TURN_NS: u64 = 20_000_000;
/// Part of a turn in real time; sleeps are also in real time.
const REAL_TIME_NS: u64 = 18_000_000;

/// The calling thread's priority.
#[derive(Debug)]
pub(super) struct Priority {
    is_real_time: bool,
    /// Without this right the bridge waits for a core like any program: the added delay shows it.
    may_change: bool,
}

impl Priority {
    /// Real time, if the thread is permitted it.
    pub(super) fn new() -> Self {
        let may_change = run_in_real_time().is_ok();
        Self {
            is_real_time: may_change,
            may_change,
        }
    }

    /// Keeps to the turns while there is work.
    pub(super) fn keep(&mut self, now_ns: u64) {
        // By the clock, not by a count of steps: all bridges of a host change together.
        self.set(now_ns % TURN_NS < REAL_TIME_NS);
    }

    /// Prepares for a sleep, so that the thread wakes in real time.
    pub(super) fn before_sleep(&mut self) {
        self.set(true);
    }

    fn set(&mut self, is_real_time: bool) {
        // A system call for each change only, about a hundred in a second.
        if !self.may_change || is_real_time == self.is_real_time {
            return;
        }
        let set = if is_real_time {
            run_in_real_time()
        } else {
            run_in_front()
        };
        self.may_change = set.is_ok();
        self.is_real_time = is_real_time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use traffic_spec::{Clock, Monotonic, SECOND_NS};

    /// Longer than another thread's time slice, shorter than the kernel's stop.
    const PAUSE_NS: u64 = 12_000_000;

    /// The longest pause of a thread that never sleeps, over two seconds.
    fn longest_pause_ns(mut keep: impl FnMut(u64)) -> u64 {
        let clock = Monotonic::new();
        let since_ns = clock.now_ns();
        let (mut last_ns, mut longest_ns) = (since_ns, 0);
        while last_ns < since_ns + 2 * SECOND_NS {
            let now_ns = clock.now_ns();
            longest_ns = longest_ns.max(now_ns - last_ns);
            last_ns = now_ns;
            keep(now_ns);
        }
        longest_ns
    }

    #[test]
    fn the_kernel_does_not_stop_a_bridge_that_never_sleeps() {
        let test = || {
            let mut priority = Priority::new();
            if !priority.may_change {
                testing::skip(
                    "a bridge that never sleeps",
                    "no thread in real time here: run as root",
                );
                return;
            }
            // Other tests take the core in the ordinary turns.
            let runs_on =
                (0..20).any(|_| longest_pause_ns(|now_ns| priority.keep(now_ns)) < PAUSE_NS);
            assert!(runs_on, "stopped in each of twenty runs");
        };
        thread::spawn(test).join().unwrap();
    }
}
