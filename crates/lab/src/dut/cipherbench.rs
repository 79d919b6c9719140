//! Our own encryptor: `cipherbench encrypt` on the gateways that are loaded, with static keys made for
//! this one start.

use super::keys::{fresh_pair, write_file, write_keys};
use super::site::{all, on_each};
use super::{Adapter, Daemon, Site, prometheus};
use crate::protocol::{Request, Response, SealedPort, THIS_PROGRAM};
use crate::topology::{A1, B1, End, Side, W0, W1};
use crate::{FramePath, LabError, Node, NodeId, RunningDut, StationEsp};
use campaign::plan::{Encryptor, Mode};
use keying::FileTexts;
use std::collections::BTreeMap;
use std::time::Duration;

/// UDP port of the first lane; lane i has the i-th after it.
const PORT: u16 = 4500;

/// Where it serves its counters.
const METRICS_PORT: u16 = 9464;

/// How long it may take until it forwards: known answers of its engine, interfaces, probes.
const READY_LIMIT: Duration = Duration::from_secs(15);

/// A pseudowire's cookies are this and the session's number: long ones cost the most.
const COOKIE: u64 = 0x6369_7068_6572_6200;

/// What its line begins with when it forwards.
const READY: &str = "ready";

/// An encryptor on each gateway, or on one with the station for its peer.
pub(super) struct Cipherbench {
    encryptor: Encryptor,
}

impl Cipherbench {
    pub(super) const fn new(encryptor: Encryptor) -> Self {
        Self { encryptor }
    }

    /// Starts it on a gateway that is loaded.
    fn start_on(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
        keys: &[FileTexts; 2],
    ) -> Result<(NodeId, u64, String), LabError> {
        let id = node.id();
        let key_file = write_keys(node, keys)?;
        let config = self.config(site, id, &key_file);
        let path = write_file(node, &format!("{}.yaml", id.name()), &config, false)?;
        let argv = [THIS_PROGRAM, "encrypt", "--config", &path]
            .map(str::to_owned)
            .to_vec();
        let (daemon, stdout) = Daemon::start(site.dut, node, argv, READY, READY_LIMIT)?;
        Ok((id, daemon.process, stdout))
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

    fn daemons<'a>(&'a self, site: &Site<'a>, dut: &RunningDut) -> Vec<Daemon<'a>> {
        let on = |(id, process): &(NodeId, u64)| {
            Some(Daemon {
                dut: site.dut,
                node: site.gateway(*id)?,
                process: *process,
            })
        };
        dut.processes.iter().filter_map(on).collect()
    }
}

impl Adapter for Cipherbench {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut, LabError> {
        let keys = fresh_pair(site.dut)?;
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
        let mut failure = None;
        for result in on_each(site.loaded(), |node| self.start_on(site, node, &keys)) {
            match result {
                Ok((id, process, stdout)) => {
                    dut.processes.push((id, process));
                    dut.facts.extend(facts(id, &stdout));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if failure.is_none() && self.encryptor.mode.bridges() {
            failure = site.join_stations().err();
        }
        if failure.is_none() {
            match self.frame_path(site, &keys) {
                Ok(path) => dut.frame_path = Some(path),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            None => Ok(dut),
            Some(error) => {
                // What came up, if anything; why the rest did not says more than how this ends.
                let _ = self.stop(site, dut);
                Err(error)
            }
        }
    }

    fn counters(
        &self,
        site: &Site<'_>,
        dut: &RunningDut,
    ) -> Result<BTreeMap<String, u64>, LabError> {
        let mut counters = BTreeMap::new();
        for daemon in self.daemons(site, dut) {
            let request = Request::HttpGet {
                port: METRICS_PORT,
                path: "/metrics".to_owned(),
            };
            let text = match daemon.node.call(request) {
                Ok(Response::Body(text)) => text,
                Ok(other) => return Err(daemon.node.unexpected(&other)),
                Err(error) => {
                    daemon.check_dying()?;
                    return Err(error);
                }
            };
            let gateway = daemon.node.id().name();
            let named = |(name, value)| (format!("{gateway}/{name}"), value);
            counters.extend(prometheus::counters(&text).into_iter().map(named));
        }
        Ok(counters)
    }

    fn stop(&mut self, site: &Site<'_>, dut: RunningDut) -> Result<(), LabError> {
        let daemons = self.daemons(site, &dut);
        // Its interface goes with it, and the routes with the interface.
        let stopped = on_each(site.loaded(), |node| {
            let on_node = daemons
                .iter()
                .filter(|daemon| daemon.node.id() == node.id());
            on_node.map(Daemon::stop).fold(Ok(()), Result::and)
        });
        let parted = match self.encryptor.mode.bridges() {
            true => site.part_stations(),
            false => Ok(()),
        };
        all(stopped).and(parted)
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
fn clear_end(id: NodeId) -> End {
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
