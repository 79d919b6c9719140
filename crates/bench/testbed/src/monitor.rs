//! Values of devices and machines, read at an interval while traffic flows.

use crate::TrafficLog;
use journal::record::{Monitored, MonitoredDevice};
use std::panic::resume_unwind;
use std::thread;

/// Reads one box or one machine during a trial.
pub trait Poller: Send {
    /// Makes readings until the log is [over](TrafficLog::over).
    fn run(self: Box<Self>, log: &TrafficLog) -> MonitoredDevice;
}

/// Prepared readings of a DUT and of machines. Each value has been read once.
#[derive(Default)]
pub struct Monitor<'a> {
    pollers: Vec<Box<dyn Poller + 'a>>,
}

impl<'a> Monitor<'a> {
    /// Readings by these pollers, each on a thread.
    #[must_use]
    pub const fn new(pollers: Vec<Box<dyn Poller + 'a>>) -> Self {
        Self { pollers }
    }

    /// Makes readings while `body` runs, which reports when traffic flows. Returns its result and
    /// the readings.
    pub fn during<T>(self, body: impl FnOnce(&TrafficLog) -> T) -> (T, Monitored) {
        let log = TrafficLog::new();
        // Scoped, since pollers borrow the lab that `body` measures on.
        let (result, devices) = thread::scope(|scope| {
            // A thread for each: a box may take seconds to answer, and must not delay the others.
            let pollers = self.pollers.into_iter();
            let threads: Vec<_> = pollers
                .map(|poller| scope.spawn(|| poller.run(&log)))
                .collect();
            // A panic in `body` ends the threads too.
            let ending = Ending(&log);
            let result = body(&log);
            drop(ending);
            let threads = threads.into_iter();
            let devices = threads.map(|thread| thread.join().unwrap_or_else(|p| resume_unwind(p)));
            (result, devices.collect())
        });
        let mut windows = log.recorded();
        // Searches over days make many trials; the journal's record stays bounded.
        windows.truncate(Monitored::WINDOWS_MAX);
        (result, Monitored { windows, devices })
    }
}

/// Ends the readings when dropped.
struct Ending<'t>(&'t TrafficLog);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
