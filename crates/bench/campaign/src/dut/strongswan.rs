//! Reads IPsec by strongSwan.

use super::entry::{
    COMMON_SUITE, Duts, INSECURE, LEGACY, NAME, Variants, WeakAllowed, common_suite,
};
use super::settings::SETTINGS;
use super::software::SOFTWARE;
use crate::axis::Axes;
use plan::{Adapter, DataPath, IkeAuth, StrongSwan};
use wire::Suite;
use yaml::Absent::Default;
use yaml::{Key, Map, Reported, Value};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    NAME,
    Key::new("data_path", Value::Axis(&Value::Name(Value::variants::<DataPath>)),
        Default("libipsec"),
        "Implementation of ESP: the daemon itself (kernel-libipsec), or the kernel's XFRM, bare \
         or in UDP"),
    COMMON_SUITE,
    LEGACY,
    INSECURE,
    Key::new("auth", Value::Axis(&Value::Name(Value::variants::<IkeAuth>)), Default("psk"),
        "Authentication of the gateways: a pre-shared key, or ECDSA certificates of an authority \
         created for the run"),
    Key::new("ppk", Value::Axis(&Value::Switch), Default("off"),
        "Mixes in a pre-shared key against quantum computers (RFC 8784)"),
    Key::new("ml_kem", Value::Axis(&Value::Switch), Default("off"),
        "Adds ML-KEM-768 to the key exchange (RFC 9370); needs strongSwan 6"),
    TUNNELS.meaning(
        "Tunnels between the gateways, each with separate SAs and networks, under one IKE SA"),
    SOFTWARE,
    SETTINGS,
];

/// Tunnels under one IKE SA.
pub(super) const TUNNELS: Key = Key::new(
    "tunnels",
    Value::Axis(&Value::Integer(1, StrongSwan::TUNNELS_MAX as u64)),
    Default("1"),
    "",
);

/// Settings that vary are added to the name, in this order: data path, suite, authentication, PPK,
/// ML-KEM, tunnels.
pub(super) fn read(map: &Map<'_>) -> Result<Duts, Reported> {
    let (allowed, axes) = (WeakAllowed::read(map), Axes::of(map));
    let data_paths = axes.read("data_path", |node| node.choice("data path"));
    let suites = allowed.suites(&axes, common_suite);
    let auths = axes.read("auth", |node| node.choice("authentication"));
    let (ppks, ml_kems) = (axes.get("ppk"), axes.get("ml_kem"));
    let tunnels = axes.get("tunnels");
    axes.done()?;
    // Each axis has a value at least, which replaces its setting here: the defaults are declared
    // above.
    let unset = StrongSwan {
        data_path: DataPath::Kernel,
        suite: Suite::Aes256Gcm,
        auth: IkeAuth::Psk,
        ppk: false,
        ml_kem: false,
        tunnels: 0,
    };
    let duts = Variants::of(unset)
        .by(&data_paths, |it, data_path| {
            it.data_path = data_path;
            data_path.name()
        })
        .by(&suites, |it, suite| {
            it.suite = suite;
            suite.name()
        })
        .by(&auths, |it, auth| {
            it.auth = auth;
            auth.name()
        })
        .by(&ppks, |it, ppk| {
            it.ppk = ppk;
            // Off adds no word, so these DUTs have the same names without the axis.
            if ppk { "ppk" } else { "" }
        })
        .by(&ml_kems, |it, ml_kem| {
            it.ml_kem = ml_kem;
            if ml_kem { "ml-kem" } else { "" }
        })
        .by(&tunnels, |it, tunnels| {
            it.tunnels = tunnels;
            format!("t{tunnels}")
        });
    Ok(duts.duts(Adapter::StrongSwan))
}
