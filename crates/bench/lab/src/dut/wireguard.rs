//! WireGuard between the gateways: the kernel's, or a program in user space on each.
//!
//! 1. `wg` generates a key pair for each gateway, for this start.
//! 2. The kernel or the program creates the interface; the program is polled until it answers.
//! 3. `wg setconf` configures it over its standard input, so that no file has the key, and
//!    `wg showconf` must print the same.
//! 4. MTU and queue are set, and the networks beyond are routed into it.
//!
//! Two gateways may have interfaces and sockets of the same names, as each station has a private
//! `/run`.
//!
//! If one gateway is loaded alone, the station's generator and analyser are its peer: each gets the
//! keys of the other gateway, and makes separate handshakes.

mod conf;
mod implementation;
mod tool;

use super::keys::write_file;
use super::site::{all, by_node, on_each};
use super::{Adapter, Daemon, Site, daemon};
use crate::on_node::{ip, run_tool};
use crate::sync::Deadline;
use crate::topology::cipher_ends;
use conf::{Conf, KeyPair};
use implementation::Implementation;
use plan::{Form, LinkForm, WireGuardProgram};
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;
use testbed::protocol::{Program, SealedPort};
use testbed::{DutAction, FramePath, Node, NodeId, Result, RunningDut, StationKeys, StationPeer};
use tool::{TOOL_LIMIT, wg, wg_with};

/// Its interface, on either gateway.
const INTERFACE: &str = "wg0";

/// Control socket of a program in user space, the same for all.
const SOCKET: &str = "/var/run/wireguard/wg0.sock";

/// The keys of a station in a gateway's place.
const STATION_FILE: &str = "station.conf";

/// The port in WireGuard's documentation.
const PORT: u16 = 51820;

/// Queue of the interface in packets, as in `bench/peers.py`: with a TUN's default of 500, the
/// queue would lose small frames, not the encryptor.
const QUEUE_PACKETS: u32 = 5000;

/// How long a program may take until it answers.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// Polling interval while it does not answer.
const READY_INTERVAL: Duration = Duration::from_millis(10);

/// A WireGuard interface on each gateway.
pub(super) struct WireGuard {
    implementation: Implementation,
    /// By gateway.
    keys: BTreeMap<NodeId, KeyPair>,
}

/// The result of a start on a gateway.
struct Up {
    process: Option<u64>,
    facts: BTreeMap<String, String>,
}

impl Up {
    fn add_to(self, dut: &mut RunningDut, gateway: NodeId) {
        dut.processes
            .extend(self.process.map(|process| (gateway, process)));
        dut.facts.extend(self.facts);
    }
}

impl WireGuard {
    pub(super) fn new(program: WireGuardProgram) -> Self {
        Self {
            implementation: Implementation::of(program),
            keys: BTreeMap::new(),
        }
    }

    /// Starts it on a gateway; nothing of it is left there when that fails.
    fn start_on(&self, site: &Site<'_>, node: &dyn Node) -> Result<Up> {
        // First, as a missing program is explained before anything is made.
        let mut facts = self.implementation.facts(site, node)?;
        facts.insert("txqueuelen".to_owned(), QUEUE_PACKETS.to_string());
        let process = self.make_interface(site, node)?;
        let daemon = process.map(|process| Daemon {
            dut: site.dut,
            node,
            process,
        });
        let set_up = await_answer(site, node, daemon.as_ref())
            .and_then(|()| self.configure(site, node))
            .and_then(|()| {
                let queue = format!("link set {INTERFACE} txqueuelen {QUEUE_PACKETS}\n");
                site.set_up(node, INTERFACE, queue)
            });
        if let Err(error) = set_up {
            let error = match &daemon {
                Some(daemon) => daemon.died_or(error),
                None => error,
            };
            let _ = self.take_down(node, daemon.as_slice());
            return Err(error);
        }
        let facts = by_node(node.id(), facts).collect();
        Ok(Up { process, facts })
    }

    /// Creates the interface in the kernel, or starts the program that does; returns that process.
    fn make_interface(&self, site: &Site<'_>, node: &dyn Node) -> Result<Option<u64>> {
        let Some(argv) = self.implementation.argv(site, node, INTERFACE)? else {
            let add = format!("link add {INTERFACE} type wireguard\n");
            let added = ip(node, add).map(|()| None);
            return added.map_err(|error| self.implementation.explain(site.dut, error));
        };
        let program = site.command(node, argv);
        let started = node.start(program, Duration::ZERO).map(Some);
        started.map_err(|error| self.implementation.explain(site.dut, error))
    }

    /// Removes it from a gateway, dead or alive; returns an error if it was dead.
    fn take_down(&self, node: &dyn Node, daemons: &[Daemon<'_>]) -> Result<()> {
        // The routes go with the interface, and a program's interface with the program.
        if self.implementation.is_kernel() {
            return ip(node, format!("link del {INTERFACE}\n"));
        }
        // All are stopped; the first error counts.
        let stopped = daemons.iter().map(Daemon::stop).fold(Ok(()), Result::and);
        stopped.and(remove_socket(node))
    }

    /// Configures an interface that answers, and checks that it took over all settings.
    fn configure(&self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        let networks = site.networks_beyond(node.id());
        let conf = self.conf(site, node, &networks)?;
        wg_with(
            site.dut,
            node,
            &["setconf", INTERFACE, "/dev/stdin"],
            conf.text(),
        )?;
        let shown = wg(site.dut, node, &["showconf", INTERFACE])?;
        conf.compare(&shown).map_err(|difference| {
            let node = node.name();
            site.error(format!(
                "is not configured as requested on {node}: {difference}"
            ))
        })
    }

    /// A node's configuration, for those networks behind its peer.
    fn conf<'c>(
        &'c self,
        site: &Site<'_>,
        node: &dyn Node,
        networks: &'c [String],
    ) -> Result<Conf<'c>> {
        let (_, peer) = cipher_ends(node.id());
        let (Some(own_keys), Some(peer_keys)) =
            (self.keys.get(&node.id()), self.keys.get(&peer.node))
        else {
            return Err(site.error(format!("got no keys for {} and its peer", node.name())));
        };
        Ok(Conf {
            keys: own_keys,
            port: PORT,
            peer_key: peer_keys.public(),
            endpoint: (site.map.seen_address(peer), PORT).into(),
            networks,
        })
    }

    /// Returns the path of test frames; a station in a gateway's place gets that gateway's keys.
    fn frame_path(&self, site: &Site<'_>) -> Result<FramePath> {
        site.with_station_peer(site.frame_path(), |node, [local, remote]| {
            let networks = site.networks_beyond(node.id());
            let text = self.conf(site, node, &networks)?.text();
            Ok(StationPeer {
                keys: StationKeys::WireGuard(write_file(node, STATION_FILE, &text, true)?),
                suite: plan::WireGuard::CARRIER.suite,
                local,
                remote,
                port: Some(PORT),
                lanes: 1,
                tunnels: 1,
            })
        })
    }

    /// Removes the peer and its session keys from a gateway's configuration.
    fn remove_peer(&self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        let (_, peer) = cipher_ends(node.id());
        let Some(keys) = self.keys.get(&peer.node) else {
            return Err(site.error("was never brought up"));
        };
        let words = ["set", INTERFACE, "peer", keys.public(), "remove"];
        wg(site.dut, node, &words)?;
        let left = wg(site.dut, node, &["show", INTERFACE, "peers"])?;
        if left.trim().is_empty() {
            return Ok(());
        }
        Err(site.error(format!("did not remove its peer on {}", node.name())))
    }
}

impl Adapter for WireGuard {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        for node in &site.gateways {
            // For both gateways even if one is loaded: the station in the other's place uses its
            // pair.
            let keys = KeyPair::generate(site.dut, *node)?;
            self.keys.insert(node.id(), keys);
        }
        let mut dut = RunningDut {
            sealed_ports: vec![SealedPort {
                port: PORT,
                form: LinkForm::Sealed(Form::WireGuard),
                control: true,
            }],
            ..RunningDut::default()
        };
        let started = on_each(site.loaded(), |node| self.start_on(site, node));
        let started = started.into_iter().zip(site.loaded());
        // Every process that has started is listed, so that it is stopped if another one failed.
        let up = all(started
            .map(|(started, node)| started.map(|up| up.add_to(&mut dut, node.id())))
            .collect());
        // The file with a station's keys is written last: nothing fails after it.
        let up = up.and_then(|()| {
            dut.frame_path = Some(self.frame_path(site)?);
            Ok(())
        });
        self.up_or_stopped(site, dut, up)
    }

    /// The interface's counters. Programs differ in whether they include WireGuard's overhead, so
    /// these are not bytes in clear.
    fn counters(&self, site: &Site<'_>, dut: &RunningDut) -> Result<BTreeMap<String, u64>> {
        let mut counters = BTreeMap::new();
        let daemons = daemon::running(site, dut);
        for &node in site.loaded() {
            let daemon = daemons.iter().find(|it| it.node.id() == node.id());
            if daemon.is_none() && !self.implementation.is_kernel() {
                // Killed, and not restarted yet.
                continue;
            }
            let shown = wg(site.dut, node, &["show", INTERFACE, "transfer"]).and_then(|shown| {
                let unknown = || format!("reports counters that are of no one peer: `{shown}`");
                transfer(&shown).ok_or_else(|| site.error(unknown()))
            });
            let [received, sent] = match (shown, daemon) {
                (Ok(transfer), None) => transfer,
                (Ok(transfer), Some(daemon)) => {
                    daemon.check_alive()?;
                    transfer
                }
                (Err(error), None) => return Err(error),
                (Err(error), Some(daemon)) => return Err(daemon.died_or(error)),
            };
            // Totals of the peer, which begin again at 0 when it is configured anew.
            let counted = [("transfer_rx_bytes", received), ("transfer_tx_bytes", sent)];
            counters.extend(by_node(node.id(), counted));
        }
        Ok(counters)
    }

    /// Its tunnel is the configured peer; once it is configured again, the first packet triggers a
    /// handshake. It rekeys by itself, every two minutes.
    fn act(&self, site: &Site<'_>, dut: &mut RunningDut, action: DutAction) -> Result<()> {
        match action {
            DutAction::Kill(id) => daemon::kill(site, dut, id),
            DutAction::Restart(id) if !self.implementation.is_kernel() => {
                let node = daemon::loaded(site, id)?;
                remove_socket(node)?;
                self.start_on(site, node)?.add_to(dut, id);
                Ok(())
            }
            DutAction::TakeDown => all(on_each(site.loaded(), |node| self.remove_peer(site, node))),
            DutAction::SetUp => all(on_each(site.loaded(), |node| self.configure(site, node))),
            other => Err(daemon::refused(site, other)),
        }
    }

    fn stop(&mut self, site: &Site<'_>, mut dut: RunningDut) -> Result<()> {
        let running: BTreeMap<_, _> = site
            .loaded()
            .iter()
            .map(|node| (node.id(), daemon::taken(site, &mut dut, node.id())))
            .collect();
        let down = all(on_each(site.loaded(), |node| {
            self.take_down(node, &running[&node.id()])
        }));
        down.and(site.forget_station_keys(&dut))
    }
}

/// Removes the socket, which a killed program leaves.
fn remove_socket(node: &dyn Node) -> Result<()> {
    run_tool(node, Program::new(["rm", "-f", SOCKET]))
}

/// Waits until the interface answers; the kernel's answers immediately.
fn await_answer(site: &Site<'_>, node: &dyn Node, daemon: Option<&Daemon<'_>>) -> Result<()> {
    let deadline = Deadline::after(READY_LIMIT);
    loop {
        // `wg` removes a socket that does not listen yet: it mistakes it for a dead program's.
        let asked_too_early = daemon.is_some() && !listens(node)?;
        let answer = if asked_too_early {
            Err(site.error(format!("does not listen on {}", node.name())))
        } else {
            wg(site.dut, node, &["show", INTERFACE])
        };
        let (Err(_), Some(daemon)) = (&answer, daemon) else {
            return answer.map(drop);
        };
        daemon.check_alive()?;
        if deadline.is_over() {
            return answer.map(drop);
        }
        thread::sleep(READY_INTERVAL);
    }
}

/// Whether a program listens at the socket that `wg` uses: by `__SO_ACCEPTCON` in the kernel's
/// list.
fn listens(node: &dyn Node) -> Result<bool> {
    // Some programs write two slashes.
    let pattern = format!(" 00010000 .*/wireguard/*{INTERFACE}\\.sock$");
    let program = Program::new(["grep", "-q", pattern.as_str(), "/proc/net/unix"]);
    Ok(node.run(program, TOOL_LIMIT)?.code == Some(0))
}

/// Bytes received and sent, from `wg show … transfer`: key, received and sent of the only peer.
fn transfer(shown: &str) -> Option<[u64; 2]> {
    let mut words = shown.split_ascii_whitespace().skip(1).map(str::parse);
    match (words.next()?, words.next()?, words.next()) {
        (Ok(received), Ok(sent), None) => Some([received, sent]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transfer_is_what_stands_behind_the_peers_key() {
        assert_eq!(transfer("abc=\t1480\t92\n"), Some([1480, 92]));
        for unknown in [
            "",
            "abc=\t1480\n",
            "abc=\t1\t2\ndef=\t3\t4\n",
            "abc=\tx\t2\n",
        ] {
            assert_eq!(transfer(unknown), None, "{unknown}");
        }
    }
}
