//! Bodies of the fuzz targets: functions that take any bytes and panic when an invariant is
//! violated.
//!
//! `fuzz/` builds them with libFuzzer (`make fuzz`); the tests of this crate run each on its seeds,
//! on mutations of them and on pseudo-random bytes, so that an ordinary `cargo test` finds the easy
//! cases.
//!
//! Most bodies interpret their bytes as a description ([`arbitrary::Unstructured`]) of packets that
//! are nearly valid: an undirected fuzzer would not get past the first checksum. The result is
//! compared with a slow oracle, or with the input.
//!
//! To add a target: a function here, a line in [`TARGETS`], a file in `fuzz/fuzz_targets` and its
//! entry in `fuzz/Cargo.toml`; initial files in `fuzz/seeds`, if chance would take long to find
//! useful ones.

#![forbid(unsafe_code)]

mod aggfrag;
mod coalesce;
mod control;
mod daemon_log;
mod esp;
mod fleet;
mod gate;
mod gost;
mod handshake;
mod hostile;
mod ike;
mod inner;
mod journal;
mod kme;
mod link;
mod lint;
mod packets;
mod reflect;
mod segment;
mod signing;
mod stamp;
mod text;
mod tunnelcheck;

/// One fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also its file's name in `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Takes any bytes; panics when it finds an error.
    pub body: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    target("aggfrag", aggfrag::body),
    target("cmsg", control::cmsg),
    target("coalesce", coalesce::body),
    target("config", text::config),
    target("daemon_log", daemon_log::body),
    target("ecn", inner::ecn),
    target("esp_open", esp::body),
    target("ethernet", link::ethernet),
    target("fleet_entry", fleet::entry),
    target("fleet_keys", fleet::keys),
    target("fleet_manifest", fleet::manifest),
    target("fleet_signature", fleet::signature),
    target("flow", inner::flow),
    target("gate", gate::body),
    target("gost_modes", gost::body),
    target("handshake", handshake::body),
    target("hostile", hostile::body),
    target("icmp", inner::icmp),
    target("ike", ike::body),
    target("journal", journal::body),
    target("kme_response", kme::response),
    target("l2tp", link::l2tp),
    target("lint", lint::body),
    target("mss", inner::mss),
    target("reflect", reflect::body),
    target("segment", segment::body),
    target("signing", signing::body),
    target("stamp", stamp::body),
    target("tunnel_check", tunnelcheck::body),
];

const fn target(name: &'static str, body: fn(&[u8])) -> Target {
    Target { name, body }
}

/// Runs the target of this name on `data`.
///
/// # Panics
/// When the target is unknown, or finds an error.
pub fn run(name: &str, data: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.unwrap_or_else(|| panic!("there is no fuzz target `{name}`"));
    (target.body)(data);
}
