//! IPsec by strongSwan: one `charon` per gateway, configured and queried by `swanctl` over a
//! separate socket.
//!
//! 1. a missing requirement is refused: ESP in the kernel, ML-KEM, a plugin, an algorithm;
//! 2. fresh secrets and the files of both gateways, in folders that go with the stations;
//! 3. both daemons start and load their configuration, and must list the same settings;
//! 4. gw2 sets up an SA for each pair of networks, or for each of several tunnels, as soon as it
//!    has its configuration; both gateways' SAs must have the requested suite, carrier (UDP or
//!    bare) and secrets.
//!
//! If one gateway is loaded alone, the station in the other's place runs a daemon too, which agrees
//! on keys with the device and writes them to a file; the station's generator and analyser take ESP
//! from and to the link themselves. Nothing but the generator may seal with those keys: so the
//! daemon's routes are in a table that no packet looks up, and its counters must stay at zero. If
//! ESP is bare, the station's kernel has the SAs too, but opens and seals nothing: they are for a
//! mark that no packet has, and the policies for an interface that is never created.
//!
//! Neither IKE nor SAs are renewed automatically while a trial runs, except the SAs of a station,
//! as their sequence numbers would run out. The kernel's ESP is bare, as usual without NAT, or in
//! UDP on request; kernel-libipsec always uses ESP in UDP, and carries packets of 1400 B at most:
//! the path MTU behind it is the MTU of its TUN device.

mod answers;
mod causes;
mod charon;
mod config;
mod gateway;
mod peers;
mod proof;
mod secrets;
mod station;
mod suites;
mod tunnels;

pub(super) use station::IkeStation;

use super::site::{all, by_node, on_each};
use super::xfrm::{flush, remove_interface};
use super::{Adapter, Daemon, Site, daemon};
use charon::{Place, program_on};
use config::{Half, INITIATOR};
use gateway::Gateway;
use plan::{DataPath, Form, LinkForm, StrongSwan};
use secrets::Secrets;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testbed::protocol::SealedPort;
use testbed::{DutAction, FramePath, IkeSas, Node, NodeId, PeersGateway, Result, RunningDut};

/// How long a daemon may take until it answers.
const READY_LIMIT: Duration = Duration::from_secs(15);

/// Start of the line that it prints once all its sockets are open.
const READY: &str = "00[JOB] spawning ";

/// Initial port of IKE, and the only one without NAT.
pub(super) const IKE_PORT: u16 = 500;

/// Port of IKE and of ESP in UDP behind NAT (RFC 3948).
const NAT_PORT: u16 = 4500;

/// The TUN device of kernel-libipsec.
const TUN: &str = "ipsec0";

/// Queue of the TUN device in packets, as for the built-in encryptor. The default of 500 would lose
/// small frames first.
const TUN_QUEUE: u32 = 5000;

/// The mark of packets that look up the routes of a station's daemon. No packet has it, since only
/// the generator may seal.
const UNUSED_MARK: &str = "0x45000000";

/// The control socket and the PID file that a killed daemon leaves.
const LEFT_BY_DAEMON: &str = "charon.vici /run/charon.pid";

/// Log of a station's daemon, with the keys of its SAs; and the sequence numbers used with these
/// keys.
const KEYS_LOG: &str = "keys.log";
const SEQUENCES: &str = "sequences";

/// Files that the station's programs leave.
const LEFT_BY_STATION: &str = "keys.log sequences sequences.new";

/// Help for a kernel without ESP.
const IN_DAEMON: &str = "set `data_path: libipsec`, which seals in the daemon";

/// Start of the names of its counters of sealed packets.
const OUTBOUND: &str = "sa_out_";

/// A daemon on each gateway.
pub(super) struct Strongswan {
    plan: StrongSwan,
    /// The plan of a station's daemon.
    on_station_plan: StrongSwan,
    /// One for each gateway that it was started on.
    places: Vec<Place>,
    /// Its processes on a station in a gateway's place.
    on_station: Vec<(NodeId, u64)>,
    /// Whether gw1 serves simulated peers.
    serves: AtomicBool,
}

impl Strongswan {
    pub(super) const fn new(plan: StrongSwan) -> Self {
        let data_path = station::data_path(plan.carrier().udp);
        Self {
            plan,
            on_station_plan: StrongSwan { data_path, ..plan },
            places: Vec::new(),
            on_station: Vec::new(),
            serves: AtomicBool::new(false),
        }
    }

    /// Starts everything, up to and including the check of the SAs.
    fn bring_up(&mut self, site: &Site<'_>, dut: &mut RunningDut) -> Result<()> {
        // A requirement that one gateway lacks is reported before anything is written on the other.
        let mut programs = Vec::new();
        for node in &site.gateways {
            programs.push(program_on(
                site,
                self.plan_of(site, *node),
                *node,
                IN_DAEMON,
            )?);
        }
        let secrets = Secrets::fresh(&self.plan, site)?;
        for (node, program) in site.gateways.iter().zip(programs) {
            let half = Half::of(self.plan_of(site, *node), site, *node);
            let place = Place::write(site, *node, &half, &secrets, program)?;
            self.places.push(place);
        }
        let this = &*self;
        let start = |node: &dyn Node| {
            let gateway = this.gateway(site, node)?;
            tunnels::prepare(&gateway.half, site, node)?;
            Ok((gateway.start(site)?, ()))
        };
        let mut station = RunningDut::default();
        let started = daemon::start_all(site.loaded(), dut, start)
            .and_then(|_| daemon::start_all(site.stand_in().as_slice(), &mut station, start));
        // Kept before a failure is returned: `stop` ends the processes that have started.
        self.on_station = station.processes;
        started?;
        let checked = on_each(&site.gateways, |node| {
            self.gateway(site, node)?.check_daemon(site)
        });
        for (place, facts) in self.places.iter().zip(checked) {
            let program = ("program", place.program.clone());
            let facts = facts?.into_iter().chain([program]);
            if site.loads(place.id) {
                dut.facts.extend(by_node(place.id, facts));
            }
        }
        // The initiator last: its peer has its configuration by then.
        let [responder, initiator] = self.roles(site)?;
        responder.load()?;
        let start = Instant::now();
        initiator.load()?;
        // Both are looked at: a tunnel may be up at one end only.
        let gateways = [responder, initiator];
        let facts = tunnels::await_up(&gateways, start)?;
        if site.loads(INITIATOR) {
            dut.facts.extend(facts);
        }
        self.prove(site, &gateways, dut)?;
        dut.frame_path = Some(self.frame_path(site)?);
        Ok(())
    }

    /// Returns the path of test frames; a station in a gateway's place uses the keys that its
    /// daemon has agreed on.
    fn frame_path(&self, site: &Site<'_>) -> Result<FramePath> {
        site.with_station_peer(site.frame_path(), |node, ends| {
            Ok(self.gateway(site, node)?.as_peer(ends))
        })
    }

    /// Checks that all SAs match the request and adds their facts to `dut`.
    fn prove(&self, site: &Site<'_>, gateways: &[Gateway<'_>], dut: &mut RunningDut) -> Result<()> {
        for gateway in gateways {
            let facts = proof::look(gateway)?;
            if site.loads(gateway.node.id()) {
                dut.facts.extend(by_node(gateway.node.id(), facts));
            }
        }
        Ok(())
    }

    /// Returns the responder, gw1, and the initiator, gw2 ([`INITIATOR`]).
    fn roles<'a>(&'a self, site: &Site<'a>) -> Result<[Gateway<'a>; 2]> {
        let [gw1, gw2] = site.gateways;
        Ok([self.gateway(site, gw1)?, self.gateway(site, gw2)?])
    }

    /// Restarts a killed daemon and loads its configuration.
    fn restart(&self, site: &Site<'_>, node: &dyn Node, dut: &mut RunningDut) -> Result<()> {
        let gateway = self.gateway(site, node)?;
        // Removes leftovers of a killed daemon; the kernel's SAs outlive it and would conflict.
        gateway.in_folder(&format!("rm -f {LEFT_BY_DAEMON}"))?;
        if gateway.half.plan.data_path.in_kernel() {
            remove_interface(node)?;
            flush(node)?;
        }
        let process = gateway.start(site)?;
        dut.processes.push((node.id(), process));
        gateway.check_daemon(site)?;
        gateway.load()
    }

    /// Returns a gateway with written files.
    fn gateway<'a>(&'a self, site: &Site<'a>, node: &'a dyn Node) -> Result<Gateway<'a>> {
        let half = Half::of(self.plan_of(site, node), site, node);
        match self.place(node) {
            Some(place) => Ok(place.gateway(site, node, half)),
            None => Err(site.error(format!("was never brought up on {}", node.name()))),
        }
    }

    fn plan_of(&self, site: &Site<'_>, node: &dyn Node) -> &StrongSwan {
        if site.loads(node.id()) {
            &self.plan
        } else {
            &self.on_station_plan
        }
    }

    fn place(&self, node: &dyn Node) -> Option<&Place> {
        self.places.iter().find(|place| place.id == node.id())
    }

    /// Returns the UDP ports between the gateways.
    fn sealed_ports(&self) -> Vec<SealedPort> {
        let ports: &[u16] = match self.plan.data_path {
            DataPath::Kernel => &[IKE_PORT],
            DataPath::Libipsec | DataPath::KernelUdp => &[IKE_PORT, NAT_PORT],
        };
        let sealed = |&port| SealedPort {
            port,
            form: LinkForm::Sealed(Form::Esp),
            control: true,
        };
        ports.iter().map(sealed).collect()
    }
}

impl Adapter for Strongswan {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        let mut dut = RunningDut {
            sealed_ports: self.sealed_ports(),
            ..RunningDut::default()
        };
        match self.bring_up(site, &mut dut) {
            Ok(()) => Ok(dut),
            Err(error) => {
                // Its death is a better reason than a missing answer.
                let died = daemon::running(site, &dut)
                    .iter()
                    .try_for_each(Daemon::check_dying);
                let _ = self.stop(site, dut);
                died.and(Err(error))
            }
        }
    }

    fn counters(&self, site: &Site<'_>, dut: &RunningDut) -> Result<BTreeMap<String, u64>> {
        if let Some(node) = site.stand_in() {
            self.gateway(site, node)?.check_station(&self.on_station)?;
        }
        let mut counters = BTreeMap::new();
        for daemon in daemon::running(site, dut) {
            let found = proof::counters(&self.gateway(site, daemon.node)?);
            let found = found.map_err(|error| daemon.died_or(error))?;
            counters.extend(by_node(daemon.node.id(), found));
        }
        Ok(counters)
    }

    fn serve_peers(&self, site: &Site<'_>) -> Result<PeersGateway> {
        self.serves.store(true, Ordering::Relaxed);
        peers::serve(self, site)
    }

    fn ike_sas(&self, site: &Site<'_>) -> Result<IkeSas> {
        peers::count(self, site)
    }

    fn act(&self, site: &Site<'_>, dut: &mut RunningDut, action: DutAction) -> Result<()> {
        match action {
            DutAction::Kill(id) => daemon::kill(site, dut, id),
            DutAction::Restart(id) => self.restart(site, daemon::loaded(site, id)?, dut),
            DutAction::Rekey => {
                let gateways = self.roles(site)?;
                tunnels::rekey(&gateways)?;
                self.prove(site, &gateways, dut)
            }
            DutAction::TakeDown => tunnels::take_down(&self.roles(site)?),
            DutAction::SetUp => {
                let gateways = self.roles(site)?;
                let start = Instant::now();
                // Loading a connection runs its start action.
                let file = gateways[1].configuration();
                gateways[1].swanctl(&["--load-conns", "--file", &file])?;
                dut.facts.extend(tunnels::await_up(&gateways, start)?);
                self.prove(site, &gateways, dut)
            }
            other => Err(daemon::refused(site, other)),
        }
    }

    fn stop(&mut self, site: &Site<'_>, mut dut: RunningDut) -> Result<()> {
        // Stopped like the others; they were kept apart because they are no part of the device.
        dut.processes.append(&mut self.on_station);
        let stopped = daemon::stop_all(site, &mut dut);
        let forgotten = if self.serves.swap(false, Ordering::Relaxed) {
            peers::forget(self, site)
        } else {
            Ok(())
        };
        let cleaned = all(on_each(&site.gateways, |node| {
            let half = Half::of(self.plan_of(site, node), site, node);
            charon::clean(site, node, &half, self.place(node))
        }));
        self.places.clear();
        stopped.and(forgotten).and(cleaned)
    }
}
