//! Processes of a DUT: started, asked whether they live, killed and stopped.

use super::dut_error;
use super::site::{Site, all, on_each};
use crate::protocol::{Ended, Program, Ready, Request, Response};
use crate::sync::Deadline;
use crate::{DutAction, LabError, Node, NodeId, Result, RunningDut};
use nix::sys::signal::Signal;
use std::thread;
use std::time::Duration;

/// From SIGTERM to SIGKILL.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(5);

/// A process that no longer answers may close its sockets this long before it is dead.
const DEATH_LIMIT: Duration = Duration::from_millis(500);

/// A DUT's process on a gateway, as its adapter sees it.
pub(crate) struct Daemon<'a> {
    pub(crate) dut: &'a str,
    pub(crate) node: &'a dyn Node,
    pub(crate) process: u64,
}

impl<'a> Daemon<'a> {
    /// Starts it and waits until it prints a line that begins with `ready`; with what it printed.
    pub(crate) fn start(
        dut: &'a str,
        node: &'a dyn Node,
        argv: Vec<String>,
        ready: &str,
        limit: Duration,
    ) -> Result<(Self, String)> {
        let program = Program {
            argv,
            ready: Ready::Line(ready.to_owned()),
            ..Program::default()
        };
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        match node.call(Request::Start { program, limit_ms }) {
            Ok(Response::Started {
                process, stdout, ..
            }) => Ok((Self { dut, node, process }, stdout)),
            Ok(other) => Err(node.unexpected(&other)),
            Err(LabError::Node { node, reason }) => Err(dut_error(
                dut,
                format!("did not come up on {node}: {reason}"),
            )),
            Err(error) => Err(error),
        }
    }

    /// # Errors
    /// [`LabError::Dut`] with its last words when it is dead, or is so within [`DEATH_LIMIT`].
    pub(crate) fn check_dying(&self) -> Result<()> {
        let deadline = Deadline::after(DEATH_LIMIT);
        while !deadline.is_over() {
            self.check_alive()?;
            thread::sleep(Duration::from_millis(5));
        }
        self.check_alive()
    }

    /// # Errors
    /// [`LabError::Dut`] with its last words when it is dead.
    pub(crate) fn check_alive(&self) -> Result<()> {
        match self.node.call(Request::Status {
            process: self.process,
        })? {
            Response::Status(None) => Ok(()),
            Response::Status(Some(ended)) => Err(self.died(&ended)),
            other => Err(self.node.unexpected(&other)),
        }
    }

    /// Stops it.
    ///
    /// # Errors
    /// [`LabError::Dut`] with its last words when it was dead, or had to be killed.
    pub(crate) fn stop(&self) -> Result<()> {
        let alive = self.check_alive();
        let ended = self.node.stop(self.process, STOP_GRACE)?;
        alive?;
        if ended.timed_out {
            let (node, grace) = (self.node.id().name(), STOP_GRACE.as_secs());
            let reason = format!(
                "did not stop on {node} within {grace} s{}",
                ended.last_words()
            );
            return Err(dut_error(self.dut, reason));
        }
        Ok(())
    }

    /// Kills it, which is all that it notices.
    ///
    /// # Errors
    /// [`LabError::Dut`] with its last words when it was dead already.
    pub(crate) fn kill(&self) -> Result<()> {
        self.check_alive()?;
        self.signal(Signal::SIGKILL)?;
        let ended = self.node.wait(self.process, STOP_GRACE)?;
        match ended.signal {
            Some(signal) if signal == Signal::SIGKILL as i32 => Ok(()),
            _ => Err(self.died(&ended)),
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let (process, signal) = (self.process, signal as i32);
        match self.node.call(Request::Signal { process, signal })? {
            Response::Signalled => Ok(()),
            other => Err(self.node.unexpected(&other)),
        }
    }

    fn died(&self, ended: &Ended) -> LabError {
        let node = self.node.id().name();
        dut_error(
            self.dut,
            format!("died on {node} ({}){}", ended.how(), ended.last_words()),
        )
    }
}

/// All that run.
pub(crate) fn running<'a>(site: &Site<'a>, dut: &RunningDut) -> Vec<Daemon<'a>> {
    let on = |(id, process): &(NodeId, u64)| {
        Some(Daemon {
            dut: site.dut,
            node: site.gateway(*id)?,
            process: *process,
        })
    };
    dut.processes.iter().filter_map(on).collect()
}

/// Those on one gateway, which run no longer as far as `dut` knows.
pub(crate) fn taken<'a>(site: &Site<'a>, dut: &mut RunningDut, on: NodeId) -> Vec<Daemon<'a>> {
    let mut taken = running(site, dut);
    taken.retain(|daemon| daemon.node.id() == on);
    dut.processes.retain(|(id, _)| *id != on);
    taken
}

/// Kills those on one gateway.
///
/// # Errors
/// When there are none, or one was dead already.
pub(crate) fn kill(site: &Site<'_>, dut: &mut RunningDut, on: NodeId) -> Result<()> {
    let killed = taken(site, dut, on);
    if killed.is_empty() {
        let reason = format!("has no process on {} that could be killed", on.name());
        return Err(dut_error(site.dut, reason));
    }
    all(killed.iter().map(Daemon::kill).collect())
}

/// Stops all of them, on all gateways at the same time.
///
/// # Errors
/// When one was dead, or had to be killed; the others are stopped all the same.
pub(crate) fn stop_all(site: &Site<'_>, dut: &mut RunningDut) -> Result<()> {
    let stopped = running(site, dut);
    dut.processes.clear();
    all(on_each(site.loaded(), |node| {
        let here = stopped.iter().filter(|it| it.node.id() == node.id());
        here.map(Daemon::stop).fold(Ok(()), Result::and)
    }))
}

/// The gateway that an action is for.
///
/// # Errors
/// When the DUT does not run there.
pub(crate) fn loaded<'a>(site: &Site<'a>, id: NodeId) -> Result<&'a dyn Node> {
    let mut loaded = site.loaded().iter().copied();
    loaded
        .find(|node| node.id() == id)
        .ok_or_else(|| dut_error(site.dut, format!("does not run on {}", id.name())))
}

/// What a DUT says to an action that it does not know.
pub(crate) fn refused(site: &Site<'_>, action: DutAction) -> LabError {
    dut_error(site.dut, format!("cannot do {action:?}"))
}
