//! Wake-up times of tunnels: one ordered set with at most one entry per tunnel.

use std::collections::BTreeSet;
use std::time::Duration;

/// Wake-up times by tunnel, counted from the shell's start.
pub(super) struct Timers {
    due: BTreeSet<(Duration, usize)>,
    of_tunnel: Vec<Option<Duration>>,
}

impl Timers {
    pub(super) fn new(tunnels: usize) -> Self {
        Self {
            due: BTreeSet::new(),
            of_tunnel: vec![None; tunnels],
        }
    }

    /// Sets, replaces or clears the tunnel's wake-up time.
    pub(super) fn set(&mut self, tunnel: usize, at: Option<Duration>) {
        let before = &mut self.of_tunnel[tunnel];
        if *before == at {
            return;
        }
        if let Some(before) = *before {
            // At most one entry per tunnel, so the set does not grow with the number of changes.
            self.due.remove(&(before, tunnel));
        }
        *before = at;
        self.due.extend(at.map(|at| (at, tunnel)));
    }

    /// The earliest wake-up time.
    pub(super) fn next(&self) -> Option<Duration> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Returns the next tunnel that is due and clears its wake-up time.
    pub(super) fn take(&mut self, now: Duration) -> Option<usize> {
        let (at, tunnel) = *self.due.first()?;
        if at > now {
            return None;
        }
        self.set(tunnel, None);
        Some(tunnel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tunnel_is_due_once_and_the_earliest_first() {
        let s = Duration::from_secs;
        let mut timers = Timers::new(3);
        assert_eq!((timers.next(), timers.take(s(100))), (None, None));
        timers.set(0, Some(s(5)));
        timers.set(1, Some(s(3)));
        timers.set(2, Some(s(3)));
        timers.set(0, Some(s(2)));
        timers.set(2, None);
        assert_eq!(timers.next(), Some(s(2)));
        assert_eq!(timers.take(s(1)), None);
        assert_eq!(timers.take(s(4)), Some(0));
        assert_eq!(timers.take(s(4)), Some(1));
        assert_eq!(timers.take(s(400)), None);
        assert_eq!(timers.next(), None);
    }
}
