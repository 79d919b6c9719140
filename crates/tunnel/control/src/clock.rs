//! The clock of keys' lifetimes: it goes on while the machine is suspended (CLOCK_BOOTTIME).

use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The longest time between two looks at the clock: timers stop while the machine is suspended, so
/// lifetimes that have passed meanwhile are noticed this long after it resumes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Time since its creation.
pub(crate) struct Clock {
    began: Duration,
    read: fn() -> Duration,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self::reading(since_boot)
    }

    fn reading(read: fn() -> Duration) -> Self {
        Self {
            began: read(),
            read,
        }
    }

    pub(crate) fn now(&self) -> Duration {
        // Saturates rather than ends the control thread: this clock does not run backwards.
        (self.read)().saturating_sub(self.began)
    }

    /// When to look at the clock next if something is due then.
    pub(crate) fn wakes(&self, due: Duration) -> Instant {
        // A time in the past means now.
        let wait = due.saturating_sub(self.now());
        Instant::now() + wait.min(LOOK_EVERY)
    }
}

fn since_boot() -> Duration {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .expect("Linux has this clock since 2.6.39")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn it_is_the_clock_that_goes_on_in_suspend() {
        let clock = Clock::start();
        let before = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap());
        let read = clock.began + clock.now();
        let after = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).unwrap());
        assert!((before..=after).contains(&read));
    }

    #[test]
    fn what_passed_in_suspend_is_noticed_soon() {
        thread_local!(static NOW: Cell<Duration> = const { Cell::new(Duration::from_secs(100)) });
        let clock = Clock::reading(|| NOW.get());
        let due = Duration::from_secs(3600);
        let now = Instant::now();
        // The timer of the runtime does not run in suspend, so it must not be long.
        assert!(clock.wakes(due) <= now + 2 * LOOK_EVERY);
        NOW.set(NOW.get() + Duration::from_secs(7200));
        assert!(clock.now() >= due);
        assert!(clock.wakes(due) <= Instant::now());
    }
}
