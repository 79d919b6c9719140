//! Processes of a DUT: started, checked, killed and stopped.

use super::site::{Site, all, on_each};
use crate::sync::await_true;
use nix::sys::signal::Signal;
use std::time::Duration;
use testbed::protocol::{Ended, Program, Ready, Request, Response, millis};
use testbed::{DutAction, LabError, Node, NodeId, Result, RunningDut};

/// From SIGTERM to SIGKILL.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(5);

/// How long before its death a process may close its sockets.
const DEATH_LIMIT: Duration = Duration::from_millis(500);

/// A DUT's process on a gateway.
pub(crate) struct Daemon<'a> {
    pub(crate) dut: &'a str,
    pub(crate) node: &'a dyn Node,
    pub(crate) process: u64,
}

impl<'a> Daemon<'a> {
    /// Starts it and waits until it prints a line that begins with `ready`; returns its output so
    /// far.
    pub(crate) fn start(
        dut: &'a str,
        node: &'a dyn Node,
        program: Program,
        ready: &str,
        limit: Duration,
    ) -> Result<(Self, String)> {
        let program = Program {
            ready: Ready::Line(ready.to_owned()),
            ..program
        };
        let limit_ms = millis(limit);
        match node.call(Request::Start { program, limit_ms }) {
            Ok(Response::Started {
                process, stdout, ..
            }) => Ok((Self { dut, node, process }, stdout)),
            Ok(other) => Err(node.unexpected(&other)),
            Err(error) => Err(error.into_dut(dut, did_not_come_up)),
        }
    }

    /// # Errors
    /// [`LabError::Dut`] with the end of its output when it is dead, or dies within
    /// [`DEATH_LIMIT`].
    pub(crate) fn check_dying(&self) -> Result<()> {
        // Never true: the wait ends with the error of the death, or at its limit.
        let is_dead = || self.check_alive().map(|()| false);
        await_true(DEATH_LIMIT, Duration::from_millis(5), is_dead).map(drop)
    }

    /// Returns the error of its death if it has died, and otherwise `error`, which a request to it
    /// failed with.
    pub(crate) fn died_or(&self, error: LabError) -> LabError {
        self.check_dying().err().unwrap_or(error)
    }

    /// # Errors
    /// [`LabError::Dut`] with the end of its output when it is dead.
    pub(crate) fn check_alive(&self) -> Result<()> {
        match self.node.status(self.process)? {
            None => Ok(()),
            Some(ended) => Err(self.died(&ended)),
        }
    }

    /// Stops it.
    ///
    /// # Errors
    /// [`LabError::Dut`] with the end of its output when it was dead, or had to be killed.
    pub(crate) fn stop(&self) -> Result<()> {
        // A dead process is stopped too: that makes the station forget it.
        let alive = self.check_alive();
        let ended = self.node.stop(self.process, STOP_GRACE)?;
        alive?;
        if ended.timed_out {
            let (node, grace, said) = (self.gateway(), STOP_GRACE.as_secs(), ended.last_words());
            return Err(self.error(format!("did not stop on {node} within {grace} s{said}")));
        }
        Ok(())
    }

    /// Kills it with SIGKILL, without a warning.
    ///
    /// # Errors
    /// [`LabError::Dut`] with the end of its output when it was already dead.
    pub(crate) fn kill(&self) -> Result<()> {
        self.check_alive()?;
        self.signal(Signal::SIGKILL)?;
        let ended = self.node.wait(self.process, STOP_GRACE)?;
        // It may have died by itself before the signal came.
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
        let (node, how) = (self.gateway(), ended.how());
        // A process that others end from outside does not know why: its last lines are routine.
        let said = if ended.was_killed() {
            "; another process ended it, or the kernel for lack of memory".to_owned()
        } else {
            ended.last_words()
        };
        self.error(format!("died on {node} ({how}){said}"))
    }

    /// Name of its gateway.
    pub(crate) fn gateway(&self) -> &'static str {
        self.node.name()
    }

    pub(crate) fn error(&self, reason: impl Into<String>) -> LabError {
        LabError::dut(self.dut, reason)
    }
}

/// The reason for a DUT that a node could not start.
pub(crate) fn did_not_come_up(node: &str, reason: &str) -> String {
    format!("did not come up on {node}: {reason}")
}

/// Starts a DUT on several nodes at the same time. The processes that came up are in `dut` even if
/// another one failed. Returns the second value of each start.
pub(crate) fn start_all<T: Send>(
    nodes: &[&dyn Node],
    dut: &mut RunningDut,
    start: impl Fn(&dyn Node) -> Result<(u64, T)> + Sync,
) -> Result<Vec<T>> {
    let mut all = Ok(Vec::new());
    for (node, started) in nodes.iter().zip(on_each(nodes, start)) {
        match started {
            Ok((process, value)) => {
                dut.processes.push((node.id(), process));
                if let Ok(values) = &mut all {
                    values.push(value);
                }
            }
            // Go on with the others; the first error counts.
            Err(error) => all = all.and(Err(error)),
        }
    }
    all
}

/// Returns all processes that `dut` lists.
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

/// Returns the processes on one gateway and removes them from `dut`.
pub(crate) fn taken<'a>(site: &Site<'a>, dut: &mut RunningDut, on: NodeId) -> Vec<Daemon<'a>> {
    let mut taken = running(site, dut);
    taken.retain(|daemon| daemon.node.id() == on);
    dut.processes.retain(|(id, _)| *id != on);
    taken
}

/// Kills the processes on one gateway.
///
/// # Errors
/// When the DUT has no process there, or one was already dead.
pub(crate) fn kill(site: &Site<'_>, dut: &mut RunningDut, on: NodeId) -> Result<()> {
    let killed = taken_any(site, dut, on, "killed")?;
    all(killed.iter().map(Daemon::kill).collect())
}

/// Stops the processes on one gateway.
///
/// # Errors
/// When the DUT has no process there, one was already dead, or had to be killed.
pub(crate) fn stop_on(site: &Site<'_>, dut: &mut RunningDut, on: NodeId) -> Result<()> {
    let stopped = taken_any(site, dut, on, "stopped")?;
    all(stopped.iter().map(Daemon::stop).collect())
}

/// As [`taken`]; there must be some.
fn taken_any<'a>(
    site: &Site<'a>,
    dut: &mut RunningDut,
    on: NodeId,
    done: &str,
) -> Result<Vec<Daemon<'a>>> {
    // Taken out of the list even if an action on one fails: a dead process must not be stopped
    // again.
    let taken = taken(site, dut, on);
    if taken.is_empty() {
        let gateway = on.name();
        Err(site.error(format!("has no process on {gateway} that could be {done}")))
    } else {
        Ok(taken)
    }
}

/// Stops all processes, on all gateways concurrently.
///
/// # Errors
/// When one was dead, or had to be killed; the others are stopped anyway.
pub(crate) fn stop_all(site: &Site<'_>, dut: &mut RunningDut) -> Result<()> {
    let stopped = running(site, dut);
    dut.processes.clear();
    // Concurrently, as each may take all of its grace.
    all(on_each(&site.gateways, |node| {
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
        .ok_or_else(|| site.error(format!("does not run on {}", id.name())))
}

/// The error for an action that a DUT does not support.
pub(crate) fn refused(site: &Site<'_>, action: DutAction) -> LabError {
    site.error(format!("cannot do {action:?}"))
}
