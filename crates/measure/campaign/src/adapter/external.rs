//! Third-party boxes, outside of this machine.

mod gateway;
mod read;
mod settings;

pub use gateway::{GatewayPeer, IkePeer, IkeSecrets, WireGuardPeer};
pub(super) use read::read;
pub use settings::{External, ExternalBox, Placeholder, fill_in};

use super::carrier::{Carrier, Form};
use super::profile::{Ability, DutProfile, GatewayTraffic, NO_INTERFACES, Role};
use super::strongswan::TUNNEL_SET_UP;
use std::time::Duration;
use units::human::counted;
use wire::overhead::IPV4_HEADER_BYTES;

/// Time for one command of a box: a login, and the command itself.
pub const BOX_COMMAND: Duration = Duration::from_secs(1);
/// Time from the last command of a box until its tunnel is up.
pub const BOX_READY: Duration = Duration::from_secs(5);

pub(super) fn profile(external: &External) -> DutProfile {
    let mut abilities = match external.gateway {
        // Its link is the station's own.
        Some(_) => Vec::new(),
        None => vec![Ability::Cut],
    };
    if external.boxes.last().is_some_and(|its| its.reset.is_some()) {
        abilities.push(Ability::Reset);
    }
    let profile = match external.carrier {
        Some(carrier) => DutProfile {
            // It may send ESP with or without UDP.
            outer_bytes: match carrier.form {
                Form::Esp => IPV4_HEADER_BYTES,
                _ => carrier.outer_header_bytes(),
            },
            gateway_traffic: GatewayTraffic::Keepalives,
            // Boxes report in their own words.
            reported: Vec::new(),
            // It has cores of its own.
            gateway_cores: 0,
            ..DutProfile::tunnel(carrier, in_words(external))
        },
        None => DutProfile {
            needs_kernel: Some(NO_INTERFACES.to_owned()),
            ..DutProfile::clear(Role::Baseline, in_words(external))
        },
    };
    let directions = match external.gateway {
        Some(_) => gateway::DIRECTIONS,
        None => profile.directions,
    };
    DutProfile {
        abilities,
        beside: time(external),
        directions,
        tunnels: external.tunnels.into(),
        set_up: TUNNEL_SET_UP * u32::from(external.tunnels - 1),
        ..profile
    }
}

/// Counters are read twice before a trial and twice after it.
fn time(external: &External) -> Duration {
    let commands = external.boxes.iter().map(|its| {
        let counters = its.counters.len() + its.counter_lines.len();
        its.commands().count() + 3 * counters
    });
    let commands = u32::try_from(commands.sum::<usize>()).unwrap_or(u32::MAX);
    BOX_READY + BOX_COMMAND * commands
}

fn in_words(external: &External) -> String {
    let boxes = match (external.boxes.len(), external.carrier, &external.gateway) {
        (_, _, Some(_)) => "one gateway",
        (1, Some(_), None) => "boxes managed as one",
        (1, None, None) => "one box",
        _ => "two boxes",
    };
    let commands = external.boxes.iter().map(|it| it.up.len() as u64).sum();
    let up = match commands {
        0 => "as they are configured".to_owned(),
        commands => format!("configured by {}", counted(commands, "command")),
    };
    let place = match external.bump {
        true => ", bumps in the wire",
        false => "",
    };
    let does = match external.carrier {
        Some(Carrier { form, suite, .. }) => format!("{} {suite}", form.name()),
        None => "no encryption: frames in clear".to_owned(),
    };
    let keys = external.gateway.as_ref();
    let keys = keys.map_or_else(String::new, |peer| format!(", keys {}", peer.in_words()));
    let tunnels = match external.tunnels {
        1 => String::new(),
        tunnels => format!(", {}", counted(tunnels, "tunnel")),
    };
    format!("{does} by {boxes} outside of this machine{place}{keys}{tunnels}, {up}")
}
