//! DUTs that do not encrypt: the baseline, the tester alone, and boxes that forward in clear.

use super::entry::{Entry, Variants, name};
use super::profile::{Ability, Direction, DutProfile, Role};
use crate::axis::axis;
use yaml::{Map, Node, Reported};

pub(super) fn direct() -> DutProfile {
    DutProfile {
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
    let settings = match nat {
        true => "IP forwarding by Linux with NAT",
        false => "IP forwarding by Linux",
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

/// Reads a router: whether it translates addresses. Of two, the one that does has it in its name.
pub(crate) fn read_router(map: &Map<'_>) -> Result<Entry<bool>, Reported> {
    let name = name(map, "router");
    let nats = axis(map, "nat", false, Node::bool);
    let set = |it: &mut bool, nat: bool| {
        *it = nat;
        if nat { "nat" } else { "" }
    };
    Variants::of(false).by(nats, set).named(name)
}
