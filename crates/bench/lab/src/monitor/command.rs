//! A command of a box that is run repeatedly.

use super::Answer;
use crate::Station;
use std::time::Duration;
use testbed::protocol::{Program, Request, Response, millis};
use testbed::{Interrupt, LabError, Node};

/// A command on the host, without placeholders.
pub(crate) struct BoxCommand<'a> {
    pub(crate) host: &'a Station,
    pub(crate) program: Program,
    pub(crate) limit: Duration,
}

impl BoxCommand<'_> {
    /// Runs it and returns its output, with its CPU time in nanoseconds.
    pub(super) fn run(&self, over: &Interrupt) -> Result<(Answer, u64), String> {
        let host: &dyn Node = self.host;
        let failed = |error: LabError| error.to_string();
        // Started and awaited by two requests, so that the end of the trial can come in between.
        let process = host
            .start(self.program.clone(), self.limit)
            .map_err(failed)?;
        let wait = Request::Wait {
            process,
            limit_ms: millis(self.limit),
        };
        // The end of the trial ends the wait, which Ctrl-C does not.
        let ended = match self.host.call_unless(wait, over) {
            Ok(Response::Ended(ended)) => ended,
            Ok(other) => return Err(failed(host.unexpected(&other))),
            Err(LabError::Interrupted) => {
                // A wait without time kills the command and forgets it.
                host.wait(process, Duration::ZERO).map_err(failed)?;
                return Err("the trial ended meanwhile".to_owned());
            }
            Err(error) => return Err(failed(error)),
        };
        match ended.code {
            _ if ended.timed_out => Err(format!("did not end within {} s", self.limit.as_secs())),
            Some(0) => {
                // The journal reports the cost of readings, which may disturb the traffic.
                let cpu_ns = ended.cpu.user_ns + ended.cpu.system_ns;
                Ok((Answer::Text(ended.stdout), cpu_ns))
            }
            _ => Err(format!("failed ({}){}", ended.how(), ended.last_words())),
        }
    }
}
