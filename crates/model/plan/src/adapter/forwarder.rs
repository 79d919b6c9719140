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
        // With one gateway to replace, a station seals or opens by itself; a link carries either
        // form.
        directions: &Direction::ALL,
        ..DutProfile::clear(Role::Rig, "no device: the stations joined by a link")
    }
}

pub(super) fn router(nat: bool) -> DutProfile {
    let with_nat = if nat { " with NAT" } else { "" };
    DutProfile {
        translates_addresses: nat,
        ..forwarder(&format!("IP forwarding by Linux{with_nat}"))
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
