//! A gateway's configuration, in the format of `docs/encryptor.md`.

use super::PORT;
use super::metrics::METRICS_PORT;
use super::secrets::KeyConfig;
use crate::dut::Site;
use crate::dut::pseudowire::{cookie, sessions};
use crate::topology::{Side, cipher_ends, clear_end};
use plan::{Encryptor, Mode};
use testbed::NodeId;

/// Returns a gateway's configuration with these keys.
pub(super) fn text(
    encryptor: &Encryptor,
    site: &Site<'_>,
    id: NodeId,
    key_config: &KeyConfig,
) -> String {
    let (own, peer) = cipher_ends(id);
    let Encryptor {
        suite,
        workers,
        engine,
        mode,
        aggregate,
        busy_poll,
        ..
    } = encryptor;
    let local = site.map.address(own);
    let mut config = format!("local: {local}\nport: {PORT}\nworkers: {workers}\n");
    let mut put = |text: &str| {
        config.push_str(text);
        config.push('\n');
    };
    if mode.has_esp() {
        put(&format!("suite: {suite}\nengine: {engine}"));
        if !key_config.lines.is_empty() {
            put(key_config.lines.trim_end());
        }
    }
    // The station in the same namespace reads them, so loopback is enough.
    put(&format!("metrics: 127.0.0.1:{METRICS_PORT}"));
    // The gateway that opens packets from A's side.
    let fault = encryptor.fault.filter(|_| id == NodeId::Gw2);
    if let Some(fault) = fault {
        put(&format!("faults: {}", fault.name()));
    }
    // The encryptor refuses weak suites, and settings that show or falsify data, without a flag.
    let flags = [
        ("aggregate", *aggregate),
        ("busy_poll", *busy_poll),
        ("legacy", mode.has_esp() && suite.is_legacy()),
        (
            "insecure",
            encryptor.is_readable() || suite.is_bare() || fault.is_some(),
        ),
    ];
    for (flag, _) in flags.iter().filter(|(_, is_on)| *is_on) {
        put(&format!("{flag}: true"));
    }
    put(&clear_side(*mode, site, id));
    put("peers:");
    let remote = site.map.seen_address(peer);
    let keys = if mode.has_esp() {
        format!(", keys: {}", key_config.keys)
    } else {
        String::new()
    };
    let beyond = Side::of(peer);
    for tunnel in 0..encryptor.tunnels {
        let routes = if mode.bridges() {
            String::new()
        } else {
            let networks =
                site.map
                    .networks_in_tunnel(beyond, site.links, tunnel, encryptor.tunnels);
            format!(", routes: [{}]", networks.join(", "))
        };
        put(&format!("  - {{ remote: {remote}{keys}{routes} }}"));
    }
    config
}

/// Returns the lines of the interface towards the station.
fn clear_side(mode: Mode, site: &Site<'_>, id: NodeId) -> String {
    let interface = clear_end(id).interface;
    let pseudowire = |encapsulation: &str| {
        let [own, peers] = sessions(id);
        let [cookie, peer_cookie] = [own, peers].map(cookie);
        format!(
            "mode: l2tpv3\ninterface: {interface}\n\
             l2tpv3: {{ session: {own}, peer_session: {peers}, cookie: \"{cookie}\", \
             peer_cookie: \"{peer_cookie}\", encapsulation: {encapsulation} }}"
        )
    };
    match mode {
        Mode::L3 => format!("tunnel: {{ name: cb0, mtu: {} B }}", site.links.mtu),
        Mode::L2 => format!("mode: l2\ninterface: {interface}"),
        Mode::L2tpv3 => pseudowire("esp"),
        Mode::L2tpv3Clear => pseudowire("udp"),
    }
}
