//! Reads IPsec by strongSwan.

use super::entry::{Entry, Variants, WeakAllowed, common_suite, name, suites};
use crate::axis::axis;
use plan::{DataPath, IkeAuth, StrongSwan};
use wire::Suite;
use yaml::{Map, Node, Reported};

/// Settings that vary are added to the name, in this order: data path, suite, authentication, PPK,
/// ML-KEM, tunnels.
pub(super) fn read(map: &Map<'_>) -> Result<Entry<StrongSwan>, Reported> {
    let name = name(map, "strongswan");
    let allowed = WeakAllowed::read(map);
    let data_path = axis(map, "data_path", DataPath::Libipsec, |node| {
        node.choice("data path")
    });
    let suite = suites(map, Suite::Aes256Gcm, &allowed, common_suite);
    let auth = axis(map, "auth", IkeAuth::Psk, |node| {
        node.choice("authentication")
    });
    let ppk = axis(map, "ppk", false, Node::bool);
    let ml_kem = axis(map, "ml_kem", false, Node::bool);
    let tunnels = axis(map, "tunnels", 1, |node| {
        node.integer(1..=StrongSwan::TUNNELS_MAX)
    });
    // Placeholders: each axis has at least one value, which replaces them.
    let settings = StrongSwan {
        data_path: DataPath::Libipsec,
        suite: Suite::Aes256Gcm,
        auth: IkeAuth::Psk,
        ppk: false,
        ml_kem: false,
        tunnels: 1,
    };
    Variants::of(settings)
        .by(data_path, |it, data_path| {
            it.data_path = data_path;
            data_path.name()
        })
        .by(suite, |it, suite| {
            it.suite = suite;
            suite.name()
        })
        .by(auth, |it, auth| {
            it.auth = auth;
            auth.name()
        })
        .by(ppk, |it, ppk| {
            it.ppk = ppk;
            // Off adds no word, so these DUTs have the same names without the axis.
            if ppk { "ppk" } else { "" }
        })
        .by(ml_kem, |it, ml_kem| {
            it.ml_kem = ml_kem;
            if ml_kem { "ml-kem" } else { "" }
        })
        .by(tunnels, |it, tunnels| {
            it.tunnels = tunnels;
            format!("t{tunnels}")
        })
        .named(name)
}
