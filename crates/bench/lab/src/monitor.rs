//! Values of devices and machines, read at an interval while traffic flows.
//!
//! ```text
//! Source ─► Query ─► Answer ─► SeriesBuilder ─► Monitored
//!         (command, SNMP, page, RAPL)   ▲
//!                      TrafficLog ──────┘  which load a reading belongs to
//! ```
//!
//! Each box and each machine has one thread, which makes its readings one after the other. A
//! reading that fails, or is skipped because the readings before took longer than the interval, is
//! a gap with its reason. When the trial is over, a command is ended, and a request is awaited at
//! most for its time limit.
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
mod traffic;

pub(crate) use answer::Answer;
pub(crate) use command::BoxCommand;
pub(crate) use count::Count;
pub(crate) use poller::{Poller, Reader};
pub(crate) use query::Queries;
pub use traffic::TrafficLog;

use crate::sync::join;
use journal::record::Monitored;
use std::thread;

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
    /// the readings.
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
            let devices = threads.into_iter().map(join).collect();
            (result, devices)
        });
        let mut windows = log.recorded();
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
