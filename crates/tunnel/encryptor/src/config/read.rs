//! The top level of the file.

use super::context::Context;
use super::keys::Sources;
use super::mode::{self, ClearSide, Kind};
use super::peers;
use super::types::{Config, Dscp, KeySource, Mode, MssClamp, Offloads, Privileges};
use super::values::{self, Consent};
use dispatch::Choice;
use esp::WindowSize;
use std::path::Path;
use wire::Suite;
use yaml::{Map, Mistakes, Node, Reported};

/// Maximum number of lanes in one encryptor.
const WORKERS_MAX: u16 = 256;
/// ESP in UDP (RFC 3948 §2).
const PORT_DEFAULT: u16 = 4500;

impl Config {
    /// Reads and checks a configuration file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// All mistakes of the file, each with its place.
    pub fn load(path: &Path) -> Result<Self, Mistakes> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let read = yaml::load(path)?.decode(|root| root.map(|map| config(map, folder)));
        read.map(|config| Self {
            file: Some(path.to_owned()),
            ..config
        })
    }

    /// Reads and checks a configuration from text; `file` is its name in messages.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn from_text(file: &str, text: &str) -> Result<Self, Mistakes> {
        yaml::parse(file, text)?.decode(|root| root.map(|map| config(map, Path::new(""))))
    }
}

/// Reads the whole file; paths in it are relative to `folder`.
fn config(map: &Map<'_>, folder: &Path) -> Result<Config, Reported> {
    let consent = Consent::read(map);
    let local = map.required("local").and_then(Node::ip);
    let workers = map.with_default("workers", 1, |node| node.integer(1..=WORKERS_MAX));
    let port = map.with_default("port", PORT_DEFAULT, |node| values::port(node, workers));
    let suite = map.with_default("suite", Suite::Aes256Gcm, |node| {
        values::suite(node, consent)
    });
    let engine = map.with_default("engine", Choice::Auto, |node| values::engine(node, consent));
    let window = map.with_default("replay_window", WindowSize::DEFAULT, values::window);
    let switch = |key, default| map.with_default(key, default, Node::bool);
    let (busy_poll, ecn) = (switch("busy_poll", false), switch("ecn", true));
    let fail_open = switch("fail_open", false);
    let pin = map.with_default("pin", Vec::new(), values::pin);
    let mss_clamp = map.with_default("mss_clamp", MssClamp::Auto, values::mss_clamp);
    let dscp = map.with_default("dscp", Dscp::Fixed(0), values::dscp);
    let privileges = map.with_default("privileges", Privileges::Drop, values::privileges);
    let user = map
        .optional("user")
        .map(|node| values::user(node, privileges))
        .transpose();
    let metrics = map
        .optional("metrics")
        .map(Node::socket_address)
        .transpose();
    let offloads = map.with_default("offloads", Offloads::ALL, values::offloads);
    let kind = Kind::read(map);
    let ClearSide { mode, routes } = mode::read(map, kind, consent);
    let aggregate = map.with_default("aggregate", false, |node| aggregate(node, kind));
    let idle = refuse_idle(map, kind, mode.as_ref().is_ok_and(Mode::is_keyless));
    let sources = Sources::of(map);
    let read = sources.read(folder, consent);
    let context = Context {
        local,
        port,
        has_identity: sources.identity.is_some(),
        has_qkd: sources.qkd.is_some(),
        control_port: read.as_ref().ok().and_then(|read| read.control_port),
        workers,
        kind,
        keyless: mode.as_ref().is_ok_and(Mode::is_keyless),
        address: match &mode {
            Ok(Mode::L3(tunnel)) => tunnel.address,
            _ => None,
        },
        routes,
        folder,
    };
    let peers = peers::read(map, &context);
    if let Ok(peers) = &peers {
        let policies: Vec<_> = peers
            .iter()
            .filter_map(|peer| match &peer.keys {
                Some(KeySource::Handshake(handshake)) => Some(handshake.policy),
                _ => None,
            })
            .collect();
        sources.refuse_idle(&policies)?;
    }
    idle?;
    let read = read?;
    Ok(Config {
        file: None,
        local: local?,
        port: port?,
        mode: mode?,
        peers: peers?,
        suite: suite?,
        insecure: consent.insecure?,
        workers: workers?,
        engine: engine?,
        replay_window: window?,
        aggregate: aggregate?,
        busy_poll: busy_poll?,
        pin: pin?,
        mss_clamp: mss_clamp?,
        dscp: dscp?,
        ecn: ecn?,
        fail_open: fail_open?,
        privileges: privileges?,
        user: user?,
        metrics: metrics?,
        offloads: offloads?,
        identity: read.identity,
        control_port: read.control_port.map_or(port, Ok)?,
        qkd: read.qkd,
        fault: read.fault,
    })
}

fn aggregate(node: Node<'_>, kind: Result<Kind, Reported>) -> Result<bool, Reported> {
    let aggregate = node.bool()?;
    match kind {
        Ok(Kind::L2 | Kind::L2tpv3) if aggregate => Err(node.mistake(
            "frames are not aggregated: AGGFRAG carries IP packets (RFC 9347 §2.2)",
            "remove `aggregate`, or write `mode: l3`",
        )),
        _ => Ok(aggregate),
    }
}

/// Keys that apply to IP packets.
const OF_PACKETS: [&str; 3] = ["mss_clamp", "dscp", "ecn"];
/// Keys that apply to ESP.
const OF_ESP: [&str; 4] = ["suite", "legacy", "engine", "replay_window"];

/// Refuses keys that would have no effect.
fn refuse_idle(map: &Map<'_>, kind: Result<Kind, Reported>, keyless: bool) -> Result<(), Reported> {
    let of_packets = OF_PACKETS.into_iter().filter_map(|key| {
        let node = map.optional(key)?;
        matches!(kind, Ok(Kind::L2 | Kind::L2tpv3)).then(|| {
            node.mistake(
                format!("`{key}` does nothing to frames: it applies to IP packets"),
                format!("remove `{key}`, or write `mode: l3`"),
            )
        })
    });
    let of_esp = OF_ESP.into_iter().filter_map(|key| {
        let node = map.optional(key)?;
        keyless.then(|| {
            node.mistake(
                format!("`{key}` applies to ESP, which L2TPv3 over UDP alone does not use"),
                format!("remove `{key}`, or write `encapsulation: esp`"),
            )
        })
    });
    // `last` evaluates, and so reports, every mistake.
    of_packets.chain(of_esp).last().map_or(Ok(()), Err)
}
