//! Values of devices and machines, read at an interval while traffic flows.
//!
//! ```text
//! Source ─► Query ─► Answer ─► SeriesBuilder ─► Monitored
//!         (command, SNMP, page, RAPL)   ▲
//!                      TrafficLog ──────┘  which load a reading belongs to
//! ```
//!
//! Each box and each machine has one thread, which makes its readings one after the other. A reading
//! that fails, or that is not made because those before it took longer than the interval, is a gap
//! with its reason. When the trial is over, a command is ended, and a request is awaited at most for
//! its own time limit.
//!
//! What this deliberately does not do: evaluate the values.

mod answer;
mod command;
mod count;
mod poller;
mod query;
pub(crate) mod rapl;
mod secret;
mod series;
mod snmp;

pub(crate) use answer::Answer;
pub(crate) use command::BoxCommand;
pub(crate) use count::Count;
pub(crate) use poller::{Poller, Reader};
pub(crate) use query::Queries;

use crate::sync::lock;
use crate::{Interrupt, dut};
use journal::record::{Monitored, TrafficWindow};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Prepared readings of a DUT and of machines. Each value has been read once.
#[derive(Default)]
pub struct Monitor<'a> {
    pollers: Vec<Poller<'a>>,
}

impl<'a> Monitor<'a> {
    pub(crate) const fn new(pollers: Vec<Poller<'a>>) -> Self {
        Self { pollers }
    }

    /// Makes readings while `body` runs, which reports when traffic flows. Returns its result and
    /// what was read.
    pub fn during<T>(self, body: impl FnOnce(&TrafficLog) -> T) -> (T, Monitored) {
        let log = TrafficLog::new();
        let (result, devices) = thread::scope(|scope| {
            let pollers = self.pollers.into_iter();
            let threads: Vec<_> = pollers
                .map(|poller| scope.spawn(|| poller.run(&log)))
                .collect();
            // A panic in `body` ends the threads too.
            let ending = Ending(&log);
            let result = body(&log);
            drop(ending);
            let devices = threads.into_iter().map(dut::join).collect();
            (result, devices)
        });
        let mut windows = log.recorded();
        windows.truncate(Monitored::WINDOWS_MAX);
        (result, Monitored { windows, devices })
    }
}

/// When traffic flows in a trial.
pub struct TrafficLog {
    begun: Instant,
    state: Mutex<State>,
    changed: Condvar,
    /// Set at the end: interrupts commands.
    over: Interrupt,
}

#[derive(Default)]
struct State {
    windows: Vec<Window>,
    is_over: bool,
}

/// A time in which traffic is to flow.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// As [`TrafficWindow::load`].
    load: Option<u64>,
    from: Instant,
    to: Instant,
}

impl TrafficLog {
    fn new() -> Self {
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
        let to = from + time;
        lock(&self.state).windows.push(Window { load, from, to });
        self.changed.notify_all();
    }

    /// Waits until `due`, or until half an `interval` after the start of traffic that was reported
    /// after the first `seen` times, if that is earlier: so a trial of one interval has a reading.
    /// False at the end.
    fn wait(&self, due: Instant, interval: Duration, seen: &mut usize) -> bool {
        let mut due = due;
        let mut state = lock(&self.state);
        loop {
            for window in &state.windows[*seen..] {
                due = due.min(window.from + interval / 2);
            }
            *seen = state.windows.len();
            let left = due.saturating_duration_since(Instant::now());
            if state.is_over || left.is_zero() {
                return !state.is_over;
            }
            state = self.wait_for_change(state, left);
        }
    }

    fn wait_for_change<'s>(
        &'s self,
        state: MutexGuard<'s, State>,
        left: Duration,
    ) -> MutexGuard<'s, State> {
        let waited = self.changed.wait_timeout(state, left);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The load while which a reading was made, if it was the same throughout.
    fn load(&self, from: Instant, to: Instant) -> Option<Option<u64>> {
        let state = lock(&self.state);
        let mut windows = state.windows.iter().rev();
        let around = windows.find(|window| window.from <= from && to <= window.to);
        around.map(|window| window.load)
    }

    fn is_over(&self) -> bool {
        self.over.is_set()
    }

    fn end(&self) {
        lock(&self.state).is_over = true;
        self.over.set();
        self.changed.notify_all();
    }

    /// Time since the start of the readings.
    fn at_ns(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.begun).as_nanos()).unwrap_or(u64::MAX)
    }

    fn recorded(&self) -> Vec<TrafficWindow> {
        let state = lock(&self.state);
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

/// Ends the readings when dropped.
struct Ending<'t>(&'t TrafficLog);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
