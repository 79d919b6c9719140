//! Our own encryptor: `cipherbench encrypt` on the gateways that are loaded, with static keys made for
//! this one start.

use super::keys::{fresh_pair, write_file, write_keys};
use super::site::{all, on_each};
use super::{Adapter, Daemon, Site, prometheus};
use crate::protocol::{Request, Response, THIS_PROGRAM};
use crate::topology::{End, Side, W0, W1};
use crate::{FramePath, LabError, Node, NodeId, RunningDut, StationEsp};
use keying::FileTexts;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Suite;

/// UDP port of the first lane; lane i has the i-th after it.
const PORT: u16 = 4500;

/// Where it serves its counters.
const METRICS_PORT: u16 = 9464;

/// How long it may take until it forwards: known answers of its engine, interfaces, probes.
const READY_LIMIT: Duration = Duration::from_secs(15);

/// Its engine that protects nothing, which it takes only when told that this is meant.
const NULL_ENGINE: &str = "null";

/// What its line begins with when it forwards.
const READY: &str = "ready";

/// An encryptor on each gateway, or on one with the station for its peer.
pub(super) struct Cipherbench {
    suite: Suite,
    workers: u16,
    engine: String,
}

impl Cipherbench {
    pub(super) fn new(suite: Suite, workers: u16, engine: &str) -> Self {
        Self {
            suite,
            workers,
            engine: engine.to_owned(),
        }
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
        let (local, remote) = (site.map.address(own), site.map.address(peer));
        let beyond = Side::of(peer);
        let Self {
            suite,
            workers,
            engine,
        } = self;
        let mtu = site.links.mtu;
        let routes = site.map.networks_behind(beyond, site.links).join(", ");
        let mut config = format!(
            "local: {local}\n\
             remote: {remote}\n\
             port: {PORT}\n\
             suite: {suite}\n\
             workers: {workers}\n\
             engine: \"{engine}\"\n\
             keys: {{ static: \"{key_file}\" }}\n\
             tunnel: {{ name: cb0, mtu: {mtu} B, routes: [{routes}] }}\n\
             metrics: 127.0.0.1:{METRICS_PORT}\n"
        );
        if engine == NULL_ENGINE {
            config.push_str("insecure: true\n");
        }
        config
    }

    /// The path of test frames; a station in a gateway's place gets that gateway's keys.
    fn frame_path(&self, site: &Site<'_>, keys: &[FileTexts; 2]) -> Result<FramePath, LabError> {
        let mut path = site.frame_path();
        let Some(node) = site.stand_in() else {
            return Ok(path);
        };
        let (own, peer) = cipher_ends(node.id());
        let esp = StationEsp {
            key_file: write_keys(node, keys)?,
            suite: self.suite,
            local: site.map.address(own),
            remote: site.map.address(peer),
            port: PORT,
            lanes: self.workers,
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
        let mut dut = RunningDut {
            esp_udp_ports: (0..self.workers).map(|lane| PORT + lane).collect(),
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
        all(stopped)
    }
}

/// The cipher link's ends as a gateway has them: its own and its peer's.
fn cipher_ends(id: NodeId) -> (End, End) {
    match id {
        NodeId::Gw2 => (W1, W0),
        _ => (W0, W1),
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
