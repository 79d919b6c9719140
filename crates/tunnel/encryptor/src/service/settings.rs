//! Settings of the data path, and the facts that are reported about it.

use super::ports::{InnerMtus, OpenTun};
use crate::config::{
    Config, Encapsulation, KeySource, Lifetime, Mode, MssClamp, Peer, Pseudowire, Tunnel,
};
use crate::lane::{LaneTunnel, SharedKeys};
use crate::metrics::Facts;
use crate::payload::{IpRules, Payload};
use dispatch::Dispatch;
use port::{LinkPort, UdpLane};
use std::collections::BTreeSet;
use std::net::IpAddr;
use wire::l2tp::{self, Cookie, IpSession, Session};
use wire::mss;
use wire::overhead::{self, Outer};

/// The payload of all lanes, and each tunnel's limits.
pub(super) struct Carried {
    pub(super) payload: Payload,
    limits: Vec<Limits>,
}

/// Limits of one tunnel.
#[derive(Debug, Clone, Copy)]
struct Limits {
    inner_bytes_max: usize,
    payload_bytes_max: usize,
    mss_max: [u16; 2],
}

impl Carried {
    /// Returns the tunnels as lanes share them, in the order of the configuration's peers, like
    /// `keys`.
    pub(super) fn tunnels(&self, config: &Config, keys: &[Option<SharedKeys>]) -> Vec<LaneTunnel> {
        let remotes = config.remotes().of_peer;
        let peers = config.peers.iter().zip(remotes);
        peers
            .zip(keys.iter().zip(&self.limits))
            .map(|((peer, remote), (keys, limits))| LaneTunnel {
                id: peer.id,
                peer: remote,
                keys: keys.clone(),
                lifetime: share_of_a_lane(peer, config.workers),
                inner_bytes_max: limits.inner_bytes_max,
                payload_bytes_max: limits.payload_bytes_max,
                mss_max: limits.mss_max,
            })
            .collect()
    }
}

/// Returns one lane's share of an epoch's volume, after which it requests the next epoch: all lanes
/// together never exceed the configured volume before the request, and no lane counts for another.
fn share_of_a_lane(peer: &Peer, lanes: u16) -> esp::Limits {
    let Lifetime { bytes, packets } = match &peer.keys {
        Some(KeySource::Handshake(handshake)) => handshake.lifetime,
        Some(KeySource::Ike(ike)) => ike.lifetime,
        _ => return esp::Limits::NONE,
    };
    let share =
        // At least 1, since a share of 0 would make new keys due before the first packet.
        |whole: Option<u64>| whole.map_or(u64::MAX, |whole| (whole / u64::from(lanes)).max(1));
    esp::Limits {
        packets: share(packets),
        bytes: share(bytes),
    }
}

/// Settings for the IP packets of a TUN interface.
pub(super) fn packets(config: &Config, tunnel: &Tunnel, mtus: &InnerMtus) -> Carried {
    let addresses = [tunnel.address.map(|own| own.address), Some(config.local)];
    let own = |v4: bool| {
        addresses
            .into_iter()
            .flatten()
            .find(|own| own.is_ipv4() == v4)
    };
    let tunnels = mtus.tunnels.iter().zip(&mtus.payloads);
    let limits = tunnels.map(|(mtu, payload)| Limits {
        inner_bytes_max: usize::from(*mtu),
        payload_bytes_max: usize::from(*payload),
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

/// Settings for the Ethernet frames of an interface. Packets that do not fit the path are
/// fragmented, since a sender of frames cannot be asked for smaller ones.
pub(super) fn frames(config: &Config) -> Carried {
    let (payload, in_front) = match &config.mode {
        Mode::L2tpv3 { pseudowire, .. } => in_pseudowire(config, pseudowire),
        _ => (Payload::Ethernet, 0),
    };
    let outer = Outer {
        ipv6: config.local.is_ipv6(),
        udp: true,
    };
    // An outer packet may have any length: the path fragments it.
    let longest = usize::from(u16::MAX);
    let room = if config.is_keyless() {
        longest - outer.header_bytes()
    } else {
        overhead::inner_mtu(config.suite, outer, longest).unwrap_or(0)
    };
    let limits = Limits {
        inner_bytes_max: room - in_front,
        payload_bytes_max: room,
        mss_max: [u16::MAX; 2],
    };
    Carried {
        payload,
        limits: vec![limits; config.peers.len()],
    }
}

/// Returns the two sessions, and the number of bytes in front of a frame.
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
    // Each side sends the identifier and cookie that the other expects.
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

/// The facts of all modes.
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
    let mut facts = vec![
        ("version", version.to_owned()),
        ("suite", suite),
        ("engine", engine),
        ("engine_version", engine_version),
        ("lanes", config.workers.to_string()),
        ("tunnels", config.peers.len().to_string()),
        ("mode", mode.to_owned()),
        ("aggregate", on(config.aggregate)),
        ("busy_poll", on(config.busy_poll)),
        ("fail_open", on(config.fail_open)),
        ("gso", on(gso)),
        ("gro", on(gro)),
    ];
    facts.extend(key_facts(config));
    facts
}

/// The sources of keys, over all tunnels.
fn key_facts(config: &Config) -> Facts {
    let policies: BTreeSet<_> = config
        .handshakes()
        .map(|(_, _, handshake)| handshake.policy.name())
        .collect();
    let sources = config.peers.iter().filter_map(|peer| peer.keys.as_ref());
    let statics = sources.filter(|source| matches!(source, KeySource::Static(_)));
    let all = [
        ("static", statics.count() > 0),
        ("handshake", !policies.is_empty()),
        ("ike", config.ikes().next().is_some()),
    ];
    let named = all.into_iter().filter(|(_, is_used)| *is_used);
    let named: Vec<_> = named.map(|(name, _)| name).collect();
    let keys = if named.is_empty() {
        "none".to_owned()
    } else {
        named.join("+")
    };
    let mut facts = vec![("keys", keys)];
    if !policies.is_empty() {
        let policies: Vec<_> = policies.into_iter().collect();
        facts.push(("policy", policies.join("+")));
        // The only one that either side accepts, verified after each handshake.
        facts.push(("kx", KEY_EXCHANGE.to_owned()));
    }
    facts
}

/// The control channel's, as TLS names it (draft-ietf-tls-ecdhe-mlkem).
const KEY_EXCHANGE: &str = "X25519MLKEM768";

/// The facts of a TUN interface.
pub(super) fn tun_facts(tunnel: &Tunnel, mtus: &InnerMtus, tun: &OpenTun) -> Facts {
    vec![
        ("interface", tunnel.name.clone()),
        ("mtu", mtus.interface.to_string()),
        ("tso", on(tun.offloads.tso)),
        ("uso", on(tun.offloads.uso)),
        ("tunnel", on(tun.offloads.tunnel)),
        ("steering", on(tun.steered)),
    ]
}

/// The facts of a link.
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

/// Makes a fact a single word, so that a line of facts can be split at spaces.
fn word(text: &str) -> String {
    text.replace(' ', "-")
}

fn on(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}
