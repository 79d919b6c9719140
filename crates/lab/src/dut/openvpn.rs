//! OpenVPN between the gateways: one process on each, UDP, TLS with certificates made for this one
//! start.
//!
//! 1. `openssl` makes a key and a certificate on each gateway; the key stays there. Each is told the
//!    other's fingerprint, and trusts nothing else.
//! 2. gw2, the TLS server, is started until its socket is bound, then gw1: so gw1's first packet finds
//!    somebody who listens, and is not sent again seconds later.
//! 3. Each one's interface is set up and the networks beyond are routed into it. It needs no address:
//!    what it carries is the stations'.
//! 4. Both say which cipher they agreed on; it must be the one that was asked for.
//!
//! What this deliberately does not do: offload to the kernel (`ovpn-dco`), which is another data path
//! under the same name; and load one gateway alone, for no station speaks the handshake.

mod conf;
mod identity;
mod log;

use super::cipherbench::cipher_ends;
use super::keys::write_file;
use super::site::{all, on_each};
use super::{Adapter, Daemon, STOP_GRACE, Site, dut_error};
use crate::on_node::ip;
use crate::protocol::{Request, Response, SealedPort};
use crate::topology::Side;
use crate::{LabError, Node, NodeId, RunningDut};
use campaign::plan::Form;
use conf::{Conf, Role};
use identity::Identity;
use log::Log;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use wire::Suite;

/// The program.
const PROGRAM: &str = "openvpn";

/// The port that is registered for it (IANA).
const PORT: u16 = 1194;

/// Its interface, on either gateway.
const INTERFACE: &str = "ovpn0";

/// Packets that wait for it, as many as for our own encryptor: a TUN's default of 500 would be what
/// loses small frames, not the encryptor.
const QUEUE_PACKETS: u32 = 5000;

/// How long it may take until its interface is there and its socket is bound.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How long the two may take until they have a data channel: it looks at its state once a second, and
/// sends again what was lost after two.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);

/// An OpenVPN process on each gateway.
pub(super) struct OpenVpn {
    suite: Suite,
}

impl OpenVpn {
    pub(super) const fn new(tunnel: campaign::plan::OpenVpn) -> Self {
        Self {
            suite: tunnel.suite,
        }
    }

    /// Brings both up, one after the other; what came up is in `dut` also when the rest did not.
    fn bring_up(&self, site: &Site<'_>, dut: &mut RunningDut) -> Result<(), LabError> {
        let Some(cipher) = conf::cipher(self.suite) else {
            let reason = format!(
                "has no data channel with {}\nhelp: it has {}",
                self.suite,
                conf::suites().map(Suite::name).join(", ")
            );
            return Err(dut_error(site.dut, reason));
        };
        let made = on_each(&site.gateways, |node| Identity::make(site.dut, node));
        let made: Vec<_> = made.into_iter().collect::<Result<_, _>>()?;
        let [first, second] = &made[..] else {
            unreachable!("one for each gateway");
        };
        let [gw1, gw2] = site.gateways;
        start_on(site, gw2, Role::Server, cipher, [second, first], dut)?;
        start_on(site, gw1, Role::Client, cipher, [first, second], dut)?;
        for daemon in daemons(site, dut) {
            let suite = self.agreed(&daemon, cipher)?;
            let key = format!("{}/suite", daemon.node.id().name());
            dut.facts.insert(key, suite.to_string());
        }
        Ok(())
    }

    /// Waits until a gateway has a data channel; its suite, which is the one asked for.
    fn agreed(&self, daemon: &Daemon<'_>, cipher: &str) -> Result<Suite, LabError> {
        let line = await_line(daemon, log::DATA_CHANNEL)?;
        match log::agreed_cipher(&line) {
            Some(agreed) if agreed == cipher => Ok(self.suite),
            agreed => {
                let (node, agreed) = (daemon.node.id().name(), agreed.unwrap_or("none it tells"));
                let reason = format!("agreed on {agreed} on {node}, and {cipher} was asked for");
                Err(dut_error(daemon.dut, reason))
            }
        }
    }
}

impl Adapter for OpenVpn {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut, LabError> {
        let mut dut = RunningDut {
            sealed_ports: vec![SealedPort {
                port: PORT,
                form: Form::OpenVpn,
                control: true,
            }],
            frame_path: Some(site.frame_path()),
            ..RunningDut::default()
        };
        match self.bring_up(site, &mut dut) {
            Ok(()) => Ok(dut),
            Err(error) => {
                // What came up, if anything; why the rest did not says more than how this ends.
                let _ = self.stop(site, dut);
                Err(error)
            }
        }
    }

    /// What it took in and put out in clear, as the kernel counts it when it hands packets to the
    /// program and takes them from it: the same bytes as in the program's own statistics, which it
    /// brings up to date once a second only. Beside them, what the kernel could not hand over.
    fn counters(
        &self,
        site: &Site<'_>,
        dut: &RunningDut,
    ) -> Result<BTreeMap<String, u64>, LabError> {
        let mut counters = BTreeMap::new();
        for daemon in daemons(site, dut) {
            daemon.check_alive()?;
            let found = match daemon.node.call(Request::InterfaceCounters)? {
                Response::InterfaceCounters(found) => found,
                other => return Err(daemon.node.unexpected(&other)),
            };
            let gateway = daemon.node.id().name();
            let Some(found) = found.get(INTERFACE) else {
                daemon.check_dying()?;
                let reason = format!("has lost its interface `{INTERFACE}` on {gateway}");
                return Err(dut_error(site.dut, reason));
            };
            // The kernel sends into the interface what the program receives.
            counters.extend([
                (format!("{gateway}/clear_rx_bytes"), found.tx_bytes),
                (format!("{gateway}/clear_tx_bytes"), found.rx_bytes),
                (
                    format!("{gateway}/{INTERFACE}_tx_dropped"),
                    found.tx_dropped,
                ),
            ]);
        }
        Ok(counters)
    }

    fn stop(&mut self, site: &Site<'_>, dut: RunningDut) -> Result<(), LabError> {
        let daemons = daemons(site, &dut);
        // Its interface goes with it, and the routes with the interface.
        all(on_each(site.loaded(), |node| {
            let here = daemons
                .iter()
                .filter(|daemon| daemon.node.id() == node.id());
            here.map(Daemon::stop).fold(Ok(()), Result::and)
        }))
    }
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

/// Starts it on a gateway, which has the first of the identities, and sets its interface up.
fn start_on(
    site: &Site<'_>,
    node: &dyn Node,
    role: Role,
    cipher: &str,
    [own, peer]: [&Identity; 2],
    dut: &mut RunningDut,
) -> Result<(), LabError> {
    let (local, remote) = cipher_ends(node.id());
    let conf = Conf {
        role,
        interface: INTERFACE,
        local: site.map.address(local),
        remote: site.map.address(remote),
        port: PORT,
        cipher,
        mtu: site.links.mtu,
        queue_packets: QUEUE_PACKETS,
        certificate: &own.certificate,
        key: &own.key,
        peer_fingerprint: &peer.fingerprint,
    };
    let gateway = node.id().name();
    let path = write_file(node, &format!("{gateway}.ovpn"), &conf.to_string(), false)?;
    let argv = [PROGRAM, "--config", &path].map(str::to_owned).to_vec();
    let (daemon, said) =
        Daemon::start(site.dut, node, argv, log::BOUND, START_LIMIT).map_err(log::explain)?;
    dut.processes.push((node.id(), daemon.process));
    dut.facts.extend(Log(&said).facts(gateway, PROGRAM));
    // That it has died says more than what did not work then.
    set_up(site, node).map_err(|error| daemon.check_dying().err().unwrap_or(error))
}

/// Sets a gateway's interface up and routes the networks beyond into it.
fn set_up(site: &Site<'_>, node: &dyn Node) -> Result<(), LabError> {
    let mtu = site.links.mtu;
    let mut batch = format!("link set {INTERFACE} mtu {mtu} up\n");
    let (_, peer) = cipher_ends(node.id());
    for network in site.map.networks_behind(Side::of(peer), site.links) {
        // Writing to a string cannot fail.
        let _ = writeln!(batch, "route replace {network} dev {INTERFACE}");
    }
    ip(node, batch)
}

/// Waits until it prints a line that begins so. One that does not in time is stopped, for its last
/// words.
fn await_line(daemon: &Daemon<'_>, prefix: &str) -> Result<String, LabError> {
    let node = daemon.node;
    let request = Request::AwaitLine {
        process: daemon.process,
        prefix: prefix.to_owned(),
        limit_ms: u64::try_from(CONNECT_LIMIT.as_millis()).unwrap_or(u64::MAX),
    };
    match node.call(request)? {
        Response::Line(Some(line)) => return Ok(line),
        Response::Line(None) => daemon.check_dying()?,
        other => return Err(node.unexpected(&other)),
    }
    let ended = node.stop(daemon.process, STOP_GRACE)?;
    let reason = format!(
        "had no data channel on {} within {} s{}",
        node.id().name(),
        CONNECT_LIMIT.as_secs(),
        ended.last_words()
    );
    Err(dut_error(daemon.dut, reason))
}
