//! IPsec by strongSwan: one `charon` per gateway, asked and told by `swanctl` over a socket of its own.
//!
//! 1. what cannot be had here is refused: no ESP in the kernel, no ML-KEM, no plugin, no algorithm;
//! 2. fresh secrets, and the files of both gateways, in folders that go with the stations;
//! 3. both daemons come up, load their configuration, and say it again as it was meant;
//! 4. gw1 sets up an SA for each pair of networks, and both gateways' SAs must have the suite that was
//!    asked for, in UDP, and the secrets that were asked for in their keys.
//!
//! Neither IKE nor SAs are set up anew while a trial runs, and ESP is in UDP for the kernel as well.
//! kernel-libipsec carries packets of 1400 B at most: the path MTU behind it is that of its TUN device.

mod answers;
mod config;
mod gateway;
mod proof;
mod secrets;
mod suites;

use super::keys::write_file;
use super::site::{all, on_each};
use super::xfrm::missing_esp;
use super::{Adapter, Daemon, Site, dut_error};
use crate::on_node::ip;
use crate::protocol::{Program, SealedPort};
use crate::{LabError, Node, NodeId, RunningDut};
use campaign::plan::{DataPath, Form, StrongSwan};
use config::Half;
use gateway::{Gateway, TOOL_LIMIT};
use secrets::Secrets;
use std::collections::BTreeMap;
use std::time::Duration;
use suites::Words;

/// How long a daemon may take until it answers.
const READY_LIMIT: Duration = Duration::from_secs(15);

/// How long setting up one SA may take, in seconds: several of IKE's retransmissions.
const INITIATE_LIMIT_S: u32 = 15;

/// What its line begins with when all its sockets are open.
const READY: &str = "00[JOB] spawning ";

/// Ports of IKE: to begin with, and behind NAT with ESP in UDP (RFC 3948).
const PORTS: [u16; 2] = [500, 4500];

/// The TUN device of kernel-libipsec.
const TUN: &str = "ipsec0";

/// Packets that the TUN device may hold: as many as our encryptor's. With its 500 small frames would
/// be lost there first.
const TUN_QUEUE: u32 = 5000;

/// Where distributions put the daemon, which is no program of `PATH`.
const FIND_CHARON: &str = "
for program in \"${CHARON:-}\" \"$(command -v charon || true)\" /usr/lib/ipsec/charon \\
    /usr/libexec/ipsec/charon /usr/lib/strongswan/charon /usr/libexec/strongswan/charon \\
    /usr/local/libexec/ipsec/charon; do
    if [ -x \"$program\" ]; then echo \"$program\"; exit; fi
done
exit 1
";

/// How to get what is missing of it.
const INSTALL: &str = "install it, on Debian and Ubuntu: sudo apt install strongswan-charon \
                       strongswan-swanctl libcharon-extra-plugins libstrongswan-standard-plugins \
                       libstrongswan-extra-plugins";

/// A daemon on each gateway.
pub(super) struct Strongswan {
    plan: StrongSwan,
    /// Folders of the gateways' files.
    folders: Vec<(NodeId, String)>,
}

impl Strongswan {
    pub(super) const fn new(plan: StrongSwan) -> Self {
        Self {
            plan,
            folders: Vec::new(),
        }
    }

    /// All up to and with the proof.
    fn bring_up(&mut self, site: &Site<'_>, dut: &mut RunningDut) -> Result<(), LabError> {
        let mut programs = Vec::new();
        for node in site.loaded() {
            programs.push(self.check_node(site, *node)?);
        }
        let secrets = Secrets::fresh(&self.plan, site)?;
        for node in site.loaded() {
            let folder = self.write_files(site, *node, &secrets)?;
            self.folders.push((node.id(), folder));
        }
        let this = &*self;
        let started = on_each(site.loaded(), |node| {
            let program = &programs[usize::from(node.id() == NodeId::Gw2)];
            this.start_on(site, node, program)
        });
        let mut failure = None;
        for (node, started) in site.loaded().iter().zip(started) {
            match started {
                Ok(process) => dut.processes.push((node.id(), process)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        let configured = on_each(site.loaded(), |node| this.configure(site, node));
        for (node, (facts, program)) in site
            .loaded()
            .iter()
            .zip(configured.into_iter().zip(programs))
        {
            let named = |(key, value)| (format!("{}/{key}", node.id().name()), value);
            let program = ("program", program);
            dut.facts
                .extend(facts?.into_iter().chain([program]).map(named));
        }
        let gw1 = self.gateway(site, site.gateways[0])?;
        for child in Half::of(&self.plan, site, gw1.node).children() {
            let limit = INITIATE_LIMIT_S.to_string();
            gw1.swanctl(&["--initiate", "--child", &child, "--timeout", &limit])
                .map_err(|error| gw1.explain(error))?;
        }
        for node in site.loaded() {
            let expected = Half::of(&self.plan, site, *node).networks.len();
            let told = proof::look(&self.gateway(site, *node)?, &self.plan, expected)?;
            let named = |(key, value)| (format!("{}/{key}", node.id().name()), value);
            dut.facts.extend(told.into_iter().map(named));
        }
        Ok(())
    }

    /// Where its daemon is on a node, once nothing that was asked for is known to be missing there.
    fn check_node(&self, site: &Site<'_>, node: &dyn Node) -> Result<String, LabError> {
        let name = node.id().name();
        let refuse = |reason: String| Err(dut_error(site.dut, reason));
        let run = |words: &[&str]| node.run(Program::new(words.iter().copied()), TOOL_LIMIT);
        let found = run(&["sh", "-c", FIND_CHARON])?;
        let program = found.stdout.trim().to_owned();
        if found.code != Some(0) {
            return refuse(format!(
                "is not installed on {name}: there is no `charon`\nhelp: {INSTALL}"
            ));
        }
        if run(&["sh", "-c", "command -v swanctl"])?.code != Some(0) {
            return refuse(format!(
                "is not installed on {name}: there is no `swanctl`\nhelp: {INSTALL}"
            ));
        }
        if self.plan.ml_kem {
            let told = run(&[&program, "--version"])?.stdout;
            let version = told.split_ascii_whitespace().last().unwrap_or("unknown");
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

    /// Writes a gateway's files; where they are. `swanctl` takes certificates and keys from folders
    /// beside its file.
    fn write_files(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
        secrets: &Secrets,
    ) -> Result<String, LabError> {
        let half = Half::of(&self.plan, site, node);
        let path = write_file(node, "swanctl.conf", &half.connections(secrets), true)?;
        let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let gateway = Gateway {
            dut: site.dut,
            node,
            folder,
        };
        let text = config::daemon(&self.plan, &gateway.uri());
        write_file(node, "strongswan.conf", &text, false)?;
        // A daemon that was killed has left its socket and its number.
        let folders = "cd \"$1\"; rm -f charon.vici /run/charon.pid; mkdir -p private x509 x509ca";
        gateway.run(&["sh", "-euc", folders, "sh", folder])?;
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

    fn start_on(&self, site: &Site<'_>, node: &dyn Node, program: &str) -> Result<u64, LabError> {
        let gateway = self.gateway(site, node)?;
        let half = Half::of(&self.plan, site, node);
        if self.plan.data_path == DataPath::Libipsec && gateway.has_interface(TUN)? {
            let name = node.id().name();
            return Err(gateway.error(format!("finds an interface `{TUN}` on {name} already")));
        }
        let addresses = half.addresses().into_iter();
        // Nothing is announced from there.
        ip(
            node,
            addresses
                .map(|it| format!("address replace {it} dev lo\n"))
                .collect(),
        )?;
        // Its log: only standard error is written at once.
        let script = "STRONGSWAN_CONF=\"$1/strongswan.conf\" exec \"$2\" 2>&1";
        let argv = ["sh", "-c", script, "sh", gateway.folder, program].map(str::to_owned);
        let (daemon, _) = Daemon::start(site.dut, node, argv.to_vec(), READY, READY_LIMIT)?;
        Ok(daemon.process)
    }

    /// Checks what the daemon has, gives it its configuration and asks for it again; facts.
    fn configure(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
    ) -> Result<Vec<(&'static str, String)>, LabError> {
        let gateway = self.gateway(site, node)?;
        let name = node.id().name();
        let version = gateway.ask(&["--version", "--daemon"])?;
        let version = version.get("version").cloned().unwrap_or_default();
        let stats = gateway.ask(&["--stats"])?;
        let loaded = stats.get("plugins").map(String::as_str).unwrap_or_default();
        let is_loaded = |plugin: &str| loaded.split(' ').any(|name| name == plugin);
        if let Some(plugin) = config::plugins(&self.plan)
            .into_iter()
            .find(|it| !is_loaded(it))
        {
            return Err(gateway.error(format!(
                "lacks the plugin `{plugin}` on {name}, of strongSwan {version}\nhelp: {INSTALL}"
            )));
        }
        if self.plan.data_path == DataPath::Libipsec {
            let mtu = site.links.mtu.min(StrongSwan::LIBIPSEC_PACKET_BYTES_MAX);
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
        // The kernel has algorithms of its own.
        if self.plan.data_path == DataPath::Libipsec
            && let Some(missing) = words.missing(&algorithms)
        {
            return Err(gateway.error(format!(
                "cannot seal with {} on {name}: no plugin of strongSwan {version} has {missing}\n\
                     help: take another suite, or install the plugin: {INSTALL}",
                self.plan.suite
            )));
        }
        if self.plan.ml_kem && !algorithms.keys().any(|path| path.ends_with("/ML_KEM_768")) {
            return Err(gateway.error(format!(
                "cannot add ML-KEM-768 to its key exchange on {name}: no plugin of strongSwan \
                 {version} has it\nhelp: install the plugin `ml`, or set `ml_kem: false`"
            )));
        }
        let file = format!("{}/swanctl.conf", gateway.folder);
        gateway.swanctl(&["--load-all", "--noprompt", "--file", &file])?;
        let told = gateway.ask(&["--list-conns"])?;
        for (path, value) in Half::of(&self.plan, site, node).expected() {
            if told.get(&path) != Some(&value) {
                let told = told.get(&path).map_or("nothing", String::as_str);
                return Err(gateway.error(format!(
                    "understood its configuration on {name} otherwise: `{path}` is {told}, not \
                     {value}"
                )));
            }
        }
        let mut facts = vec![("version", version)];
        let (data_path, crypto) = match self.plan.data_path {
            DataPath::Kernel => ("kernel XFRM", None),
            DataPath::Libipsec => {
                let own = |kind| algorithms.get(&format!("{kind}/{}", words.cipher)).cloned();
                ("kernel-libipsec", own("aead").or_else(|| own("encryption")))
            }
        };
        if self.plan.data_path == DataPath::Libipsec {
            facts.push((
                "mtu",
                site.links
                    .mtu
                    .min(StrongSwan::LIBIPSEC_PACKET_BYTES_MAX)
                    .to_string(),
            ));
        }
        facts.push(("data_path", data_path.to_owned()));
        facts.extend(crypto.map(|plugin| ("crypto", plugin)));
        Ok(facts)
    }

    /// A gateway whose files are written.
    fn gateway<'a>(&'a self, site: &Site<'a>, node: &'a dyn Node) -> Result<Gateway<'a>, LabError> {
        let (dut, id) = (site.dut, node.id());
        let folder = self.folders.iter().find(|(of, _)| *of == id);
        let (_, folder) = folder
            .ok_or_else(|| dut_error(dut, format!("was never brought up on {}", id.name())))?;
        Ok(Gateway { dut, node, folder })
    }

    fn daemons<'a>(site: &Site<'a>, dut: &RunningDut) -> Vec<Daemon<'a>> {
        let on = |(id, process): &(NodeId, u64)| {
            Some(Daemon {
                dut: site.dut,
                node: site.gateway(*id)?,
                process: *process,
            })
        };
        dut.processes.iter().filter_map(on).collect()
    }

    /// Removes what does not go with a daemon, however it ended.
    fn clean(&self, site: &Site<'_>, node: &dyn Node) -> Result<(), LabError> {
        let half = Half::of(&self.plan, site, node);
        let mut batch: String = half
            .addresses()
            .iter()
            // There is one to delete then.
            .map(|it| format!("address replace {it} dev lo\naddress del {it} dev lo\n"))
            .collect();
        if self.plan.data_path == DataPath::Kernel {
            batch += "xfrm policy flush\nxfrm state flush\n";
            batch += &site.map.unroute(node.id(), site.links);
        }
        ip(node, batch)?;
        let Ok(gateway) = self.gateway(site, node) else {
            return Ok(());
        };
        let script = "cd \"$1\"; rm -rf private x509 x509ca swanctl.conf strongswan.conf \
                      ca.crt own.key own.crt charon.vici /run/charon.pid";
        gateway.run(&["sh", "-euc", script, "sh", gateway.folder])?;
        Ok(())
    }
}

impl Adapter for Strongswan {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut, LabError> {
        let mut dut = RunningDut {
            sealed_ports: PORTS
                .map(|port| SealedPort {
                    port,
                    form: Form::Esp,
                    control: true,
                })
                .to_vec(),
            frame_path: Some(site.frame_path()),
            ..RunningDut::default()
        };
        match self.bring_up(site, &mut dut) {
            Ok(()) => Ok(dut),
            Err(error) => {
                // That it has died says more than what it did not answer.
                let died = Self::daemons(site, &dut)
                    .iter()
                    .try_for_each(Daemon::check_dying);
                let _ = self.stop(site, dut);
                died.and(Err(error))
            }
        }
    }

    fn counters(
        &self,
        site: &Site<'_>,
        dut: &RunningDut,
    ) -> Result<BTreeMap<String, u64>, LabError> {
        let mut counters = BTreeMap::new();
        for daemon in Self::daemons(site, dut) {
            let told = match proof::counters(&self.gateway(site, daemon.node)?) {
                Ok(told) => told,
                Err(error) => {
                    daemon.check_dying()?;
                    return Err(error);
                }
            };
            let name = daemon.node.id().name();
            counters.extend(
                told.into_iter()
                    .map(|(key, value)| (format!("{name}/{key}"), value)),
            );
        }
        Ok(counters)
    }

    fn stop(&mut self, site: &Site<'_>, dut: RunningDut) -> Result<(), LabError> {
        let daemons = Self::daemons(site, &dut);
        let this = &*self;
        let stopped = all(on_each(site.loaded(), |node| {
            let on_node = daemons
                .iter()
                .filter(|daemon| daemon.node.id() == node.id());
            let stopped = on_node.map(Daemon::stop).fold(Ok(()), Result::and);
            stopped.and(this.clean(site, node))
        }));
        self.folders.clear();
        stopped
    }
}
