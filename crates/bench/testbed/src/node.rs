//! The interface to a node: a station, a gateway or an element of the path.

use crate::protocol::{CpuTime, Ended, Program, Request, Response, millis};
use crate::{LabError, NodeId, Result};
use journal::record::InterfaceCounters;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time for a program that only reads.
const READ_LIMIT: Duration = Duration::from_secs(5);

/// A node: runs programs and reads counters. Implemented by `Station`, and by fakes in tests.
pub trait Node: Send + Sync {
    /// The node's id.
    fn id(&self) -> NodeId;

    /// Sends a request and waits for the answer. Safe to call from several threads concurrently.
    ///
    /// # Errors
    /// [`LabError::Node`] with the station's error, or that it is gone.
    fn call(&self, request: Request) -> Result<Response>;
}

// Methods of the trait object, and not of the trait: then no implementation, above all no fake, can
// give a request another meaning.
impl dyn Node + '_ {
    /// Returns the path of the program that the station would start; `None` if it is missing.
    ///
    /// # Errors
    /// When the station is gone.
    pub fn locate(&self, program: &str) -> Result<Option<String>> {
        let program = program.to_owned();
        match self.call(Request::Locate { program })? {
            Response::Located(path) => Ok(path),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Starts a program.
    ///
    /// # Errors
    /// When it cannot be started or is not ready in time.
    pub fn start(&self, program: Program, limit: Duration) -> Result<u64> {
        match self.call(Request::Start {
            program,
            limit_ms: millis(limit),
        })? {
            Response::Started { process, .. } => Ok(process),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Waits for a program to end; kills it when `limit` is up.
    ///
    /// # Errors
    /// When the handle is unknown.
    pub fn wait(&self, process: u64, limit: Duration) -> Result<Ended> {
        // The station keeps the limit: it has the output of a program that it kills.
        match self.call(Request::Wait {
            process,
            limit_ms: millis(limit),
        })? {
            Response::Ended(ended) => Ok(ended),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Stops a program.
    ///
    /// # Errors
    /// When the handle is unknown.
    pub fn stop(&self, process: u64, grace: Duration) -> Result<Ended> {
        match self.call(Request::Stop {
            process,
            grace_ms: millis(grace),
        })? {
            Response::Ended(ended) => Ok(ended),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Starts a program and waits for its end.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run(&self, program: Program, limit: Duration) -> Result<Ended> {
        // The limit is for each step: a program that is slow to be ready has all of it again to
        // end.
        let process = self.start(program, limit)?;
        self.wait(process, limit)
    }

    /// Runs a program that only reads, and returns what it prints on standard output, even if it
    /// fails.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn output<'w>(&self, argv: impl IntoIterator<Item = &'w str>) -> Result<String> {
        // Tools fail for what an interface or a kernel does not have, which is an answer too.
        Ok(self.run(Program::new(argv), READ_LIMIT)?.stdout)
    }

    /// CPU time of a program, or of the machine.
    ///
    /// # Errors
    /// When the handle is unknown.
    pub fn cpu_time(&self, process: Option<u64>) -> Result<CpuTime> {
        match self.call(Request::CpuTime { process })? {
            Response::CpuTime(time) => Ok(time),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Resident memory of a program in bytes.
    ///
    /// # Errors
    /// When the handle is unknown, or the program has ended.
    pub fn resident_bytes(&self, process: u64) -> Result<u64> {
        match self.call(Request::Resident { process })? {
            Response::Resident(bytes) => Ok(bytes),
            other => Err(self.unexpected(&other)),
        }
    }

    /// What identifies a running program: no other on this machine has it until the next boot.
    ///
    /// # Errors
    /// When the handle is unknown, or the program has ended.
    pub fn identity(&self, process: u64) -> Result<String> {
        match self.call(Request::Identity { process })? {
            // The kernel gives the number of an ended process to another one, but that starts
            // later.
            Response::Identity { pid, start_ticks } => {
                Ok(format!("pid {pid}, started {start_ticks} ticks after boot"))
            }
            other => Err(self.unexpected(&other)),
        }
    }

    /// How a program ended; `None` while it runs.
    ///
    /// # Errors
    /// When the handle is unknown.
    pub fn status(&self, process: u64) -> Result<Option<Ended>> {
        // The station remembers programs that have ended, so this can be asked again.
        match self.call(Request::Status { process })? {
            Response::Status(ended) => Ok(ended),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Counters by interface, without `lo`.
    ///
    /// # Errors
    /// When the station is gone.
    pub fn interface_counters(&self) -> Result<BTreeMap<String, InterfaceCounters>> {
        match self.call(Request::InterfaceCounters)? {
            Response::InterfaceCounters(counters) => Ok(counters),
            other => Err(self.unexpected(&other)),
        }
    }

    /// [`NodeId::name`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.id().name()
    }

    /// The node's error with this reason.
    #[must_use]
    pub fn error(&self, reason: impl Into<String>) -> LabError {
        LabError::Node {
            node: self.name(),
            reason: reason.into(),
        }
    }

    /// The error for an answer that does not fit its request.
    #[must_use]
    pub fn unexpected(&self, response: &Response) -> LabError {
        // Both ends have the same version, so this is a mistake in the program: the whole answer
        // helps to find it.
        self.error(format!("unexpected answer {response:?}"))
    }
}
