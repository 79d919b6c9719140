//! Devices under test: how each is brought up between the gateways, asked, and taken down.
//!
//! How to add one:
//! 1. a variant of `campaign::plan::Adapter` with what it can be told;
//! 2. a file here with a type that implements [`Adapter`];
//! 3. an arm in [`adapter`].
//!
//! An adapter starts programs on the gateways and sets routes there; it touches nothing on this
//! machine.

mod bridge;
mod cipherbench;
mod direct;
mod interfaces;
mod keys;
mod openvpn;
mod prometheus;
mod router;
mod site;
mod straight;
mod strongswan;
mod wireguard;

pub(crate) use site::Site;

use crate::protocol::{Ended, Program, Ready, Request, Response};
use crate::sync::Deadline;
use crate::{DutAction, LabError, Node, RunningDut};
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
    /// Brings it up on the gateways that are loaded; nothing of it is left when that fails.
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut, LabError>;

    /// Waits until it forwards, once it is up.
    fn await_ready(&self, site: &Site<'_>) -> Result<(), LabError> {
        site.await_path()
    }

    /// Its counters, by `gateway/counter`; empty when it has none.
    fn counters(
        &self,
        _site: &Site<'_>,
        _dut: &RunningDut,
    ) -> Result<BTreeMap<String, u64>, LabError> {
        Ok(BTreeMap::new())
    }

    /// Does something to it; `dut.processes` are those that run afterwards.
    fn act(
        &self,
        site: &Site<'_>,
        _dut: &mut RunningDut,
        action: DutAction,
    ) -> Result<(), LabError> {
        Err(dut_error(site.dut, format!("cannot do {action:?}")))
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
        plan::Adapter::Straight => Box::new(straight::Straight::default()),
        plan::Adapter::Router { nat } => Box::new(router::Router::new(*nat)),
        plan::Adapter::Bridge => Box::new(bridge::Bridge::default()),
        plan::Adapter::Cipherbench(encryptor) => {
            Box::new(cipherbench::Cipherbench::new(encryptor.clone()))
        }
        plan::Adapter::WireGuard(tunnel) => Box::new(wireguard::WireGuard::new(tunnel.program)),
        plan::Adapter::OpenVpn(tunnel) => Box::new(openvpn::OpenVpn::new(*tunnel)),
        plan::Adapter::StrongSwan(tunnel) => Box::new(strongswan::Strongswan::new(*tunnel)),
        other => {
            return Err(dut_error(
                &dut.name,
                format!("has no adapter in this lab: {other:?}"),
            ));
        }
    })
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
