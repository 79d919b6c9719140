//! IPsec by the kernel's XFRM.

use super::carrier::{Carrier, Form};
use super::profile::DutProfile;
use serde::{Deserialize, Serialize};
use wire::Suite;

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
        // No program runs it and its keys are static, so only its link can be disturbed.
        DutProfile::tunnel(carrier, settings)
    }
}
