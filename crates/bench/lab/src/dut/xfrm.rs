//! IPsec by the kernel's XFRM with static keys: two SAs, and policies for the networks behind each
//! gateway.
//!
//! 1. fresh keys, passed to `ip` over its standard input and absent from arguments, logs and
//!    errors;
//! 2. the SAs of both gateways, their policies, and routes into an XFRM interface, which drops
//!    packets that match no policy, so that nothing leaves in clear;
//! 3. the kernel's SAs must match the request, algorithm by algorithm, with the length of each key.
//!
//! ESP is bare (protocol 50). The kernel receives ESP in UDP only through a socket that a program
//! holds open, and no program does with static keys.
//!
//! Without the interface, an opened packet would appear again, in clear, on the interface that
//! received its ESP: a watch on the cipher link would see it as traffic of that link.
//!
//! Sequence numbers are extended (RFC 4303 §2.2.1): 32-bit ones are exhausted in minutes, and the
//! kernel then stops sending.

mod algorithms;
mod sa_state;

use super::keys::random_hex;
use super::site::{all, by_node, gather, on_each};
use super::{Adapter, Site};
use crate::on_node::{ip, kernel_version};
use crate::topology::{Side, W0, W1, cipher_ends};
use algorithms::Algorithms;
use sa_state::SaState;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use testbed::protocol::{Ended, Program};
use testbed::{LabError, Node, NodeId, Result, RunningDut};

/// SPIs by the gateway that sends; those below 256 are reserved (RFC 4303 §2.1).
const SPIS: [u32; 2] = [0x1001, 0x1002];

/// Request id that links SAs and policies.
const REQUEST_ID: u32 = 1;

/// The interface that packets are sealed behind, on either gateway.
const INTERFACE: &str = "xfrm0";

/// Links SAs and policies to the interface.
pub(super) const INTERFACE_ID: u32 = 1;

/// Replay window in packets: the kernel's maximum.
const REPLAY_WINDOW: u32 = 4096;

/// How long `ip` may take, including loading the module of a cipher.
const TOOL_LIMIT: Duration = Duration::from_secs(20);

/// Creates an SA and deletes it: the kernel loads modules on request.
const PROBE: &str = "xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100 mode tunnel \
                     aead rfc4106(gcm(aes)) 0x000102030405060708090a0b0c0d0e0f10111213 128\n\
                     xfrm state delete src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100\n";

/// An SA for each direction, on both gateways.
pub(super) struct Xfrm {
    algorithms: Algorithms,
}

/// Keys by the gateway that sends; `Debug` is left out on purpose.
struct Keys([String; 2]);

impl Xfrm {
    pub(super) fn new(tunnel: plan::Xfrm) -> Self {
        Self {
            algorithms: Algorithms::of(tunnel.suite),
        }
    }

    /// Sets SAs, policies and routes on a gateway and checks them; returns facts.
    fn set_up(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
        keys: &Keys,
    ) -> Result<BTreeMap<String, String>> {
        let ended = run(node, self.states(site, keys))?;
        if ended.code != Some(0) {
            return Err(self.refused(site, node, &ended, keys));
        }
        // In this order no packet meets a policy without an SA, which makes the kernel ask a key
        // daemon.
        ip(node, policies(site, node.id()))?;
        add_interface(site, node)?;
        self.prove(site, node)?;
        let templates = read(node, "/proc/crypto")?;
        let facts = [
            ("program", Some("xfrm".to_owned())),
            ("version", Some(kernel_version(node)?)),
            ("suite", Some(self.algorithms.suite.name().to_owned())),
            ("crypto", self.algorithms.driver(&templates)),
        ];
        let known = facts.into_iter();
        let known = known.filter_map(|(name, value)| Some((name, value?)));
        Ok(by_node(node.id(), known).collect())
    }

    /// Returns the commands for the SAs of both directions, the same on both gateways.
    fn states(&self, site: &Site<'_>, Keys(keys): &Keys) -> String {
        let mut batch = String::new();
        for (direction, key) in directions(site).into_iter().zip(keys) {
            let [from, to, spi] = direction;
            // Writing to a string cannot fail. IPv6 may be carried too.
            let _ = writeln!(
                batch,
                "xfrm state add src {from} dst {to} proto esp spi {spi} reqid {REQUEST_ID} mode tunnel \
                 replay-window {REPLAY_WINDOW} flag af-unspec esn if_id {INTERFACE_ID} {}",
                self.algorithms.with_key(key)
            );
        }
        batch
    }

    /// Returns why the kernel refused the SAs, without the keys that its message may contain.
    fn refused(
        &self,
        site: &Site<'_>,
        node: &dyn Node,
        ended: &Ended,
        Keys(keys): &Keys,
    ) -> LabError {
        let mut said = ended.last_words();
        for key in keys {
            for part in self.algorithms.keys(key) {
                said = said.replace(part, "(key)");
            }
        }
        let (suite, gateway, how) = (self.algorithms.suite, node.name(), ended.how());
        let names = self.algorithms.names().join(" and ");
        let modules = self.algorithms.modules().join(" ");
        site.error(format!(
            "cannot seal with {suite} on {gateway}: the kernel takes no SA with {names} \
             ({how}){said}\nhelp: sudo modprobe -a {modules}; or take another suite"
        ))
    }

    /// Checks that the kernel installed the requested SAs.
    fn prove(&self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        let sas = sas(site, node, &["list"])?;
        let fail = |what: String| Err(site.differs(node, &what));
        if sas.len() != SPIS.len() {
            return fail(format!("it has {} SAs of {}", sas.len(), SPIS.len()));
        }
        let expected = self.algorithms.reported();
        for [from, to, spi] in directions(site) {
            let Some(sa) = sas.iter().find(|sa| sa.spi == spi) else {
                return fail(format!("it has no SA {spi}"));
            };
            if [&sa.from, &sa.to] != [&from, &to] || sa.mode != "tunnel" || !sa.esn {
                return fail(format!("SA {spi} is {}", sa.summary()));
            }
            if sa.algorithms != expected {
                let is = sa.algorithms.join(", ");
                return fail(format!("SA {spi} has {is} and not {}", expected.join(", ")));
            }
        }
        Ok(())
    }
}

impl Adapter for Xfrm {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        for node in site.loaded() {
            if let Some(said) = missing_esp(*node)? {
                let gateway = node.name();
                return Err(site.error(format!(
                    "needs ESP in the kernel, which {gateway} does not have{said}\n\
                     help: sudo modprobe -a esp4 xfrm_user; or seal in user space: \
                     `cipherbench`, or `strongswan` with `data_path: libipsec`"
                )));
            }
        }
        let bytes = self.algorithms.suite.keymat_bytes();
        // One for each direction: with a counter mode, two senders must never use the same key.
        let keys = Keys([random_hex(site.dut, bytes)?, random_hex(site.dut, bytes)?]);
        let mut dut = RunningDut {
            frame_path: Some(site.frame_path()),
            ..RunningDut::default()
        };
        let set_up = on_each(site.loaded(), |node| self.set_up(site, node, &keys));
        let up = gather(set_up, &mut dut.facts);
        self.up_or_stopped(site, dut, up)
    }

    /// Bytes as the kernel counts them: of sealed IP packets, with or without outer headers.
    fn counters(&self, site: &Site<'_>, _dut: &RunningDut) -> Result<BTreeMap<String, u64>> {
        let mut counters = BTreeMap::new();
        for &node in site.loaded() {
            let out = SPIS[usize::from(node.id() == NodeId::Gw2)];
            let gateway = node.name();
            for sa in sas(site, node, &["list", "nokeys"])? {
                // By the SPI: a gateway lists the SAs of both directions in no fixed order.
                let way = if sa.spi == format!("{out:#x}") {
                    "out"
                } else {
                    "in"
                };
                for (name, value) in sa.counters {
                    *counters
                        .entry(format!("{gateway}/sa_{way}_{name}"))
                        .or_default() += value;
                }
            }
        }
        Ok(counters)
    }

    fn stop(&mut self, site: &Site<'_>, _dut: RunningDut) -> Result<()> {
        all(on_each(site.loaded(), |node| {
            let removed = remove_interface(node);
            // The next DUT must not meet SAs, even if the interface could not be removed.
            flush(node).and(removed)
        }))
    }
}

/// Returns why a node's kernel refuses SAs; `None` if it accepts them.
pub(super) fn missing_esp(node: &dyn Node) -> Result<Option<String>> {
    let ended = run(node, PROBE.to_owned())?;
    Ok((ended.code != Some(0)).then(|| ended.last_words()))
}

/// Creates the interface on a gateway and routes the networks behind the peer into it.
pub(super) fn add_interface(site: &Site<'_>, node: &dyn Node) -> Result<()> {
    let (own, _) = cipher_ends(node.id());
    let below = own.interface;
    let add = format!("link add {INTERFACE} type xfrm dev {below} if_id {INTERFACE_ID}\n");
    site.set_up(node, INTERFACE, add)
        .map_err(|error| match &error {
            LabError::Node { node, reason } if reason.contains("Unknown device type") => site
                .error(format!(
                    "needs XFRM interfaces, which {node} does not have: {reason}\n\
                 help: sudo modprobe xfrm_interface (Linux 4.19 or newer)"
                )),
            _ => error,
        })
}

/// Removes the interface, and thus the routes into it, if it exists.
pub(super) fn remove_interface(node: &dyn Node) -> Result<()> {
    if node.interface_counters()?.contains_key(INTERFACE) {
        ip(node, format!("link del {INTERFACE}\n"))
    } else {
        Ok(())
    }
}

/// Removes all policies and SAs of a node; tries both even if one fails.
pub(super) fn flush(node: &dyn Node) -> Result<()> {
    let flushed = ["policy", "state"].map(|what| ip(node, format!("xfrm {what} flush\n")));
    all(flushed.into())
}

/// Source, destination and SPI: from gw1 to gw2, and back.
fn directions(site: &Site<'_>) -> [[String; 3]; 2] {
    let [gw1, gw2] = [W0, W1].map(|end| site.map.address(end).to_string());
    let [there, back] = SPIS.map(|spi| format!("{spi:#x}"));
    [[gw1.clone(), gw2.clone(), there], [gw2, gw1, back]]
}

/// Returns the commands for a gateway's policies: the traffic to seal, and the traffic to accept
/// only sealed, for each pair of networks of one IP version.
fn policies(site: &Site<'_>, id: NodeId) -> String {
    let (own, peer) = cipher_ends(id);
    let [own_address, peer_address] = [own, peer].map(|end| site.map.address(end));
    let [behind_own, behind_peer] =
        [own, peer].map(|end| site.map.networks_behind(Side::of(end), site.links));
    let mut batch = String::new();
    // Every pair of networks, since a policy is for one source and one target.
    for near in &behind_own {
        for far in behind_peer
            .iter()
            .filter(|far| is_ipv6(far) == is_ipv6(near))
        {
            // `in` covers packets for the gateway itself, `fwd` the packets that it forwards.
            for (way, from, to, source, target) in [
                ("out", near, far, own_address, peer_address),
                ("in", far, near, peer_address, own_address),
                ("fwd", far, near, peer_address, own_address),
            ] {
                // Writing to a string cannot fail.
                let _ = writeln!(
                    batch,
                    "xfrm policy add src {from} dst {to} dir {way} if_id {INTERFACE_ID} tmpl src {source} dst {target} proto esp \
                     reqid {REQUEST_ID} mode tunnel"
                );
            }
        }
    }
    batch
}

fn is_ipv6(network: &str) -> bool {
    network.contains(':')
}

/// Returns a gateway's SAs, with only the lengths of the keys.
fn sas(site: &Site<'_>, node: &dyn Node, list: &[&str]) -> Result<Vec<SaState>> {
    let list = [&["ip", "-s", "xfrm", "state"], list].concat();
    let ended = node.run(Program::new(list.iter().copied()), TOOL_LIMIT)?;
    if ended.code == Some(0) {
        return Ok(sa_state::parse(&ended.stdout));
    }
    let (gateway, list, how) = (node.name(), list.join(" "), ended.how());
    let said = ended.stderr.trim();
    let reason = format!("does not list its SAs on {gateway}: `{list}` ({how}): {said}");
    Err(site.error(reason))
}

/// Runs a batch of `ip` that contains keys: unlike with [`ip`], errors do not quote it.
fn run(node: &dyn Node, batch: String) -> Result<Ended> {
    node.run(
        Program::new(["ip", "-batch", "-"]).with_input(batch),
        TOOL_LIMIT,
    )
}

/// Reads a file of the kernel.
fn read(node: &dyn Node, path: &str) -> Result<String> {
    Ok(node.run(Program::new(["cat", path]), TOOL_LIMIT)?.stdout)
}
