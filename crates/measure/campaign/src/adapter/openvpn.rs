//! OpenVPN.

use super::carrier::{Carrier, Form};
use super::entry::{Entry, Variants, name};
use super::profile::{Ability, DutProfile, GatewayTraffic};
use crate::axis::axis;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wire::Suite;
use yaml::{Map, Node, Reported};

/// Time to start both ends, and to agree on keys by TLS.
pub const TLS_UP: Duration = Duration::from_millis(1200);

/// OpenVPN over UDP between two points, TLS with certificates pinned by fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenVpn {
    /// Its data channel's cipher: one of the AEADs.
    pub suite: Suite,
}

impl OpenVpn {
    pub(super) fn profile(self) -> DutProfile {
        let carrier = Carrier {
            form: Form::OpenVpn,
            suite: self.suite,
            udp: true,
        };
        let mut profile = DutProfile::tunnel(carrier, format!("OpenVPN {}", self.suite));
        profile.gateway_traffic = GatewayTraffic::Keepalives;
        profile.beside = TLS_UP;
        profile
            .abilities
            .extend([Ability::Attack, Ability::Crash, Ability::SetUp]);
        profile
    }
}

/// A suite that varies is added to the name.
pub(crate) fn read(map: &Map<'_>) -> Result<Entry<OpenVpn>, Reported> {
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
