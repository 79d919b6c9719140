//! The times of traffic, as the trial reports them to the polling threads.

use crate::Interrupt;
use journal::record::TrafficWindow;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The times of traffic in a trial.
pub struct TrafficLog {
    begun: Instant,
    state: Mutex<State>,
    changed: Condvar,
    over: Interrupt,
}

#[derive(Default)]
struct State {
    windows: Vec<Window>,
    is_over: bool,
}

/// A time window for traffic.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// As [`TrafficWindow::load`].
    load: Option<u64>,
    from: Instant,
    to: Instant,
}

impl TrafficLog {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            state: Mutex::default(),
            changed: Condvar::new(),
            over: Interrupt::new(),
        }
    }

    /// Reports that traffic flows from that moment for that time. `load` is in frames per second
    /// and direction, 0 as fast as the generator can; `None` for other tools.
    pub fn flows(&self, load: Option<u64>, from: Instant, time: Duration) {
        // The time may lie ahead, as senders on two hosts begin together: readings are planned by
        // it.
        let to = from + time;
        self.state().windows.push(Window { load, from, to });
        self.changed.notify_all();
    }

    /// Waits until `due`, or until half an `interval` after the start of traffic that was reported
    /// after the first `seen` times, if that is earlier: so a trial of one interval has a reading.
    /// False at the end.
    pub fn wait(&self, due: Instant, interval: Duration, seen: &mut usize) -> bool {
        let mut due = due;
        let mut state = self.state();
        loop {
            // Windows are only ever added, so the ones beyond `seen` are new. Each counts once: the
            // next reading is due at the interval again.
            for window in &state.windows[*seen..] {
                due = due.min(window.from + interval / 2);
            }
            *seen = state.windows.len();
            // A change may be another window, the end, or a spurious wakeup; the loop looks at all
            // of it again.
            let left = due.saturating_duration_since(Instant::now());
            if state.is_over || left.is_zero() {
                return !state.is_over;
            }
            state = self.wait_for_change(state, left);
        }
    }

    /// The state, even if poisoned: plain data, which a panic leaves usable.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for_change<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        left: Duration,
    ) -> MutexGuard<'s, State> {
        let waited = self.changed.wait_timeout(state, left);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Returns the load during a reading, if it was the same throughout.
    pub fn load(&self, from: Instant, to: Instant) -> Option<Option<u64>> {
        let state = self.state();
        // The latest first: a reading is of the traffic now, and a search makes hundreds of trials.
        let mut windows = state.windows.iter().rev();
        let around = windows.find(|window| window.from <= from && to <= window.to);
        around.map(|window| window.load)
    }

    /// Set at the end, to interrupt commands.
    #[must_use]
    pub const fn over(&self) -> &Interrupt {
        &self.over
    }

    pub(crate) fn end(&self) {
        // Under the lock, so that no thread misses the change between its look and its wait. The
        // flag is for a poller that runs a command meanwhile.
        self.state().is_over = true;
        self.over.set();
        self.changed.notify_all();
    }

    /// Time since the start of the readings.
    pub fn at_ns(&self, at: Instant) -> u64 {
        // 0 for traffic that was reported with a time before the readings began.
        u64::try_from(at.saturating_duration_since(self.begun).as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn recorded(&self) -> Vec<TrafficWindow> {
        let state = self.state();
        let windows = state.windows.iter();
        windows
            .map(|window| TrafficWindow {
                load: window.load,
                start_ns: self.at_ns(window.from),
                end_ns: self.at_ns(window.to),
            })
            .collect()
    }
}
