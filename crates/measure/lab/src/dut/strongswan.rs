//! IPsec by strongSwan: one `charon` per gateway, configured and queried by `swanctl` over a socket
//! of its own.
//!
//! 1. a missing requirement is refused: ESP in the kernel, ML-KEM, a plugin, an algorithm;
//! 2. fresh secrets and the files of both gateways, in folders that go with the stations;
//! 3. both daemons start and load their configuration, and what they list must match it;
//! 4. gw2 sets up an SA for each pair of networks, or for each of several tunnels, as soon as it
//!    has its configuration; both gateways' SAs must have the requested suite, carrier (UDP or
//!    bare) and secrets.
//!
//! Where one gateway is loaded alone, the station in the other's place runs a daemon too, which
//! agrees on keys with the device and writes them to a file; the station's generator and analyser
//! take ESP from and to the link themselves. Nothing but the generator may seal with those keys: so
//! nothing is routed into the daemon, and its counters must stay at zero.
//!
//! Neither IKE nor SAs are renewed by themselves while a trial runs, but those of a station, whose
//! sequence numbers would end. The kernel's ESP is bare, as
//! usual without NAT; that of kernel-libipsec is in UDP. kernel-libipsec carries packets of 1400 B
//! at most: the path MTU behind it is that of its TUN device.

mod answers;
mod config;
mod gateway;
mod proof;
mod secrets;
mod suites;
mod tunnels;

use super::keys::write_file;
use super::site::{all, by_node, on_each};
use super::xfrm::{add_interface, flush, missing_esp, remove_interface};
use super::{Adapter, Daemon, Site, daemon};
use crate::on_node::{ip, run_tool};
use crate::programs::how_to_get;
use crate::protocol::{Program, SealedPort};
use crate::topology::cipher_ends;
use crate::{DutAction, FramePath, Node, NodeId, Result, RunningDut, StationKeys, StationPeer};
use campaign::plan::{DataPath, Form, StrongSwan};
use config::{Half, INITIATOR};
use gateway::{Gateway, TOOL_LIMIT};
use secrets::Secrets;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use suites::Words;

/// How long a daemon may take until it answers.
const READY_LIMIT: Duration = Duration::from_secs(15);

/// Start of the line that it prints once all its sockets are open.
const READY: &str = "00[JOB] spawning ";

/// Initial port of IKE, and the only one without NAT.
const IKE_PORT: u16 = 500;

/// Port of IKE and of ESP in UDP behind NAT (RFC 3948).
const NAT_PORT: u16 = 4500;

/// The TUN device of kernel-libipsec.
const TUN: &str = "ipsec0";

/// Queue of the TUN device in packets, as for the built-in encryptor. The default of 500 would lose
/// small frames first.
const TUN_QUEUE: u32 = 5000;

/// The socket and the process number that a daemon leaves when it is killed.
const LEFT_BY_DAEMON: &str = "charon.vici /run/charon.pid";

/// Log of a station's daemon, with the keys of its SAs, and the numbers used with them.
const KEYS_LOG: &str = "keys.log";
const SEQUENCES: &str = "sequences";

/// Files that the station's programs leave.
const LEFT_BY_STATION: &str = "keys.log sequences sequences.new";

/// Start of the names of its counters of sealed packets.
const OUTBOUND: &str = "sa_out_";

/// A daemon on each gateway.
pub(super) struct Strongswan {
    plan: StrongSwan,
    /// One for each gateway that it was started on.
    places: Vec<Place>,
    /// Its processes on a station in a gateway's place.
    on_station: Vec<(NodeId, u64)>,
}

/// Its files on a gateway.
struct Place {
    id: NodeId,
    /// The daemon.
    program: String,
    /// Folder of its files.
    folder: String,
}

impl Strongswan {
    pub(super) const fn new(plan: StrongSwan) -> Self {
        Self {
            plan,
            places: Vec::new(),
            on_station: Vec::new(),
        }
    }

    /// Starts everything, up to and including the check of the SAs.
    fn bring_up(&mut self, site: &Site<'_>, dut: &mut RunningDut) -> Result<()> {
        let mut programs = Vec::new();
        for node in &site.gateways {
            programs.push(self.check_node(site, *node)?);
        }
        let secrets = Secrets::fresh(&self.plan, site)?;
        for (node, program) in site.gateways.iter().zip(programs) {
            let folder = self.write_files(site, *node, &secrets)?;
            self.places.push(Place {
                id: node.id(),
                program,
                folder,
            });
        }
        let this = &*self;
        let start = |node: &dyn Node| {
            tunnels::prepare(&this.plan, site, node)?;
            Ok((this.start_on(site, node)?, ()))
        };
        let mut station = RunningDut::default();
        let started = daemon::start_all(site.loaded(), dut, start)
            .and_then(|_| daemon::start_all(site.stand_in().as_slice(), &mut station, start));
        self.on_station = station.processes;
        started?;
        let checked = on_each(&site.gateways, |node| self.check_daemon(site, node));
        for (place, facts) in self.places.iter().zip(checked) {
            let program = ("program", place.program.clone());
            let facts = facts?.into_iter().chain([program]);
            if site.loads(place.id) {
                dut.facts.extend(by_node(place.id, facts));
            }
        }
        // The initiator last: its peer has its configuration by then.
        let [responder, initiator] = self.roles(site)?;
        self.load(&responder, site)?;
        let start = Instant::now();
        self.load(&initiator, site)?;
        let gateways = [responder, initiator];
        let facts = tunnels::await_up(&self.plan, site, &gateways, start)?;
        if site.loads(INITIATOR) {
            dut.facts.extend(facts);
        }
        self.prove(site, &gateways, dut)?;
        dut.frame_path = Some(self.frame_path(site)?);
        Ok(())
    }

    /// Returns the path of test frames; a station in a gateway's place seals and opens with what
    /// its daemon has agreed on.
    fn frame_path(&self, site: &Site<'_>) -> Result<FramePath> {
        let mut path = site.frame_path();
        let Some(node) = site.stand_in() else {
            return Ok(path);
        };
        // Whatever its kernel sends, the daemon must not seal it.
        for family in ["-4", "-6"] {
            let words = ["ip", family, "route", "flush", "dev", TUN];
            run_tool(node, Program::new(words))?;
        }
        let folder = self.gateway(site, node)?.folder;
        let (own, peer) = cipher_ends(node.id());
        let esp = StationPeer {
            keys: StationKeys::Ike {
                log: format!("{folder}/{KEYS_LOG}"),
                sequences: format!("{folder}/{SEQUENCES}"),
            },
            suite: self.plan.suite,
            local: site.map.address(own),
            remote: site.map.address(peer),
            port: NAT_PORT,
            lanes: 1,
            tunnels: self.plan.tunnels,
        };
        path.end_at(node.id()).peer = Some(esp);
        Ok(path)
    }

    /// # Errors
    /// When the station's daemon has died, or has sealed packets with the keys that the generator
    /// uses.
    fn check_station(&self, site: &Site<'_>) -> Result<()> {
        let Some(node) = site.stand_in() else {
            return Ok(());
        };
        for (_, process) in &self.on_station {
            let (dut, process) = (site.dut, *process);
            Daemon { dut, node, process }.check_alive()?;
        }
        let counted = proof::counters(&self.gateway(site, node)?)?;
        match counted
            .iter()
            .find(|(name, count)| name.starts_with(OUTBOUND) && *count > 0)
        {
            None => Ok(()),
            Some((_, packets)) => Err(site.error(format!(
                "is not the only one that seals for it: the station's IKE daemon has sealed \
                 {packets} packets or bytes with the generator's keys"
            ))),
        }
    }

    /// Checks that all SAs match the request and adds their facts to `dut`.
    fn prove(&self, site: &Site<'_>, gateways: &[Gateway<'_>], dut: &mut RunningDut) -> Result<()> {
        for gateway in gateways {
            let expected = Half::of(&self.plan, site, gateway.node).sas();
            let facts = proof::look(gateway, &self.plan, expected)?;
            if site.loads(gateway.node.id()) {
                dut.facts.extend(by_node(gateway.node.id(), facts));
            }
        }
        Ok(())
    }

    /// Returns the responder and the initiator.
    fn roles<'a>(&'a self, site: &Site<'a>) -> Result<[Gateway<'a>; 2]> {
        let [one, other] = site.gateways;
        let (responder, initiator) = match one.id() == INITIATOR {
            true => (other, one),
            false => (one, other),
        };
        Ok([
            self.gateway(site, responder)?,
            self.gateway(site, initiator)?,
        ])
    }

    /// Restarts a daemon where one was killed and loads its configuration.
    fn restart(&self, site: &Site<'_>, node: &dyn Node, dut: &mut RunningDut) -> Result<()> {
        let gateway = self.gateway(site, node)?;
        // Removes what a killed daemon leaves; the kernel's SAs outlive it and would conflict.
        gateway.in_folder(&format!("rm -f {LEFT_BY_DAEMON}"))?;
        if self.plan.data_path == DataPath::Kernel {
            remove_interface(node)?;
            flush(node)?;
        }
        let process = self.start_on(site, node)?;
        dut.processes.push((node.id(), process));
        self.check_daemon(site, node)?;
        self.load(&gateway, site)
    }

    /// Returns the path of the daemon on a node, after checking the requirements that can be
    /// checked before it runs.
    fn check_node(&self, site: &Site<'_>, node: &dyn Node) -> Result<String> {
        let name = node.name();
        let refuse = |reason: String| Err(site.error(reason));
        let run = |words: &[&str]| node.run(Program::new(words.iter().copied()), TOOL_LIMIT);
        let mut paths = Vec::new();
        for program in ["charon", "swanctl"] {
            let Some(path) = node.locate(program)? else {
                return refuse(format!(
                    "is not installed on {name}: there is no `{program}`\nhelp: {}",
                    how_to_get(program)
                ));
            };
            paths.push(path);
        }
        let program = paths.swap_remove(0);
        if self.plan.ml_kem {
            let printed = run(&[&program, "--version"])?.stdout;
            let version = printed.split_ascii_whitespace().last();
            let version = version.unwrap_or("unknown");
            if answers::numbers(version) < (6, 0) {
                return refuse(format!(
                    "cannot add ML-KEM-768 to its key exchange on {name}: strongSwan {version} has \
                     none (RFC 9370 came with 6.0)\n\
                     help: install strongSwan 6, or set `ml_kem: false`"
                ));
            }
        }
        if self.plan.data_path == DataPath::Kernel
            && let Some(said) = missing_esp(node)?
        {
            return refuse(format!(
                "needs ESP in the kernel, which {name} does not have{said}\n\
                 help: sudo modprobe -a esp4 xfrm_user; or set `data_path: libipsec`, which seals \
                 in the daemon"
            ));
        }
        Ok(program)
    }

    /// Writes a gateway's files; returns their folder. `swanctl` reads certificates and keys from
    /// folders beside its file.
    fn write_files(&self, site: &Site<'_>, node: &dyn Node, secrets: &Secrets) -> Result<String> {
        let half = Half::of(&self.plan, site, node);
        let path = write_file(node, "swanctl.conf", &half.connections(secrets), true)?;
        let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let gateway = Gateway {
            dut: site.dut,
            node,
            folder,
            program: "",
        };
        let is_station = !site.loads(node.id());
        let keys_log = is_station.then(|| format!("{folder}/{KEYS_LOG}"));
        let text = config::daemon(&self.plan, &gateway.uri(), keys_log.as_deref());
        write_file(node, "strongswan.conf", &text, false)?;
        gateway.in_folder(&format!(
            "rm -f {LEFT_BY_DAEMON} {LEFT_BY_STATION}; mkdir -p private x509 x509ca"
        ))?;
        for (name, content) in secrets.files(node.id()) {
            write_file(node, name, content, true)?;
            let place = match name {
                "ca.crt" => "x509ca",
                "own.key" => "private",
                _ => "x509",
            };
            let [from, to] = [name, place].map(|name| format!("{folder}/{name}"));
            gateway.run(&["mv", &from, &to])?;
        }
        Ok(folder.to_owned())
    }

    /// Starts its daemon on a prepared gateway.
    fn start_on(&self, site: &Site<'_>, node: &dyn Node) -> Result<u64> {
        let gateway = self.gateway(site, node)?;
        if self.plan.data_path == DataPath::Libipsec && node.interface_counters()?.contains_key(TUN)
        {
            let name = node.name();
            return Err(site.error(format!("finds an interface `{TUN}` on {name} already")));
        }
        if self.plan.data_path == DataPath::Kernel {
            add_interface(site, node)?;
        }
        // Reads the log from standard error, the only unbuffered stream.
        let script = "umask 077; STRONGSWAN_CONF=\"$1/strongswan.conf\" exec \"$2\" 2>&1";
        let (folder, program) = (gateway.folder, gateway.program);
        let argv = ["sh", "-c", script, "sh", folder, program].map(str::to_owned);
        let (daemon, _) = Daemon::start(site.dut, node, argv.to_vec(), READY, READY_LIMIT)?;
        Ok(daemon.process)
    }

    /// Checks the daemon's plugins and algorithms; returns facts.
    fn check_daemon(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
    ) -> Result<Vec<(&'static str, String)>> {
        let gateway = self.gateway(site, node)?;
        let name = node.name();
        let version = gateway.ask(&["--version", "--daemon"])?;
        let version = version.get("version").cloned().unwrap_or_default();
        let stats = gateway.ask(&["--stats"])?;
        let loaded = stats.get("plugins").map(String::as_str).unwrap_or_default();
        let has = |plugin: &str| loaded.split(' ').any(|name| name == plugin);
        if let Some(plugin) = config::plugins(&self.plan).into_iter().find(|it| !has(it)) {
            return Err(gateway.error(format!(
                "lacks the plugin `{plugin}` on {name}, of strongSwan {version}\nhelp: {}",
                how_to_get("charon")
            )));
        }
        let mtu = site.links.mtu.min(StrongSwan::LIBIPSEC_PACKET_BYTES_MAX);
        if self.plan.data_path == DataPath::Libipsec {
            let batch = format!("link set {TUN} mtu {mtu} txqueuelen {TUN_QUEUE}\n");
            ip(node, batch).map_err(|_| {
                gateway.error(format!(
                    "made no TUN device on {name}\nhelp: sudo modprobe tun; a container needs \
                     /dev/net/tun: docker run --device /dev/net/tun"
                ))
            })?;
        }
        let words = Words::of(self.plan.suite);
        let algorithms = gateway.ask(&["--list-algs"])?;
        // The kernel has its own algorithms.
        if self.plan.data_path == DataPath::Libipsec
            && let Some(missing) = words.missing(&algorithms)
        {
            return Err(gateway.error(format!(
                "cannot seal with {} on {name}: no plugin of strongSwan {version} has {missing}\n\
                     help: take another suite, or install the plugin: {}",
                self.plan.suite,
                how_to_get("charon")
            )));
        }
        if self.plan.ml_kem && !algorithms.keys().any(|path| path.ends_with("/ML_KEM_768")) {
            return Err(gateway.error(format!(
                "cannot add ML-KEM-768 to its key exchange on {name}: no plugin of strongSwan \
                 {version} has it\nhelp: install the plugin `ml`, or set `ml_kem: false`"
            )));
        }
        let mut facts = vec![("version", version)];
        match self.plan.data_path {
            DataPath::Kernel => facts.push(("data_path", "kernel XFRM".to_owned())),
            DataPath::Libipsec => {
                facts.push(("mtu", mtu.to_string()));
                facts.push(("data_path", "kernel-libipsec".to_owned()));
                let own = |kind| algorithms.get(&format!("{kind}/{}", words.cipher)).cloned();
                let crypto = own("aead").or_else(|| own("encryption"));
                facts.extend(crypto.map(|plugin| ("crypto", plugin)));
            }
        }
        Ok(facts)
    }

    /// Loads a daemon's configuration and compares what the daemon lists.
    fn load(&self, gateway: &Gateway<'_>, site: &Site<'_>) -> Result<()> {
        let name = gateway.node.name();
        let file = gateway.configuration();
        gateway.swanctl(&["--load-all", "--noprompt", "--file", &file])?;
        let loaded = gateway.ask(&["--list-conns"])?;
        for (path, value) in Half::of(&self.plan, site, gateway.node).expected() {
            if loaded.get(&path) != Some(&value) {
                let loaded = loaded.get(&path).map_or("nothing", String::as_str);
                return Err(gateway.error(format!(
                    "read its configuration on {name} differently: `{path}` is {loaded}, not \
                     {value}"
                )));
            }
        }
        Ok(())
    }

    /// Returns a gateway whose files are written.
    fn gateway<'a>(&'a self, site: &Site<'a>, node: &'a dyn Node) -> Result<Gateway<'a>> {
        let place = self.places.iter().find(|place| place.id == node.id());
        let place =
            place.ok_or_else(|| site.error(format!("was never brought up on {}", node.name())))?;
        Ok(Gateway {
            dut: site.dut,
            node,
            folder: &place.folder,
            program: &place.program,
        })
    }

    /// Returns the UDP ports between the gateways.
    fn sealed_ports(&self) -> Vec<SealedPort> {
        let ports: &[u16] = match self.plan.data_path {
            DataPath::Kernel => &[IKE_PORT],
            DataPath::Libipsec => &[IKE_PORT, NAT_PORT],
        };
        let sealed = |&port| SealedPort {
            port,
            form: Form::Esp,
            control: true,
        };
        ports.iter().map(sealed).collect()
    }

    /// Removes what outlives a daemon, however it ended; removes keys and SAs even if something
    /// else cannot be removed.
    fn clean(&self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        let mut cleaned = vec![tunnels::undo(&self.plan, site, node)];
        if self.plan.data_path == DataPath::Kernel {
            cleaned.extend([remove_interface(node), flush(node)]);
        }
        if let Ok(gateway) = self.gateway(site, node) {
            cleaned.push(gateway.in_folder(&format!(
                "rm -rf private x509 x509ca swanctl.conf strongswan.conf ca.crt own.key own.crt \
                 {LEFT_BY_STATION} {LEFT_BY_DAEMON}"
            )));
        }
        all(cleaned)
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
        self.check_station(site)?;
        let mut counters = BTreeMap::new();
        for daemon in daemon::running(site, dut) {
            let found = proof::counters(&self.gateway(site, daemon.node)?);
            let found = found.map_err(|error| daemon.died_or(error))?;
            counters.extend(by_node(daemon.node.id(), found));
        }
        Ok(counters)
    }

    fn act(&self, site: &Site<'_>, dut: &mut RunningDut, action: DutAction) -> Result<()> {
        match action {
            DutAction::Kill(id) => daemon::kill(site, dut, id),
            DutAction::Restart(id) => self.restart(site, daemon::loaded(site, id)?, dut),
            DutAction::Rekey => {
                let gateways = self.roles(site)?;
                tunnels::rekey(&self.plan, site, &gateways)?;
                self.prove(site, &gateways, dut)
            }
            DutAction::TakeDown => tunnels::take_down(&self.plan, &self.roles(site)?),
            DutAction::SetUp => {
                let gateways = self.roles(site)?;
                let start = Instant::now();
                let file = gateways[1].configuration();
                gateways[1].swanctl(&["--load-conns", "--file", &file])?;
                dut.facts
                    .extend(tunnels::await_up(&self.plan, site, &gateways, start)?);
                self.prove(site, &gateways, dut)
            }
            other => Err(daemon::refused(site, other)),
        }
    }

    fn stop(&mut self, site: &Site<'_>, mut dut: RunningDut) -> Result<()> {
        dut.processes.append(&mut self.on_station);
        let stopped = daemon::stop_all(site, &mut dut);
        let cleaned = all(on_each(&site.gateways, |node| self.clean(site, node)));
        self.places.clear();
        stopped.and(cleaned)
    }
}
