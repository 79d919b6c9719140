//! Our own encryptor: `cipherbench encrypt` on both gateways, with static keys made for this one
//! start.

use super::{Adapter, Daemon, Site, dut_error, gateway, prometheus};
use crate::protocol::{Request, Response, THIS_PROGRAM};
use crate::{LabError, Links, Node, NodeId, RunningDut};
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

/// What its line begins with when it forwards.
const READY: &str = "ready";

/// An encryptor on each gateway.
pub(super) struct Cipherbench {
    name: String,
    suite: Suite,
    workers: u16,
    engine: String,
}

impl Cipherbench {
    pub(super) fn new(name: &str, suite: Suite, workers: u16, engine: &str) -> Self {
        Self {
            name: name.to_owned(),
            suite,
            workers,
            engine: engine.to_owned(),
        }
    }

    fn start_on(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
        links: Links,
        [gw1, gw2]: &[FileTexts; 2],
    ) -> Result<(NodeId, u64, String), LabError> {
        let id = node.id();
        let keys = if id == NodeId::Gw1 { gw1 } else { gw2 };
        let name = format!("{}.key", id.name());
        let key_file = write_file(node, &name, &keys.key, true)?;
        write_file(node, &format!("{name}.epoch"), &keys.epochs, true)?;
        let config = self.config(site, id, links, &key_file)?;
        let path = write_file(node, &format!("{}.yaml", id.name()), &config, false)?;
        let argv = [THIS_PROGRAM, "encrypt", "--config", &path]
            .map(str::to_owned)
            .to_vec();
        let (daemon, stdout) = Daemon::start(&self.name, node, argv, READY, READY_LIMIT)?;
        Ok((id, daemon.process, stdout))
    }

    fn config(
        &self,
        site: &Site<'_>,
        id: NodeId,
        links: Links,
        key_file: &str,
    ) -> Result<String, LabError> {
        let far = if id == NodeId::Gw1 {
            NodeId::Gw2
        } else {
            NodeId::Gw1
        };
        let (Some(local), Some(remote)) = (site.map.cipher(id), site.map.cipher(far)) else {
            return Err(dut_error(
                &self.name,
                format!("cannot run on {}", id.name()),
            ));
        };
        let Self {
            suite,
            workers,
            engine,
            ..
        } = self;
        let (mtu, route) = (links.mtu, site.map.beyond(id));
        Ok(format!(
            "local: {local}\n\
             remote: {remote}\n\
             port: {PORT}\n\
             suite: {suite}\n\
             workers: {workers}\n\
             engine: {engine}\n\
             keys: {{ static: \"{key_file}\" }}\n\
             tunnel: {{ name: cb0, mtu: {mtu} B, routes: [{route}] }}\n\
             metrics: 127.0.0.1:{METRICS_PORT}\n"
        ))
    }

    fn daemons<'a>(&'a self, site: &Site<'a>, dut: &RunningDut) -> Vec<Daemon<'a>> {
        let on = |(id, process): &(NodeId, u64)| {
            Some(Daemon {
                dut: &self.name,
                node: gateway(site, *id)?,
                process: *process,
            })
        };
        dut.processes.iter().filter_map(on).collect()
    }
}

impl Adapter for Cipherbench {
    fn start(&mut self, site: &Site<'_>, links: Links) -> Result<RunningDut, LabError> {
        // In memory only: the stations write them into file systems that go with them.
        let keys = keying::pair_texts()
            .map_err(|error| dut_error(&self.name, format!("got no keys: {error}")))?;
        let started = site.on_gateways(|node| self.start_on(site, node, links, &keys));
        let mut dut = RunningDut {
            esp_udp_ports: (0..self.workers).map(|lane| PORT + lane).collect(),
            ..RunningDut::default()
        };
        let mut failure = None;
        for result in started {
            match result {
                Ok((id, process, stdout)) => {
                    dut.processes.push((id, process));
                    dut.facts.extend(facts(id, &stdout));
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        match failure {
            None => Ok(dut),
            Some(error) => {
                // The one that came up, if any; why the other did not says more than how this one
                // ends.
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
        let stopped = site.on_gateways(|node| {
            let on_node = daemons
                .iter()
                .filter(|daemon| daemon.node.id() == node.id());
            on_node.map(Daemon::stop).fold(Ok(()), Result::and)
        });
        // Its interface goes with it, and the routes with the interface.
        stopped.into_iter().fold(Ok(()), Result::and)
    }
}

fn write_file(
    node: &dyn Node,
    name: &str,
    content: &str,
    secret: bool,
) -> Result<String, LabError> {
    let (name, content) = (name.to_owned(), content.to_owned());
    match node.call(Request::WriteFile {
        name,
        content,
        secret,
    })? {
        Response::Written { path } => Ok(path),
        other => Err(node.unexpected(&other)),
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
