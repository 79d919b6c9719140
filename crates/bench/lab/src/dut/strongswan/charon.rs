//! A daemon on a node: its requirements, files, start, configuration and removal.

use super::answers;
use super::config::{self, Half};
use super::gateway::{Gateway, TOOL_LIMIT};
use super::proof;
use super::secrets::Secrets;
use super::suites::Words;
use super::tunnels;
use super::{
    KEYS_LOG, LEFT_BY_DAEMON, LEFT_BY_STATION, NAT_PORT, OUTBOUND, READY, READY_LIMIT, SEQUENCES,
    TUN, TUN_QUEUE,
};
use crate::dut::keys::write_file;
use crate::dut::site::all;
use crate::dut::xfrm::{add_interface, flush, missing_esp, remove_interface};
use crate::dut::{Daemon, Site};
use crate::on_node::{ip, run_tool};
use crate::programs::how_to_get;
use crate::settings::UNUSED_TABLE;
use plan::{DataPath, StrongSwan};
use std::net::Ipv4Addr;
use testbed::protocol::Program;
use testbed::{Node, NodeId, Result, StationKeys, StationPeer};

/// Removes the rules that a daemon leaves when it is killed.
const NO_RULES: &str = "
for ip in 'ip -4' 'ip -6'; do
    while $ip rule del table \"$1\" 2>&-; do :; done
done
";

/// A daemon's files on a node.
pub(super) struct Place {
    pub(super) id: NodeId,
    /// The daemon.
    pub(super) program: String,
    /// Folder of its files.
    pub(super) folder: String,
}

impl Place {
    /// Writes a node's files. `swanctl` reads certificates and keys from folders next to its file.
    pub(super) fn write(
        site: &Site<'_>,
        node: &dyn Node,
        half: &Half<'_>,
        secrets: &Secrets,
        program: String,
    ) -> Result<Self> {
        let path = write_file(node, "swanctl.conf", &half.connections(secrets), true)?;
        let folder = path.rsplit_once('/').map_or(".", |(folder, _)| folder);
        // The folder is the station's private one, which `write_file` chooses.
        let place = Self {
            id: node.id(),
            program,
            folder: folder.to_owned(),
        };
        let gateway = place.gateway(site, node, half.clone());
        let keys_log = half.is_station.then(|| format!("{folder}/{KEYS_LOG}"));
        let text = config::daemon(half.plan, &gateway.uri(), keys_log.as_deref());
        write_file(node, "strongswan.conf", &text, false)?;
        // A log of an earlier start would be taken for the log of this one.
        gateway.in_folder(&format!(
            "rm -f {LEFT_BY_DAEMON} {LEFT_BY_STATION}; mkdir -p private x509 x509ca"
        ))?;
        for (name, content) in secrets.files(node.id()) {
            write_file(node, name, content, true)?;
            // `write_file` takes a name without folders, so the file is moved.
            let into = match name {
                "ca.crt" => "x509ca",
                "own.key" => "private",
                _ => "x509",
            };
            let [from, to] = [name, into].map(|name| format!("{folder}/{name}"));
            gateway.run(&["mv", &from, &to])?;
        }
        Ok(place)
    }

    /// Returns the gateway for these files: a node with its half of the configuration.
    pub(super) fn gateway<'a>(
        &'a self,
        site: &Site<'a>,
        node: &'a dyn Node,
        half: Half<'a>,
    ) -> Gateway<'a> {
        Gateway {
            dut: site.dut,
            node,
            folder: &self.folder,
            program: &self.program,
            half,
        }
    }
}

/// Returns the path of the daemon on a node, after checking the requirements that can be checked
/// before it runs. `without_esp` is the help for a kernel without ESP.
pub(super) fn program_on(
    site: &Site<'_>,
    plan: &StrongSwan,
    node: &dyn Node,
    without_esp: &str,
) -> Result<String> {
    let name = node.name();
    let refuse = |reason: String| Err(site.error(reason));
    let run = |words: &[&str]| node.run(Program::new(words.iter().copied()), TOOL_LIMIT);
    let mut paths = Vec::new();
    for program in [site.program(node, "charon"), "swanctl"] {
        let Some(path) = node.locate(program)? else {
            return refuse(format!(
                "is not installed on {name}: there is no `{program}`\nhelp: {}",
                how_to_get(program)
            ));
        };
        paths.push(path);
    }
    // The first one is `charon`.
    let program = paths.swap_remove(0);
    if plan.ml_kem {
        let printed = run(&[&program, "--version"])?.stdout;
        let version = printed.split_ascii_whitespace().last();
        let version = version.unwrap_or("unknown");
        if answers::numbers(version) < (6, 0) {
            return refuse(format!(
                "cannot add ML-KEM to its key exchange on {name}: strongSwan {version} has none \
                 (RFC 9370 came with 6.0)\nhelp: install strongSwan 6, or leave ML-KEM out"
            ));
        }
    }
    if plan.data_path.in_kernel()
        && let Some(said) = missing_esp(node)?
    {
        return refuse(format!(
            "needs ESP in the kernel, which {name} does not have{said}\n\
             help: sudo modprobe -a esp4 xfrm_user; or {without_esp}"
        ));
    }
    Ok(program)
}

impl Gateway<'_> {
    /// Starts its daemon, once its files are written; returns the process.
    pub(super) fn start(&self, site: &Site<'_>) -> Result<u64> {
        let Self { node, half, .. } = self;
        // kernel-libipsec would take the next free number, and the lab uses this one.
        if half.plan.data_path == DataPath::Libipsec && node.interface_counters()?.contains_key(TUN)
        {
            let name = node.name();
            return Err(self.error(format!("finds an interface `{TUN}` on {name} already")));
        }
        // Without it, no packet matches a station's policies.
        if half.plan.data_path.in_kernel() && !half.is_station {
            add_interface(site, *node)?;
        }
        // Reads the log from standard error, the only unbuffered stream.
        let script = "umask 077; STRONGSWAN_CONF=\"$1/strongswan.conf\" exec \"$2\" 2>&1";
        // The station's log has keys, so `umask` keeps it private.
        let argv = ["sh", "-c", script, "sh", self.folder, self.program].map(str::to_owned);
        let program = site.command(*node, argv.to_vec());
        let (daemon, _) = Daemon::start(self.dut, *node, program, READY, READY_LIMIT)?;
        Ok(daemon.process)
    }

    /// Checks the daemon's plugins and algorithms; returns facts.
    pub(super) fn check_daemon(&self, site: &Site<'_>) -> Result<Vec<(&'static str, String)>> {
        let plan = self.half.plan;
        let name = self.node.name();
        let version = self.ask(&["--version", "--daemon"])?;
        let version = version.get("version").cloned().unwrap_or_default();
        // By the loaded plugins and not by the configuration: a plugin that cannot be loaded is
        // skipped.
        let stats = self.ask(&["--stats"])?;
        let loaded = stats.get("plugins").map(String::as_str).unwrap_or_default();
        let has = |plugin: &str| loaded.split(' ').any(|name| name == plugin);
        if let Some(plugin) = config::plugins(plan).into_iter().find(|it| !has(it)) {
            return Err(self.error(format!(
                "lacks the plugin `{plugin}` on {name}, of strongSwan {version}\nhelp: {}",
                how_to_get("charon")
            )));
        }
        let mtu = site.links.mtu.min(StrongSwan::LIBIPSEC_PACKET_BYTES_MAX);
        // kernel-libipsec has created its device when the daemon started.
        if plan.data_path == DataPath::Libipsec {
            let batch = format!("link set {TUN} mtu {mtu} txqueuelen {TUN_QUEUE}\n");
            ip(self.node, batch).map_err(|_| {
                self.error(format!(
                    "made no TUN device on {name}\nhelp: sudo modprobe tun; a container needs \
                     /dev/net/tun: docker run --device /dev/net/tun"
                ))
            })?;
        }
        let words = Words::of(plan.suite);
        let algorithms = self.ask(&["--list-algs"])?;
        // In the kernel's data path, plugins do not seal.
        if plan.data_path == DataPath::Libipsec
            && let Some(missing) = words.missing(&algorithms)
        {
            return Err(self.error(format!(
                "cannot seal with {} on {name}: no plugin of strongSwan {version} has {missing}\n\
                     help: take another suite, or install the plugin: {}",
                plan.suite,
                how_to_get("charon")
            )));
        }
        // By the name at the end of the path: the kind of algorithm differs between versions.
        let lacks = |exchange| {
            let is_it = |path: &String| path.rsplit('/').next() == Some(exchange);
            !algorithms.keys().any(is_it)
        };
        if let Some(exchange) = self.half.ml_kem().filter(|exchange| lacks(*exchange)) {
            return Err(self.error(format!(
                "cannot add {exchange} to its key exchange on {name}: no plugin of strongSwan \
                 {version} has it\nhelp: install the plugin `ml`, or leave ML-KEM out"
            )));
        }
        let mut facts = vec![("version", version)];
        match plan.data_path {
            DataPath::Kernel | DataPath::KernelUdp => {
                facts.push(("data_path", "kernel XFRM".to_owned()));
            }
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

    /// Loads the daemon's configuration and compares it with the daemon's list.
    pub(super) fn load(&self) -> Result<()> {
        let name = self.node.name();
        let file = self.configuration();
        self.swanctl(&["--load-all", "--noprompt", "--file", &file])?;
        let loaded = self.ask(&["--list-conns"])?;
        // Its list has the settings in force, which may differ from the file.
        for (path, value) in self.half.expected() {
            if loaded.get(&path) != Some(&value) {
                let loaded = loaded.get(&path).map_or("nothing", String::as_str);
                return Err(self.error(format!(
                    "read its configuration on {name} differently: `{path}` is {loaded}, not \
                     {value}"
                )));
            }
        }
        Ok(())
    }

    /// Returns how a station seals and opens with the keys that its daemon has agreed on, between
    /// the station's address and the device's.
    pub(super) fn as_peer(&self, [local, remote]: [Ipv4Addr; 2]) -> StationPeer {
        let Self { folder, half, .. } = self;
        StationPeer {
            keys: StationKeys::Ike {
                log: format!("{folder}/{KEYS_LOG}"),
                sequences: format!("{folder}/{SEQUENCES}"),
            },
            suite: half.plan.suite,
            local,
            remote,
            port: half.plan.carrier().udp.then_some(NAT_PORT),
            lanes: 1,
            tunnels: half.plan.tunnels,
        }
    }

    /// # Errors
    /// When a station's daemon has died, or has sealed packets with the keys that the generator
    /// uses.
    pub(super) fn check_station(&self, processes: &[(NodeId, u64)]) -> Result<()> {
        for (_, process) in processes {
            let (dut, node, process) = (self.dut, self.node, *process);
            Daemon { dut, node, process }.check_alive()?;
        }
        let counted = proof::counters(self)?;
        match counted
            .iter()
            .find(|(name, count)| name.starts_with(OUTBOUND) && *count > 0)
        {
            None => Ok(()),
            Some((_, packets)) => Err(self.error(format!(
                "is not the only one that seals for it: the station's IKE daemon has sealed \
                 {packets} packets or bytes with the generator's keys"
            ))),
        }
    }
}

/// Removes what outlives a daemon, however it ended; removes keys and SAs even if something else
/// cannot be removed.
pub(super) fn clean(
    site: &Site<'_>,
    node: &dyn Node,
    half: &Half<'_>,
    place: Option<&Place>,
) -> Result<()> {
    let mut cleaned = vec![tunnels::undo(half, site, node)];
    if half.plan.data_path.in_kernel() {
        cleaned.extend([remove_interface(node), flush(node)]);
    }
    if half.is_station {
        cleaned.push(run_tool(
            node,
            Program::new(["sh", "-c", NO_RULES, "sh", &UNUSED_TABLE.to_string()]),
        ));
    }
    if let Some(place) = place {
        cleaned.push(place.gateway(site, node, half.clone()).in_folder(&format!(
            "rm -rf private x509 x509ca swanctl.conf strongswan.conf ca.crt own.key own.crt \
             {LEFT_BY_STATION} {LEFT_BY_DAEMON}"
        )));
    }
    all(cleaned)
}
