//! A daemon on a station that is the peer of an external gateway.

use super::charon::{self, Place, program_on};
use super::config::{Half, ml_kem_of};
use super::gateway::Gateway;
use super::secrets::Secrets;
use super::{proof, tunnels};
use crate::dut::{Daemon, Site};
use crate::sync::await_true;
use crate::topology::Side;
use plan::{Carrier, DataPath, IkeAuth, IkePeer, IkeSecrets, StrongSwan};
use std::time::{Duration, Instant};
use testbed::{Node, NodeId, Result, StationPeer};

/// How long a gateway may take to answer a request: longer than the retransmission timeout, 4 s.
const ANSWER_LIMIT: Duration = Duration::from_secs(6);

/// Polling interval of the daemon meanwhile.
const ANSWER_STEP: Duration = Duration::from_millis(50);

/// Help for a gateway that re-establishes several tunnels as one: the station, asked for the
/// networks of all, agrees to the networks of one tunnel.
const SELECTORS_HELP: &str = "give the device a pair of traffic selectors for each tunnel, or measure with one tunnel, or \
                              let it authenticate itself anew less often than a trial lasts";

/// Returns the networks of the tunnels without an SA for [`ANSWER_LIMIT`]: the gateway may be
/// re-establishing them.
fn lost(gateway: &Gateway<'_>) -> Result<Vec<String>> {
    let is_up = || proof::standing(gateway).map(|now| now.is_up(&gateway.half));
    if await_true(ANSWER_LIMIT, ANSWER_STEP, is_up)? {
        Ok(Vec::new())
    } else {
        Ok(proof::standing(gateway)?.lost(&gateway.half))
    }
}

/// The data path of a station's daemon: it installs its SAs there, though no packet passes.
/// kernel-libipsec needs no ESP in the station's kernel, but makes every peer use ESP in UDP.
pub(super) const fn data_path(udp: bool) -> DataPath {
    if udp {
        DataPath::Libipsec
    } else {
        DataPath::Kernel
    }
}

/// The station's daemon; its generator or analyser uses the keys.
pub(in crate::dut) struct IkeStation {
    plan: StrongSwan,
    peer: IkePeer,
    /// How long the tunnels may take.
    ready: Duration,
    place: Option<Place>,
    processes: Vec<(NodeId, u64)>,
}

impl IkeStation {
    pub(in crate::dut) fn new(
        peer: IkePeer,
        Carrier { suite, udp, .. }: Carrier,
        tunnels: u16,
        ready: Duration,
    ) -> Self {
        let auth = match peer.auth {
            IkeSecrets::Psk(_) => IkeAuth::Psk,
            IkeSecrets::Certificates { .. } => IkeAuth::Certificates,
        };
        // A proposal of the user decides about ML-KEM too, and the daemon must have the plugin for
        // it.
        let proposal = peer.proposal.as_deref();
        let proposes_ml_kem = proposal.is_some_and(|proposal| ml_kem_of(proposal).is_some());
        Self {
            plan: StrongSwan {
                data_path: data_path(udp),
                suite,
                auth,
                ppk: peer.ppk.is_some(),
                ml_kem: peer.ml_kem || proposes_ml_kem,
                tunnels,
            },
            peer,
            ready,
            place: None,
            processes: Vec::new(),
        }
    }

    /// Starts the daemon and waits until the tunnels are up, with the requested suite; returns
    /// facts of them.
    pub(in crate::dut) fn start(
        &mut self,
        site: &Site<'_>,
        node: &dyn Node,
    ) -> Result<Vec<(&'static str, String)>> {
        let program = program_on(site, &self.plan, node, "write `udp: on` for the gateway")?;
        let secrets = Secrets::of_files(site.dut, &self.peer)?;
        let half = self.half(site, node);
        let place = Place::write(site, node, &half, &secrets, program)?;
        // Kept before the next step can fail, so that `stop` removes the files.
        self.place = Some(place);
        tunnels::prepare(&self.half(site, node), site, node)?;
        let process = self.gateway(site, node)?.start(site)?;
        self.processes.push((node.id(), process));
        let gateway = self.gateway(site, node)?;
        gateway.check_daemon(site)?;
        let start = Instant::now();
        gateway.load()?;
        tunnels::await_up(std::slice::from_ref(&gateway), start)?;
        // Before the proof, which is no part of setting them up.
        let took = start.elapsed().as_millis().to_string();
        let facts = proof::look(&gateway)?;
        let more = [
            ("set_up_ms", took),
            ("tunnels", self.plan.tunnels.to_string()),
        ];
        Ok(facts.into_iter().chain(more).collect())
    }

    /// Returns how the station seals and opens.
    pub(in crate::dut) fn as_peer(&self, site: &Site<'_>, node: &dyn Node) -> Result<StationPeer> {
        let ends = [Side::B, Side::A].map(|side| site.map.cipher_end(side));
        Ok(self.gateway(site, node)?.as_peer(ends))
    }

    /// # Errors
    /// When the daemon has died, or has sealed packets with the keys that the generator uses.
    pub(in crate::dut) fn check(&self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        self.gateway(site, node)?.check_station(&self.processes)
    }

    /// # Errors
    /// When the gateway has ended its SAs, or does not answer the daemon any more.
    pub(in crate::dut) fn expect_answer(&self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        let gateway = self.gateway(site, node)?;
        gateway.check_station(&self.processes)?;
        let gone = |what: String, help: &str| {
            let said = gateway.last_words();
            Err(gateway.error(format!("{what}\nhelp: {help}{said}")))
        };
        let limit = ANSWER_LIMIT.as_secs();
        let lost = lost(&gateway)?;
        if lost.len() == gateway.half.sas() {
            let what =
                format!("is not there any more: the station has had no SA with it for {limit} s");
            return gone(
                what,
                "see whether its IKE daemon runs, and look in its log why it ended them",
            );
        }
        if let Some(first) = lost.first() {
            let what = format!(
                "has ended the SAs of {} of {} tunnels, and the station has had none for {first} for {limit} s",
                lost.len(),
                gateway.half.sas()
            );
            return gone(what, SELECTORS_HELP);
        }
        // Counted before the request, so that its answer is more.
        let heard = gateway.heard()?;
        // A request that every peer answers, if only to refuse it.
        let first = gateway.half.children().swap_remove(0);
        gateway.swanctl(&["--rekey", "--child", &first])?;
        if !await_true(ANSWER_LIMIT, ANSWER_STEP, || {
            gateway.heard().map(|now| now > heard)
        })? {
            let what = format!(
                "is not there any more: it does not answer IKE, asked to renew keys {limit} s ago"
            );
            return gone(what, "see whether its IKE daemon runs, and look in its log");
        }
        Ok(())
    }

    /// As [`Adapter::lost_tunnels`](crate::dut::Adapter::lost_tunnels).
    pub(in crate::dut) fn lost_tunnels(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
    ) -> Result<Vec<String>> {
        lost(&self.gateway(site, node)?)
    }

    /// Ends the daemon and removes its files.
    pub(in crate::dut) fn stop(&mut self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        let dut = site.dut;
        let stopped = self.processes.drain(..).map(|(_, process)| {
            let daemon = Daemon { dut, node, process };
            daemon.stop()
        });
        // Every daemon is stopped; the first error counts.
        let stopped = stopped.fold(Ok(()), Result::and);
        let place = self.place.take();
        let cleaned = charon::clean(site, node, &self.half(site, node), place.as_ref());
        stopped.and(cleaned)
    }

    fn half(&self, site: &Site<'_>, node: &dyn Node) -> Half<'_> {
        Half::beside_box(&self.plan, &self.peer, (site, node), self.ready)
    }

    fn gateway<'a>(&'a self, site: &Site<'a>, node: &'a dyn Node) -> Result<Gateway<'a>> {
        match &self.place {
            Some(place) => Ok(place.gateway(site, node, self.half(site, node))),
            None => Err(site.error("has no peer: the station's IKE daemon was never started")),
        }
    }
}
