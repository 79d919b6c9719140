//! An L2TPv3 Ethernet pseudowire by the kernel (RFC 3931, RFC 4719), configured statically and
//! bridged with the clear side: the stations are neighbours. Nothing is encrypted.
//!
//! As in the built-in encryptor: cookies of 8 bytes, no L2-specific sublayer, and so no sequence
//! numbers.

use super::daemon::did_not_come_up;
use super::pseudowire::{cookie, sessions};
use super::site::{all, by_node, gather, on_each};
use super::{Adapter, Site};
use crate::on_node::{ask, ip, ip_each, kernel_version, parse_json};
use crate::switch;
use crate::sync::await_true;
use crate::topology::{A0, B0, End, Port, cipher_ends, clear_end};
use plan::L2tpEncapsulation;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::time::Duration;
use testbed::{LabError, Node, NodeId, Result, RunningDut};
use wire::l2tp::UDP_PORT;

/// The pseudowire's interface.
const INTERFACE: &str = "l2tp0";

/// Id of the only tunnel, at both ends.
const TUNNEL: u32 = 1;

/// The kernel removes a tunnel some time after it was deleted.
const GONE_LIMIT: Duration = Duration::from_secs(5);
const GONE_INTERVAL: Duration = Duration::from_millis(5);

/// A pseudowire between the gateways.
pub(super) struct L2tpv3 {
    encapsulation: L2tpEncapsulation,
}

/// A tunnel, as `ip -json l2tp` prints it.
#[derive(Deserialize)]
struct Tunnel {
    tunnel_id: u32,
    encap: String,
}

/// A session, as `ip -json l2tp` prints it.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Session {
    session_id: u32,
    peer_session_id: u32,
    interface: String,
    cookie: String,
    peer_cookie: String,
}

impl Session {
    /// Returns a gateway's session: its id is the one that the peer sends.
    fn of(id: NodeId) -> Self {
        let [own, peers] = sessions(id);
        Self {
            session_id: own,
            peer_session_id: peers,
            interface: INTERFACE.to_owned(),
            cookie: cookie(own),
            peer_cookie: cookie(peers),
        }
    }
}

impl L2tpv3 {
    pub(super) const fn new(tunnel: plan::L2tpv3) -> Self {
        Self {
            encapsulation: tunnel.encapsulation,
        }
    }

    /// Creates the pseudowire on a gateway and bridges it; returns facts.
    fn set_up(&self, site: &Site<'_>, node: &dyn Node) -> Result<BTreeMap<String, String>> {
        let (own, peer) = cipher_ends(node.id());
        let [local, remote] = [site.map.address(own), site.map.seen_address(peer)];
        let encapsulation = self.encapsulation.name();
        let ports = match self.encapsulation {
            L2tpEncapsulation::Udp => format!(" udp_sport {UDP_PORT} udp_dport {UDP_PORT}"),
            L2tpEncapsulation::Ip => String::new(),
        };
        let tunnel = format!(
            "l2tp add tunnel tunnel_id {TUNNEL} peer_tunnel_id {TUNNEL} encap {encapsulation} \
             local {local} remote {remote}{ports}\n"
        );
        ip(node, tunnel).map_err(|error| self.explain(site, error))?;
        let Session {
            session_id,
            peer_session_id,
            cookie,
            peer_cookie,
            ..
        } = Session::of(node.id());
        let mtu = site.links.mtu;
        let session = format!(
            "l2tp add session name {INTERFACE} tunnel_id {TUNNEL} session_id {session_id} \
             peer_session_id {peer_session_id} cookie {cookie} peer_cookie {peer_cookie} l2spec_type none\n"
        );
        ip(node, session).map_err(|error| self.explain(site, error))?;
        // Before it becomes a port: a bridge has the smallest MTU of its ports.
        ip(node, format!("link set {INTERFACE} mtu {mtu}\n"))?;
        self.compare(site, node)?;
        switch::make(node, &ports_of(node.id()))?;
        let facts = [
            ("program", "l2tpv3".to_owned()),
            ("version", kernel_version(node)?),
            ("encapsulation", encapsulation.to_owned()),
            ("suite", "none".to_owned()),
        ];
        Ok(by_node(node.id(), facts).collect())
    }

    /// Names the missing kernel support if that is why it did not come up.
    fn explain(&self, site: &Site<'_>, error: LabError) -> LabError {
        let modules = match self.encapsulation {
            L2tpEncapsulation::Udp => "l2tp_eth",
            L2tpEncapsulation::Ip => "l2tp_eth l2tp_ip",
        };
        // No netlink family, no protocol, no session type.
        let missing = ["No such file", "not supported", "talking to the kernel"];
        error.into_dut(site.dut, |node, reason| {
            if !missing.iter().any(|words| reason.contains(words)) {
                return did_not_come_up(node, reason);
            }
            format!(
                "needs L2TPv3 in the kernel, which {node} does not have: {reason}\n\
                 help: sudo modprobe -a {modules}; or take our own: `cipherbench` with \
                 `mode: l2tpv3-clear`"
            )
        })
    }

    /// Checks that the kernel created the requested tunnel and session.
    fn compare(&self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        let fail = |what: String| Err(site.differs(node, &what));
        let tunnels: Vec<Tunnel> = show(site, node, "tunnel")?;
        let encapsulation = self.encapsulation.name();
        match &*tunnels {
            [tunnel]
                if tunnel.tunnel_id == TUNNEL
                    && tunnel.encap.eq_ignore_ascii_case(encapsulation) => {}
            [tunnel] => {
                let Tunnel { tunnel_id, encap } = tunnel;
                return fail(format!("tunnel {tunnel_id} is in {encap}"));
            }
            tunnels => return fail(format!("it has {} tunnels", tunnels.len())),
        }
        let sessions: Vec<Session> = show(site, node, "session")?;
        if sessions != [Session::of(node.id())] {
            return fail(format!("it has the sessions {sessions:?}"));
        }
        Ok(())
    }

    /// Removes what exists of it on a gateway.
    fn take_down(&self, site: &Site<'_>, node: &dyn Node) -> Result<()> {
        let mut batch = String::new();
        let interfaces = node.interface_counters()?;
        if interfaces.contains_key(switch::NAME) {
            batch += &format!("link del {}\n", switch::NAME);
        }
        if interfaces.contains_key(INTERFACE) {
            let session = Session::of(node.id()).session_id;
            batch += &format!("l2tp del session tunnel_id {TUNNEL} session_id {session}\n");
        }
        // By the kernel's list: the tunnel outlives the command that deletes it.
        let is_gone = || Ok(show::<Tunnel>(site, node, "tunnel")?.is_empty());
        if !is_gone()? {
            batch += &format!("l2tp del tunnel tunnel_id {TUNNEL}\n");
        }
        // The tunnel goes even if its bridge cannot be removed: the next DUT must not meet it.
        if !batch.is_empty() {
            ip_each(node, batch)?;
        }
        if await_true(GONE_LIMIT, GONE_INTERVAL, is_gone)? {
            return Ok(());
        }
        let (gateway, limit) = (node.name(), GONE_LIMIT.as_secs());
        Err(site.error(format!("still has its tunnel on {gateway} after {limit} s")))
    }
}

impl Adapter for L2tpv3 {
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        let mut dut = RunningDut {
            frame_path: Some(site.bridged_frame_path()),
            ..RunningDut::default()
        };
        let set_up = on_each(site.loaded(), |node| self.set_up(site, node));
        let up = gather(set_up, &mut dut.facts).and_then(|()| site.join_stations());
        self.up_or_stopped(site, dut, up)
    }

    /// Frames into the pseudowire (`tx`) and out of it (`rx`), in clear.
    fn counters(&self, site: &Site<'_>, _dut: &RunningDut) -> Result<BTreeMap<String, u64>> {
        let mut counters = BTreeMap::new();
        for &node in site.loaded() {
            let Some(found) = node.interface_counters()?.remove(INTERFACE) else {
                let gateway = node.name();
                let reason = format!("has no interface `{INTERFACE}` on {gateway} any more");
                return Err(site.error(reason));
            };
            let counted = [
                ("pseudowire_rx_packets", found.rx_packets),
                ("pseudowire_rx_bytes", found.rx_bytes),
                ("pseudowire_rx_errors", found.rx_errors),
                ("pseudowire_tx_packets", found.tx_packets),
                ("pseudowire_tx_bytes", found.tx_bytes),
                ("pseudowire_tx_dropped", found.tx_dropped),
            ];
            counters.extend(by_node(node.id(), counted));
        }
        Ok(counters)
    }

    fn stop(&mut self, site: &Site<'_>, _dut: RunningDut) -> Result<()> {
        let down = on_each(site.loaded(), |node| self.take_down(site, node));
        // `and` evaluates its argument: the stations are parted in any case.
        all(down).and(site.part_stations())
    }
}

/// The bridge's ports, and the stations behind each.
fn ports_of(id: NodeId) -> [Port; 2] {
    let (near, far) = match id {
        NodeId::Gw2 => (B0, A0),
        _ => (A0, B0),
    };
    let port = |interface, station: End| Port {
        interface,
        known: vec![station.mac, station.test_mac],
    };
    [port(clear_end(id).interface, near), port(INTERFACE, far)]
}

/// Parses the output of `ip -json l2tp show`; empty if the kernel has no L2TP, or no object of that
/// kind.
fn show<T: DeserializeOwned>(site: &Site<'_>, node: &dyn Node, kind: &str) -> Result<Vec<T>> {
    let ended = ask(node, ["ip", "-json", "l2tp", "show", kind])?;
    if ended.stdout.trim().is_empty() {
        return Ok(Vec::new());
    }
    let found = parse_json(node, &format!("its L2TP {kind}"), &ended);
    found.map_err(|error| error.into_dut(site.dut, |on, why| format!("failed on {on}: {why}")))
}
