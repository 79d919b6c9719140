//! Third-party boxes, outside of this machine.

mod read;
mod settings;

pub(super) use read::read;
pub use settings::{External, ExternalBox, Placeholder, fill_in};

use super::carrier::{Carrier, Form};
use super::profile::{Ability, DutProfile, GatewayTraffic};
use std::time::Duration;
use units::human::counted;
use wire::overhead::IPV4_HEADER_BYTES;

/// Time for one command of a box: a login, and the command itself.
pub const BOX_COMMAND: Duration = Duration::from_secs(1);
/// Time from the last command of a box until its tunnel is up.
pub const BOX_READY: Duration = Duration::from_secs(5);

pub(super) fn profile(external: &External) -> DutProfile {
    let form = external.carrier.form;
    let mut abilities = vec![Ability::Cut];
    if external.boxes.last().is_some_and(|its| its.reset.is_some()) {
        abilities.push(Ability::Reset);
    }
    DutProfile {
        // It may send ESP with or without UDP.
        outer_bytes: match form {
            Form::Esp => IPV4_HEADER_BYTES,
            _ => external.carrier.outer_header_bytes(),
        },
        gateway_traffic: GatewayTraffic::Keepalives,
        // Boxes report in their own words.
        reported: Vec::new(),
        // It has cores of its own.
        gateway_cores: 0,
        abilities,
        beside: time(external),
        ..DutProfile::tunnel(external.carrier, in_words(external))
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
    let Carrier { form, suite, .. } = external.carrier;
    let boxes = match external.boxes.len() {
        1 => "boxes managed as one",
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
    format!(
        "{} {suite} by {boxes} outside of this machine{place}, {up}",
        form.name()
    )
}
