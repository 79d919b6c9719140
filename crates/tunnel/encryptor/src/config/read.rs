//! The top level of the file.

use super::context::Context;
use super::declared::FILE;
use super::keys::Sources;
use super::mode::{self, ClearSide};
use super::peers;
use super::types::{Config, Dscp, KeySource, Kind, Mode, Offloads};
use super::values::{self, Consent};
use std::path::Path;
use yaml::{Map, Mistakes, Node, Reported};

impl Config {
    /// Reads and checks a configuration file. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// All mistakes of the file, each with its place.
    pub fn load(path: &Path) -> Result<Self, Mistakes> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let read = yaml::load(path)?.decode(|root| root.keys(FILE, |map| config(map, folder)));
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
        yaml::parse(file, text)?.decode(|root| root.keys(FILE, |map| config(map, Path::new(""))))
    }
}

/// Reads the whole file; paths in it are relative to `folder`.
fn config(map: &Map<'_>, folder: &Path) -> Result<Config, Reported> {
    // Every key is read before the first `?`, so that one run reports all mistakes of the file.
    let consent = Consent::read(map);
    let local = map.get("local");
    let workers = map.get("workers");
    let port = map.get_with("port", |node, port| values::port(node, port, workers));
    let suite = map.read("suite", |node| values::suite(node, consent));
    let engine = map.read("engine", |node| values::engine(node, consent));
    let window = map.get_with("replay_window", values::window);
    let (busy_poll, ecn) = (map.get("busy_poll"), map.get("ecn"));
    let fail_open = map.get("fail_open");
    let pin = map.with_default("pin", Vec::new(), values::pin);
    let mss_clamp = map.get("mss_clamp").map(values::mss_clamp);
    let dscp = map.get::<Option<u8>>("dscp");
    let privileges = map.read("privileges", values::privileges);
    let user = map
        .optional("user")
        .map(|node| values::user(node, privileges))
        .transpose();
    let metrics = map.find("metrics");
    let offloads = map.with_default("offloads", Offloads::ALL, values::offloads);
    let kind = map.read("mode", |node| node.one_of("mode", &Kind::NAMES));
    let ClearSide { mode, routes } = mode::read(map, kind, consent);
    let aggregate = map.get_with("aggregate", |node, on| aggregate(node, on, kind));
    let idle = refuse_idle(map, kind, mode.as_ref().is_ok_and(Mode::is_keyless));
    let sources = Sources::of(map);
    let read = sources.read(folder, consent, port);
    let context = Context {
        local,
        port,
        has_identity: sources.identity.is_some(),
        has_qkd: sources.qkd.is_some(),
        control_port: read.as_ref().ok().and_then(|read| read.control_port),
        workers,
        kind,
        suite,
        aggregate,
        keyless: mode.as_ref().is_ok_and(Mode::is_keyless),
        address: match &mode {
            Ok(Mode::L3(tunnel)) => tunnel.address,
            _ => None,
        },
        routes,
        folder,
    };
    let peers = peers::read(map, &context);
    // Only if all peers could be read: a mistake in one might hide the policy that needs the keys.
    if let Ok(peers) = &peers {
        let policies: Vec<_> = peers
            .iter()
            .filter_map(|peer| match &peer.keys {
                Some(KeySource::Handshake(handshake)) => Some(handshake.policy),
                _ => None,
            })
            .collect();
        let ikes = peers.iter().filter_map(|peer| match &peer.keys {
            Some(KeySource::Ike(ike)) => Some(ike.psk.is_none()),
            _ => None,
        });
        let has_ike = ikes.clone().next().is_some();
        let has_certificates = ikes.clone().any(|it| it);
        sources.refuse_idle(&policies, (has_ike, has_certificates))?;
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
        dscp: dscp?.map_or(Dscp::Copy, Dscp::Fixed),
        ecn: ecn?,
        fail_open: fail_open?,
        privileges: privileges?,
        user: user?,
        metrics: metrics?,
        offloads: offloads?,
        identity: read.identity,
        control_port: read.control_port.map_or(port, Ok)?,
        ike_port: read.ike_port,
        qkd: read.qkd,
        fault: read.fault,
    })
}

fn aggregate(
    node: Node<'_>,
    aggregate: bool,
    kind: Result<Kind, Reported>,
) -> Result<bool, Reported> {
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
