//! The station's last actions after the end of its input, however the run ended.

use super::processes::Processes;
use crate::lent;
use std::fs::File;
use std::io;
use std::time::Duration;
use testbed::protocol::{BorrowedInterface, Program};

/// Time limit for each step of returning an interface.
const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// The actions at the end.
pub(super) struct Ending {
    /// The network namespace that the station was started in.
    home: File,
    pub(super) lent: Vec<BorrowedInterface>,
    pub(super) programs: Vec<Program>,
    /// Time limit of each program.
    pub(super) limit: Duration,
}

impl Ending {
    /// Starts without actions. Call it before the station moves into new namespaces.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            home: File::open("/proc/self/ns/net")?,
            lent: Vec::new(),
            programs: Vec::new(),
            limit: Duration::ZERO,
        })
    }

    /// Runs the actions. No caller is left to report a failure to.
    pub(super) fn come(&mut self, processes: &Processes) {
        // Programs first: they may concern interfaces that are returned afterwards.
        for program in std::mem::take(&mut self.programs) {
            let _ = processes.run(&program, self.limit);
        }
        // Taken, so that nothing is given back twice.
        for lent in std::mem::take(&mut self.lent) {
            let run = |program: &Program| drop(processes.run(program, TOOL_LIMIT));
            lent::give_back(&lent, None, &self.home, &run);
        }
    }
}
