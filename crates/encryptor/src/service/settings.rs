//! What the data path is told, and what the user is told of it.

use super::ports::{InnerMtus, OpenTun};
use crate::config::{Config, Encapsulation, Mode, MssClamp, Pseudowire, Tunnel};
use crate::lane::{LaneTunnel, SharedKeys};
use crate::metrics::Facts;
use crate::payload::{IpRules, Payload};
use dispatch::Dispatch;
use port::{LinkPort, UdpLane};
use std::net::IpAddr;
use wire::l2tp::{self, Cookie, IpSession, Session};
use wire::mss;
use wire::overhead::{self, Outer};

/// What all lanes carry, and how much of it each tunnel takes at once.
pub(super) struct Carried {
    pub(super) payload: Payload,
    limits: Vec<Limits>,
}

/// Of one tunnel.
#[derive(Debug, Clone, Copy)]
struct Limits {
    inner_bytes_max: usize,
    mss_max: [u16; 2],
}

impl Carried {
    /// The tunnels as all lanes have them, in the order of the configuration's peers; `keys` likewise.
    pub(super) fn tunnels(&self, config: &Config, keys: &[Option<SharedKeys>]) -> Vec<LaneTunnel> {
        let remotes = config.remotes().of_peer;
        let peers = config.peers.iter().zip(remotes);
        peers
            .zip(keys.iter().zip(&self.limits))
            .map(|((peer, remote), (keys, limits))| LaneTunnel {
                id: peer.id,
                peer: remote,
                keys: keys.clone(),
                inner_bytes_max: limits.inner_bytes_max,
                mss_max: limits.mss_max,
            })
            .collect()
    }
}

/// IP packets of a TUN interface.
pub(super) fn packets(config: &Config, tunnel: &Tunnel, mtus: &InnerMtus) -> Carried {
    let addresses = [tunnel.address.map(|own| own.address), Some(config.local)];
    let own = |v4: bool| {
        addresses
            .into_iter()
            .flatten()
            .find(|own| own.is_ipv4() == v4)
    };
    let limits = mtus.tunnels.iter().map(|mtu| Limits {
        inner_bytes_max: usize::from(*mtu),
        mss_max: [4, 6].map(|version| match config.mss_clamp {
            MssClamp::Auto => mss::mss_for(usize::from(*mtu), version),
            MssClamp::Off => u16::MAX,
            MssClamp::At(bytes) => bytes,
        }),
    });
    Carried {
        payload: Payload::Ip(IpRules {
            dscp: config.dscp,
            ecn: config.ecn,
            aggregate: config.aggregate,
            icmp_source: [own(true), own(false)],
        }),
        limits: limits.collect(),
    }
}

/// Ethernet frames of an interface. What does not fit the path is fragmented: no frame can be told to be smaller.
pub(super) fn frames(config: &Config) -> Carried {
    let (payload, in_front) = match &config.mode {
        Mode::L2tpv3 { pseudowire, .. } => in_pseudowire(config, pseudowire),
        _ => (Payload::Ethernet, 0),
    };
    let outer = Outer {
        ipv6: config.local.is_ipv6(),
        udp: true,
    };
    let longest = usize::from(u16::MAX);
    let room = if config.is_keyless() {
        longest - outer.header_bytes()
    } else {
        overhead::inner_mtu(config.suite, outer, longest).unwrap_or(0)
    };
    let limits = Limits {
        inner_bytes_max: room - in_front,
        mss_max: [u16::MAX; 2],
    };
    Carried {
        payload,
        limits: vec![limits; config.peers.len()],
    }
}

/// The two sessions, and the bytes that stand in front of a frame.
fn in_pseudowire(config: &Config, pseudowire: &Pseudowire) -> (Payload, usize) {
    let encapsulation = match pseudowire.encapsulation {
        Encapsulation::Esp => l2tp::Encapsulation::Ip,
        Encapsulation::Udp => l2tp::Encapsulation::Udp,
    };
    let session = |id, cookie: &[u8]| Session {
        encapsulation,
        id,
        cookie: Cookie::new(cookie).expect("a configuration's cookie has 0, 4 or 8 bytes"),
    };
    // Identifier and cookie are what the receiver expects.
    let outbound = session(pseudowire.peer_session, &pseudowire.peer_cookie);
    let inbound = session(pseudowire.session, &pseudowire.cookie);
    if pseudowire.encapsulation == Encapsulation::Udp {
        let payload = Payload::PlainPseudowire { outbound, inbound };
        return (payload, outbound.header_bytes());
    }
    let (local, remote) = (config.local, config.peers[0].remote.ip());
    let in_ip = |source: IpAddr, target: IpAddr, session| {
        IpSession::new(source, target, session).expect("both addresses are of one family")
    };
    let outbound = in_ip(local, remote, outbound);
    let payload = Payload::Pseudowire {
        outbound,
        inbound: in_ip(remote, local, inbound),
    };
    (payload, outbound.header_bytes())
}

/// What is the same in all modes.
pub(super) fn facts(
    config: &Config,
    version: &str,
    selection: &Dispatch,
    lanes: &[UdpLane],
) -> Facts {
    let gso = lanes.iter().all(|lane| lane.offloads().gso);
    let gro = lanes.iter().all(|lane| lane.offloads().gro);
    let mode = match &config.mode {
        Mode::L3(_) => "l3",
        Mode::L2 { .. } => "l2",
        Mode::L2tpv3 { .. } => "l2tpv3",
    };
    let none = || "none".to_owned();
    let (suite, engine, engine_version) = if config.is_keyless() {
        (none(), none(), none())
    } else {
        (
            config.suite.to_string(),
            word(selection.engine()),
            word(selection.version()),
        )
    };
    vec![
        ("version", version.to_owned()),
        ("suite", suite),
        ("engine", engine),
        ("engine_version", engine_version),
        ("lanes", config.workers.to_string()),
        ("tunnels", config.peers.len().to_string()),
        ("mode", mode.to_owned()),
        ("aggregate", on(config.aggregate)),
        ("busy_poll", on(config.busy_poll)),
        ("gso", on(gso)),
        ("gro", on(gro)),
    ]
}

/// What is so with a TUN interface.
pub(super) fn tun_facts(tunnel: &Tunnel, mtus: &InnerMtus, tun: &OpenTun) -> Facts {
    vec![
        ("interface", tunnel.name.clone()),
        ("mtu", mtus.interface.to_string()),
        ("tso", on(tun.offloads.tso)),
        ("uso", on(tun.offloads.uso)),
        ("steering", on(tun.steered)),
    ]
}

/// What is so with a link.
pub(super) fn link_facts(interface: &str, links: &[LinkPort]) -> Facts {
    let joinable = links.first().map(port::ClearPort::joinable);
    let deaf = links.iter().all(LinkPort::host_is_deaf);
    vec![
        ("interface", interface.to_owned()),
        ("tso", on(joinable.is_some_and(|joinable| joinable.tcp))),
        ("uso", on(joinable.is_some_and(|joinable| joinable.udp))),
        ("host_is_deaf", on(deaf)),
    ]
}

/// Facts are words, so that a line of them can be taken apart.
fn word(text: &str) -> String {
    text.replace(' ', "-")
}

fn on(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}
