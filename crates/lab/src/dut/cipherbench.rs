//! Our own encryptor: `cipherbench encrypt` on the gateways that are loaded, with static keys made for
//! this one start.

use super::keys::{fresh_pair, write_file, write_keys};
use super::site::{all, on_each};
use super::{Adapter, Daemon, Site, daemon, dut_error, prometheus};
use crate::protocol::{Request, Response, SealedPort, THIS_PROGRAM};
use crate::sync::Deadline;
use crate::topology::{A1, B1, End, Side, W0, W1};
use crate::{DutAction, FramePath, LabError, Node, NodeId, RunningDut, StationEsp};
use campaign::plan::{Encryptor, Mode};
use keying::FileTexts;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

/// UDP port of the first lane; lane i has the i-th after it.
const PORT: u16 = 4500;

/// Where it serves its counters.
const METRICS_PORT: u16 = 9464;

/// How long it may take until it forwards: known answers of its engine, interfaces, probes.
const READY_LIMIT: Duration = Duration::from_secs(15);

/// What makes it renew the keys that it seals with.
const REKEY: Signal = Signal::SIGUSR1;

/// Its counter of that.
const REKEYS: &str = "rekeys";

/// How long it may take until all lanes seal with new keys.
const REKEY_LIMIT: Duration = Duration::from_secs(15);

/// From one look at that counter to the next.
const REKEY_INTERVAL: Duration = Duration::from_millis(1);

/// A pseudowire's cookies are this and the session's number: long ones cost the most.
const COOKIE: u64 = 0x6369_7068_6572_6200;

/// What its line begins with when it forwards.
const READY: &str = "ready";

/// An encryptor on each gateway, or on one with the station for its peer.
pub(super) struct Cipherbench {
    encryptor: Encryptor,
    /// Where the gateways' configurations are.
    configs: BTreeMap<NodeId, String>,
}

impl Cipherbench {
    pub(super) const fn new(encryptor: Encryptor) -> Self {
        Self {
            encryptor,
            configs: BTreeMap::new(),
        }
    }

    /// Writes keys and configuration of a gateway; where the latter is.
    fn write_files(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
        keys: &[FileTexts; 2],
    ) -> Result<String, LabError> {
        let id = node.id();
        let key_file = write_keys(node, keys)?;
        let config = self.config(site, id, &key_file);
        write_file(node, &format!("{}.yaml", id.name()), &config, false)
    }

    /// Starts it with the files that were written; what it printed. Each start has its own epoch of the keys.
    fn start_on(&self, site: &Site<'_>, node: &dyn Node) -> Result<(u64, String), LabError> {
        let Some(config) = self.configs.get(&node.id()) else {
            let reason = format!("has no configuration on {}", node.id().name());
            return Err(dut_error(site.dut, reason));
        };
        let argv = [THIS_PROGRAM, "encrypt", "--config", config];
        let argv = argv.map(str::to_owned).to_vec();
        let (daemon, stdout) = Daemon::start(site.dut, node, argv, READY, READY_LIMIT)?;
        Ok((daemon.process, stdout))
    }

    /// Starts it on gateways; those where it came up are in `dut` also when one did not.
    fn start_all(
        &self,
        site: &Site<'_>,
        nodes: &[&dyn Node],
        dut: &mut RunningDut,
    ) -> Result<(), LabError> {
        let started = on_each(nodes, |node| self.start_on(site, node));
        let mut failure = Ok(());
        for (node, started) in nodes.iter().zip(started) {
            match started {
                Ok((process, stdout)) => {
                    dut.processes.push((node.id(), process));
                    dut.facts.extend(facts(node.id(), &stdout));
                }
                Err(error) => failure = failure.and(Err(error)),
            }
        }
        failure
    }

    /// All that is to be there before anything is forwarded.
    fn bring_up(&mut self, site: &Site<'_>, dut: &mut RunningDut) -> Result<(), LabError> {
        let keys = fresh_pair(site.dut)?;
        for node in site.loaded() {
            let config = self.write_files(site, *node, &keys)?;
            self.configs.insert(node.id(), config);
        }
        self.start_all(site, site.loaded(), dut)?;
        if self.encryptor.mode.bridges() {
            site.join_stations()?;
        }
        dut.frame_path = Some(self.frame_path(site, &keys)?);
        Ok(())
    }

    /// Has a gateway's keys renewed, and waits until all of its lanes seal with them; the peer opens with them by
    /// the first packet.
    fn rekey(daemon: &Daemon<'_>) -> Result<(), LabError> {
        let rekeys = || {
            let counters = read_counters(daemon)?;
            Ok(counters.get(REKEYS).copied().unwrap_or(0))
        };
        let before = rekeys()?;
        daemon.signal(REKEY)?;
        let deadline = Deadline::after(REKEY_LIMIT);
        while rekeys()? == before {
            if deadline.is_over() {
                let (node, limit) = (daemon.node.id().name(), REKEY_LIMIT.as_secs());
                let reason = format!("did not renew its keys on {node} within {limit} s");
                return Err(dut_error(daemon.dut, reason));
            }
            thread::sleep(REKEY_INTERVAL);
        }
        Ok(())
    }

    fn config(&self, site: &Site<'_>, id: NodeId, key_file: &str) -> String {
        let (own, peer) = cipher_ends(id);
        let Encryptor {
            suite,
            workers,
            engine,
            mode,
            aggregate,
            busy_poll,
            ..
        } = &self.encryptor;
        let mut config = String::new();
        let mut put = |text: &str| {
            config.push_str(text);
            config.push('\n');
        };
        put(&format!("local: {}", site.map.address(own)));
        put(&format!("port: {PORT}"));
        put(&format!("workers: {workers}"));
        if mode.has_esp() {
            put(&format!("suite: {suite}"));
            put(&format!("engine: {engine}"));
        }
        put(&format!("metrics: 127.0.0.1:{METRICS_PORT}"));
        let flags = [
            ("aggregate", *aggregate),
            ("busy_poll", *busy_poll),
            ("legacy", mode.has_esp() && suite.is_legacy()),
            ("insecure", self.encryptor.is_readable()),
        ];
        for (flag, _) in flags.iter().filter(|(_, is_on)| *is_on) {
            put(&format!("{flag}: true"));
        }
        put(&self.clear_side(site, id));
        put("peers:");
        let remote = site.map.address(peer);
        let keys = match mode.has_esp() {
            true => format!(", keys: {{ static: \"{key_file}\" }}"),
            false => String::new(),
        };
        let beyond = Side::of(peer);
        for tunnel in 0..self.encryptor.tunnels {
            let routes = match mode.bridges() {
                true => String::new(),
                false => {
                    let networks = site.map.networks_in_tunnel(
                        beyond,
                        site.links,
                        tunnel,
                        self.encryptor.tunnels,
                    );
                    format!(", routes: [{}]", networks.join(", "))
                }
            };
            put(&format!("  - {{ remote: {remote}{keys}{routes} }}"));
        }
        config
    }

    /// The interface that packets or frames come from.
    fn clear_side(&self, site: &Site<'_>, id: NodeId) -> String {
        let mode = self.encryptor.mode;
        let interface = clear_end(id).interface;
        // What its owner expects to receive: gw1 session 1, gw2 session 2.
        let (own, peers) = match id {
            NodeId::Gw2 => (2, 1),
            _ => (1, 2),
        };
        let pseudowire = |encapsulation: &str| {
            let cookie = |session: u32| COOKIE + u64::from(session);
            format!(
                "mode: l2tpv3\ninterface: {interface}\n\
                 l2tpv3: {{ session: {own}, peer_session: {peers}, cookie: \"{:016x}\", \
                 peer_cookie: \"{:016x}\", encapsulation: {encapsulation} }}",
                cookie(own),
                cookie(peers)
            )
        };
        match mode {
            Mode::L3 => format!("tunnel: {{ name: cb0, mtu: {} B }}", site.links.mtu),
            Mode::L2 => format!("mode: l2\ninterface: {interface}"),
            Mode::L2tpv3 => pseudowire("esp"),
            Mode::L2tpv3Clear => pseudowire("udp"),
        }
    }

    /// The path of test frames; a station in a gateway's place gets that gateway's keys.
    fn frame_path(&self, site: &Site<'_>, keys: &[FileTexts; 2]) -> Result<FramePath, LabError> {
        let mut path = match self.encryptor.mode.bridges() {
            true => site.bridged_frame_path(),
            false => site.frame_path(),
        };
        let Some(node) = site.stand_in() else {
            return Ok(path);
        };
        let (own, peer) = cipher_ends(node.id());
        let esp = StationEsp {
            key_file: write_keys(node, keys)?,
            suite: self.encryptor.suite,
            local: site.map.address(own),
            remote: site.map.address(peer),
            port: PORT,
            lanes: self.encryptor.workers,
            tunnels: self.encryptor.tunnels,
        };
        let station = if path.source.node == node.id() {
            &mut path.source
        } else {
            &mut path.sink
        };
        station.esp = Some(esp);
        Ok(path)
    }
}

impl Adapter for Cipherbench {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut, LabError> {
        let lanes = match self.encryptor.mode.has_esp() {
            true => self.encryptor.workers,
            false => 0,
        };
        let mut dut = RunningDut {
            sealed_ports: (0..lanes)
                .map(|lane| SealedPort::esp(PORT + lane))
                .collect(),
            ..RunningDut::default()
        };
        let up = self.bring_up(site, &mut dut);
        self.up_or_stopped(site, dut, up)
    }

    fn counters(
        &self,
        site: &Site<'_>,
        dut: &RunningDut,
    ) -> Result<BTreeMap<String, u64>, LabError> {
        let mut counters = BTreeMap::new();
        for daemon in daemon::running(site, dut) {
            let gateway = daemon.node.id().name();
            let named = |(name, value)| (format!("{gateway}/{name}"), value);
            counters.extend(read_counters(&daemon)?.into_iter().map(named));
        }
        Ok(counters)
    }

    /// It has no tunnels apart from its processes: with static keys there is nothing to agree on, so that taking
    /// them down is stopping both gateways.
    fn act(
        &self,
        site: &Site<'_>,
        dut: &mut RunningDut,
        action: DutAction,
    ) -> Result<(), LabError> {
        match action {
            DutAction::Kill(id) => daemon::kill(site, dut, id),
            DutAction::Restart(id) => self.start_all(site, &[daemon::loaded(site, id)?], dut),
            DutAction::TakeDown => daemon::stop_all(site, dut),
            DutAction::SetUp => self.start_all(site, site.loaded(), dut),
            DutAction::Rekey if self.encryptor.mode.has_esp() => {
                let daemons = daemon::running(site, dut);
                all(on_each(site.loaded(), |node| {
                    let mut here = daemons.iter().filter(|it| it.node.id() == node.id());
                    here.try_for_each(Self::rekey)
                }))
            }
            other => Err(daemon::refused(site, other)),
        }
    }

    fn stop(&mut self, site: &Site<'_>, mut dut: RunningDut) -> Result<(), LabError> {
        // Its interface goes with it, and the routes with the interface.
        let stopped = daemon::stop_all(site, &mut dut);
        let parted = match self.encryptor.mode.bridges() {
            true => site.part_stations(),
            false => Ok(()),
        };
        stopped.and(parted)
    }
}

/// What one of them counts, by its own names.
fn read_counters(daemon: &Daemon<'_>) -> Result<BTreeMap<String, u64>, LabError> {
    let request = Request::HttpGet {
        port: METRICS_PORT,
        path: "/metrics".to_owned(),
    };
    match daemon.node.call(request) {
        Ok(Response::Body(text)) => Ok(prometheus::counters(&text)),
        Ok(other) => Err(daemon.node.unexpected(&other)),
        Err(error) => {
            daemon.check_dying()?;
            Err(error)
        }
    }
}

/// The cipher link's ends as a gateway has them: its own and its peer's.
pub(super) fn cipher_ends(id: NodeId) -> (End, End) {
    match id {
        NodeId::Gw2 => (W1, W0),
        _ => (W0, W1),
    }
}

/// A gateway's end of the link to its station.
pub(super) fn clear_end(id: NodeId) -> End {
    match id {
        NodeId::Gw2 => B1,
        _ => A1,
    }
}

/// What it says of itself on its line: `ready version=0.1.0 suite=aes-256-gcm …`.
fn facts(id: NodeId, stdout: &str) -> BTreeMap<String, String> {
    let line = stdout
        .lines()
        .find(|line| line.starts_with(READY))
        .unwrap_or_default();
    let pairs = line
        .split_ascii_whitespace()
        .filter_map(|word| word.split_once('='));
    pairs
        .map(|(key, value)| (format!("{}/{key}", id.name()), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_the_pairs_of_the_ready_line_by_gateway() {
        let facts = facts(
            NodeId::Gw2,
            "starting a=b\nready version=0.1.0 engine=ipsec-mb lanes=1\n",
        );
        let expected = [
            ("gw2/engine", "ipsec-mb"),
            ("gw2/lanes", "1"),
            ("gw2/version", "0.1.0"),
        ];
        assert!(
            facts
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .eq(expected)
        );
    }
}
