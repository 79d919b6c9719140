//! Reads OpenVPN.

use super::entry::{Duts, NAME, Variants};
use super::settings::SETTINGS;
use super::software::SOFTWARE;
use crate::axis::Axes;
use plan::{Adapter, OpenVpn};
use wire::Suite;
use yaml::Absent::Default;
use yaml::{Key, Map, Node, Reported, Value};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    NAME,
    Key::new("suite", Value::Axis(&Value::Name(|| Suite::AEADS.map(Suite::name).to_vec())),
        Default("aes-256-gcm"), "Cipher of the data channel: AEADs only"),
    SOFTWARE,
    SETTINGS,
];

/// A suite that varies is added to the name.
pub(super) fn read(map: &Map<'_>) -> Result<Duts, Reported> {
    let axes = Axes::of(map);
    let suites = axes.read("suite", aead);
    axes.done()?;
    let duts = Variants::of(Suite::Aes256Gcm).by(&suites, |it, suite| {
        *it = suite;
        suite.name()
    });
    Ok(duts.duts(|suite| Adapter::OpenVpn(OpenVpn { suite })))
}

/// An AEAD: OpenVPN has had its other data-channel ciphers as obsolete since 2.5.
fn aead(node: Node<'_>) -> Result<Suite, Reported> {
    let aeads = Suite::AEADS.map(|suite| (suite.name(), suite));
    let known = Suite::from_name(node.text()?);
    // A suite of another DUT gets the reason; any other word, the list of names.
    let Some(other) = known.filter(|suite| !Suite::AEADS.contains(suite)) else {
        return node.one_of("suite", &aeads);
    };
    let names: Vec<_> = aeads.iter().map(|(name, _)| format!("`{name}`")).collect();
    let help = format!(
        "write one of {}; to measure `{other}` use {}`cipherbench`",
        names.join(", "),
        if Suite::COMMON.contains(&other) {
            "`strongswan` or "
        } else {
            ""
        }
    );
    let what = format!("`{other}` is no AEAD, and OpenVPN is measured with those alone");
    Err(node.mistake(what, help))
}
