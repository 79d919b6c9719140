//! WireGuard tunnels: by the kernel or by a program in user space.

use super::carrier::{Carrier, Form};
use super::profile::{Ability, Direction, DutProfile, GatewayTraffic};
use serde::{Deserialize, Serialize};
use wire::Suite;

/// A WireGuard tunnel between the gateways, with new keys at each start. ChaCha20-Poly1305 is its
/// only suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireGuard {
    /// Implementation.
    pub program: WireGuardProgram,
}

/// Implementations of WireGuard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireGuardProgram {
    /// The kernel's.
    Kernel,
    /// `wireguard-go`.
    Go,
    /// `boringtun-cli`, with one thread, which is its fastest with few cores.
    Boringtun,
    /// `gotatun`, successor of boringtun.
    Gotatun,
}

impl WireGuardProgram {
    /// Every implementation.
    pub const ALL: [Self; 4] = [Self::Kernel, Self::Go, Self::Boringtun, Self::Gotatun];

    /// Kind of DUT in campaigns.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "wireguard",
            Self::Go => "wireguard-go",
            Self::Boringtun => "boringtun",
            Self::Gotatun => "gotatun",
        }
    }
}

impl WireGuard {
    /// How its packets look between the gateways.
    pub const CARRIER: Carrier = Carrier {
        form: Form::WireGuard,
        suite: Suite::ChaCha20Poly1305,
        udp: true,
    };

    pub(super) fn profile(self) -> DutProfile {
        let carrier = Self::CARRIER;
        let program = match self.program {
            WireGuardProgram::Kernel => "the kernel",
            program => program.name(),
        };
        let settings = format!("WireGuard {} by {program}", carrier.suite);
        let mut profile = DutProfile::tunnel(carrier, settings);
        profile.gateway_traffic = GatewayTraffic::Keepalives;
        profile.pads_to_mtu = true;
        profile.directions = &Direction::ALL;
        // No `Rekey`: it renews keys by its timers, and has no command for it.
        profile.abilities.extend([Ability::Attack, Ability::SetUp]);
        // The kernel has no process that could die.
        if self.program != WireGuardProgram::Kernel {
            profile.abilities.push(Ability::Crash);
        }
        profile
    }
}
