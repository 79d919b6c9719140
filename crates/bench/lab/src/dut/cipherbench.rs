//! The built-in encryptor: `cipherbench encrypt` on the loaded gateways, with secrets made for this
//! start.
//!
//! If its gateways agree on keys, it is up when each has keys for all tunnels. QKD keys come from
//! `cipherbench kme`: two KMEs in one process on gw1; gw2 reaches the second one over the cipher
//! link. That process does not belong to the DUT: actions on the DUT do not affect it, and its CPU
//! time is not the DUT's.

mod config;
mod metrics;
mod secrets;
mod tunnels;

use super::keys::{write_file, write_keys};
use super::pseudowire::sent_in;
use super::site::{all, by_node, on_each};
use super::strongswan::IKE_PORT;
use super::{Adapter, Daemon, Site, daemon};
use crate::on_node::run_tool;
use crate::sync::await_true;
use crate::topology::{Side, W0, W1};
use crate::{Network, StaticTunnels};
use metrics::read_counters;
use nix::sys::signal::Signal;
use plan::Encryptor;
use secrets::{KME_PORTS, Secrets};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use testbed::protocol::{ControlPort, Program, SealedPort, THIS_PROGRAM};
use testbed::{
    DutAction, FramePath, Node, NodeId, Result, RunningDut, StationKeys, StationPeer, TunnelKeys,
};
use tunnels::Agreement;

/// UDP port of the first lane; lane i has the i-th after it. The handshake uses TCP on the same
/// port, and IKE shares it.
const PORT: u16 = 4500;

/// How long the KMEs may take until they answer.
const KME_LIMIT: Duration = Duration::from_secs(15);

/// How long it may take until it forwards: known-answer tests of its engine, interfaces, probes.
const READY_LIMIT: Duration = Duration::from_secs(15);

/// Signal that makes it renew its sealing keys.
const REKEY: Signal = Signal::SIGUSR1;

/// Its counter of renewals.
const REKEYS: &str = "rekeys";

/// Signal that makes it apply the key fault configured under `faults`.
const FAULT: Signal = Signal::SIGUSR2;

/// How long it may take until all lanes seal with new keys.
const REKEY_LIMIT: Duration = Duration::from_secs(15);

/// Polling interval of that counter.
const REKEY_INTERVAL: Duration = Duration::from_millis(1);

/// Beginning of the line that it prints once it forwards.
const READY: &str = "ready";

/// An encryptor on each gateway, or on one with a station as its peer.
pub(super) struct Cipherbench {
    encryptor: Encryptor,
    /// Paths of the gateways' configurations.
    configs: BTreeMap<NodeId, String>,
    /// The process of the KMEs, on gw1.
    kmes: Option<u64>,
}

impl Cipherbench {
    pub(super) const fn new(encryptor: Encryptor) -> Self {
        Self {
            encryptor,
            configs: BTreeMap::new(),
            kmes: None,
        }
    }

    /// Writes a gateway's secrets and configuration; returns the configuration's path.
    fn write_files(&self, site: &Site<'_>, node: &dyn Node, secrets: &Secrets) -> Result<String> {
        let key_config = secrets.write(node)?;
        let config = config::text(&self.encryptor, site, node.id(), &key_config);
        write_file(node, &format!("{}.yaml", node.name()), &config, false)
    }

    /// Starts the KMEs if the key source needs them.
    fn start_kmes(&mut self, site: &Site<'_>, secrets: &Secrets) -> Result<()> {
        let [gw1, _] = site.gateways;
        let Some(config) = secrets.write_kmes(gw1)? else {
            return Ok(());
        };
        // Of this program, whatever the campaign names: they are no part of the device.
        let program = Program::new([THIS_PROGRAM, "kme", "--config", &config]);
        let (kmes, _) = Daemon::start(site.dut, gw1, program, READY, KME_LIMIT)?;
        self.kmes = Some(kmes.process);
        Ok(())
    }

    /// The process of the KMEs, if there is one.
    fn kmes<'a>(&self, site: &Site<'a>) -> Option<Daemon<'a>> {
        let [gw1, _] = site.gateways;
        self.kmes.map(|process| Daemon {
            dut: site.dut,
            node: gw1,
            process,
        })
    }

    /// Starts it with the written files; returns its process and output. Each start uses a new key
    /// epoch.
    fn start_on(&self, site: &Site<'_>, node: &dyn Node) -> Result<(u64, String)> {
        let Some(config) = self.configs.get(&node.id()) else {
            return Err(site.error(format!("has no configuration on {}", node.name())));
        };
        let argv = [
            site.program(node, THIS_PROGRAM),
            "encrypt",
            "--config",
            config,
        ];
        let program = site.command(node, argv.map(str::to_owned).to_vec());
        let (daemon, stdout) = Daemon::start(site.dut, node, program, READY, READY_LIMIT)?;
        Ok((daemon.process, stdout))
    }

    /// Starts it on gateways; `dut` lists all that came up even if one failed.
    fn start_all(&self, site: &Site<'_>, nodes: &[&dyn Node], dut: &mut RunningDut) -> Result<()> {
        // At the same time, since each runs the known-answer tests of its engine first.
        let started = daemon::start_all(nodes, dut, |node| {
            let (process, stdout) = self.start_on(site, node)?;
            Ok((process, facts(node.id(), &stdout)))
        })?;
        dut.facts.extend(started.into_iter().flatten());
        Ok(())
    }

    /// Removes what gateways leave behind so that nothing passes in clear: the next DUT uses the
    /// same networks.
    fn release(&self, site: &Site<'_>) -> Result<()> {
        all(on_each(&site.gateways, |node| {
            let Some(config) = self.configs.get(&node.id()) else {
                return Ok(());
            };
            let program = site.program(node, THIS_PROGRAM);
            let argv = [program, "encrypt", "--remove", "--config", config];
            run_tool(node, site.command(node, argv.map(str::to_owned).to_vec()))
        }))
    }

    /// Starts everything, up to the path of test frames.
    fn bring_up(&mut self, site: &Site<'_>, dut: &mut RunningDut) -> Result<()> {
        let (source, every_ns) = (self.encryptor.keys, self.encryptor.rekey_every_ns);
        // Without a meaning for static keys, which have no handshakes.
        let every = Duration::from_nanos(every_ns.unwrap_or_default());
        self.expect_order(site)?;
        let kmes = [site.map.address(W0), site.map.seen_address(W0)];
        let secrets = Secrets::make(site.dut, source, every, kmes)?;
        for node in site.loaded() {
            let config = self.write_files(site, *node, &secrets)?;
            // Kept as soon as it is written: `release` needs it even if the next step fails.
            self.configs.insert(node.id(), config);
        }
        // Before the gateways, which fetch keys as soon as they run.
        self.start_kmes(site, &secrets)?;
        self.set_up(site, dut)?;
        if self.encryptor.mode.bridges() {
            site.join_stations()?;
        }
        dut.frame_path = Some(self.frame_path(site, &secrets)?);
        dut.tunnel_keys = self.tunnel_keys(site, &secrets)?;
        Ok(())
    }

    /// Starts it on all gateways and waits until they have agreed on keys, if they do.
    fn set_up(&self, site: &Site<'_>, dut: &mut RunningDut) -> Result<()> {
        let start = Instant::now();
        self.start_all(site, site.loaded(), dut)?;
        if let Some(agreement) = Agreement::of(self.encryptor.keys) {
            let daemons = daemon::running(site, dut);
            let tunnels = self.encryptor.tunnels;
            let facts = agreement.await_established(&daemons, tunnels, start)?;
            dut.facts.extend(facts);
        }
        Ok(())
    }

    /// TCP between the gateways: the control channel, to which the lower address connects, and
    /// gw2's KME.
    fn control_ports(&self, site: &Site<'_>) -> Vec<ControlPort> {
        let keys = self.encryptor.keys;
        let ends = link_ends(site);
        let channel = |[gw1, gw2]: [Ipv4Addr; 2]| ControlPort {
            listener: gw1.max(gw2),
            port: PORT,
            connector: gw1.min(gw2),
        };
        let kme = |[gw1, gw2]: [Ipv4Addr; 2]| ControlPort {
            listener: gw1,
            port: KME_PORTS[1],
            connector: gw2,
        };
        let channels = ends.iter().filter(|_| keys.has_channel());
        let kmes = ends.iter().filter(|_| keys.has_qkd());
        let channels = channels.copied().map(channel);
        channels.chain(kmes.copied().map(kme)).collect()
    }

    /// Of two gateways that agree on keys the one with the lower address connects, so both must
    /// see the same order.
    fn expect_order(&self, site: &Site<'_>) -> Result<()> {
        let ends = link_ends(site);
        let gw1_is_lower = ends.iter().filter(|[gw1, gw2]| gw1 < gw2).count();
        // The ends agree if gw1 has the lower address at each of them, or at none.
        if !self.encryptor.keys.has_channel() || [0, ends.len()].contains(&gw1_is_lower) {
            return Ok(());
        }
        let gw1 = site.map.address(W0);
        Err(site.error(format!(
            "agrees on keys, for which the gateway with the lower address connects to the other one; gw1 \
             is {gw1}, and gw2 sees it at a lower address than its own\n\
             help: in a lab with `nat` in its path take a lower network for `cipher`, as 192.0.2.0/24"
        )))
    }

    /// Renews all keys. With static keys, each gateway renews its sealing keys.
    fn rekey_all(&self, site: &Site<'_>, dut: &RunningDut) -> Result<()> {
        let daemons = daemon::running(site, dut);
        if let Some(agreement) = Agreement::of(self.encryptor.keys) {
            return agreement.rekey(&daemons, self.encryptor.tunnels);
        }
        all(on_each(site.loaded(), |node| {
            let mut here = daemons.iter().filter(|it| it.node.id() == node.id());
            here.try_for_each(Self::rekey)
        }))
    }

    /// Renews a gateway's static keys and waits until all of its lanes seal with the new ones; the
    /// peer switches on the first packet.
    fn rekey(daemon: &Daemon<'_>) -> Result<()> {
        let rekeys = || {
            let counters = read_counters(daemon)?;
            Ok(counters.get(REKEYS).copied().unwrap_or(0))
        };
        // The count before the signal: an earlier renewal does not count.
        let before = rekeys()?;
        daemon.signal(REKEY)?;
        if await_true(REKEY_LIMIT, REKEY_INTERVAL, || Ok(rekeys()? != before))? {
            return Ok(());
        }
        let (node, limit) = (daemon.gateway(), REKEY_LIMIT.as_secs());
        Err(daemon.error(format!("did not renew its keys on {node} within {limit} s")))
    }

    /// Returns the keys for the packets of its tunnels, in all epochs; `None` if the gateways agree
    /// on keys, or seal with none.
    fn tunnel_keys(
        &self,
        site: &Site<'_>,
        secrets: &Secrets,
    ) -> Result<Option<Arc<dyn TunnelKeys>>> {
        let Encryptor { mode, .. } = self.encryptor;
        // Either file of the pair has the secret of both directions.
        let Secrets::Static([texts, _]) = secrets else {
            return Ok(None);
        };
        if !mode.has_esp() || self.encryptor.is_null() {
            return Ok(None);
        }
        let keys = keying::ObserverKeys::read(texts)
            .ok_or_else(|| site.error("has a key file that cannot be read"))?;
        let [a, b] = [W0, W1].map(|end| site.map.address(end));
        Ok(Some(Arc::new(StaticTunnels {
            keys,
            encryptor: self.encryptor.clone(),
            gateways: link_ends(site),
            port: PORT,
            sessions: [sent_in(NodeId::Gw1, a, b), sent_in(NodeId::Gw2, b, a)],
            networks: [Side::A, Side::B].map(|side| {
                let networks = site.map.networks_behind(side, site.links);
                networks
                    .iter()
                    .filter_map(|text| Network::parse(text))
                    .collect()
            }),
        })))
    }

    /// Returns the path of test frames; a station that replaces a gateway gets that gateway's keys.
    fn frame_path(&self, site: &Site<'_>, secrets: &Secrets) -> Result<FramePath> {
        let path = if self.encryptor.mode.bridges() {
            site.bridged_frame_path()
        } else {
            site.frame_path()
        };
        site.with_station_peer(path, |node, [local, remote]| {
            let Secrets::Static(keys) = secrets else {
                let reason = "agrees on keys, which a station in place of a gateway cannot do";
                return Err(site.error(reason));
            };
            Ok(StationPeer {
                keys: StationKeys::File(write_keys(node, keys)?),
                suite: self.encryptor.suite,
                local,
                remote,
                port: Some(PORT),
                lanes: self.encryptor.workers,
                tunnels: self.encryptor.tunnels,
            })
        })
    }
}

impl Adapter for Cipherbench {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        let lanes = if self.encryptor.mode.has_esp() {
            self.encryptor.workers
        } else {
            0
        };
        // IKE shares the port of ESP after its first messages.
        let is_ike = self.encryptor.keys.is_ike();
        let ports = (0..lanes).map(|lane| PORT + lane);
        let ports = ports.chain(is_ike.then_some(IKE_PORT));
        let mut dut = RunningDut {
            sealed_ports: ports
                .map(|port| SealedPort {
                    control: is_ike,
                    ..SealedPort::esp(port)
                })
                .collect(),
            control_ports: self.control_ports(site),
            ..RunningDut::default()
        };
        let up = self.bring_up(site, &mut dut);
        self.up_or_stopped(site, dut, up)
    }

    fn counters(&self, site: &Site<'_>, dut: &RunningDut) -> Result<BTreeMap<String, u64>> {
        if let Some(kmes) = self.kmes(site) {
            kmes.check_alive()?;
        }
        let mut counters = BTreeMap::new();
        for daemon in daemon::running(site, dut) {
            counters.extend(by_node(daemon.node.id(), read_counters(&daemon)?));
        }
        Ok(counters)
    }

    /// Its tunnels exist only in its processes: taking them down stops both gateways.
    fn act(&self, site: &Site<'_>, dut: &mut RunningDut, action: DutAction) -> Result<()> {
        match action {
            DutAction::Kill(id) => daemon::kill(site, dut, id),
            DutAction::Restart(id) => self.start_all(site, &[daemon::loaded(site, id)?], dut),
            DutAction::TakeDown => daemon::stop_all(site, dut),
            DutAction::SetUp => self.set_up(site, dut),
            DutAction::Rekey if self.encryptor.mode.has_esp() => self.rekey_all(site, dut),
            DutAction::Desync(kind) if self.encryptor.fault == Some(kind) => {
                let daemons = daemon::running(site, dut);
                let mut gw2 = daemons.iter().filter(|it| it.node.id() == NodeId::Gw2);
                gw2.try_for_each(|daemon| daemon.signal(FAULT))
            }
            other => Err(daemon::refused(site, other)),
        }
    }

    fn stop(&mut self, site: &Site<'_>, mut dut: RunningDut) -> Result<()> {
        // Stopping it removes its interface, and thus the routes into it.
        let stopped = daemon::stop_all(site, &mut dut);
        let released = self.release(site);
        // After the gateways, which use them.
        let kmes = self.kmes(site).map_or(Ok(()), |kmes| kmes.stop());
        self.kmes = None;
        let parted = if self.encryptor.mode.bridges() {
            site.part_stations()
        } else {
            Ok(())
        };
        let forgotten = site.forget_station_keys(&dut);
        stopped.and(released).and(kmes).and(parted).and(forgotten)
    }
}

/// Outer addresses of gw1 and gw2 at gw1's end of the cipher link; and those at gw2's end, if they
/// are others.
fn link_ends(site: &Site<'_>) -> Vec<[Ipv4Addr; 2]> {
    let gw2 = site.map.address(W1);
    // Without NAT both are the same address.
    let mut ends = [site.map.address(W0), site.map.seen_address(W0)]
        .map(|gw1| [gw1, gw2])
        .to_vec();
    ends.dedup();
    ends
}

/// Returns the facts of its ready line: `ready version=0.1.0 suite=aes-256-gcm …`.
fn facts(id: NodeId, stdout: &str) -> BTreeMap<String, String> {
    let line = stdout
        .lines()
        .find(|line| line.starts_with(READY))
        .unwrap_or_default();
    let pairs = line
        .split_ascii_whitespace()
        .filter_map(|word| word.split_once('='));
    by_node(id, pairs.map(|(key, value)| (key, value.to_owned()))).collect()
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
