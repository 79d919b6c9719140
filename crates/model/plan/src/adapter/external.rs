//! Third-party boxes, outside of this machine.

mod demands;
mod gateway;
mod monitor;
mod settings;

pub use gateway::{
    GatewayPeer, IkePeer, IkeSecrets, WORD_CHARS_MAX, WireGuardPeer, is_wireguard_key, is_word,
};
pub use monitor::{
    Monitor, Observed, Reading, ReadingKind, Secret, SnmpAgent, SnmpAuthentication, SnmpLogin,
    SnmpPrivacy, Source,
};
pub use settings::{
    BoxFormat, COMMAND_CHARS_MAX, External, ExternalBox, Placeholder, command_fits, fill_in,
    is_command,
};

use super::carrier::{Carrier, Form, LinkForm};
use super::l2tpv3;
use super::profile::{
    Ability, DutProfile, GatewayTraffic, NO_INTERFACES, Role, VLAN_TAG_BYTES, insecure_in_words,
};
use super::strongswan::TUNNEL_SET_UP;
use std::time::Duration;
use units::human::counted;
use wire::l2tp;
use wire::mix::ETHERNET_HEADER_BYTES;
use wire::overhead::{GRE_HEADER_BYTES, IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

/// The box at A's cable, and the one at B's.
pub const BOXES_MAX: usize = 2;
/// Time for one command of a box: a login, and the command itself.
pub const BOX_COMMAND: Duration = Duration::from_secs(1);
/// Time from the last command of a box until its tunnel is up.
pub const BOX_READY: Duration = Duration::from_secs(5);

/// GRE's header: without options, and with checksum, key and sequence number (RFC 2784 §2.1, RFC
/// 2890 §2).
const GRE_BYTES: (usize, usize) = (GRE_HEADER_BYTES, 16);
/// Why GRE does not protect.
const GRE_INSECURE: &str = "GRE without IPsec does not encrypt";
/// L2TPv3's header behind IP: a session alone, and in UDP a session with the longest cookie and an
/// L2-specific sublayer (RFC 3931 §4.1, §4.6).
const L2TPV3_BYTES: (usize, usize) = (
    l2tp::SESSION_BYTES,
    UDP_HEADER_BYTES + l2tp::HEADER_BYTES_MAX + 4,
);

pub(super) fn profile(external: &External) -> DutProfile {
    let mut abilities = match external.gateway {
        // Without a second gateway the cipher link is the station's.
        Some(_) => Vec::new(),
        None => vec![Ability::Cut],
    };
    // The box at B's side, as the encryptor on gw2 is the one that is restarted elsewhere; of
    // boxes managed as one it is the only one.
    if external.boxes.last().is_some_and(|its| its.reset.is_some()) {
        abilities.push(Ability::Reset);
    }
    let words = in_words(external);
    let profile = match (external.carrier, external.format) {
        (Some(carrier), _) => DutProfile {
            // It may send ESP with or without UDP.
            outer_bytes: match carrier.form {
                Form::Esp => IPV4_HEADER_BYTES,
                _ => carrier.outer_header_bytes(),
            },
            gateway_traffic: GatewayTraffic::Keepalives,
            // Boxes do not report settings in a common format.
            reported: Vec::new(),
            // Boxes use none of this machine's cores.
            gateway_cores: 0,
            ..DutProfile::tunnel(carrier, words)
        },
        (None, Some(BoxFormat::Gre)) => in_clear(LinkForm::Gre, GRE_BYTES, GRE_INSECURE, &words),
        (None, Some(BoxFormat::L2tpv3)) => {
            in_clear(LinkForm::L2tpv3, L2TPV3_BYTES, l2tpv3::INSECURE, &words)
        }
        (
            None,
            Some(BoxFormat::Opaque {
                expands_bytes,
                aggregate,
            }),
        ) => DutProfile {
            other_form: Some(LinkForm::Opaque),
            // For a maker's format only the maximum is configured.
            frame_bytes: (0, expands_bytes.into()),
            aggregates: aggregate,
            gateway_traffic: GatewayTraffic::Keepalives,
            carried_in: Some("frames of the maker's own format".to_owned()),
            ..DutProfile::clear(Role::Tunnel, words)
        },
        // Boxes that forward in clear are a reference for others, like the gateways of `direct`.
        (None, None) => DutProfile::clear(Role::Baseline, words),
    };
    let directions = match external.gateway {
        // `both` would need a second gateway.
        Some(_) => gateway::DIRECTIONS,
        None => profile.directions,
    };
    DutProfile {
        abilities,
        needs_kernel: Some(NO_INTERFACES.to_owned()),
        beside: time(external),
        directions,
        tunnels: external.tunnels.into(),
        // The time until the first tunnel is up is in `BOX_READY`.
        set_up: TUNNEL_SET_UP * u32::from(external.tunnels.saturating_sub(1)),
        ..profile
    }
}

/// A tunnel that does not encrypt; its header behind IP has `least` to `most` bytes.
fn in_clear(
    form: LinkForm,
    (least, most): (usize, usize),
    insecure: &'static str,
    words: &str,
) -> DutProfile {
    let settings = format!("{words}{}", insecure_in_words(Some(insecure)));
    DutProfile {
        other_form: Some(form),
        frame_bytes: (least, most + ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES),
        outer_bytes: IPV4_HEADER_BYTES,
        gateway_traffic: GatewayTraffic::Keepalives,
        carried_in: Some(form.name().to_owned()),
        insecure: Some(insecure),
        is_readable: true,
        ..DutProfile::clear(Role::Tunnel, settings)
    }
}

/// Counters are read twice before a trial and twice after it.
fn time(external: &External) -> Duration {
    let commands = external.boxes.iter().map(|its| {
        let counters = its.counters.len() + its.counter_lines.len();
        let queried = its.observed.queries() + 4 * its.observed.counters.len();
        // `commands` has each counter once already, and `queries` has none.
        its.commands().count() + 3 * counters + queried
    });
    let commands = u32::try_from(commands.sum::<usize>()).unwrap_or(u32::MAX);
    BOX_READY + BOX_COMMAND * commands
}

fn in_words(external: &External) -> String {
    let boxes = match (external.boxes.len(), external.form(), &external.gateway) {
        (_, _, Some(_)) => "one gateway",
        // Sealing takes two ends, so one entry with a sealed form describes both boxes.
        (1, Some(_), None) => "boxes managed as one",
        (1, None, None) => "one box",
        _ => "two boxes",
    };
    let commands = external.boxes.iter().map(|it| it.up.len() as u64).sum();
    let up = match commands {
        0 => "as they are configured".to_owned(),
        commands => format!("configured by {}", counted(commands, "command")),
    };
    let place = if external.bump {
        ", bumps in the wire"
    } else {
        ""
    };
    let does = match (external.carrier, external.format) {
        (Some(Carrier { form, suite, udp }), _) => {
            // ESP alone has both forms; the others are always as their name says.
            let bare = match (form, udp) {
                (Form::Esp, false) => "bare ",
                _ => "",
            };
            format!("{bare}{} {suite}", form.name())
        }
        (None, Some(BoxFormat::Opaque { .. })) => {
            let claim = external.suite_word();
            format!("opaque frames (`{claim}` is the maker's claim, not proven)")
        }
        (None, Some(format)) => format.form().name().to_owned(),
        (None, None) => "no encryption: frames in clear".to_owned(),
    };
    let keys = external.gateway.as_ref();
    let keys = keys.map_or_else(String::new, |peer| format!(", keys {}", peer.in_words()));
    let tunnels = match external.tunnels {
        1 => String::new(),
        tunnels => format!(", {}", counted(tunnels, "tunnel")),
    };
    format!("{does} by {boxes} outside of this machine{place}{keys}{tunnels}, {up}")
}
