//! IPsec by the kernel's XFRM.

use super::carrier::{Carrier, Form};
use super::entry::{Entry, Variants, WeakAllowed, common_suite, name, suites};
use super::profile::DutProfile;
use serde::{Deserialize, Serialize};
use wire::Suite;
use yaml::{Map, Reported};

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
    let allowed = WeakAllowed::read(map);
    let suites = suites(map, Suite::Aes256Gcm, &allowed, common_suite);
    let settings = Xfrm {
        suite: Suite::Aes256Gcm,
    };
    Variants::of(settings)
        .by(suites, |it, suite| {
            it.suite = suite;
            suite.name()
        })
        .named(name)
}
