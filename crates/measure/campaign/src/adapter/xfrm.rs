//! IPsec by the kernel's XFRM.

use super::carrier::{Carrier, Form};
use super::entry::{Entry, common_suite, name, with_suffix};
use super::profile::DutProfile;
use crate::axis::axis;
use serde::{Deserialize, Serialize};
use wire::Suite;
use yaml::{Map, Node, Reported};

/// IPsec by the kernel's XFRM with static keys, new at each start: bare ESP, since no program holds
/// a socket for UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xfrm {
    /// ESP suite.
    pub suite: Suite,
}

impl Xfrm {
    pub(super) fn profile(self) -> DutProfile {
        let carrier = Carrier {
            form: Form::Esp,
            suite: self.suite,
            udp: false,
        };
        let settings = format!("ESP {} by the kernel's XFRM, static keys", self.suite);
        DutProfile::tunnel(carrier, settings)
    }
}

/// A suite that varies is added to the name.
pub(crate) fn read(map: &Map<'_>) -> Result<Entry<Xfrm>, Reported> {
    let name = name(map, "xfrm");
    let legacy = map.with_default("legacy", false, Node::bool);
    let insecure = map.with_default("insecure", false, Node::bool);
    let suites = axis(map, "suite", Suite::Aes256Gcm, |node| {
        common_suite(node, &legacy, &insecure)
    });
    let (name, suites) = (name?, suites.all()?);
    legacy?;
    insecure?;
    let duts = suites.iter().map(|suite| {
        let words = [(suites.len() > 1, suite.value.name())];
        (with_suffix(&name, words), Xfrm { suite: suite.value })
    });
    let duts = duts.collect();
    Ok(Entry { name, duts })
}
