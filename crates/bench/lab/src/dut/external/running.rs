//! A command on the host, until it ends, its limit is over, or the run is interrupted.

use crate::sync::Deadline;
use std::thread;
use std::time::Duration;
use testbed::protocol::{Ended, Program};
use testbed::{Interrupt, Node, Result};

/// Polling interval of a running command: the run may be interrupted between two polls.
const STEP: Duration = Duration::from_millis(10);

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// How a command came to its end.
pub(super) enum Outcome {
    Ended(Ended),
    /// Ended at its limit.
    TimedOut(Ended),
    /// Ended after Ctrl-C.
    Interrupted,
}

/// Runs a program on the host until it ends, its limit is over, or the run is interrupted.
pub(super) fn run_on_host(
    host: &dyn Node,
    program: Program,
    limit: Duration,
    interrupt: Option<&Interrupt>,
) -> Result<Outcome> {
    let deadline = Deadline::after(limit);
    let process = host.start(program, limit)?;
    // Ctrl-C does not interrupt calls to the host, so the run polls instead of waiting.
    while host.status(process)?.is_none() {
        if interrupt.is_some_and(Interrupt::is_set) {
            host.stop(process, GRACE)?;
            return Ok(Outcome::Interrupted);
        }
        if deadline.is_over() {
            return Ok(Outcome::TimedOut(host.stop(process, GRACE)?));
        }
        thread::sleep(STEP);
    }
    Ok(Outcome::Ended(host.wait(process, GRACE)?))
}
