//! DUTs that do not encrypt: the baseline, the tester alone, and boxes that forward in clear.

use super::profile::{Ability, Direction, DutProfile, Role};

pub(super) fn direct() -> DutProfile {
    DutProfile {
        // The link between the gateways is part of the lab, so it can be cut without any encryptor.
        abilities: vec![Ability::Cut],
        // Through a pair of gateways that change nothing, the three are one.
        directions: &Direction::ALL,
        ..DutProfile::clear(
            Role::Baseline,
            "no encryptor: the gateways forward in clear",
        )
    }
}

pub(super) fn straight() -> DutProfile {
    DutProfile {
        directions: &Direction::ALL,
        ..DutProfile::clear(Role::Rig, "no device: the stations joined by a link")
    }
}

pub(super) fn router(nat: bool) -> DutProfile {
    let settings = if nat {
        "IP forwarding by Linux with NAT"
    } else {
        "IP forwarding by Linux"
    };
    DutProfile {
        translates_addresses: nat,
        ..forwarder(settings)
    }
}

pub(super) fn bridge() -> DutProfile {
    forwarder("Ethernet switching by Linux")
}

fn forwarder(settings: &str) -> DutProfile {
    DutProfile {
        needs_kernel: Some("is the kernel's work, and a lab in memory has no kernel".to_owned()),
        ..DutProfile::clear(Role::Forwarder, settings)
    }
}
