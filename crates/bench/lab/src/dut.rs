//! Devices under test: started between the gateways, queried, and stopped.
//!
//! How to add one:
//! 1. a variant of `plan::Adapter` with its settings;
//! 2. a file here with a type that implements [`Adapter`];
//! 3. an arm in [`adapter`].
//!
//! An adapter starts programs on the gateways and sets routes there; it changes nothing else on
//! this machine. The adapter for external boxes also runs the user's commands outside the lab.

mod bridge;
mod cipherbench;
mod daemon;
mod direct;
mod external;
mod interfaces;
mod keys;
mod l2tpv3;
mod openvpn;
mod prometheus;
mod pseudowire;
mod router;
mod site;
mod straight;
mod strongswan;
mod wireguard;
mod xfrm;

pub(crate) use daemon::Daemon;
pub(crate) use external::firmware;
pub(crate) use site::{Site, all, by_node, on_each};

use crate::monitor::DevicePoller;
use crate::programs;
use plan::{self, Dut, Reset};
use std::collections::BTreeMap;
use std::time::Duration;
use testbed::{DutAction, IkeSas, LabError, NodeId, PeersGateway, Result, RunningDut};

/// How long A may take to reach B once a DUT is ready.
const PATH_LIMIT: Duration = Duration::from_secs(5);

/// From one attempt to reach B to the next.
const PATH_INTERVAL: Duration = Duration::from_millis(10);

/// A kind of DUT, from its start to its stop.
pub(crate) trait Adapter: Send + Sync {
    /// Starts it on the loaded gateways; nothing of it is left on failure.
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut>;

    /// Returns the DUT if it came up; otherwise stops it and returns why it did not come up, even
    /// if stopping fails too.
    fn up_or_stopped(
        &mut self,
        site: &Site<'_>,
        dut: RunningDut,
        up: Result<()>,
    ) -> Result<RunningDut> {
        match up {
            Ok(()) => Ok(dut),
            Err(error) => {
                let _ = self.stop(site, dut);
                Err(error)
            }
        }
    }

    /// Waits until it forwards, once it is up.
    fn await_ready(&self, site: &Site<'_>) -> Result<()> {
        site.await_path()
    }

    /// Its counters, by `gateway/counter`; empty when it has none.
    fn counters(&self, _site: &Site<'_>, _dut: &RunningDut) -> Result<BTreeMap<String, u64>> {
        Ok(BTreeMap::new())
    }

    /// Looks for its signs of life after a failure; fails with the missing one. A DUT on the lab's
    /// machines does not need this: stopping it reports its death.
    fn expect_there(&self, _site: &Site<'_>) -> Result<()> {
        Ok(())
    }

    /// Networks of tunnels that it has ended by itself since it came up, and not set up again.
    fn lost_tunnels(&self, _site: &Site<'_>) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Periodic readings of it; empty for a DUT on the lab's machines.
    fn pollers<'a>(&'a self, _site: &Site<'a>) -> Result<Vec<DevicePoller<'a>>> {
        Ok(Vec::new())
    }

    /// Serves simulated IKEv2 peers from now on.
    fn serve_peers(&self, site: &Site<'_>) -> Result<PeersGateway> {
        Err(serves_no_peers(site))
    }

    /// IKE SAs of the gateway that serves them, by its own count.
    fn ike_sas(&self, site: &Site<'_>) -> Result<IkeSas> {
        Err(serves_no_peers(site))
    }

    /// Performs an action on it and updates `dut.processes`.
    fn act(&self, site: &Site<'_>, _dut: &mut RunningDut, action: DutAction) -> Result<()> {
        Err(daemon::refused(site, action))
    }

    /// Restarts it on a gateway: by default its processes there are ended and started again.
    fn reset(&self, site: &Site<'_>, dut: &mut RunningDut, on: NodeId, kind: Reset) -> Result<()> {
        match kind {
            Reset::Process => self.act(site, dut, DutAction::Kill(on))?,
            // With its grace, in which an IKE daemon deletes its SAs at the peer.
            Reset::Orderly => daemon::stop_on(site, dut, on)?,
            Reset::Command => return Err(daemon::refused(site, DutAction::Reset(on, kind))),
        }
        self.act(site, dut, DutAction::Restart(on))
    }

    /// What identifies its current start on a gateway: by default its processes there.
    fn identity(&self, site: &Site<'_>, dut: &RunningDut, on: NodeId) -> Result<Vec<String>> {
        let running = daemon::running(site, dut);
        let here = running.iter().filter(|daemon| daemon.node.id() == on);
        let named = here.map(|daemon| daemon.node.identity(daemon.process));
        named.collect()
    }

    /// Stops it, dead or alive; returns an error if it was dead.
    fn stop(&mut self, site: &Site<'_>, dut: RunningDut) -> Result<()>;
}

fn serves_no_peers(site: &Site<'_>) -> LabError {
    site.error("has no IKEv2 for simulated peers\nhelp: measure `strongswan` with `ike`")
}

/// The adapter for a DUT.
///
/// # Errors
/// When this version has none for it, or its program has changed since the run began.
pub(crate) fn adapter(dut: &Dut) -> Result<Box<dyn Adapter>> {
    // At each start: a program that is built again in the middle of a run is another one.
    for found in dut.software.found_programs() {
        programs::verify(found).map_err(|reason| LabError::dut(&dut.name, reason))?;
    }
    Ok(match &dut.adapter {
        plan::Adapter::Direct => Box::new(direct::Direct::default()),
        plan::Adapter::Straight { suite } => Box::new(straight::Straight::new(*suite)),
        plan::Adapter::Router { nat } => Box::new(router::Router::new(*nat)),
        plan::Adapter::Bridge => Box::new(bridge::Bridge::default()),
        plan::Adapter::Cipherbench(encryptor) => {
            Box::new(cipherbench::Cipherbench::new(encryptor.clone()))
        }
        plan::Adapter::WireGuard(tunnel) => Box::new(wireguard::WireGuard::new(tunnel.program)),
        plan::Adapter::Xfrm(tunnel) => Box::new(xfrm::Xfrm::new(*tunnel)),
        plan::Adapter::L2tpv3(tunnel) => Box::new(l2tpv3::L2tpv3::new(*tunnel)),
        plan::Adapter::OpenVpn(tunnel) => Box::new(openvpn::OpenVpn::new(*tunnel)),
        plan::Adapter::StrongSwan(tunnel) => Box::new(strongswan::Strongswan::new(*tunnel)),
        plan::Adapter::External(boxes) => Box::new(external::External::new(boxes.clone())),
        other => {
            let reason = format!("has no adapter in this lab: {other:?}");
            return Err(LabError::dut(&dut.name, reason));
        }
    })
}
