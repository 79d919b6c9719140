//! Cipherbench's encryptor.

mod settings;

pub use settings::{Desync, Encryptor, Mode};

use super::carrier::{Carrier, Form};
use super::profile::{Ability, Direction, DutProfile, GatewayTraffic, Role, insecure_in_words};
use crate::words::time;
use std::time::Duration;
use units::human::counted;
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

/// The only supported key exchange.
const KEY_EXCHANGE: &str = "X25519MLKEM768";
/// Suite and engine that an encryptor without ESP reports.
pub const NO_SUITE: &str = "none";

/// Time for one tunnel to agree on its keys: TLS on both gateways, keys proven.
pub const HANDSHAKE: Duration = Duration::from_millis(10);
/// Time until two simulated KMEs answer.
pub const KME_UP: Duration = Duration::from_millis(250);

pub(super) fn profile(encryptor: &Encryptor) -> DutProfile {
    let (mode, keys) = (encryptor.mode, encryptor.keys);
    let insecure = encryptor.insecure();
    let carrier = mode.has_esp().then_some(Carrier {
        form: Form::Esp,
        suite: encryptor.suite,
        udp: true,
    });
    // Without ESP there are no keys to renew, and no sealed packets to forge.
    let mut abilities = vec![Ability::Cut, Ability::Crash, Ability::SetUp];
    if mode.has_esp() {
        abilities.extend([Ability::Rekey, Ability::Attack]);
    }
    if keys.has_channel() {
        // Static keys come from a file: nothing could repair them. IKE's are repaired by new SAs,
        // and no fault can be injected into them.
        abilities.push(Ability::Desync);
    }
    // The station that replaces a gateway handles IP packets, one per ESP packet, and has no key
    // exchange.
    let both_only = mode.bridges() || encryptor.aggregate || keys.is_agreed();
    let needs_kernel = if mode.bridges() {
        Some(format!("joins interfaces (`mode: {}`)", mode.name()))
    } else {
        let protocol = if keys.is_ike() { "by IKE" } else { "over TCP" };
        let agrees = || format!("agrees on keys {protocol} (`keys: {}`)", keys.name());
        keys.is_agreed().then(agrees)
    };
    let needs_kernel = needs_kernel.map(|needs| needs + ", and a lab in memory has none");
    DutProfile {
        carrier,
        frame_bytes: mode.frame_bytes(),
        outer_bytes: IPV4_HEADER_BYTES + UDP_HEADER_BYTES,
        aggregates: encryptor.aggregate,
        gateway_traffic: encryptor
            .rekey_every_ns
            .map_or(GatewayTraffic::None, GatewayTraffic::Rekeys),
        reported: reported(encryptor),
        carried_in: Some(carried_in(encryptor)),
        insecure,
        is_readable: encryptor.is_readable(),
        tunnels: encryptor.tunnels.into(),
        // A worker is a thread that can fill a core.
        gateway_cores: encryptor.workers.into(),
        abilities,
        directions: if both_only {
            &[Direction::Both]
        } else {
            &Direction::ALL
        },
        needs_kernel,
        // Static keys are in force as soon as the process runs.
        set_up: HANDSHAKE * u32::from(keys.is_agreed()) * u32::from(encryptor.tunnels),
        beside: if keys.has_qkd() {
            KME_UP
        } else {
            Duration::ZERO
        },
        ..DutProfile::clear(
            Role::Tunnel,
            in_words(encryptor) + &insecure_in_words(insecure),
        )
    }
}

/// Settings that a gateway must report, except the engine.
fn reported(encryptor: &Encryptor) -> Vec<(&'static str, String)> {
    let on = |is_on: bool| if is_on { "on" } else { "off" }.to_owned();
    // A gateway's report is compared with these word by word, so they are as it prints them.
    let suite = if encryptor.mode.has_esp() {
        encryptor.suite.to_string()
    } else {
        NO_SUITE.to_owned()
    };
    let mode = match encryptor.mode {
        // The same, without ESP.
        Mode::L2tpv3Clear => Mode::L2tpv3,
        mode => mode,
    };
    let mut settings = vec![
        ("suite", suite),
        ("lanes", encryptor.workers.to_string()),
        ("tunnels", encryptor.tunnels.to_string()),
        ("mode", mode.name().to_owned()),
        ("aggregate", on(encryptor.aggregate)),
        ("busy_poll", on(encryptor.busy_poll)),
    ];
    let keys = encryptor.keys;
    match (keys.policy(), keys.sources()) {
        // It prints no key source then.
        _ if !encryptor.mode.has_esp() => {}
        (Some(policy), Some(sources)) => settings.extend([
            ("keys", "handshake".to_owned()),
            ("policy", policy.to_owned()),
            ("kx", KEY_EXCHANGE.to_owned()),
            ("sources", sources),
        ]),
        (None, Some(sources)) => {
            settings.extend([("keys", "ike".to_owned()), ("sources", sources)]);
        }
        // Without a policy the keys are from a file, and the report has one word for it.
        _ => settings.push(("keys", "static".to_owned())),
    }
    settings
}

fn carried_in(encryptor: &Encryptor) -> String {
    let suite = encryptor.suite;
    match encryptor.mode {
        Mode::L3 => format!("ESP ({suite})"),
        Mode::L2 => format!("Ethernet in ESP ({suite})"),
        Mode::L2tpv3 => format!("L2TPv3 in ESP ({suite})"),
        Mode::L2tpv3Clear => "L2TPv3".to_owned(),
    }
}

fn in_words(encryptor: &Encryptor) -> String {
    // Every field is named, so that the compiler asks for the words of a new one.
    let Encryptor {
        suite,
        workers,
        engine,
        tunnels,
        mode,
        aggregate,
        busy_poll,
        keys,
        rekey_every_ns,
        fault,
    } = encryptor;
    let carried = match mode {
        Mode::L3 => format!("ESP {suite}"),
        Mode::L2 => format!("Ethernet in ESP {suite}"),
        Mode::L2tpv3 => format!("Ethernet in L2TPv3 in ESP {suite}"),
        Mode::L2tpv3Clear => "Ethernet in L2TPv3".to_owned(),
    };
    let workers = counted(*workers, "worker");
    let mut words = vec![carried, format!("{workers} per gateway")];
    // The usual values are left out: the line shows the unusual ones.
    if *tunnels > 1 {
        words.push(counted(*tunnels, "tunnel"));
    }
    if mode.has_esp() {
        words.push(format!("engine {engine}"));
    }
    for (is_on, word) in [(*aggregate, "aggregated"), (*busy_poll, "polling")] {
        if is_on {
            words.push(word.to_owned());
        }
    }
    // Static keys are not mentioned: without ESP the encryptor has no keys.
    if keys.is_agreed() {
        words.push(keys.in_words().to_owned());
    }
    if let Some(every_ns) = rekey_every_ns {
        words.push(format!("new ones every {}", time(*every_ns)));
    }
    if let Some(fault) = fault {
        words.push(format!("{} on demand", fault.name()));
    }
    words.join(", ")
}
