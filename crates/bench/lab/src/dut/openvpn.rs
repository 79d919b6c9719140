//! OpenVPN between the gateways: one process on each, UDP, TLS with certificates made for this
//! start.
//!
//! 1. `openssl` generates a key and a certificate on each gateway; the key stays there. Each
//!    gateway trusts only the other's fingerprint.
//! 2. gw2, the TLS server, is started until its socket is bound, then gw1: so gw1's first packet
//!    finds a listener and is not retransmitted seconds later.
//! 3. Each one's interface is set up and the networks beyond are routed into it. It needs no
//!    address: it carries the stations' traffic.
//! 4. Both report the negotiated cipher, which must be the requested one.
//!
//! What this deliberately does not do: offload to the kernel (`ovpn-dco`), which is another data
//! path under the same name; and load one gateway alone, since no station speaks the handshake.

mod conf;
mod identity;
mod log;

use super::daemon::STOP_GRACE;
use super::keys::write_file;
use super::site::{by_node, on_each};
use super::{Adapter, Daemon, Site, daemon};
use crate::topology::cipher_ends;
use conf::{Conf, INTERFACE, PORT, Role};
use identity::Identity;
use plan::{Form, LinkForm};
use std::collections::BTreeMap;
use std::time::Duration;
use testbed::protocol::{Request, Response, SealedPort, millis};
use testbed::{DutAction, Node, NodeId, Result, RunningDut};
use wire::Suite;

/// The program.
const PROGRAM: &str = "openvpn";

/// How long it may take until its interface is there and its socket is bound.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How long the two may take until they have a data channel: it checks its state once a second and
/// retransmits after two.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);

/// An OpenVPN process on each gateway.
pub(super) struct OpenVpn {
    suite: Suite,
    /// Paths of the gateways' configurations.
    confs: BTreeMap<NodeId, String>,
}

impl OpenVpn {
    pub(super) const fn new(tunnel: plan::OpenVpn) -> Self {
        Self {
            suite: tunnel.suite,
            confs: BTreeMap::new(),
        }
    }

    /// Starts both, one after the other; `dut` lists all that came up even if one failed.
    fn bring_up(&mut self, site: &Site<'_>, dut: &mut RunningDut) -> Result<()> {
        let cipher = self.cipher(site)?;
        let made = on_each(&site.gateways, |node| Identity::make(site.dut, node));
        let made: Vec<_> = made.into_iter().collect::<Result<_, _>>()?;
        let [first, second] = &made[..] else {
            unreachable!("one for each gateway");
        };
        let [gw1, gw2] = site.gateways;
        for (node, role, identities) in [
            (gw2, Role::Server, [second, first]),
            (gw1, Role::Client, [first, second]),
        ] {
            let conf = write_conf(site, node, role, cipher, identities)?;
            self.confs.insert(node.id(), conf);
            self.start_on(site, node, dut)?;
        }
        // Both run by now: a handshake needs both.
        for daemon in daemon::running(site, dut) {
            let suite = self.agreed(&daemon, cipher)?;
            let suite = [("suite", suite.to_string())];
            dut.facts.extend(by_node(daemon.node.id(), suite));
        }
        Ok(())
    }

    /// Returns OpenVPN's name of the suite.
    fn cipher(&self, site: &Site<'_>) -> Result<&'static str> {
        conf::cipher(self.suite).ok_or_else(|| {
            let (suite, known) = (self.suite, conf::suites().map(Suite::name).join(", "));
            site.error(format!(
                "has no data channel with {suite}\nhelp: it has {known}"
            ))
        })
    }

    /// Starts it on a gateway with a written configuration and sets up its interface.
    fn start_on<'a>(
        &self,
        site: &Site<'a>,
        node: &'a dyn Node,
        dut: &mut RunningDut,
    ) -> Result<Daemon<'a>> {
        let Some(conf) = self.confs.get(&node.id()) else {
            return Err(site.error(format!("has no configuration on {}", node.name())));
        };
        let argv = [site.program(node, PROGRAM), "--config", conf];
        let program = site.command(node, argv.map(str::to_owned).to_vec());
        let (daemon, said) = Daemon::start(site.dut, node, program, log::BOUND, START_LIMIT)
            .map_err(log::explain)?;
        // Listed before the next step can fail, so that it is stopped then.
        dut.processes.push((node.id(), daemon.process));
        dut.facts.extend(log::facts(&said, node.id(), PROGRAM));
        let up = site.set_up(node, INTERFACE, String::new());
        up.map_err(|error| daemon.died_or(error))?;
        Ok(daemon)
    }

    /// Waits until a gateway has a data channel; returns its suite, which must be the requested
    /// one.
    fn agreed(&self, daemon: &Daemon<'_>, cipher: &str) -> Result<Suite> {
        let line = await_line(daemon, log::DATA_CHANNEL)?;
        match log::agreed_cipher(&line) {
            Some(agreed) if agreed == cipher => Ok(self.suite),
            agreed => {
                let (node, agreed) = (daemon.gateway(), agreed.unwrap_or("an unknown cipher"));
                let reason = format!("negotiated {agreed} on {node} instead of {cipher}");
                Err(daemon.error(reason))
            }
        }
    }
}

impl Adapter for OpenVpn {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        let mut dut = RunningDut {
            sealed_ports: vec![SealedPort {
                port: PORT,
                form: LinkForm::Sealed(Form::OpenVpn),
                control: true,
            }],
            frame_path: Some(site.frame_path()),
            ..RunningDut::default()
        };
        let up = self.bring_up(site, &mut dut);
        self.up_or_stopped(site, dut, up)
    }

    /// Counts clear bytes as the kernel passes packets to and from the program: the same bytes as
    /// in the program's statistics, which are updated only once a second. Also counts the packets
    /// that the kernel could not pass on.
    fn counters(&self, site: &Site<'_>, dut: &RunningDut) -> Result<BTreeMap<String, u64>> {
        let mut counters = BTreeMap::new();
        for daemon in daemon::running(site, dut) {
            daemon.check_alive()?;
            let Some(found) = daemon.node.interface_counters()?.remove(INTERFACE) else {
                daemon.check_dying()?;
                let gateway = daemon.gateway();
                let reason = format!("has lost its interface `{INTERFACE}` on {gateway}");
                return Err(daemon.error(reason));
            };
            // The kernel transmits into the interface; the program receives it.
            let counted = [
                ("clear_rx_bytes".to_owned(), found.tx_bytes),
                ("clear_tx_bytes".to_owned(), found.rx_bytes),
                (format!("{INTERFACE}_tx_dropped"), found.tx_dropped),
            ];
            counters.extend(by_node(daemon.node.id(), counted));
        }
        Ok(counters)
    }

    /// The tunnel is the client's process; the server waits for it. It rekeys by itself, every
    /// hour.
    fn act(&self, site: &Site<'_>, dut: &mut RunningDut, action: DutAction) -> Result<()> {
        let client = site.gateways[0];
        match action {
            DutAction::Kill(id) => daemon::kill(site, dut, id),
            DutAction::Restart(id) => self
                .start_on(site, daemon::loaded(site, id)?, dut)
                .map(drop),
            DutAction::TakeDown => {
                let stopped = daemon::taken(site, dut, client.id());
                stopped.iter().try_for_each(Daemon::stop)
            }
            DutAction::SetUp => {
                let daemon = self.start_on(site, client, dut)?;
                self.agreed(&daemon, self.cipher(site)?).map(drop)
            }
            other => Err(daemon::refused(site, other)),
        }
    }

    fn stop(&mut self, site: &Site<'_>, mut dut: RunningDut) -> Result<()> {
        // Its interface goes with the process, and the routes with the interface.
        daemon::stop_all(site, &mut dut)
    }
}

/// Writes a gateway's configuration with its identity and the peer's; returns the path.
fn write_conf(
    site: &Site<'_>,
    node: &dyn Node,
    role: Role,
    cipher: &str,
    [own, peer]: [&Identity; 2],
) -> Result<String> {
    let (local, remote) = cipher_ends(node.id());
    let conf = Conf {
        role,
        local: site.map.address(local),
        remote: site.map.seen_address(remote),
        cipher,
        mtu: site.links.mtu,
        own,
        peer,
    };
    // Not a secret: it names the file that has the key.
    write_file(
        node,
        &format!("{}.ovpn", node.name()),
        &conf.to_string(),
        false,
    )
}

/// Waits until it prints a line that begins with `prefix`. Stops it if it does not in time, to
/// quote the end of its output.
fn await_line(daemon: &Daemon<'_>, prefix: &str) -> Result<String> {
    let node = daemon.node;
    let request = Request::AwaitLine {
        process: daemon.process,
        prefix: prefix.to_owned(),
        limit_ms: millis(CONNECT_LIMIT),
    };
    match node.call(request)? {
        Response::Line(Some(line)) => return Ok(line),
        Response::Line(None) => daemon.check_dying()?,
        other => return Err(node.unexpected(&other)),
    }
    let ended = node.stop(daemon.process, STOP_GRACE)?;
    let (node, limit, said) = (
        daemon.gateway(),
        CONNECT_LIMIT.as_secs(),
        ended.last_words(),
    );
    Err(daemon.error(format!(
        "had no data channel on {node} within {limit} s{said}"
    )))
}
