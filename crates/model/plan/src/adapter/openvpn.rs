//! OpenVPN.

use super::carrier::{Carrier, Form};
use super::profile::{Ability, DutProfile, GatewayTraffic};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wire::Suite;

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
        // The lab configures `ping`, so idle peers send packets that no station sent.
        profile.gateway_traffic = GatewayTraffic::Keepalives;
        profile.beside = TLS_UP;
        profile
            .abilities
            .extend([Ability::Attack, Ability::Crash, Ability::SetUp]);
        profile
    }
}
