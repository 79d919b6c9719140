//! WireGuard between the gateways: the kernel's, or a program in user space on each.
//!
//! 1. `wg` makes a pair of keys for each gateway, for this one start.
//! 2. The kernel makes the interface, or the program does, which is asked until it answers.
//! 3. `wg setconf` configures it, and what `wg showconf` gives back must be the same.
//! 4. MTU and queue are set, and the networks beyond are routed into it.
//!
//! Two gateways may have interfaces and sockets of the same names: each station has a `/run` of its
//! own.
//!
//! What this deliberately does not do: one gateway alone is never loaded, for no station speaks the
//! handshake.

mod conf;
mod implementation;

use super::keys::write_file;
use super::site::{all, on_each};
use super::{Adapter, Daemon, Site, dut_error};
use crate::on_node::{ip, run_tool};
use crate::protocol::{Program, Request, Response, SealedPort};
use crate::sync::Deadline;
use crate::topology::{Side, W0, W1};
use crate::{LabError, Node, NodeId, RunningDut};
use campaign::plan::{Form, WireGuardProgram};
use conf::{Conf, KeyPair, Peer};
use implementation::Implementation;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

/// Its interface, on either gateway.
const INTERFACE: &str = "wg0";

/// Where a program in user space is spoken to; all of them have it there.
const SOCKET: &str = "/var/run/wireguard/wg0.sock";

/// The port that WireGuard's own documents take.
const PORT: u16 = 51820;

/// Packets that may wait for the interface, as in our own comparisons (`bench/peers.py`): a TUN's default
/// of 500 would be what loses small frames, not the encryptor.
const QUEUE_PACKETS: u32 = 5000;

/// How long a program may take until it answers.
const READY_LIMIT: Duration = Duration::from_secs(10);

/// From one question whether it answers to the next.
const READY_INTERVAL: Duration = Duration::from_millis(10);

/// How long `wg` may take, and a program to tell its version.
const TOOL_LIMIT: Duration = Duration::from_secs(5);

/// A WireGuard interface on each gateway.
pub(super) struct WireGuard {
    implementation: Implementation,
}

/// What came up on a gateway.
struct Up {
    id: NodeId,
    process: Option<u64>,
    facts: BTreeMap<String, String>,
}

impl WireGuard {
    pub(super) fn new(program: WireGuardProgram) -> Self {
        Self {
            implementation: Implementation::of(program),
        }
    }

    /// Starts it on a gateway; nothing of it is left there when that fails.
    fn start_on(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
        keys: &BTreeMap<NodeId, KeyPair>,
    ) -> Result<Up, LabError> {
        let mut facts = self.implementation.facts(site.dut, node)?;
        facts.insert("txqueuelen".to_owned(), QUEUE_PACKETS.to_string());
        let process = self.make_interface(site, node)?;
        let daemon = process.map(|process| daemon(site, node, process));
        let set_up =
            await_answer(site, node, daemon.as_ref()).and_then(|()| set_up(site, node, keys));
        if let Err(error) = set_up {
            // That it has died says more than what did not work then.
            let died = daemon.and_then(|daemon| daemon.check_dying().err());
            let _ = self.take_down(site, node, process);
            return Err(died.unwrap_or(error));
        }
        let gateway = node.id().name();
        let facts = facts
            .into_iter()
            .map(|(name, value)| (format!("{gateway}/{name}"), value));
        Ok(Up {
            id: node.id(),
            process,
            facts: facts.collect(),
        })
    }

    /// Has the kernel make the interface, or starts the program that does; its process then.
    fn make_interface(&self, site: &Site<'_>, node: &dyn Node) -> Result<Option<u64>, LabError> {
        let Some(argv) = self.implementation.argv(INTERFACE) else {
            let add = format!("link add {INTERFACE} type wireguard\n");
            return match ip(node, add) {
                Ok(()) => Ok(None),
                Err(error) => Err(self.implementation.explain(site.dut, error)),
            };
        };
        let request = Request::Start {
            program: Program::new(argv),
            limit_ms: 0,
        };
        match node.call(request) {
            Ok(Response::Started { process, .. }) => Ok(Some(process)),
            Ok(other) => Err(node.unexpected(&other)),
            Err(error) => Err(self.implementation.explain(site.dut, error)),
        }
    }

    /// Removes it from a gateway, dead or alive; an error when it was dead.
    fn take_down(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
        process: Option<u64>,
    ) -> Result<(), LabError> {
        // The routes go with the interface, and a program's interface with the program.
        let Some(process) = process else {
            return ip(node, format!("link del {INTERFACE}\n"));
        };
        let stopped = daemon(site, node, process).stop();
        // One that was killed leaves its socket.
        let removed = run_tool(node, Program::new(["rm", "-f", SOCKET]));
        stopped.and(removed)
    }
}

impl Adapter for WireGuard {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut, LabError> {
        let mut keys = BTreeMap::new();
        for node in site.loaded() {
            keys.insert(node.id(), KeyPair::generate(site.dut, *node)?);
        }
        let mut dut = RunningDut {
            sealed_ports: vec![SealedPort {
                port: PORT,
                form: Form::WireGuard,
                control: true,
            }],
            frame_path: Some(site.frame_path()),
            ..RunningDut::default()
        };
        let (mut up, mut failure) = (Vec::new(), None);
        for result in on_each(site.loaded(), |node| self.start_on(site, node, &keys)) {
            match result {
                Ok(gateway) => up.push(gateway),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if let Some(error) = failure {
            for Up { id, process, .. } in up {
                if let Some(node) = site.gateway(id) {
                    // Why the other one did not come up says more than how this one ends.
                    let _ = self.take_down(site, node, process);
                }
            }
            return Err(error);
        }
        for Up { id, process, facts } in up {
            dut.processes.extend(process.map(|process| (id, process)));
            dut.facts.extend(facts);
        }
        Ok(dut)
    }

    /// What the interface counts, each program in its own way: with or without what WireGuard adds. So not
    /// the same as bytes in clear.
    fn counters(
        &self,
        site: &Site<'_>,
        dut: &RunningDut,
    ) -> Result<BTreeMap<String, u64>, LabError> {
        let mut counters = BTreeMap::new();
        for &node in site.loaded() {
            let process = process_on(dut, node.id());
            let shown = wg(site.dut, node, &["show", INTERFACE, "transfer"]).and_then(|shown| {
                let unknown = || format!("tells counters that are of no one peer: `{shown}`");
                transfer(&shown).ok_or_else(|| dut_error(site.dut, unknown()))
            });
            let [received, sent] = match (shown, process) {
                (Ok(transfer), None) => transfer,
                (Ok(transfer), Some(process)) => {
                    daemon(site, node, process).check_alive()?;
                    transfer
                }
                (Err(error), process) => {
                    process.map_or(Ok(()), |process| daemon(site, node, process).check_dying())?;
                    return Err(error);
                }
            };
            let gateway = node.id().name();
            counters.insert(format!("{gateway}/transfer_rx_bytes"), received);
            counters.insert(format!("{gateway}/transfer_tx_bytes"), sent);
        }
        Ok(counters)
    }

    fn stop(&mut self, site: &Site<'_>, dut: RunningDut) -> Result<(), LabError> {
        all(on_each(site.loaded(), |node| {
            self.take_down(site, node, process_on(&dut, node.id()))
        }))
    }
}

/// Configures an interface that answers, sees whether it took all of it, and routes into it.
fn set_up(
    site: &Site<'_>,
    node: &dyn Node,
    keys: &BTreeMap<NodeId, KeyPair>,
) -> Result<(), LabError> {
    let (peer, peer_end) = match node.id() {
        NodeId::Gw2 => (NodeId::Gw1, W0),
        _ => (NodeId::Gw2, W1),
    };
    let (Some(own_keys), Some(peer_keys)) = (keys.get(&node.id()), keys.get(&peer)) else {
        let reason = format!("got no keys for {} and its peer", node.id().name());
        return Err(dut_error(site.dut, reason));
    };
    let networks = site.map.networks_behind(Side::of(peer_end), site.links);
    let conf = Conf {
        keys: own_keys,
        port: PORT,
        peer: Peer {
            public_key: peer_keys.public(),
            endpoint: (site.map.address(peer_end), PORT).into(),
            networks: &networks,
        },
    };
    let path = write_file(node, &format!("{INTERFACE}.conf"), &conf.text(), true)?;
    wg(site.dut, node, &["setconf", INTERFACE, &path])?;
    let shown = wg(site.dut, node, &["showconf", INTERFACE])?;
    conf.compare(&shown).map_err(|difference| {
        let node = node.id().name();
        dut_error(
            site.dut,
            format!("is not configured as told on {node}: {difference}"),
        )
    })?;
    let mtu = site.links.mtu;
    let mut batch = format!("link set {INTERFACE} mtu {mtu} txqueuelen {QUEUE_PACKETS} up\n");
    for network in &networks {
        batch.push_str(&format!("route replace {network} dev {INTERFACE}\n"));
    }
    ip(node, batch)
}

/// Waits until the interface can be asked; the kernel's can from the first.
fn await_answer(
    site: &Site<'_>,
    node: &dyn Node,
    daemon: Option<&Daemon<'_>>,
) -> Result<(), LabError> {
    let deadline = Deadline::after(READY_LIMIT);
    loop {
        let answer = wg(site.dut, node, &["show", INTERFACE]);
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

/// Runs `wg`, which must succeed; what it printed. Neither words nor errors of it carry a key.
fn wg(dut: &str, node: &dyn Node, words: &[&str]) -> Result<String, LabError> {
    wg_with(dut, node, words, String::new())
}

/// The same with something on its standard input.
fn wg_with(dut: &str, node: &dyn Node, words: &[&str], stdin: String) -> Result<String, LabError> {
    let program = Program {
        stdin,
        ..Program::new(["wg"].iter().chain(words).copied())
    };
    let on = node.id().name();
    let ended = match node.run(program, TOOL_LIMIT) {
        Ok(ended) => ended,
        Err(LabError::Node { reason, .. }) => {
            return Err(dut_error(
                dut,
                format!("cannot be configured on {on}: {reason}"),
            ));
        }
        Err(error) => return Err(error),
    };
    if ended.code == Some(0) {
        return Ok(ended.stdout);
    }
    let (words, how) = (words.join(" "), ended.how());
    let said = ended.stderr.trim().replace('\n', "; ");
    Err(dut_error(
        dut,
        format!("failed on {on}: `wg {words}` ({how}): {said}"),
    ))
}

/// Bytes received and sent, of `wg show … transfer`: key, received and sent of the one peer.
fn transfer(shown: &str) -> Option<[u64; 2]> {
    let mut words = shown.split_ascii_whitespace().skip(1).map(str::parse);
    match (words.next()?, words.next()?, words.next()) {
        (Ok(received), Ok(sent), None) => Some([received, sent]),
        _ => None,
    }
}

/// The program's process on a gateway, where there is one.
fn process_on(dut: &RunningDut, id: NodeId) -> Option<u64> {
    let mut processes = dut.processes.iter();
    processes
        .find(|(node, _)| *node == id)
        .map(|(_, process)| *process)
}

fn daemon<'a>(site: &Site<'a>, node: &'a dyn Node, process: u64) -> Daemon<'a> {
    Daemon {
        dut: site.dut,
        node,
        process,
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
