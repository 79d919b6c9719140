//! Devices under test: how each is brought up between the gateways, asked, and taken down.
//!
//! How to add one:
//! 1. a variant of `campaign::plan::Adapter` with what it can be told;
//! 2. a file here with a type that implements [`Adapter`];
//! 3. an arm in [`adapter`].
//!
//! An adapter starts programs on the gateways and sets routes there; it touches nothing on this
//! machine.

mod cipherbench;
mod direct;
mod prometheus;

use crate::namespaces::ip;
use crate::protocol::{Ended, Program, Ready, Request, Response};
use crate::sync::Deadline;
use crate::topology::{self, Map};
use crate::{LabError, Links, Node, NodeId, RunningDut};
use campaign::plan::{self, Dut};
use std::collections::BTreeMap;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

/// How long A may take to reach B once a DUT says that it is ready.
const PATH_LIMIT: Duration = Duration::from_secs(5);

/// From one attempt to reach B to the next.
const PATH_INTERVAL: Duration = Duration::from_millis(10);

/// From SIGTERM to SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// A process that no longer answers may close its sockets this long before it is dead.
const DEATH_LIMIT: Duration = Duration::from_millis(500);

/// One kind of DUT, from its start to its stop.
pub(crate) trait Adapter: Send + Sync {
    /// Brings it up on both gateways; nothing of it is left when that fails.
    fn start(&mut self, site: &Site<'_>, links: Links) -> Result<RunningDut, LabError>;

    /// Its counters, by `gateway/counter`; empty when it has none.
    fn counters(
        &self,
        _site: &Site<'_>,
        _dut: &RunningDut,
    ) -> Result<BTreeMap<String, u64>, LabError> {
        Ok(BTreeMap::new())
    }

    /// Takes it down, dead or alive; an error when it was dead.
    fn stop(&mut self, site: &Site<'_>, dut: RunningDut) -> Result<(), LabError>;
}

/// The adapter for a DUT.
///
/// # Errors
/// When this version has none for it.
pub(crate) fn adapter(dut: &Dut) -> Result<Box<dyn Adapter>, LabError> {
    Ok(match &dut.adapter {
        plan::Adapter::Direct => Box::new(direct::Direct::default()),
        plan::Adapter::Cipherbench {
            suite,
            workers,
            engine,
        } => Box::new(cipherbench::Cipherbench::new(
            &dut.name, *suite, *workers, engine,
        )),
        other => {
            return Err(dut_error(
                &dut.name,
                format!("has no adapter in this lab: {other:?}"),
            ));
        }
    })
}

/// Where a DUT is brought up.
pub(crate) struct Site<'a> {
    /// gw1 and gw2.
    pub(crate) gateways: [&'a dyn Node; 2],
    /// Station A.
    pub(crate) source: &'a dyn Node,
    pub(crate) map: &'a Map,
}

impl Site<'_> {
    /// Waits until A reaches B.
    pub(crate) fn await_path(&self, dut: &str) -> Result<(), LabError> {
        let target = self.map.b().to_string();
        let (interval, limit) = (PATH_INTERVAL.as_secs_f64(), PATH_LIMIT.as_secs());
        // With a deadline it goes on until one answer has come.
        let ping = [
            "ping",
            "-n",
            "-q",
            "-c",
            "1",
            "-i",
            &interval.to_string(),
            "-w",
            &limit.to_string(),
        ];
        let program = Program::new(ping.into_iter().chain([target.as_str()]));
        let ended = self.source.run(program, PATH_LIMIT * 2)?;
        if ended.code == Some(0) {
            return Ok(());
        }
        let reason =
            format!("is up, but A does not reach B ({target}) through it within {limit} s");
        Err(dut_error(dut, reason))
    }

    /// Removes from the gateways what a DUT that failed may have left there: interfaces that are no
    /// part of the path, and routes to the stations beyond.
    pub(crate) fn clear_gateways(&self) {
        let cleared = self.on_gateways(|node| {
            let found = match node.call(Request::InterfaceCounters)? {
                Response::InterfaceCounters(counters) => counters.into_keys(),
                other => return Err(node.unexpected(&other)),
            };
            let own: Vec<_> = topology::interfaces(node.id()).collect();
            let foreign = found.filter(|name| !own.contains(&name.as_str()));
            let mut batch: String = foreign.map(|name| format!("link del {name}\n")).collect();
            batch.push_str(&format!("route flush {}\n", self.map.beyond(node.id())));
            ip(node, batch)
        });
        // What failed before says more; a gateway that is not clear shows at the next start.
        drop(cleared);
    }

    /// Does something on both gateways at the same time; the answers in their order.
    pub(crate) fn on_gateways<T: Send>(
        &self,
        action: impl Fn(&dyn Node) -> Result<T, LabError> + Sync,
    ) -> [Result<T, LabError>; 2] {
        let action = &action;
        thread::scope(|scope| {
            self.gateways
                .map(|node| scope.spawn(move || action(node)))
                .map(join)
        })
    }
}

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
    ) -> Result<(Self, String), LabError> {
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
    pub(crate) fn check_dying(&self) -> Result<(), LabError> {
        let deadline = Deadline::after(DEATH_LIMIT);
        while !deadline.is_over() {
            self.check_alive()?;
            thread::sleep(Duration::from_millis(5));
        }
        self.check_alive()
    }

    /// # Errors
    /// [`LabError::Dut`] with its last words when it is dead.
    pub(crate) fn check_alive(&self) -> Result<(), LabError> {
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
    pub(crate) fn stop(&self) -> Result<(), LabError> {
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

    fn died(&self, ended: &Ended) -> LabError {
        let node = self.node.id().name();
        dut_error(
            self.dut,
            format!("died on {node} ({}){}", ended.how(), ended.last_words()),
        )
    }
}

/// The gateway that a process of a DUT runs on.
pub(crate) fn gateway<'a>(site: &Site<'a>, id: NodeId) -> Option<&'a dyn Node> {
    site.gateways.into_iter().find(|node| node.id() == id)
}

pub(crate) fn dut_error(dut: &str, reason: String) -> LabError {
    LabError::Dut {
        dut: dut.to_owned(),
        reason,
    }
}

/// Waits for a thread; its panic is ours.
pub(crate) fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
