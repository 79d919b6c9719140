//! Third-party boxes at the ends of the lab's cables.
//!
//! 1. Their commands run on the host: in a shell, or through a program that reaches the box
//!    (`ssh`). The teardown commands are handed over first, in case this run is killed.
//! 2. The stations configure their cables: address, route, and the neighbour that answers there.
//! 3. Once A reaches B, the boxes' version and suite are queried; a suite other than the requested
//!    one fails the start.
//!
//! If one gateway is tested alone, the station at B's cable is its peer ([`gateway`]).
//!
//! What this deliberately does not do: know any box's command language, or hold a secret. Keys and
//! passwords are in the boxes, in ssh's agent, and in files of this machine, not in campaigns.

mod answers;
mod commands;
pub(crate) mod firmware;
mod gateway;
mod observed;
mod running;
mod stations;

use super::site::by_node;
use super::{Adapter, Site, daemon};
use crate::cables::Outside;
use crate::monitor::DevicePoller;
use crate::scan::first_number;
use crate::switch;
use crate::sync::lock;
use commands::CommandRunner;
use gateway::PeerStation;
use observed::QueriedCounters;
use plan::{self, Direction, ExternalBox, LinkForm, Reset};
use stations::Cabling;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use testbed::protocol::SealedPort;
use testbed::{DutAction, FramePath, NodeId, Result, RunningDut, StationPeer};

/// The fact that replaces a proof of encryption if the lab has no tap.
const NOT_PROVEN: &str = "not proven: no tap between the boxes";
/// Beginning of the fact about the cipher of a vendor-specific format.
const CLAIMED: &str = "not proven, the maker's claim";

/// How long a box may take to answer a check of its presence.
const THERE_LIMIT: Duration = Duration::from_secs(5);

/// A box at each end.
pub(super) struct External {
    plan: plan::External,
    /// The station that is the peer of one gateway.
    peer: Option<PeerStation>,
    /// Counters that no command prints, since the start.
    queried: Mutex<Vec<QueriedCounters>>,
}

impl External {
    pub(super) fn new(plan: plan::External) -> Self {
        let peer = PeerStation::of(&plan);
        Self {
            plan,
            peer,
            queried: Mutex::new(Vec::new()),
        }
    }

    /// The boxes by the gateway that each replaces.
    fn boxes(&self) -> impl Iterator<Item = (NodeId, &ExternalBox)> {
        [NodeId::Gw1, NodeId::Gw2].into_iter().zip(&self.plan.boxes)
    }

    /// Runs a command of the box that is reset: the one at B's side, or both in one. `missing` is
    /// the error if the campaign lacks the command.
    fn run_last(
        &self,
        site: &Site<'_>,
        command: impl Fn(&ExternalBox) -> Option<&String>,
        missing: &str,
    ) -> Result<String> {
        // The campaign may lack the command although its trial needs it.
        let found = self
            .boxes()
            .last()
            .and_then(|(id, its)| Some((id, its, command(its)?)));
        let Some((id, its, command)) = found else {
            return Err(site.error(missing));
        };
        self.runner(site)?.run(id, &its.via, command)
    }

    fn runner<'a>(&'a self, site: &'a Site<'_>) -> Result<CommandRunner<'a>> {
        let Some(outside) = site.outside else {
            let reason = "is outside of this machine, and the lab has no cables to it\n\
                          help: write `external: { station_a: eth1, station_b: eth2 }` in the lab's file";
            return Err(site.error(reason));
        };
        Ok(CommandRunner::new(site, outside, &self.plan))
    }

    const fn cabling<'a>(&self, outside: &'a Outside) -> Cabling<'a> {
        Cabling {
            outside,
            bump: self.plan.bump,
            b_is_peer: self.plan.gateway.is_some(),
        }
    }

    /// Starts the boxes, and the station that is the peer of one, and fills in `dut`.
    fn bring_up(
        &self,
        site: &Site<'_>,
        dut: &mut RunningDut,
        peer: Option<&mut PeerStation>,
    ) -> Result<()> {
        let runner = self.runner(site)?;
        let outside = runner.outside;
        // Before a command changes a box: a missing secret fails here.
        let queried = self
            .boxes()
            .map(|(id, its)| QueriedCounters::of(site, id, its));
        *lock(&self.queried) = queried.collect::<Result<_>>()?;
        firmware::to_version(site, outside, || runner.leave_behind(self.boxes()))?;
        runner.leave_behind(self.boxes())?;
        for (id, its) in self.boxes() {
            for command in &its.up {
                runner.run(id, &its.via, command)?;
            }
        }
        let at = self.cabling(outside);
        at.attach(site)?;
        let ready = Duration::from_nanos(self.plan.ready_ns);
        let has_peer = peer.is_some();
        match peer {
            Some(peer) => {
                let path = at.frame_path(site, ready)?;
                let [_, b] = site.stations;
                dut.facts.extend(by_node(NodeId::Gw1, peer.start(site, b)?));
                dut.frame_path = Some(alone(path, site.direction, peer.as_peer(site, b)?));
            }
            None => {
                // Until the tap forwards, nothing passes between the boxes.
                tap_forwards(site, outside)?;
                dut.frame_path = Some(at.frame_path(site, ready)?);
                site.await_path_within(ready, &outside.interrupt)?;
            }
        }
        // The answers of the boxes about themselves, once the path works.
        for (id, its) in self.boxes() {
            let mut fact = |key: &str, value: String| {
                dut.facts.insert(format!("{}/{key}", id.name()), value);
            };
            if let Some(command) = &its.version {
                fact(
                    "version",
                    answers::fact(&runner.run(id, &its.via, command)?),
                );
            }
            if let Some(source) = &its.observed.version {
                fact("version", observed::version(site, id, source)?);
            }
            if let (Some(command), Some(suite)) = (&its.suite_told, self.plan.sealed_with()) {
                let said = runner.run(id, &its.via, command)?;
                let word = self.plan.suite_word();
                if !answers::has_word(&said, word) {
                    let said = answers::fact(&said);
                    let reason = format!(
                        "does not say on {} that it seals with {suite} (`{word}`): {said}\n\
                         help: see what `{command}` prints; `suite_words` has what the box calls a suite",
                        id.name()
                    );
                    return Err(site.error(reason));
                }
                fact("suite", suite.to_string());
                fact("suite_told", answers::fact(&said));
            }
        }
        // A station that is the peer of a box opens its packets, which proves the encryption.
        if outside.cables.tap.is_none() && self.plan.sealed_with().is_some() && !has_peer {
            let key = "tester/encryption".to_owned();
            dut.facts.insert(key, NOT_PROVEN.to_owned());
        }
        if self.plan.form() == Some(LinkForm::Opaque) {
            let claim = format!("{CLAIMED}: {}", self.plan.suite_word());
            dut.facts.insert("tester/cipher".to_owned(), claim);
        }
        Ok(())
    }
}

impl Adapter for External {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        let ports = match &self.plan.ports[..] {
            // A form without UDP ports.
            [] => &[0],
            ports => ports,
        };
        let sealed = |form| {
            let ports = ports.iter();
            ports.map(move |&port| SealedPort {
                port,
                form,
                control: true,
            })
        };
        let mut dut = RunningDut {
            sealed_ports: self.plan.form().into_iter().flat_map(sealed).collect(),
            elsewhere: true,
            ..RunningDut::default()
        };
        // Taken out because `bring_up` borrows `self` too; put back in any case, for `stop`.
        let mut peer = self.peer.take();
        let up = self.bring_up(site, &mut dut, peer.as_mut());
        self.peer = peer;
        self.up_or_stopped(site, dut, up)
    }

    /// The start already waited until A reached B.
    fn await_ready(&self, _site: &Site<'_>) -> Result<()> {
        Ok(())
    }

    fn counters(&self, site: &Site<'_>, _dut: &RunningDut) -> Result<BTreeMap<String, u64>> {
        if let Some(peer) = &self.peer {
            peer.check(site, site.stations[1])?;
        }
        let runner = self.runner(site)?;
        let mut counters = BTreeMap::new();
        for (id, its) in self.boxes() {
            let mut count = |name: &str, value: u64| {
                counters.insert(format!("{}/{name}", id.name()), value);
            };
            for (name, command) in &its.counters {
                let said = runner.run(id, &its.via, command)?;
                let Some(value) = first_number(&said) else {
                    let reason = format!(
                        "shows no counter `{name}` on {}: `{command}` printed no number, or one that may be two \
                         (`1 234`): {}",
                        id.name(),
                        answers::fact(&said)
                    );
                    return Err(site.error(reason));
                };
                count(name, value);
            }
            for command in &its.counter_lines {
                let said = runner.run(id, &its.via, command)?;
                for (name, value) in answers::numbered_lines(&said) {
                    count(&name, value);
                }
            }
        }
        for queried in lock(&self.queried).iter_mut() {
            queried.read(site, &mut counters)?;
        }
        Ok(counters)
    }

    /// Checks that its cables are up, its addresses answer, and either it answers the station that
    /// is its peer, or A reaches B.
    fn expect_there(&self, site: &Site<'_>) -> Result<()> {
        let outside = self.runner(site)?.outside;
        self.cabling(outside).expect_answers(site, THERE_LIMIT)?;
        match &self.peer {
            Some(peer) => peer.expect_answer(site, site.stations[1]),
            None => site.await_path_within(THERE_LIMIT, &outside.interrupt),
        }
    }

    fn lost_tunnels(&self, site: &Site<'_>) -> Result<Vec<String>> {
        match &self.peer {
            Some(peer) => peer.lost_tunnels(site, site.stations[1]),
            None => Ok(Vec::new()),
        }
    }

    fn pollers<'a>(&'a self, site: &Site<'a>) -> Result<Vec<DevicePoller<'a>>> {
        observed::pollers(self, site)
    }

    /// Done when the box has accepted the command: boxes do not report completion.
    fn reset(&self, site: &Site<'_>, _dut: &mut RunningDut, on: NodeId, kind: Reset) -> Result<()> {
        match kind {
            Reset::Command => {
                let missing = "has no command `reset` at B's side";
                self.run_last(site, |its| its.reset.as_ref(), missing)
                    .map(drop)
            }
            other => Err(daemon::refused(site, DutAction::Reset(on, other))),
        }
    }

    fn identity(&self, site: &Site<'_>, _dut: &RunningDut, _on: NodeId) -> Result<Vec<String>> {
        let missing = "has no command `started` at B's side";
        let printed = self.run_last(site, |its| its.started.as_ref(), missing)?;
        match answers::fact(&printed) {
            nothing if nothing.is_empty() => Err(site.error("printed nothing by `started`")),
            fact => Ok(vec![fact]),
        }
    }

    fn stop(&mut self, site: &Site<'_>, _dut: RunningDut) -> Result<()> {
        let peer = self.peer.as_mut();
        // Before the boxes are taken down, so that its IKE daemon can end the tunnels with its
        // peer.
        let ended = peer.map_or(Ok(()), |peer| peer.stop(site, site.stations[1]));
        let runner = self.runner(site)?;
        // The stations of an interrupted run refuse calls and are about to end.
        let detached = self.cabling(runner.outside).detach(site);
        // Every command runs although one before it has failed: the first error counts.
        let mut taken_down = Ok(());
        for (id, its) in self.boxes() {
            for command in &its.down {
                let ended = runner.run_to_the_end(id, &its.via, command);
                taken_down = taken_down.and(ended);
            }
        }
        // Every command has run, so the host need not run them at its end.
        let done = runner.leave_behind(std::iter::empty());
        taken_down.and(done).and(detached).and(ended)
    }
}

/// The path through one gateway in that direction, between the stations of `path`; B is the
/// gateway's peer.
fn alone(mut path: FramePath, direction: Direction, peer: StationPeer) -> FramePath {
    path.sink.peer = Some(peer);
    match direction {
        Direction::Decrypt => path.reversed(),
        Direction::Encrypt | Direction::Both => path,
    }
}

/// Waits until the tap forwards frames: its cables must be plugged in.
fn tap_forwards(site: &Site<'_>, outside: &Outside) -> Result<()> {
    let (Some(tap), Some([first, second])) = (site.tap, &outside.cables.tap) else {
        return Ok(());
    };
    if switch::forwards(tap)? {
        return Ok(());
    }
    let limit = switch::READY_LIMIT.as_secs();
    let reason = format!(
        "is configured, but the tap's interfaces `{first}` and `{second}` do not forward frames within {limit} s\n\
         help: see whether both cables are plugged in and the boxes' ports are up"
    );
    Err(site.error(reason))
}
