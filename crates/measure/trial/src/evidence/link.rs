//! Checks of what the links and the DUT carried.

use super::bounds::{Bounds, Place, bounds, received_ip_bytes};
use super::cipher::{self, CipherSeen};
use super::gateway::Gateway;
use super::{Load, Observed, asked, check};
use journal::record::{Check, InterfaceCounters};
use std::collections::{BTreeMap, BTreeSet};

/// Features that must be off when offloads are off (`ethtool -k` names them so).
const FEATURES: [&str; 4] = [
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "tx-udp-segmentation",
    "generic-receive-offload",
];
/// Of those, the ones that must be on when offloads are on. GRO is left out: a virtual interface makes
/// super-packets without it, and turning it on there turns on NAPI, which is another test.
const FEATURES_ON: [&str; 3] = [FEATURES[0], FEATURES[1], FEATURES[2]];

/// The path's interfaces have the offloads that the cell asks for.
pub(super) fn offloads_as_asked(observed: &Observed<'_>) -> Option<Check> {
    let names = &observed.interfaces;
    let ends = [&names.a, &names.b].into_iter();
    let cipher = names.cipher.iter().flatten();
    let ends = ends.chain(cipher).chain(observed.link_ends).collect();
    offloads(observed.links.offloads, &ends, observed.offloads)
}

/// All these interfaces have offloads on, or off.
pub(super) fn offloads(
    asked: bool,
    ends: &BTreeSet<&String>,
    found: &BTreeMap<String, BTreeMap<String, String>>,
) -> Option<Check> {
    let (features, wanted) = if asked {
        (&FEATURES_ON[..], "on")
    } else {
        (&FEATURES[..], "off")
    };
    let mut wrong = Vec::new();
    for &interface in ends {
        for feature in features {
            let state = found.get(interface).and_then(|found| found.get(*feature));
            if state.is_none_or(|state| state != wanted) {
                let state = state.map_or("not readable", String::as_str);
                wrong.push(format!("{feature} of {interface} is {state}"));
            }
        }
    }
    let detail = match wrong.is_empty() {
        true => format!(
            "{} are {wanted} at all {} ends of the links",
            features.join(", "),
            ends.len()
        ),
        false => format!("offloads are to be {wanted}, but {}", wrong.join(", ")),
    };
    check("offloads-as-asked", wrong.is_empty(), detail)
}

/// What A's interface sent and B's received fits what the tools say they sent and received.
pub(super) fn station_interfaces_agree(observed: &Observed<'_>) -> Option<Check> {
    let names = &observed.interfaces;
    let source = carried(observed, &names.a, Place::Source, "sent", |found| {
        found.tx_bytes
    });
    let sink = carried(observed, &names.b, Place::Sink, "received", |found| {
        found.rx_bytes
    });
    let detail = format!("{}; {}; {}", payload(observed), source.detail, sink.detail);
    check("station-interfaces-agree", source.fits && sink.fits, detail)
}

/// What gw1 sent to the cipher link fits what the tools carried, encapsulation included.
pub(super) fn cipher_link_amount(observed: &Observed<'_>) -> Option<Check> {
    let [name, _] = observed.interfaces.cipher.as_ref()?;
    let link = carried(observed, name, Place::Cipher, "sent", |found| {
        found.tx_bytes
    });
    check(
        "cipher-link-amount",
        link.fits,
        format!("{}; {}", payload(observed), link.detail),
    )
}

struct Carried {
    fits: bool,
    detail: String,
}

fn carried(
    observed: &Observed<'_>,
    name: &str,
    place: Place,
    verb: &str,
    bytes: fn(&InterfaceCounters) -> u64,
) -> Carried {
    let Some(found) = observed.counters.get(name).map(bytes) else {
        return Carried {
            fits: false,
            detail: format!("{name} has no counters"),
        };
    };
    let bounds = bounds(observed, place);
    let Bounds { least, most } = bounds;
    let detail = format!("{name} {verb} {found} B, of {least} to {most} expected");
    Carried {
        fits: bounds.hold(found),
        detail,
    }
}

fn payload(observed: &Observed<'_>) -> String {
    match &observed.load {
        Load::Transfer { totals, .. } => {
            let (sent, received) = (totals.sent_bytes, totals.received_bytes);
            format!("the tool sent {sent} B and received {received} B of payload in all")
        }
        Load::Echo {
            latency,
            payload_bytes,
        } => {
            let (sent, received) = (latency.sent, latency.received);
            format!("ping sent {sent} requests of {payload_bytes} B and got {received} replies")
        }
    }
}

/// What was seen between the gateways, where somebody looked.
fn seen<'a>(observed: &Observed<'a>) -> Option<CipherSeen<'a>> {
    let [name, _] = observed.interfaces.cipher.as_ref()?;
    Some(CipherSeen {
        link: observed.cipher_link,
        watch: observed.watch?,
        marker: &observed.commands.marker,
        counters: observed.counters.get(name).copied().unwrap_or_default(),
        sampling_ns: observed.sampling_ns,
        elapsed_ns: observed.elapsed_ns,
    })
}

/// See [`cipher::encryption_not_proven`].
pub(super) fn encryption_not_proven(observed: &Observed<'_>) -> Option<Check> {
    match seen(observed) {
        Some(_) => None,
        None => cipher::encryption_not_proven(&observed.cell.dut.adapter),
    }
}

/// See [`CipherSeen::clear_text_visible`].
pub(super) fn clear_text_visible(observed: &Observed<'_>) -> Option<Check> {
    if observed.cell.dut.adapter.encrypts() {
        return None;
    }
    seen(observed)?.clear_text_visible()
}

/// See [`CipherSeen::encrypted`].
pub(super) fn cipher_link_encrypted(observed: &Observed<'_>) -> Option<Check> {
    seen(observed)?.encrypted(&observed.cell.dut.adapter)
}

/// See [`CipherSeen::no_clear_text`].
pub(super) fn no_clear_text(observed: &Observed<'_>) -> Option<Check> {
    if !observed.cell.dut.adapter.encrypts() {
        return None;
    }
    seen(observed)?.no_clear_text(&observed.cell.dut.adapter)
}

/// See [`CipherSeen::foreign_frames_visible`].
pub(super) fn foreign_frames_visible(observed: &Observed<'_>) -> Option<Check> {
    if observed.cell.dut.adapter.encrypts() {
        return None;
    }
    seen(observed)?.foreign_frames_visible()
}

/// See [`CipherSeen::no_foreign_frames`].
pub(super) fn no_foreign_frames(observed: &Observed<'_>) -> Option<Check> {
    seen(observed)?.no_foreign_frames(&observed.cell.dut.adapter)
}

/// The DUT's own counters say that it sealed and opened what the tools carried, and every packet in is a
/// packet out or a drop. Only ours counts what it takes in and puts out in clear, and names every drop: of other
/// devices' counters nothing is claimed here.
pub(super) fn dut_counters(observed: &Observed<'_>) -> Option<Check> {
    observed.cell.dut.adapter.encryptor()?;
    let carried = received_ip_bytes(observed);
    let mut passed = true;
    let mut said = Vec::new();
    for (gateway, way, payload_counter) in [
        ("gw1", "took in", "clear_rx_bytes"),
        ("gw2", "put out", "clear_tx_bytes"),
    ] {
        let Some(gateway) = Gateway::of(observed.dut_counters, gateway) else {
            return check(
                "dut-counters",
                false,
                format!("{gateway} shows no counters"),
            );
        };
        let bytes = gateway.count(payload_counter);
        let (balanced, balance) = gateway.balance();
        passed &= bytes >= carried && balanced;
        said.push(format!(
            "{} {way} {bytes} B in clear, of {carried} B or more expected, {balance}",
            gateway.name
        ));
    }
    check("dut-counters", passed, said.join("; "))
}

/// See [`asked::dut_as_asked`].
pub(super) fn dut_as_asked(observed: &Observed<'_>) -> Option<Check> {
    asked::dut_as_asked(
        observed.cell,
        observed.dut_facts,
        observed.dut_counters,
        None,
    )
}
