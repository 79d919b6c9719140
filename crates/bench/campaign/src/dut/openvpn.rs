//! Reads OpenVPN.

use super::entry::{Entry, Variants, name};
use crate::axis::axis;
use plan::OpenVpn;
use wire::Suite;
use yaml::{Map, Node, Reported};

/// A suite that varies is added to the name.
pub(super) fn read(map: &Map<'_>) -> Result<Entry<OpenVpn>, Reported> {
    let name = name(map, "openvpn");
    let suites = axis(map, "suite", Suite::Aes256Gcm, aead);
    let settings = OpenVpn {
        suite: Suite::Aes256Gcm,
    };
    Variants::of(settings)
        .by(suites, |it, suite| {
            it.suite = suite;
            suite.name()
        })
        .named(name)
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
