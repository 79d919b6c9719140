//! The station's last actions, when its input has ended, however the run ended.

use super::processes::Processes;
use crate::lent;
use crate::protocol::{Lent, Program};
use std::fs::File;
use std::io;
use std::time::Duration;

/// How long giving back may take, at each step.
const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// The actions at the end.
pub(super) struct Ending {
    /// The network namespace that the station was started in.
    home: File,
    pub(super) lent: Vec<Lent>,
    pub(super) programs: Vec<Program>,
    /// Of each program.
    pub(super) limit: Duration,
}

impl Ending {
    /// No actions yet. Create it before the station moves into a namespace of its own.
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
        // They may be about interfaces that are given back.
        for program in std::mem::take(&mut self.programs) {
            run(&program, self.limit, processes);
        }
        for lent in std::mem::take(&mut self.lent) {
            let run = |program: &Program| run(program, TOOL_LIMIT, processes);
            lent::give_back(&lent, None, &self.home, &run);
        }
    }
}

/// Runs a program to its end, or its limit.
fn run(program: &Program, limit: Duration, processes: &Processes) {
    if let Ok((handle, process)) = processes.spawn(program) {
        // No caller is left to report a failure to.
        let _ = process.wait(limit);
        processes.forget(handle);
    }
}
